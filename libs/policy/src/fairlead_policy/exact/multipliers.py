"""Factors from use to keys, for many jobs at once: fractions by number, each worked out once."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from fairlead_policy.exact.ranking import Ints
from fairlead_policy.exact.rounding import Fractions, NumberedFractions, Pair
from fairlead_policy.exact.terms import Classed
from fairlead_policy.rules.pool_rules import PoolRules

_NOTHING: Pair = (0, 1)
_WEIGHTS = 2**31
"""Bound above the number of class weights; with as many resources of entitlements two numbers fit into 64 bits."""


class UnitShares:
    """The tag that one base unit of use gives each tenant: its share, over what the tenant is entitled to.

    Args:
        rules: the pool's rules.
    """

    def __init__(self, rules: PoolRules) -> None:
        self._resources = max(len(rules.resources), 1)
        self._numbers = _EntitlementNumbers(rules)
        self._shares = Fractions(_UnitTerms(rules, self._numbers.entitlements, self._resources))

    def number(self, tenant: str) -> int:
        """The number of what a tenant is entitled to."""
        return self._numbers[tenant]

    def of(self, numbers: Iterable[int], resource: Ints) -> NumberedFractions:
        """The unit shares of tenants by these numbers of theirs, for these numbers of resources."""
        found = np.fromiter(numbers, np.int64, len(resource))
        return self._shares.of(found * self._resources + resource)


class _EntitlementNumbers(dict[str, int]):
    """Numbers of tenants' entitlements: thousands of tenants mostly have few, which stay in a processor's cache."""

    def __init__(self, rules: PoolRules) -> None:
        super().__init__()
        self.entitlements: list[Fraction] = []
        self._rules = rules
        self._known: dict[Pair, int] = {}

    def __missing__(self, tenant: str) -> int:
        entitled = self._rules.entitlement_of(tenant)
        pair = entitled.as_integer_ratio()
        if pair not in self._known:
            self._known[pair] = len(self.entitlements)
            self.entitlements.append(entitled)
        number = self[tenant] = self._known[pair]
        return number


class _UnitTerms(dict[int, Pair]):
    """Unit shares by number of entitlement and resource; none for one of 0, by which a share is infinite."""

    def __init__(self, rules: PoolRules, entitlements: Sequence[Fraction], resources: int) -> None:
        super().__init__()
        self._rules, self._entitlements, self._resources = rules, entitlements, resources

    def __missing__(self, number: int) -> Pair:
        entitlement, resource = divmod(number, self._resources)
        entitled, shares = self._entitlements[entitlement], self._rules.unit_shares
        self[number] = (shares[resource] / entitled).as_integer_ratio() if entitled and shares else _NOTHING
        return self[number]


class ClassWeights:
    """The weights of jobs' classes, and of the numbers that stand in their place.

    Args:
        rules: the rules of a pool whose classes are not strict.
    """

    def __init__(self, rules: PoolRules) -> None:
        self._rules = rules
        self._numbers: dict[tuple[str, float | None], int] = {}
        self._pairs: list[Pair] = []
        self._weights = Fractions(self._pairs)
        self._divided: dict[int, Pair] = {}
        self._shares = Fractions(self._divided)

    def of(self, jobs: Sequence[Classed]) -> NumberedFractions:
        """The weight of each job's class."""
        return self._weights.of(np.array(list(map(self._number, jobs)), np.int64))

    def dividing(self, shares: NumberedFractions, weights: NumberedFractions) -> NumberedFractions:
        """Each share over its job's weight."""
        numbers = shares.number * _WEIGHTS + weights.number
        for number in set(numbers.tolist()) - self._divided.keys():
            share, weight = shares.fractions.terms[number // _WEIGHTS], self._pairs[number % _WEIGHTS]
            self._divided[number] = share[0] * weight[1], share[1] * weight[0]
        return self._shares.of(numbers)

    def _number(self, job: Classed) -> int:
        key = job.job_class, job.override
        found = self._numbers.get(key)
        if found is None:
            weight = self._rules.class_weight(job.job_class, job.override)
            found = self._numbers[key] = len(self._pairs)
            self._pairs.append((weight.numerator, weight.denominator))
        return found
