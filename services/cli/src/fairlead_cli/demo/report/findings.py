"""Findings of a run in sentences: the same on the page and on a terminal."""

from collections.abc import Mapping, Sequence
from math import ceil

from fairlead_cli.demo.report.figures import (
    TOLERANCE,
    DemoFigures,
    OrderedRun,
    TenantFigures,
    off_entitlement,
)
from fairlead_sim.meter import quantile

UNCONTENDED = (
    "The tenants never all had jobs waiting at once: there is no share to hold against an entitlement."
)
JAIN = "1 means exactly fair to everybody"
_WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_SAME_POINTS = 0.5
_MOST, _LATE_SECONDS = 0.9, 1.0
"""Part of the jobs that must come within so many seconds of their time; else the machine was too busy. A
queue stands for tens of seconds; a machine that keeps up is late by tenths of one."""


def finding(figures: DemoFigures, runs: Sequence[OrderedRun], overloaded: str = "") -> str:
    """The result in one sentence: what FIFO did, what Fairlead did, what urgent jobs had of it.

    Where the machine did not keep up, that alone: any claim would be about the machine.
    """
    if overloaded:
        return overloaded
    if figures.jain is None:
        return UNCONTENDED
    parts = [_fifo_gave(figures.tenants), _fairlead_kept(figures.tenants), _urgent_waited(runs[0], runs[1])]
    said = "; ".join(part for part in parts if part)
    return f"{said[0].upper()}{said[1:]}."


def overload(delays: Sequence[float]) -> str:
    """A sentence that the machine was too busy for the demo to show anything; empty where it kept up.

    Args:
        delays: seconds by which each job was late through no order.
    """
    late = quantile(delays, _MOST) if delays else 0.0
    if late <= _LATE_SECONDS:
        return ""
    return (
        f"This machine was too busy to show what Fairlead does: one job in ten came {late:.0f} s late or more, before "
        "anything could order it. The figures show the machine, not the order. Run the demo again when less else runs."
    )


def off_in_words(figures: DemoFigures) -> str:
    """The tenants whose share lies further from the entitlement than it may; empty where nobody's does."""
    off = [tenant.name for tenant in off_entitlement(figures)]
    return f"Further than {TOLERANCE:.0%} from their entitlement: {', '.join(off)}." if off else ""


def _fifo_gave(tenants: Sequence[TenantFigures]) -> str:
    """The tenant that FIFO treated worst, or best."""
    ratios = {
        one.name: one.share_fifo / one.entitlement for one in tenants if one.share_fifo and one.entitlement
    }
    if not ratios:
        return ""
    name, ratio = max(ratios.items(), key=lambda one: max(one[1], 1 / one[1]))
    extreme = _extreme(name, {one.name: one.weight for one in tenants})
    much = f"{ratio:.1f} times its share" if ratio >= 1 else f"{ratio:.0%} of its share"
    return f"FIFO gave {name}{extreme} {much}"


def _extreme(name: str, weights: Mapping[str, float]) -> str:
    others = [weight for other, weight in weights.items() if other != name]
    if others and weights[name] < min(others):
        return ", the lightest tenant,"
    return ", the heaviest tenant," if others and weights[name] > max(others) else ""


def _fairlead_kept(tenants: Sequence[TenantFigures]) -> str:
    off = {one.name: abs(one.share / one.entitlement - 1) for one in tenants if one.share is not None}
    name, worst = max(off.items(), key=lambda one: one[1])
    if worst > TOLERANCE:
        return f"Fairlead left {name} {worst:.0%} off its share"
    count = _WORDS[len(off)] if len(off) < len(_WORDS) else str(len(off))
    return f"Fairlead kept all {count} within {max(1, ceil(worst * 100 - 1e-9))} % of theirs"


def _urgent_waited(ours: OrderedRun, fifo: OrderedRun) -> str:
    if ours.first_class is None or ours.first_class_wait is None or fifo.first_class_wait is None:
        return ""
    return f"{ours.first_class} jobs waited {_seconds(ours.first_class_wait)} s instead of {_seconds(fifo.first_class_wait)} s"


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"  # noqa: PLR2004 # two digits tell enough


def against_fifo(tenant: TenantFigures) -> str:
    """Whether the tenant gains or pays against first come, first served, in points of the pool."""
    if tenant.share is None or tenant.share_fifo is None:
        return "-"
    points = (tenant.share - tenant.share_fifo) * 100
    if abs(points) < _SAME_POINTS:
        return "the same"
    return f"▲ gains {points:.1f} points" if points > 0 else f"▼ pays {-points:.1f} points"
