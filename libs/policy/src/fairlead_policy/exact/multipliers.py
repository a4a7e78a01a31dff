"""Factors from use to keys, for many jobs at once: fractions by number, each worked out once."""

from collections.abc import Sequence

import numpy as np

from fairlead_policy.exact.ranking import Ints
from fairlead_policy.exact.rounding import Fractions, NumberedFractions, Pair
from fairlead_policy.exact.terms import Classed
from fairlead_policy.rules.pool_rules import PoolRules, override_of

_NOTHING: Pair = (0, 1)
_WEIGHTS = 2**31
"""Bound above the number of class weights; with as many tenants' resources two numbers fit into 64 bits."""


class UnitShares:
    """The tag that one base unit of use gives each tenant: its share, over what the tenant is entitled to.

    Args:
        rules: the pool's rules.
    """

    def __init__(self, rules: PoolRules) -> None:
        self._resources = max(len(rules.resources), 1)
        self._numbers = _Numbers()
        self._tenants: list[str] = []
        self._shares = Fractions(_UnitTerms(rules, self._tenants, self._resources))

    def of(self, tenants: Sequence[str], resource: Ints) -> NumberedFractions:
        """The unit shares of these tenants, for these numbers of resources."""
        numbers = self._numbers
        found = np.fromiter(map(numbers.__getitem__, tenants), np.int64, len(tenants))
        if len(numbers) > len(self._tenants):
            self._tenants.extend(list(numbers)[len(self._tenants) :])
        return self._shares.of(found * self._resources + resource)


class _Numbers(dict[str, int]):
    """Numbers of names, in the order in which they are asked for."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


class _UnitTerms(dict[int, Pair]):
    """Unit shares by number of tenant and resource; none for a tenant of weight 0, whose share is infinite."""

    def __init__(self, rules: PoolRules, tenants: Sequence[str], resources: int) -> None:
        super().__init__()
        self._rules, self._tenants, self._resources = rules, tenants, resources

    def __missing__(self, number: int) -> Pair:
        found = self[number] = self._term(*divmod(number, self._resources))
        return found

    def _term(self, tenant: int, resource: int) -> Pair:
        if not self._rules.resources:
            return _NOTHING
        entitled = self._rules.entitlement_of(self._tenants[tenant])
        if not entitled:
            return _NOTHING
        tag = self._rules.unit_shares[resource] / entitled
        return tag.numerator, tag.denominator


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
            weight = self._rules.class_weight(job.job_class, override_of(job.override))
            found = self._numbers[key] = len(self._pairs)
            self._pairs.append((weight.numerator, weight.denominator))
        return found
