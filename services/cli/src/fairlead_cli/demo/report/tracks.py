"""A rail a tenant with marks on it, as HTML: text keeps its size on a phone, where an SVG's would shrink."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fairlead_cli.demo.report.axes import share_ceiling, ticks
from fairlead_cli.demo.report.figures import TOLERANCE, OrderedRun
from fairlead_cli.demo.report.marks import GLYPHS, ORDER_CLASSES

_BAR_PIXELS = 11


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
