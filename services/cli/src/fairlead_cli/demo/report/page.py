"""The report as one HTML file: no script, no font, no picture from elsewhere; it can be mailed and kept."""

from collections.abc import Callable, Iterable, Iterator
from html import escape
from importlib import resources

from fairlead_cli.demo.report.contents import DemoReport
from fairlead_cli.demo.report.figures import TOLERANCE, OrderedRun, TenantFigures
from fairlead_cli.demo.report.findings import JAIN, against_fifo, finding, off_in_words
from fairlead_cli.demo.report.plots import (
    legend,
    shares_against_entitlement,
    shares_over_time,
    waits_by_tenant,
)


def render_page(report: DemoReport) -> str:
    """The whole HTML file."""
    entitlements = {tenant.name: tenant.entitlement for tenant in report.figures.tenants}
    titles = [run.title for run in report.runs]
    key = legend(titles)
    facts = "".join(f"<li>{escape(fact)}</li>" for fact in report.facts)
    sections = [
        _section(
            "Share against entitlement",
            "Each tenant's mean dominant share, of all tenants' together, while every tenant has jobs waiting. "
            f"The band is {TOLERANCE:.0%} around the entitlement.",
            key + shares_against_entitlement(report.runs, entitlements),
        ),
        _section(
            "Share over time",
            "Each tenant's part of what is in use. Grey: every tenant has jobs waiting. After that, those with work left "
            "share what the others no longer want.",
            legend(titles, lines=True) + shares_over_time(report.runs, entitlements),
        ),
        _section(
            "Waits by tenant",
            "From the median to the wait that 9 of 10 jobs stay below, in seconds of wall time.",
            legend(titles, entitled=False) + waits_by_tenant(report.runs, entitlements),
        ),
        _section(
            "Who gains, who pays",
            "Against first come, first served, in points of the pool, while every tenant has jobs waiting.",
            _figures_table(report.figures.tenants),
        ),
        _section(
            "Waits by tenant and class",
            "Seconds of wall time: median / 90th percentile.",
            _class_table(report),
        ),
        _section("How this was made", "", f"<ul>{facts}</ul>"),
    ]
    if report.story is not None:
        sections.insert(
            3, _section("One job, followed", report.story.in_words(), _said(report.story.told.text))
        )
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Fairlead demo</title><style>{style}</style></head><body><main>"
        f"{_opening(report)}{_tiles(report)}{''.join(sections)}</main></body></html>\n"
    )


def _opening(report: DemoReport) -> str:
    """The top of the page: the finding, whether it is a good one, then when and with what it was made."""
    made = f'<p class="made">{escape(report.made)}</p>' if report.made else ""
    said = escape(finding(report.figures, report.runs, report.overload))
    off = "" if report.overload else off_in_words(report.figures)
    warning = f'<p class="bad">{escape(off)}</p>' if off else ""
    return f'<h1>Fairlead demo</h1><p class="finding">{said}</p>{warning}{made}'


def _said(text: str) -> str:
    """A block for each line, so that what is wrapped hangs below its beginning."""
    lines = "".join(f"<span>{escape(line)}</span>" for line in text.splitlines())
    return f"<pre>{lines}</pre>"


def _tiles(report: DemoReport) -> str:
    figures = report.figures
    tiles = [
        (f"{figures.submitted}", "jobs submitted", ""),
        (f"{figures.finished}", "finished", ""),
        (f"{figures.lost}", "lost", "bad" if figures.lost else "good"),
        *((number(run.jain, "{:.3f}"), f"Jain's index, {run.title}: {JAIN}", "") for run in report.runs),
    ]
    cells = "".join(
        f'<div class="tile"><strong class="{kind}">{value}</strong><span>{escape(label)}</span></div>'
        for value, label, kind in tiles
    )
    return f'<div class="tiles">{cells}</div>'


def _section(title: str, lead: str, body: str) -> str:
    lead_line = f'<p class="soft">{escape(lead)}</p>' if lead else ""
    return f"<section><h2>{escape(title)}</h2>{lead_line}{body}</section>"


def _figures_table(tenants: Iterable[TenantFigures]) -> str:
    columns: dict[str, Callable[[TenantFigures], str]] = {
        "tenant": lambda one: one.name,
        "against FIFO": against_fifo,
        "share": lambda one: number(one.share, "{:.1%}"),
        "share, FIFO": lambda one: number(one.share_fifo, "{:.1%}"),
        "entitlement": lambda one: f"{one.entitlement:.1%}",
        "weight": lambda one: f"{one.weight:g}",
        "wait p50": lambda one: number(one.wait_p50, "{:.1f} s"),
        "wait p90": lambda one: number(one.wait_p90, "{:.1f} s"),
        "jobs": lambda one: str(one.jobs),
    }
    return _table(columns, ([cell(tenant) for cell in columns.values()] for tenant in tenants))


def _class_table(report: DemoReport) -> str:
    head = ["tenant", "class", "jobs", *(run.title for run in report.runs)]
    return _table(head, wait_rows(report))


def wait_rows(report: DemoReport) -> Iterator[list[str]]:
    """A row for each tenant and class: how many jobs, and their waits under each order."""
    for group, waits in report.runs[0].by_class.items():
        yield [*group, str(waits.jobs), *(_waits_cell(run, group) for run in report.runs)]


def _waits_cell(run: OrderedRun, group: tuple[str, str]) -> str:
    waits = run.by_class.get(group)
    return "-" if waits is None else f"{waits.p50:.1f} / {waits.p90:.1f}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def number(value: float | None, form: str) -> str:
    """The value in this form, or a dash where there is none."""
    return "-" if value is None else form.format(value)
