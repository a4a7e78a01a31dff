"""Plots as inline SVG: a panel a tenant, so that they stand beside each other or, on a phone, below each other."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

from fairlead_cli.demo.report.axes import share_ceiling, ticks
from fairlead_cli.demo.report.figures import OrderedRun
from fairlead_cli.demo.report.marks import ORDER_CLASSES

_WIDTH, _HEIGHT = 300, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 10, 26, 24

type Scale = Callable[[float], float]


def shares_over_time(runs: Sequence[OrderedRun], entitlements: Mapping[str, float]) -> str:
    """A panel a tenant: its share of what is in use, under each order, against its entitlement.

    All panels have one axis, and no line leaves it.
    """
    seen = [share for run in runs for point in run.course for share in point.shares.values()]
    top = share_ceiling(max([*entitlements.values(), *seen], default=1.0))
    end = max((run.makespan for run in runs), default=1.0) or 1.0
    panels = [_panel(tenant, part, runs, top=top, end=end) for tenant, part in entitlements.items()]
    return f'<div class="panels">{"".join(panels)}</div>'


def _panel(tenant: str, part: float, runs: Sequence[OrderedRun], *, top: float, end: float) -> str:
    inner_width = _WIDTH - _LEFT - _RIGHT
    inner_height = _HEIGHT - _TOP - _BOTTOM

    def x(seconds: float) -> float:
        return _LEFT + seconds / end * inner_width

    def y(share: float) -> float:
        return _TOP + (1 - share / top) * inner_height

    parts = [f'<text x="{_LEFT}" y="15" class="name">{escape(tenant)}</text>']
    if runs and runs[0].backlog is not None:
        begin, until = runs[0].backlog
        parts.append(
            f'<rect class="backlog" x="{x(begin):.1f}" y="{_TOP}" width="{x(until) - x(begin):.1f}" '
            f'height="{inner_height}"><title>all tenants have jobs waiting</title></rect>'
        )
    parts += [_grid_row(_LEFT, _LEFT + inner_width, y(share), f"{share:.0%}") for share in (0, top / 2, top)]
    parts += [_tick(x(second), _HEIGHT - 6, f"{second:g} s") for second in ticks(end, 3)]
    parts.append(
        f'<line class="entitled" x1="{x(0):.1f}" x2="{x(end):.1f}" y1="{y(part):.1f}" y2="{y(part):.1f}"/>'
    )
    parts += [
        _course(kind, run, tenant, x=x, y=y)
        for kind, run in reversed(list(zip(ORDER_CLASSES, runs, strict=False)))
    ]
    label = f"Share of {tenant} over time, under each order, against its entitlement"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _course(kind: str, run: OrderedRun, tenant: str, *, x: Scale, y: Scale) -> str:
    points = " ".join(f"{x(point.begin):.1f},{y(point.shares[tenant]):.1f}" for point in run.course)
    return f'<polyline class="line {kind}" points="{points}"><title>{escape(run.title)}</title></polyline>'


def _grid_row(left: float, right: float, height: float, label: str) -> str:
    return (
        f'<line class="grid" x1="{left}" x2="{right}" y1="{height:.1f}" y2="{height:.1f}"/>'
        f'<text x="{left - 4}" y="{height + 4:.1f}" class="tick" text-anchor="end">{label}</text>'
    )


def _tick(position: float, height: float, label: str) -> str:
    return f'<text x="{position:.1f}" y="{height:.1f}" class="tick" text-anchor="middle">{label}</text>'
