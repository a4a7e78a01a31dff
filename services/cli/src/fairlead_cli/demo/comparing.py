"""The end of a demo: its jobs under other orders, in virtual time, the report of all, and the exit code."""

from collections.abc import Sequence

import msgspec

from fairlead_cli.console import fail, output, say, warn, write_line
from fairlead_cli.demo.flags import DemoFlags
from fairlead_cli.demo.recording import Recording
from fairlead_cli.demo.report.contents import DemoReport, ExplainedJob, JobStory
from fairlead_cli.demo.report.figures import OrderedRun, figures, off_entitlement, study
from fairlead_cli.demo.report.findings import overload
from fairlead_cli.demo.report.page import render_page
from fairlead_cli.demo.report.text import render_text
from fairlead_contracts.base.instants import to_seconds
from fairlead_sim.virtual import RunResult, VirtualRun, fifo, strict_priority
from fairlead_sim.workload import SimWorkload

FAIRLEAD, FIFO, PRIORITY = "Fairlead", "FIFO", "strict priority"


def compare(workload: SimWorkload) -> list[OrderedRun]:
    """The workload first come first served, and by class alone."""
    classes = workload.policy.classes
    first_come = VirtualRun(workload, fifo).run()
    priority = VirtualRun(workload, strict_priority(classes)).run()
    return [study(FIFO, first_come, classes=classes), study(PRIORITY, priority, classes=classes)]


def report_on(
    workload: SimWorkload,
    result: RunResult,
    others: Sequence[OrderedRun],
    *,
    finished: int,
    lost: int,
    facts: Sequence[str],
    made: str = "",
    told: ExplainedJob | None = None,
    delays: Sequence[float] = (),
) -> DemoReport:
    """The report of a live run.

    Args:
        workload: the jobs that were submitted.
        finished: number of jobs that ran to a good end.
        lost: number of jobs that nobody can account for.
        facts: sentences on how it was run.
        made: the line on when, with what and how it was made.
        told: the answer on one of the jobs while it waited.
        delays: seconds by which each job was late through no order.
    """
    ours = study(FAIRLEAD, result, classes=workload.policy.classes)
    return DemoReport(
        figures=figures(workload, ours=ours, fifo=others[0], finished=finished, lost=lost),
        runs=[ours, *others],
        facts=facts,
        made=made,
        overload=overload(delays),
        story=None if told is None else _story(told, result, others[0]),
    )


def _story(told: ExplainedJob, result: RunResult, fifo: OrderedRun) -> JobStory | None:
    """The story of the job that was told of; None where it never started."""
    job = next((one for one in result.jobs if one.id == told.job), None)
    if job is None:
        return None
    submitted = to_seconds(job.submitted)
    return JobStory(told=told, submitted=submitted, waited=job.waited, waited_fifo=fifo.waited.get(job.id))


def facts_of(workload: SimWorkload, flags: DemoFlags, recording: Recording, restarts: int) -> Sequence[str]:
    """Sentences on how the demo was run."""
    took_back = [f"{restarts} processes were started again on the way."] if restarts else []
    gpus = workload.capacity()["nvidia.com/gpu"] // 1000
    return [
        *workload.notes,
        *(
            []
            if flags.trace
            else ["The trace ships with fairlead_sim, beside its licence and where it comes from."]
        ),
        f"{gpus} GPUs, {flags.scorers} scorers, seed {flags.seed}.",
        f"{len(workload.jobs)} jobs took {recording.level_writes} writes of a level.",
        "Shares are dominant shares, as parts of all tenants' together; waits are seconds of wall time.",
        "FIFO and strict priority are the same jobs on the same cluster in virtual time.",
        *took_back,
    ]


def print_report(report: DemoReport, flags: DemoFlags) -> None:
    """Print figures or report, and write the page."""
    if flags.json:
        write_line(msgspec.json.encode(report.figures).decode())
        if report.overload:
            warn(report.overload)
    else:
        output().print(render_text(report))
    if flags.page is not None:
        flags.page.write_text(render_page(report), encoding="utf-8")
        say(f"report: {flags.page.absolute()}")


def verdict(report: DemoReport, recording: Recording) -> int:
    """Say what did not go well; the exit code is 0 only if every submitted job finished."""
    figures = report.figures
    if figures.jain is None and not report.overload:
        warn(
            "the tenants never all had jobs waiting at once: there is no share to hold against an entitlement"
        )
    for tenant in [] if report.overload else off_entitlement(figures):
        if tenant.share is not None:
            warn(f"{tenant.name} held {tenant.share:.1%}, entitled to {tenant.entitlement:.1%}")
    for refused in recording.refused.values():
        fail(f"{refused.tenant}/{refused.id} was refused: {refused.field}: {refused.reason}")
    if figures.lost:
        fail(f"{figures.lost} jobs were lost")
    late = figures.submitted - figures.finished - figures.lost - len(recording.refused)
    if late:
        fail(f"{late} jobs had not ended when the time was up")
    return 0 if figures.finished == figures.submitted else 1
