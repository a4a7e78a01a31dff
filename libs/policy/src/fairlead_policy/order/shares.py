"""Shares and entitlements: what a start tag is the quotient of, for people to divide by eye."""

from functools import cache

from msgspec import UNSET, UnsetType

from fairlead_policy.exact.ranking import nearest_float, ratio
from fairlead_policy.order.position_columns import OfTenants, PositionColumns
from fairlead_policy.rules.pool_rules import PoolRules


def divided_by(rules: PoolRules) -> str | UnsetType:
    """The word for what shares are divided by, where that is no entitlement: answers name it then."""
    return UNSET if rules.relative else "weight"


class Quotients:
    """Start tags of one pool's positions in two numbers each. What many positions share is divided once."""

    def __init__(self, rules: PoolRules) -> None:
        units = rules.unit_share_by_name.items()
        self._units = {name: (unit.numerator, unit.denominator) for name, unit in units}
        self._rules = rules
        self._entitled = OfTenants(cache(lambda top: nearest_float(rules.entitlement_of(top))))

    def of(self, positions: PositionColumns) -> tuple[list[float | None], list[float]]:
        """The two numbers of each position. Of a tenant with children the share is that with H-DRF's rescaling.

        Returns:
            The share of each job's top-level tenant just before it, None where that is of what the pool has not, or beyond
            counting; and what that tenant is entitled to, 0 where the tag is infinite by that.
        """
        units, nothing = self._units, (0, 1)
        shares: list[float | None] = [
            ratio(use * (unit := units.get(name, nothing))[0], unit[1])
            for name, use in zip(positions.dominant, positions.use, strict=True)
        ]
        for row, exact in positions.exact.items():
            entitled = self._rules.entitlement_of(positions.tenants[positions.top[row]])
            over, under = exact.as_integer_ratio()
            shares[row] = ratio(over * entitled.numerator, under * entitled.denominator)
        for row, because in enumerate(positions.unbounded_by):
            if because not in (None, "weight"):
                shares[row] = None
        return shares, list(self._entitled.of(positions.tenants, positions.top))
