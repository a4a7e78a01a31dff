"""Entitlements: each tenant's part of a pool, by its weight in relation to its siblings'.

It is made of what the policy lists alone, not of who runs or waits: shards need no word from each other, and nobody's
coming or going moves another one's tags.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_NOTHING, _WHOLE = Fraction(0), Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Entitlements:
    """Parts of the pool; 0 for a tenant that goes last."""

    listed: Mapping[str, Fraction]
    unlisted: Fraction
    """Part of each tenant that the policy does not name."""


def in_relation(
    weights: Mapping[str, Fraction],
    parents: Mapping[str, str],
    unlisted: Fraction | None = None,
    expected_unlisted: int = 0,
) -> Entitlements:
    """The product, from the top, of each weight over the sum of the siblings' weights.

    A weight of 0 gives 0. Below it the product starts anew, so that its children keep their weights. Where all siblings
    have a weight of 0, they share alike. Who is not listed stands at the top, where so many of them as are expected are
    in the sum.

    Args:
        weights: weights of the tenants that the policy names and that count in the pool; others are no siblings.
        parents: parents by tenant; tenants at the top have none.
        unlisted: weight of each tenant that the policy does not name; None where it lets none in.
        expected_unlisted: number of unlisted tenants that the sum at the top counts.
    """
    parts: dict[str, Fraction] = {}
    below: dict[str | None, dict[str, Fraction]] = {}
    for name, weight in weights.items():
        below.setdefault(parents.get(name), {})[name] = weight
    strangers = 0 if unlisted is None else expected_unlisted
    top = _Siblings.of(below.get(None, {}), unlisted or _NOTHING, strangers)
    open_groups = [(top, _WHOLE)]
    while open_groups:
        siblings, whole = open_groups.pop()
        for name, weight in siblings.weights.items():
            part = parts[name] = siblings.part(weight) * whole
            if name in below:
                open_groups.append((_Siblings.of(below[name]), part or _WHOLE))
    return Entitlements(listed=parts, unlisted=_NOTHING if unlisted is None else top.part(unlisted))


@dataclass(frozen=True)
class _Siblings:
    """The listed children of one tenant, or those at the top."""

    weights: Mapping[str, Fraction]
    total: Fraction
    count: int

    @classmethod
    def of(
        cls, weights: Mapping[str, Fraction], stranger: Fraction = _NOTHING, strangers: int = 0
    ) -> "_Siblings":
        return cls(weights, sum(weights.values(), _NOTHING) + stranger * strangers, len(weights) + strangers)

    def part(self, weight: Fraction) -> Fraction:
        return weight / self.total if self.total else Fraction(1, self.count)
