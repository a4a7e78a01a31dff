"""The rules that a pool is scored by: exact numbers, no floats.

Every weight and rate is the fraction that the document's decimal stands for (0.1 is 1/10, not the nearest double), so
that two tenants who are equal on paper are equal here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Literal

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import MAX_SUM

NOTHING = Fraction(0)
FULL = Fraction(1)

LARGEST = MAX_SUM
"""Largest use that counts, in base units, four times what one job may ask for. A use beyond it is flagged as
an infinite share: it sorts last instead of overflowing 64 bits, in memory or on the wire."""

ORDER_RULES = 1
"""The number of the rules that orders are made by. Who changes a rule, so that the same facts have another order, raises it:
while releases of two numbers run side by side, their decisions are not merged."""

type ClassMode = Literal["strict", "additive", "multiplicative"]

_COMFORTABLE = 10**300

FARTHEST: Micros = 2**61
"""Instants are taken as at most so far from 1970, 73,000 years: differences of two stay within 64 bits."""


def exactly(decimal: float) -> Fraction:
    """The fraction that a decimal of the policy document stands for."""
    return Fraction(repr(decimal))


def counted_amount(stated: int) -> int:
    """A stated quantity as it counts: facts are not refused, they are bounded."""
    return min(max(stated, 0), LARGEST)


@dataclass(frozen=True, kw_only=True)
class PoolRules:
    """The rules of one pool under one policy and capacity.

    `tag_i(x) = max_r v_r * x_r / c_r / e_i` over the resources with weight v_r > 0, e_i being what the tenant is entitled
    to (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011; weights as in its section 4.3).
    """

    capacity: Mapping[str, int]
    """Capacity of the pool by resource, base units."""
    quota: Mapping[str, int] = field(default_factory=dict)
    """The most that the pool may have, where that is more: fewer cards may be there now."""
    classes: tuple[str, ...]
    """Classes in order: jobs of the first one go first."""
    rate: Fraction = NOTHING
    """Entitlements per microsecond of waiting: it counts in the unit of tags."""
    cap: Micros | None = None
    """Longest waiting that counts, microseconds; None for no cap."""
    resource_weights: Mapping[str, Fraction] = field(default_factory=dict)
    """Weights of resources; 1 by default, 0 leaves a resource out."""
    entitlements: Mapping[str, Fraction] = field(default_factory=dict)
    """Entitlements of named tenants, parts of the pool; 0 puts one behind the others of a class."""
    unlisted_entitlement: Fraction = NOTHING
    """Entitlement of every other tenant."""
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    """Weights as the policy states them, for people to read: entitlements are made of them."""
    unlisted_weight: Fraction = NOTHING
    """Weight of every other tenant, as stated."""
    relative: bool = True
    """Whether entitlements are made of weights in relation to each other: more for one is less for all others."""
    parents: Mapping[str, str] = field(default_factory=dict)
    """Parents by tenant: each one's use counts towards its parent. Tenants at the top have none."""
    class_mode: ClassMode = "strict"
    class_weights: Mapping[str, Fraction] = field(default_factory=dict)
    """Weights of the classes, where the mode is not strict."""
    rescaled: bool = False
    """Whether waiting siblings count as if they stood at the lowest share among them (H-DRF)."""
    lowest_of_live: bool = False
    """Whether that lowest share is looked for among all that wait, those without use too."""
    saturated: frozenset[str] = frozenset()
    """Resources that are used up, with `rescaled`; see `saturation`. Jobs that ask for one stand behind the
    others of their class."""

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The resources that a share is measured by, sorted: equal shares make the first by name the dominant one."""
        return tuple(
            sorted(name for name, amount in self.capacity.items() if amount > 0 and self.counts(name))
        )

    @cached_property
    def unit_shares(self) -> tuple[Fraction, ...]:
        """`v_r / c_r` of each of `resources`: what one base unit adds to a share."""
        return tuple(self._weight(name) / self.capacity[name] for name in self.resources)

    @cached_property
    def largest_share_is_huge(self) -> bool:
        """Whether a tag may be larger than floats hold: only trees of the most unequal weights make it so."""
        least = min((part for part in self.entitlements.values() if part), default=FULL)
        unlisted = self.unlisted_entitlement or FULL
        largest = max(self.unit_shares, default=NOTHING) * LARGEST / min(least, unlisted)
        return largest > _COMFORTABLE or self.rate * FARTHEST > _COMFORTABLE

    @cached_property
    def unit_share_by_name(self) -> Mapping[str, Fraction]:
        """`unit_shares` by resource."""
        return dict(zip(self.resources, self.unit_shares, strict=True))

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """The position of each class."""
        return {name: rank for rank, name in enumerate(self.classes)}

    def rank_of(self, job_class: str) -> int:
        """The class's position; one that the policy does not know stands behind all."""
        return self.ranks.get(job_class, len(self.classes))

    @property
    def strict(self) -> bool:
        """Whether every job of a class goes before the next class's."""
        return self.class_mode == "strict"

    def class_weight(self, job_class: str, override: float | None) -> Fraction:
        """The weight of a job's class; an override stands in its place, to nine decimals. Unknown classes weigh as the last."""
        if override is not None:
            return round(exactly(override), 9)
        last = self.classes[-1] if self.classes else ""
        return self.class_weights.get(job_class, self.class_weights.get(last, FULL))

    def leading(self, job_class: str, *, blocked: bool, unbounded: bool) -> int:
        """The terms before the key, as one integer: a strict class, then blocked jobs, then infinite shares."""
        rank = self.rank_of(job_class) if self.strict else 0
        return rank * 4 + 2 * blocked + unbounded

    def own_terms(
        self, job_class: str, override: float | None, submitted: Micros, *, blocked: bool
    ) -> tuple[int, int]:
        """The terms of a tenant's own order that go before (submitted, uid).

        Strict: the class. Additive: weight + rate * submitted, as an integer over the pool's common denominator, which
        keys ascend by. Multiplicative: the weight, the highest first.
        """
        if self.class_mode == "strict":
            return self.rank_of(job_class) * 2 + blocked, 0
        weight = self.own_weight(self.class_weight(job_class, override))
        return blocked, weight + self.own_rate * submitted

    def own_weight(self, weight: Fraction) -> int:
        """The effect of a job's class weight on its position in its tenant's own order; classes are not strict."""
        own = round(weight * self._common)
        return -own if self.class_mode == "multiplicative" else own

    @cached_property
    def own_rate(self) -> int:
        """The effect of a microsecond of waiting less on that position: none by other modes than additive."""
        return round(self.rate * self._common) if self.class_mode == "additive" else 0

    @cached_property
    def _common(self) -> int:
        """A multiple of the denominators of the rate and of all class weights, overrides of 9 decimals among them."""
        return lcm(
            self.rate.denominator, 10**9, *(weight.denominator for weight in self.class_weights.values())
        )

    def top_of(self, tenant: str) -> str:
        """The top-level tenant that a tenant counts towards."""
        return self.way_up(tenant)[-1]

    def way_up(self, tenant: str) -> tuple[str, ...]:
        """The tenants from this one to its top-level tenant, both among them."""
        way = self.ways.get(tenant)
        return (tenant,) if way is None else way

    def stands_alone(self, top: str) -> bool:
        """Whether a top-level tenant's order is its own: it has nobody below it, and classes are strict."""
        return self.strict and top not in self.children

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """The children of each tenant that has some, sorted."""
        found: dict[str, list[str]] = {}
        for child, parent in sorted(self.parents.items()):
            found.setdefault(parent, []).append(child)
        return {parent: tuple(children) for parent, children in found.items()}

    @cached_property
    def ways(self) -> Mapping[str, tuple[str, ...]]:
        """`way_up` of each tenant that has a parent."""
        ways: dict[str, tuple[str, ...]] = {}
        for tenant in self.parents:
            way = [tenant]
            while (parent := self.parents.get(way[-1])) is not None and parent not in way:
                way.append(parent)
            ways[tenant] = tuple(way)
        return ways

    def asks_for_saturated(self, demand: Mapping[str, int]) -> bool:
        """Whether the job is blocked: it asks for a resource that is used up."""
        saturated = self.saturated
        return bool(saturated) and any(amount > 0 and name in saturated for name, amount in demand.items())

    def entitlement_of(self, tenant: str) -> Fraction:
        """The part of the pool that the tenant is entitled to: tags count how many times that it has."""
        return self.entitlements.get(tenant, self.unlisted_entitlement)

    def weight_of(self, tenant: str) -> Fraction:
        """The tenant's weight in this pool, as stated."""
        return self.weights.get(tenant, self.unlisted_weight)

    def lacks(self, resource: str) -> bool:
        """Whether the resource counts but the pool has none of it: any use of it is an infinite share."""
        return self.counts(resource) and self.capacity.get(resource, 0) <= 0

    def beyond(self, demand: Mapping[str, int]) -> list[str]:
        """The resources of which a job asks for more than the whole pool may have: it never starts. Sorted."""
        most = {name: max(0, self.capacity.get(name, 0), self.quota.get(name, 0)) for name in demand}
        return sorted(name for name, amount in demand.items() if amount > most[name])

    def aged(self, submitted: Micros, now: Micros) -> Micros:
        """The instant that a job's waiting counts from."""
        return submitted if self.cap is None else max(submitted, now - self.cap)

    def _weight(self, resource: str) -> Fraction:
        return self.resource_weights.get(resource, FULL)

    def counts(self, resource: str) -> bool:
        """Whether a share is measured by the resource."""
        return self._weight(resource) > 0
