"""The same jobs under other orders, in virtual time, and the report that sets them beside the run."""

from collections.abc import Sequence

from fairlead_cli.demo.report.contents import DemoReport, JobStory, Made, Told
from fairlead_cli.demo.report.figures import DemoFigures, OrderedRun, figures, study
from fairlead_cli.demo.report.findings import overload
from fairlead_contracts.base.instants import to_seconds
from fairlead_sim.virtual import Fifo, RunResult, StrictPriority, VirtualRun
from fairlead_sim.workload import SimWorkload

FAIRLEAD, FIFO, PRIORITY = "Fairlead", "FIFO", "strict priority"


def compare(workload: SimWorkload) -> list[OrderedRun]:
    """The workload first come first served, and by class alone."""
    classes = workload.policy.classes
    fifo = VirtualRun(workload, Fifo()).run()
    priority = VirtualRun(workload, StrictPriority(classes)).run()
    return [study(FIFO, fifo, classes=classes), study(PRIORITY, priority, classes=classes)]


def report_on(
    workload: SimWorkload,
    result: RunResult,
    others: Sequence[OrderedRun],
    *,
    finished: int,
    lost: int,
    facts: Sequence[str],
    made: Made | None = None,
    told: Told | None = None,
    delays: Sequence[float] = (),
) -> DemoReport:
    """The report of a live run.

    Args:
        workload: what was submitted.
        result: what happened.
        others: see `compare`.
        finished: how many ran to a good end.
        lost: how many nobody can account for.
        facts: how it was run, a sentence each.
        made: when, with what and how.
        told: what was said of one of the jobs while it waited.
        delays: of each job, seconds by which it was late through no order.
    """
    ours = study(FAIRLEAD, result, classes=workload.policy.classes)
    return DemoReport(
        figures=_figures(workload, ours, others[0], finished=finished, lost=lost),
        runs=[ours, *others],
        facts=facts,
        made=made,
        overload=overload(delays),
        story=None if told is None else _story(told, result, others[0]),
    )


def _story(told: Told, result: RunResult, fifo: OrderedRun) -> JobStory | None:
    """None where the job never started."""
    job = next((one for one in result.jobs if one.id == told.job), None)
    if job is None:
        return None
    submitted = to_seconds(job.submitted)
    return JobStory(told=told, submitted=submitted, waited=job.waited, waited_fifo=fifo.waited.get(job.id))


def _figures(
    workload: SimWorkload, ours: OrderedRun, fifo: OrderedRun, *, finished: int, lost: int
) -> DemoFigures:
    jobs = dict.fromkeys(workload.tenants, 0)
    for job in workload.jobs:
        jobs[job.tenant] += 1
    return figures(workload.weights, ours=ours, fifo=fifo, jobs=jobs, finished=finished, lost=lost)
