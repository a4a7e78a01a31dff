"""Shares and entitlements: what a start tag is the quotient of, for people to divide by eye."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from fairlead_contracts.messages.decisions import Place
from fairlead_policy.exact.ranking import ratio
from fairlead_policy.exact.terms import top_of
from fairlead_policy.order.position_columns import PlacedJob, PositionColumns
from fairlead_policy.order.tree_columns import TreeColumns
from fairlead_policy.rules.pool_rules import NOTHING, PoolRules


class Quotient(NamedTuple):
    """A start tag in two numbers. Of a tenant with children the share is that with H-DRF's rescaling."""

    share: float | None
    """Of the job's top-level tenant just before the job; None where it is of what the pool has not, or beyond counting."""
    entitled: float
    """0 where the tag is infinite by that."""


def quotient_of(place: Place, rules: PoolRules) -> Quotient:
    """What the tag of a place is the quotient of."""
    entitled = rules.entitlement_of(top_of(place))
    if place.unbounded and place.unbounded_by != "weight":
        return Quotient(None, _float(entitled))
    if place.share:
        return Quotient(_float(Fraction(place.share) * entitled), _float(entitled))
    unit = rules.unit_share_by_name.get(place.dominant, NOTHING)
    return Quotient(_float(place.use * unit), _float(entitled))


def quotients_of(places: PositionColumns[PlacedJob], rules: PoolRules) -> tuple[list[float], list[float]]:
    """The shares and the entitlements of places, as `quotient_of` of each."""
    units = {name: (unit.numerator, unit.denominator) for name, unit in rules.unit_share_by_name.items()}
    units[""] = 0, 1
    shares = [
        ratio(use * units[name][0], units[name][1])
        for name, use in zip(places.dominant, places.use, strict=True)
    ]
    tops = _tops(places)
    entitled = {top: _float(rules.entitlement_of(top)) for top in set(tops)}
    return shares, [entitled[top] for top in tops]


def _tops(places: PositionColumns[PlacedJob]) -> Sequence[str]:
    return places.top if isinstance(places, TreeColumns) else [job.tenant for job in places.jobs]


def _float(exact: Fraction) -> float:
    return ratio(exact.numerator, exact.denominator)
