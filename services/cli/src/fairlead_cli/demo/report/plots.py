"""Plots: shares over time as inline SVG, a panel a tenant; what each tenant got and waited as rails of HTML.

Panels stand beside each other or, on a phone, below each other. Rails are text, which keeps its size there. The orders are told
apart by shape and dash, not by colour alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from fairlead_cli.demo.report.figures import TOLERANCE, OrderedRun

ORDER_CLASSES = ("fairlead", "fifo", "priority")
"""CSS classes of the runs, in the order in which a report lists them: ours first."""
GLYPHS = {"fairlead": "●", "fifo": "■", "priority": "▲"}
_STROKES = {"fairlead": "━━", "fifo": "╍╍", "priority": "┅┅"}

_BAR_PIXELS = 11
_WIDTH, _HEIGHT = 300, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 10, 26, 24

type AxisScale = Callable[[float], float]


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


def _course(kind: str, run: OrderedRun, tenant: str, *, x: AxisScale, y: AxisScale) -> str:
    points = " ".join(f"{x(point.begin):.1f},{y(point.shares[tenant]):.1f}" for point in run.course)
    return f'<polyline class="line {kind}" points="{points}"><title>{escape(run.title)}</title></polyline>'


def _grid_row(left: float, right: float, height: float, label: str) -> str:
    return (
        f'<line class="grid" x1="{left}" x2="{right}" y1="{height:.1f}" y2="{height:.1f}"/>'
        f'<text x="{left - 4}" y="{height + 4:.1f}" class="tick" text-anchor="end">{label}</text>'
    )


def _tick(position: float, height: float, label: str) -> str:
    return f'<text x="{position:.1f}" y="{height:.1f}" class="tick" text-anchor="middle">{label}</text>'


def ticks(top: float, count: int) -> list[float]:
    """Round values from 0 up to `top`, about `count` steps of them."""
    rough = top / count
    power = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * number for number in range(floor(top / step + 1e-9) + 1)]


def share_ceiling(share: float) -> float:
    """The end of a share axis: the next tenth above, at most the whole."""
    return min(1.0, max(0.1, ceil(share * 10 - 1e-9) / 10))


def legend(titles: Sequence[str], *, entitled: bool = True, lines: bool = False) -> str:
    """The legend of the plots as HTML: their marks, or their strokes where there are `lines`."""
    marks = _STROKES if lines else GLYPHS
    items = "".join(
        f'<span class="key"><i class="glyph {kind}">{marks[kind]}</i>{escape(title)}</span>'
        for kind, title in zip(ORDER_CLASSES, titles, strict=False)
    )
    dots = '<span class="key"><i class="glyph entitled">⋯</i>entitlement</span>' if entitled else ""
    return f'<p class="legend">{items}{dots}</p>'


def shares_against_entitlement(runs: Sequence[OrderedRun], entitlements: Mapping[str, float]) -> str:
    """A rail a tenant: its mean share under each order, its entitlement, and the band around it that counts as kept."""
    shares = [run.shares or {} for run in runs]
    top = share_ceiling(
        max([*entitlements.values(), *(value for found in shares for value in found.values())])
    )

    def marks(tenant: str, part: float) -> Iterable[str]:
        low, width = _percent(part * (1 - TOLERANCE), top), _percent(2 * part * TOLERANCE, top)
        yield f'<i class="band" style="left:{low};width:{width}" title="within {TOLERANCE:.0%} of the entitlement"></i>'
        yield f'<i class="entitled" style="left:{_percent(part, top)}" title="entitled to {part:.1%}"></i>'
        for kind, run, found in reversed(list(zip(ORDER_CLASSES, runs, shares, strict=False))):
            if tenant in found:
                said = f"{escape(run.title)}: {found[tenant]:.1%} of {part:.1%}"
                place = _percent(found[tenant], top)
                yield f'<i class="dot {kind}" style="left:{place}" title="{said}">{GLYPHS[kind]}</i>'

    rows = [_track(tenant, marks(tenant, part)) for tenant, part in entitlements.items()]
    axis = _axis((_percent(share, top), f"{share:.0%}") for share in ticks(top, 4))
    return _tracks("Mean share of each tenant under each order against its entitlement", rows, axis)


def waits_by_tenant(runs: Sequence[OrderedRun], tenants: Iterable[str]) -> str:
    """A rail a tenant: under each order a bar from the median wait to the wait that 9 of 10 jobs stay below."""
    top = max((waits.p90 for run in runs for waits in run.by_tenant.values()), default=1.0) or 1.0

    def marks(tenant: str) -> Iterable[str]:
        for place, (kind, run) in enumerate(zip(ORDER_CLASSES, runs, strict=False)):
            waits = run.by_tenant.get(tenant)
            if waits is not None:
                said = f"{escape(run.title)}: half within {waits.p50:.1f} s, 9 of 10 within {waits.p90:.1f} s"
                begin, width = _percent(waits.p50, top), _percent(waits.p90 - waits.p50, top)
                yield (
                    f'<i class="bar {kind}" style="left:{begin};width:{width};top:{place * _BAR_PIXELS}px" '
                    f'title="{said}"></i>'
                )

    rows = [_track(tenant, marks(tenant)) for tenant in tenants]
    axis = _axis((_percent(second, top), f"{second:g} s") for second in ticks(top, 4))
    return _tracks("Waits by tenant under each order, from the median to the 90th percentile", rows, axis)


def _tracks(label: str, rows: Iterable[str], axis: str) -> str:
    return f'<div class="tracks" role="img" aria-label="{escape(label)}">{"".join(rows)}{axis}</div>'


def _track(name: str, marks: Iterable[str]) -> str:
    return f'<div class="track"><span class="name">{escape(name)}</span><div class="rail">{"".join(marks)}</div></div>'


def _axis(labels: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f'<i style="left:{place}">{label}</i>' for place, label in labels)
    return f'<div class="axis"><span></span><div class="rail">{cells}</div></div>'


def _percent(value: float, top: float) -> str:
    return f"{value / top:.2%}"
