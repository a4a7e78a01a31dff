"""What a pool is scored by: exact numbers, no floats.

Every weight and rate is the fraction that the document's decimal stands for (0.1 is 1/10, not the nearest double), so
that two tenants who are equal on paper are equal here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from fairlead_contracts.instants import Micros

NOTHING = Fraction(0)
FULL = Fraction(1)

LARGEST = 2**62
"""Base units, four times the largest quantity that one job may ask for. A use beyond it is flagged as an infinite
share: it sorts last instead of overflowing 64 bits, in memory or on the wire."""

FARTHEST: Micros = 2**61
"""Instants are taken as at most so far from 1970, 73,000 years: differences of two stay within 64 bits."""


def exactly(decimal: float) -> Fraction:
    """The fraction that a decimal of the policy document stands for."""
    return Fraction(repr(decimal))


@dataclass(frozen=True, kw_only=True)
class PoolRules:
    """The rules of one pool under one policy and capacity.

    `share_i(x) = max_r v_r * x_r / c_r / w_i` over the resources with weight v_r > 0 (Ghodsi et al., "Dominant
    Resource Fairness", NSDI 2011; weights as in its section 4.3).
    """

    capacity: Mapping[str, int]
    """Base units by resource."""
    classes: tuple[str, ...]
    """First goes first."""
    rate: Fraction = NOTHING
    """Share per microsecond of waiting."""
    cap: Micros | None = None
    """Waiting beyond it counts no more; None for no cap."""
    resource_weights: Mapping[str, Fraction] = field(default_factory=dict)
    """Default 1; 0 leaves a resource out."""
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    """Of the tenants that the policy names and that count in this pool."""
    unlisted_weight: Fraction = NOTHING
    """Of every other tenant; 0 puts it behind the named ones of a class."""

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The resources that a share is measured by, sorted: equal shares make the first by name the dominant one."""
        return tuple(
            sorted(name for name, amount in self.capacity.items() if amount > 0 and self._counts(name))
        )

    @cached_property
    def unit_shares(self) -> tuple[Fraction, ...]:
        """`v_r / c_r` of each of `resources`: what one base unit adds to an undivided share."""
        return tuple(self._weight(name) / self.capacity[name] for name in self.resources)

    @cached_property
    def unit_share_by_name(self) -> Mapping[str, Fraction]:
        """`unit_shares` by resource."""
        return dict(zip(self.resources, self.unit_shares, strict=True))

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """The position of each class."""
        return {name: rank for rank, name in enumerate(self.classes)}

    def rank_of(self, urgency: str) -> int:
        """The class's position; one that the policy does not know stands behind all."""
        return self.ranks.get(urgency, len(self.classes))

    def weight_of(self, tenant: str) -> Fraction:
        """The tenant's weight in this pool."""
        return self.weights.get(tenant, self.unlisted_weight)

    def lacks(self, resource: str) -> bool:
        """Whether the resource counts but the pool has none of it: any use of it is an infinite share."""
        return self._counts(resource) and self.capacity.get(resource, 0) <= 0

    def aged(self, submitted: Micros, now: Micros) -> Micros:
        """The instant that a job's waiting counts from."""
        return submitted if self.cap is None else max(submitted, now - self.cap)

    def _weight(self, resource: str) -> Fraction:
        return self.resource_weights.get(resource, FULL)

    def _counts(self, resource: str) -> bool:
        return self._weight(resource) > 0
