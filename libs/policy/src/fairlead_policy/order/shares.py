"""Shares and entitlements: what a start tag is the quotient of, for people to divide by eye."""

from fractions import Fraction
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from fairlead_contracts.messages.decisions import Place
from fairlead_policy.exact.ranking import ratio
from fairlead_policy.exact.terms import top_of
from fairlead_policy.order.position_columns import PositionColumns
from fairlead_policy.rules.pool_rules import NOTHING, PoolRules


def divided_by(rules: PoolRules) -> str | UnsetType:
    """What shares are divided by, where that is no entitlement: answers name it then."""
    return UNSET if rules.relative else "weight"


class Quotient(NamedTuple):
    """A start tag in two numbers. Of a tenant with children the share is that with H-DRF's rescaling."""

    share: float | None
    """Of the job's top-level tenant just before the job; None where it is of what the pool has not, or beyond counting."""
    entitled: float
    """0 where the tag is infinite by that."""


def quotient_of(place: Place, rules: PoolRules) -> Quotient:
    """The quotient that the tag of a place is."""
    entitled = rules.entitlement_of(top_of(place))
    if place.unbounded and place.unbounded_by != "weight":
        return Quotient(None, _float(entitled))
    if place.share:
        return Quotient(_float(Fraction(place.share) * entitled), _float(entitled))
    unit = rules.unit_share_by_name.get(place.dominant, NOTHING)
    return Quotient(_float(place.use * unit), _float(entitled))


def quotients_of(places: PositionColumns, rules: PoolRules) -> tuple[list[float | None], list[float]]:
    """The shares and the entitlements of places, as `quotient_of` of each."""
    units = {name: (unit.numerator, unit.denominator) for name, unit in rules.unit_share_by_name.items()}
    nothing = 0, 1
    shares: list[float | None] = [
        ratio(use * (unit := units.get(name, nothing))[0], unit[1])
        for name, use in zip(places.dominant, places.use, strict=True)
    ]
    for row, because in enumerate(places.unbounded_by):
        if because not in (None, "weight"):
            shares[row] = None
    for row, place in places.apart.items():
        if place.share:
            shares[row] = quotient_of(place, rules).share
    entitled = {top: _float(rules.entitlement_of(top)) for top in set(places.top)}
    return shares, [entitled[top] for top in places.top]


def _float(exact: Fraction) -> float:
    return ratio(exact.numerator, exact.denominator)
