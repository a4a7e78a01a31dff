"""The same jobs under other orders, in virtual time, and the report that sets them beside the run."""

from collections.abc import Sequence

from fairlead_cli.demo.report.figures import Figures, Run, figures, study
from fairlead_cli.demo.report.page import Report
from fairlead_sim import Fifo, RunResult, StrictPriority, VirtualRun, Workload

FAIRLEAD, FIFO, PRIORITY = "Fairlead", "FIFO", "strict priority"


def compare(workload: Workload) -> list[Run]:
    """The workload first come first served, and by class alone."""
    classes = workload.policy.classes
    fifo = VirtualRun(workload, Fifo()).run()
    priority = VirtualRun(workload, StrictPriority(classes)).run()
    return [study(FIFO, fifo, classes=classes), study(PRIORITY, priority, classes=classes)]


def report_on(
    workload: Workload,
    result: RunResult,
    others: Sequence[Run],
    *,
    finished: int,
    lost: int,
    facts: Sequence[str],
) -> Report:
    """The report of a live run.

    Args:
        workload: what was submitted.
        result: what happened.
        others: see `compare`.
        finished: how many ran to a good end.
        lost: how many nobody can account for.
        facts: how it was run, a sentence each.
    """
    ours = study(FAIRLEAD, result, classes=workload.policy.classes)
    return Report(
        figures=_figures(workload, ours, others[0], finished=finished, lost=lost),
        runs=[ours, *others],
        facts=facts,
    )


def _figures(workload: Workload, ours: Run, fifo: Run, *, finished: int, lost: int) -> Figures:
    jobs = dict.fromkeys(workload.tenants, 0)
    for job in workload.jobs:
        jobs[job.tenant] += 1
    return figures(workload.weights, ours=ours, fifo=fifo, jobs=jobs, finished=finished, lost=lost)
