"""The report for a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairlead_cli.demo.report.contents import DemoReport
from fairlead_cli.demo.report.figures import TOLERANCE, TenantFigures
from fairlead_cli.demo.report.findings import JAIN, finding, off_in_words
from fairlead_cli.demo.report.page import number, wait_rows

COURSE_STEPS = 12
"""Columns of the shares over time: more do not fit beside the names."""


def render_text(report: DemoReport) -> RenderableType:
    """Shares, their course, waits, and what was run."""
    return Group(
        Text("\nShare of the pool against entitlement, while every tenant had jobs waiting", style="bold"),
        _shares(report),
        Text(f"Jain's index: {JAIN}.", style="dim"),
        Text("\nFairlead's shares over time (what each tenant holds of what is in use)", style="bold"),
        _course(report),
        Text("\nWaits by tenant and class: median / 90th percentile, seconds of wall time", style="bold"),
        _waits(report),
        Text(""),
        *_verdict(report),
        *(Text(f"· {fact}", style="dim") for fact in report.facts),
    )


def _shares(report: DemoReport) -> Table:
    table = _table("tenant", numbers=["weight", "entitled", *(run.title for run in report.runs), "jobs"])
    for tenant in report.figures.tenants:
        table.add_row(
            tenant.name,
            f"{tenant.weight:g}",
            f"{tenant.entitlement:.1%}",
            *(_share(tenant, (run.shares or {}).get(tenant.name)) for run in report.runs),
            str(tenant.jobs),
        )
    table.add_section()
    table.add_row(
        "Jain's index", "", "", *(number(run.jain, "{:.3f}") for run in report.runs), "", style="bold"
    )
    return table


def _share(tenant: TenantFigures, share: float | None) -> Text:
    near = share is not None and abs(share - tenant.entitlement) <= TOLERANCE * tenant.entitlement
    return Text(number(share, "{:.1%}"), style="green" if near else "yellow")


def _course(report: DemoReport) -> Table:
    course, span = report.runs[0].course, report.runs[0].backlog
    steps = [course[number * len(course) // COURSE_STEPS] for number in range(COURSE_STEPS)] if course else []
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("tenant")
    for step in steps:
        backlogged = span is not None and span[0] <= step.begin <= span[1]
        table.add_column(f"{step.begin:.0f}s", justify="right", style="" if backlogged else "dim")
    for tenant in report.figures.tenants:
        table.add_row(tenant.name, *(f"{step.shares[tenant.name]:.0%}" for step in steps))
    return table


def _waits(report: DemoReport) -> Table:
    table = _table("tenant", "class", numbers=["jobs", *(run.title for run in report.runs)])
    for row in wait_rows(report):
        table.add_row(*row)
    return table


def _table(*names: str, numbers: Sequence[str]) -> Table:
    """A table without lines: columns of names, then columns of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name in (*names, *numbers):
        table.add_column(name, justify="left" if name in names else "right")
    return table


def _verdict(report: DemoReport) -> Iterator[Text]:
    figures = report.figures
    off = "" if report.overload else off_in_words(figures)
    style = "yellow" if report.overload or figures.jain is None or off else "green"
    yield Text(finding(figures, report.runs, report.overload), style=style)
    counted = f"{figures.submitted} jobs submitted, {figures.finished} finished, {figures.lost} lost."
    yield Text(f"{counted} {off}" if off else counted)
