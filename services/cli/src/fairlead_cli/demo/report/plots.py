"""Plots as inline SVG: few shapes, colours from the page's CSS variables so that light and dark both read well."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from fairlead_cli.demo.report.figures import TOLERANCE, Bin, Run

WIDTH = 860
_PANEL_WIDTH, _PANEL_HEIGHT = 270, 150
_PANELS_PER_ROW = 3
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 8, 24, 22
_ROW = 40
_NAMES = 110
ORDER_CLASSES = ("fairlead", "fifo", "priority")
"""CSS classes of the runs, in the order in which a report lists them: ours first."""
_DOTS = {"fairlead": 0, "fifo": -7, "priority": 7}
"""Dots of equal shares stand beside each other."""

type Scale = Callable[[float], float]


def legend(titles: Sequence[str], *, entitled: bool = True) -> str:
    """What the colours mean, as HTML beside the plots."""
    items = "".join(
        f'<span class="key"><i class="swatch {kind}"></i>{escape(title)}</span>'
        for kind, title in zip(ORDER_CLASSES, titles, strict=False)
    )
    dashes = '<span class="key"><i class="swatch entitled"></i>entitlement</span>' if entitled else ""
    return f'<p class="legend">{items}{dashes}</p>'


def shares_over_time(runs: Sequence[Run], entitlements: Mapping[str, float]) -> str:
    """A panel a tenant: its share of what is in use, under each order, against its entitlement.

    The axis reaches as far as shares do while all have jobs waiting; once few are left a line may leave it at the top.
    """
    top = _ceiling(
        max(
            [
                *entitlements.values(),
                *(share for run in runs for point in _contended(run) for share in point.shares.values()),
            ],
            default=1.0,
        )
    )
    end = max((run.makespan for run in runs), default=1.0) or 1.0
    panels = [
        _panel(number, tenant, part, runs, top=top, end=end)
        for number, (tenant, part) in enumerate(entitlements.items())
    ]
    height = ceil(len(panels) / _PANELS_PER_ROW) * (_PANEL_HEIGHT + 20)
    return _svg(height, panels, "Share of each tenant over time, under each order, against its entitlement")


def _contended(run: Run) -> Iterable[Bin]:
    if run.backlog is None:
        return run.course
    begin, end = run.backlog
    return [point for point in run.course if begin <= point.begin <= end]


def _panel(number: int, tenant: str, part: float, runs: Sequence[Run], *, top: float, end: float) -> str:
    left = number % _PANELS_PER_ROW * (_PANEL_WIDTH + 25)
    upper = number // _PANELS_PER_ROW * (_PANEL_HEIGHT + 20)
    inner_width = _PANEL_WIDTH - _LEFT - _RIGHT
    inner_height = _PANEL_HEIGHT - _TOP - _BOTTOM

    def x(seconds: float) -> float:
        return _LEFT + seconds / end * inner_width

    def y(share: float) -> float:
        return _TOP + (1 - min(share, top) / top) * inner_height

    parts = [f'<text x="{_LEFT}" y="14" class="name">{escape(tenant)}</text>']
    if runs and runs[0].backlog is not None:
        begin, until = runs[0].backlog
        parts.append(
            f'<rect class="backlog" x="{x(begin):.1f}" y="{_TOP}" width="{x(until) - x(begin):.1f}" '
            f'height="{inner_height}"><title>all tenants have jobs waiting</title></rect>'
        )
    parts += [_grid_row(_LEFT, _LEFT + inner_width, y(share), f"{share:.0%}") for share in (0, top / 2, top)]
    parts += [_tick(x(second), _PANEL_HEIGHT - 6, f"{second:g} s") for second in _ticks(end, 3)]
    parts.append(_line("entitled", x(0), x(end), y(part)))
    parts += [
        _course(kind, run, tenant, x=x, y=y)
        for kind, run in reversed(list(zip(ORDER_CLASSES, runs, strict=False)))
    ]
    return f'<g transform="translate({left},{upper})">{"".join(parts)}</g>'


def _course(kind: str, run: Run, tenant: str, *, x: Scale, y: Scale) -> str:
    points = " ".join(f"{x(point.begin):.1f},{y(point.shares[tenant]):.1f}" for point in run.course)
    return f'<polyline class="line {kind}" points="{points}"><title>{escape(run.title)}</title></polyline>'


def shares_against_entitlement(runs: Sequence[Run], entitlements: Mapping[str, float]) -> str:
    """A row a tenant: its mean share under each order, its entitlement, and the band around it that counts as kept."""
    shares = [run.shares or {} for run in runs]
    top = _ceiling(max([*entitlements.values(), *(value for found in shares for value in found.values())]))

    def x(share: float) -> float:
        return _NAMES + share / top * (WIDTH - _NAMES - 60)

    rows = []
    for number, (tenant, part) in enumerate(entitlements.items()):
        middle = number * _ROW + _ROW / 2
        low, high = x(part * (1 - TOLERANCE)), x(part * (1 + TOLERANCE))
        rows.append(_row_name(tenant, middle))
        rows.append(f'<line class="grid" x1="{_NAMES}" x2="{x(top):.1f}" y1="{middle}" y2="{middle}"/>')
        rows.append(
            f'<rect class="band" x="{low:.1f}" y="{middle - 12}" width="{high - low:.1f}" height="24">'
            f"<title>within {TOLERANCE:.0%} of the entitlement</title></rect>"
        )
        rows.append(
            f'<line class="entitled" x1="{x(part):.1f}" x2="{x(part):.1f}" y1="{middle - 12}" y2="{middle + 12}"/>'
        )
        rows += [
            f'<circle class="dot {kind}" cx="{x(found[tenant]):.1f}" cy="{middle + _DOTS[kind]}" r="6">'
            f"<title>{escape(run.title)}: {found[tenant]:.1%} of {part:.1%}</title></circle>"
            for kind, run, found in reversed(list(zip(ORDER_CLASSES, runs, shares, strict=False)))
            if tenant in found
        ]
    bottom = len(entitlements) * _ROW
    rows += [_tick(x(share), bottom + 16, f"{share:.0%}") for share in _ticks(top, 5)]
    return _svg(bottom + 24, rows, "Mean share of each tenant under each order against its entitlement")


def waits_by_tenant(runs: Sequence[Run], tenants: Iterable[str]) -> str:
    """A row a tenant: under each order a bar from the median wait to the wait that 9 of 10 jobs stay below."""
    names = list(tenants)
    top = max((waits.p90 for run in runs for waits in run.by_tenant.values()), default=1.0) or 1.0
    step = 11
    height = step * len(runs) + 14

    def x(seconds: float) -> float:
        return _NAMES + seconds / top * (WIDTH - _NAMES - 60)

    rows = []
    for number, tenant in enumerate(names):
        upper = number * height
        rows.append(_row_name(tenant, upper + height / 2))
        for place, (kind, run) in enumerate(zip(ORDER_CLASSES, runs, strict=False)):
            waits = run.by_tenant.get(tenant)
            if waits is None:
                continue
            begin, end = x(waits.p50), x(waits.p90)
            rows.append(
                f'<rect class="bar {kind}" x="{begin:.1f}" y="{upper + 7 + place * step}" rx="3" '
                f'width="{max(end - begin, 3):.1f}" height="{step - 3}"><title>{escape(run.title)}: half within '
                f"{waits.p50:.1f} s, 9 of 10 within {waits.p90:.1f} s</title></rect>"
            )
    bottom = len(names) * height
    rows += [_tick(x(second), bottom + 14, f"{second:g} s") for second in _ticks(top, 6)]
    return _svg(bottom + 22, rows, "Waits by tenant under each order, from the median to the 90th percentile")


def _svg(height: float, parts: Iterable[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _row_name(name: str, middle: float) -> str:
    return f'<text x="{_NAMES - 10}" y="{middle + 4}" class="name" text-anchor="end">{escape(name)}</text>'


def _grid_row(left: float, right: float, height: float, label: str) -> str:
    return (
        f'<line class="grid" x1="{left}" x2="{right}" y1="{height:.1f}" y2="{height:.1f}"/>'
        f'<text x="{left - 4}" y="{height + 4:.1f}" class="tick" text-anchor="end">{label}</text>'
    )


def _line(kind: str, left: float, right: float, height: float) -> str:
    return f'<line class="{kind}" x1="{left:.1f}" x2="{right:.1f}" y1="{height:.1f}" y2="{height:.1f}"/>'


def _tick(position: float, height: float, label: str) -> str:
    return f'<text x="{position:.1f}" y="{height:.1f}" class="tick" text-anchor="middle">{label}</text>'


def _ticks(top: float, count: int) -> list[float]:
    """Round values from 0 up to `top`, about `count` steps of them."""
    rough = top / count
    power = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * number for number in range(floor(top / step + 1e-9) + 1)]


def _ceiling(share: float) -> float:
    """The end of a share axis: the next tenth above, at most the whole."""
    return min(1.0, max(0.1, ceil(share * 10) / 10))
