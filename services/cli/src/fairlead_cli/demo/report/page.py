"""The report as one HTML file: no script, no font, no picture from elsewhere; it can be mailed and kept."""

from collections.abc import Iterable, Sequence
from html import escape

import msgspec

from fairlead_cli.demo.report.figures import TOLERANCE, Figures, Run, TenantFigures, off_entitlement
from fairlead_cli.demo.report.plots import (
    legend,
    shares_against_entitlement,
    shares_over_time,
    waits_by_tenant,
)

_STYLE = """
:root { color-scheme: light dark; --bg: #fbfbfa; --card: #fff; --ink: #1d2126; --soft: #5d6570; --rule: #e2e5e9;
  --fairlead: #2a6fd6; --fifo: #d9730d; --priority: #7a5cc4; --entitled: #1d2126; --band: #2a6fd61f; --backlog: #8a94a01a;
  --bad: #b42318; --good: #17734a; }
@media (prefers-color-scheme: dark) { :root { --bg: #15181c; --card: #1c2025; --ink: #e8eaed; --soft: #9aa3ad; --rule: #31373f;
  --fairlead: #6aa5ff; --fifo: #f0a04b; --priority: #b39bf0; --entitled: #e8eaed; --band: #6aa5ff2e; --backlog: #9aa3ad1f;
  --bad: #ff8a7a; --good: #5fcf9a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 940px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 4px; }
p { margin: 0 0 12px; } .soft, .legend { color: var(--soft); }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 18px 20px; margin-top: 18px; overflow-x: auto; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 12px; margin-top: 18px; }
.tile { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 12px 14px; }
.tile b { display: block; font-size: 24px; font-variant-numeric: tabular-nums; } .tile span { color: var(--soft); font-size: 13px; }
.good { color: var(--good); } .bad { color: var(--bad); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: 13px; } th:first-child, td:first-child { text-align: left; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .tick { fill: var(--soft); font-size: 11px; } svg .name { font-weight: 600; }
.grid { stroke: var(--rule); } .backlog { fill: var(--backlog); } .band { fill: var(--band); }
line.entitled { stroke: var(--entitled); stroke-width: 1.5; stroke-dasharray: 5 3; }
.line { fill: none; stroke-width: 1.4; stroke-linejoin: round; } .line.fairlead { stroke-width: 2.4; }
.line.fairlead { stroke: var(--fairlead); } .line.fifo { stroke: var(--fifo); } .line.priority { stroke: var(--priority); }
.dot { stroke: var(--card); stroke-width: 1.5; } .dot.fairlead, .bar.fairlead { fill: var(--fairlead); }
.dot.fifo, .bar.fifo { fill: var(--fifo); } .dot.priority, .bar.priority { fill: var(--priority); }
.key { margin-right: 18px; white-space: nowrap; } .swatch { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; }
.swatch.fairlead { background: var(--fairlead); } .swatch.fifo { background: var(--fifo); } .swatch.priority { background: var(--priority); }
.swatch.entitled { height: 0; border-top: 2px dashed var(--entitled); border-radius: 0; vertical-align: middle; width: 18px; }
"""


UNCONTENDED = (
    "The tenants never all had jobs waiting at once: there is no share to hold against an entitlement."
)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the text and the page say."""

    figures: Figures
    runs: Sequence[Run]
    """Fairlead's first, then FIFO, then strict priority."""
    facts: Sequence[str]
    """What was run and how, a sentence each: the trace and its licence, the speed-up, the cluster."""


def render_page(report: Report) -> str:
    """The whole HTML file."""
    entitlements = {tenant.name: tenant.entitlement for tenant in report.figures.tenants}
    titles = [run.title for run in report.runs]
    key = legend(titles)
    facts = "".join(f"<li>{escape(fact)}</li>" for fact in report.facts)
    sections = [
        _section(
            "Share against entitlement",
            "Mean dominant share over the sum of the tenants' while every tenant has jobs waiting. "
            f"The band is {TOLERANCE:.0%} around the entitlement.",
            key + shares_against_entitlement(report.runs, entitlements),
        ),
        _section(
            "Share over time",
            "Of what is in use. Grey: every tenant has jobs waiting; "
            "after it, those with work left share what the others no longer want.",
            key + shares_over_time(report.runs, entitlements),
        ),
        _section(
            "Waits by tenant",
            "From the median to the wait that 9 of 10 jobs stay below, in seconds of wall time.",
            legend(titles, entitled=False) + waits_by_tenant(report.runs, entitlements),
        ),
        _section("Figures", "", _figures_table(report.figures.tenants)),
        _section(
            "Waits by tenant and class",
            "Seconds of wall time: median / 90th percentile.",
            _class_table(report),
        ),
        _section("How this was made", "", f"<ul>{facts}</ul>"),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Fairlead demo</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>Fairlead demo</h1>{_verdict(report.figures)}{_tiles(report)}{''.join(sections)}</main></body></html>\n"
    )


def _verdict(figures: Figures) -> str:
    if figures.jain is None:
        return f'<p class="bad">{UNCONTENDED}</p>'
    off = [tenant.name for tenant in off_entitlement(figures)]
    if off:
        return f'<p class="bad">Further than {TOLERANCE:.0%} from their entitlement: {escape(", ".join(off))}.</p>'
    return f'<p class="good">Every tenant held its entitlement within {TOLERANCE:.0%} while all had jobs waiting.</p>'


def _tiles(report: Report) -> str:
    figures = report.figures
    tiles = [
        (f"{figures.submitted}", "jobs submitted", ""),
        (f"{figures.finished}", "finished", ""),
        (f"{figures.lost}", "lost", "bad" if figures.lost else "good"),
        *((number(run.jain, "{:.3f}"), f"Jain index, {run.title}", "") for run in report.runs),
    ]
    cells = "".join(
        f'<div class="tile"><b class="{kind}">{value}</b><span>{escape(label)}</span></div>'
        for value, label, kind in tiles
    )
    return f'<div class="tiles">{cells}</div>'


def _section(title: str, lead: str, body: str) -> str:
    lead_line = f'<p class="soft">{escape(lead)}</p>' if lead else ""
    return f"<section><h2>{escape(title)}</h2>{lead_line}{body}</section>"


def _figures_table(tenants: Iterable[TenantFigures]) -> str:
    head = ["tenant", "weight", "entitlement", "share", "share, FIFO", "wait p50", "wait p90", "jobs"]
    rows = [
        [
            tenant.name,
            f"{tenant.weight:g}",
            f"{tenant.entitlement:.1%}",
            number(tenant.share, "{:.1%}"),
            number(tenant.share_fifo, "{:.1%}"),
            number(tenant.wait_p50, "{:.1f} s"),
            number(tenant.wait_p90, "{:.1f} s"),
            str(tenant.jobs),
        ]
        for tenant in tenants
    ]
    return _table(head, rows)


def _class_table(report: Report) -> str:
    head = ["tenant", "class", "jobs", *(run.title for run in report.runs)]
    rows = [
        [*group, str(waits.jobs), *(waits_cell(run, group) for run in report.runs)]
        for group, waits in report.runs[0].by_class.items()
    ]
    return _table(head, rows)


def waits_cell(run: Run, group: tuple[str, str]) -> str:
    """Median and 90th percentile of a tenant's jobs of one class."""
    waits = run.by_class.get(group)
    return "-" if waits is None else f"{waits.p50:.1f} / {waits.p90:.1f}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def number(value: float | None, form: str) -> str:
    """The value in this form, or a dash where there is none."""
    return "-" if value is None else form.format(value)
