"""The places of a pool that was put in order at once; each is made when somebody looks at it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place, UnboundedBy
from fairlead_policy.exact.ranking import Flags, Ints, bounded
from fairlead_policy.exact.rounding import Fractions
from fairlead_policy.exact.scoring import Measure, lacking_of
from fairlead_policy.order.batch import (
    BatchOrder,
    Holdings,
    PoolColumns,
    TagMultipliers,
    can_order_batch,
    order_batch,
)
from fairlead_policy.order.lazy_positions import LazyPositions
from fairlead_policy.order.position_columns import Line, PlacedJob, PlainPlaces, plain_places
from fairlead_policy.rules.pool_rules import FARTHEST, LARGEST, PoolRules


class Counted(Protocol):
    """What tenants have before any job starts."""

    def counted(self, tenant: str) -> Mapping[str, int]:
        """What runs of the tenant's, and its past use, in base units."""


def batch_positions[J: PlacedJob](
    jobs: Sequence[J], counted: Counted, rules: PoolRules, now: Micros
) -> "BatchPositions[J] | None":
    """The places of these jobs in order; None where a `PoolOrder` has to find it: see `order_batch`.

    Args:
        jobs: all that wait in the pool, each uid once.
        counted: what their tenants have.
        rules: of the pool.
        now: the instant.
    """
    if not can_order_batch(rules):
        return None
    tenants: dict[str, int] = {}
    columns = _columns(jobs, tenants, rules)
    holdings = _holdings(tenants, counted, rules)
    whole = order_batch(columns, holdings, Measure(rules), now, lambda number: jobs[number].uid)
    if whole is None:
        return None
    largest = columns.demand.max(axis=1, initial=0).tolist()
    oversized = columns.lacking is not None or rules.may_exceed(largest)
    return BatchPositions(jobs, whole, counted, rules, now, oversized=oversized)


def _columns[J: PlacedJob](jobs: Sequence[J], tenants: dict[str, int], rules: PoolRules) -> PoolColumns:
    """Numbers the tenants on the way."""
    ranks, last = rules.ranks, len(rules.classes)
    names = rules.resources
    demands = [job.demand for job in jobs]
    # Job by job: what one asks for lies together in memory.
    asked = bounded([one.get(name, 0) for one in demands for name in names], 0, LARGEST)
    asked = np.ascontiguousarray(asked.reshape(len(jobs), len(names)).T)
    return PoolColumns(
        tenant=np.array([tenants.setdefault(job.tenant, len(tenants)) for job in jobs], np.int64),
        urgency=np.array([ranks.get(job.urgency, last) for job in jobs], np.int64),
        submitted=bounded([job.submitted for job in jobs], -FARTHEST, FARTHEST),
        demand=asked,
        lacking=_lacking(demands, asked, rules),
    )


def _lacking(demands: Sequence[Mapping[str, int]], asked: Ints, rules: PoolRules) -> Flags | None:
    """Whether each asks for what the pool has none of; None where none does."""
    # Only one that names more than it asks for of the pool's resources can: few are looked at.
    more = np.fromiter(map(len, demands), np.int64, len(demands)) > np.count_nonzero(asked, axis=0)
    lacking = np.zeros(len(demands), np.bool_)
    for number in np.flatnonzero(more).tolist():
        lacking[number] = lacking_of(demands[number], rules) is not None
    return lacking if lacking.any() else None


def _holdings(tenants: Iterable[str], counted: Counted, rules: PoolRules) -> Holdings:
    names = list(tenants)
    held = [counted.counted(name) for name in names]
    use = [bounded([one.get(resource, 0) for one in held], 0, LARGEST) for resource in rules.resources]
    return Holdings(
        entitlements=[rules.entitlement_of(name) for name in names],
        use=np.array(use, np.int64).reshape(len(rules.resources), len(names)),
        lacking=np.array([lacking_of(one, rules) is not None for one in held], np.bool_),
    )


class BatchPositions[J: PlacedJob](LazyPositions):
    """Places in order, first job first. A million at rest are the numbers that they are made from."""

    def __init__(
        self,
        jobs: Sequence[J],
        whole: BatchOrder,
        counted: Counted,
        rules: PoolRules,
        now: Micros,
        *,
        oversized: bool,
    ) -> None:
        super().__init__(whole.order, oversized=oversized)
        self._jobs = jobs
        self._whole = whole
        self._counted = counted
        self._rules = rules
        self._now = now
        self._multipliers = Fractions(_Terms(whole.multipliers))

    def in_order(self) -> Iterator[J]:
        """The jobs themselves, first job first."""
        return map(self._jobs.__getitem__, self._whole.jobs.tolist())

    def parts(self) -> Iterator[PlainPlaces[J] | list[Place]]:
        """All of them, some hundred at a time; as objects where a share is infinite, of which there is more to say."""
        for at in self._together():
            plain, unbounded = self._plain(at)
            yield self._with_unbounded(plain, unbounded, at) if unbounded else plain

    def _made(self, numbers: Ints) -> list[Place]:
        """The places at positions of the line."""
        return self._with_unbounded(*self._plain(numbers), numbers)

    def _plain(self, at: Ints) -> tuple[PlainPlaces[J], list[int]]:
        """The same as columns, and which of them have an infinite share: these are not right yet."""
        whole, jobs = self._whole, self._jobs
        rows = whole.rows.take(at)
        line = Line([jobs[number] for number in whole.line[at].tolist()], rows, whole.dominant[at])
        plain = plain_places(line, self._rules, self._multipliers, self._now)
        return plain, np.flatnonzero(rows.rank & 1).tolist()

    def _with_unbounded(self, plain: PlainPlaces[J], unbounded: list[int], at: Ints) -> list[Place]:
        places = plain.places()
        for number in unbounded:
            places[number] = self._unbounded(places[number], at.item(number))
        return places

    def _unbounded(self, place: Place, at: int) -> Place:
        """The same of a job whose share is infinite."""
        whole = self._whole
        dominant, use, because = "", whole.use.item(at), self._because(place.tenant, at)
        if whole.lacking[at]:
            dominant, use = self._lacking(place.tenant, at)
        elif use:
            dominant = self._rules.resources[whole.dominant.item(at)]
        return Place(
            uid=place.uid,
            scope=place.scope,
            id=place.id,
            tenant=place.tenant,
            urgency=place.urgency,
            dominant=dominant,
            use=use,
            tag=0.0,
            key=0.0,
            submitted=place.submitted,
            unbounded=True,
            unbounded_by=because,
            demand=place.demand,
        )

    def _because(self, tenant: str, at: int) -> UnboundedBy:
        """What makes the share infinite: as `unbounded_by` of scores."""
        if not self._rules.entitlement_of(tenant):
            return "weight"
        if not self._whole.lacking[at]:
            return "beyond"
        return "asked" if lacking_of(self._counted.counted(tenant), self._rules) is None else "held"

    def _lacking(self, tenant: str, at: int) -> tuple[str, int]:
        """The resource that makes a job's share infinite, and how much of it: the first cause."""
        counted = self._counted.counted(tenant)
        name = lacking_of(counted, self._rules)
        if name is not None:
            return name, min(counted[name], LARGEST)
        return self._first_lacking(at)

    @cached_property
    def _last_finite(self) -> Ints:
        """By position, the last one up to it before which nothing lacking was asked for."""
        lacking = self._whole.lacking
        found: Ints = np.maximum.accumulate(np.where(lacking, 0, np.arange(len(lacking))))
        return found

    def _first_lacking(self, at: int) -> tuple[str, int]:
        """Asked for by the last job of the tenant whose own share does not take it in."""
        first = self._last_finite.item(at)
        demand = self._jobs[self._whole.line.item(first)].demand
        name = lacking_of(demand, self._rules)
        return ("", 0) if name is None else (name, min(demand[name], LARGEST))


class _Terms(dict[int, tuple[int, int]]):
    """Numerators and denominators of multipliers by number, made when first asked for."""

    def __init__(self, multipliers: TagMultipliers) -> None:
        super().__init__()
        self._multipliers = multipliers

    def __missing__(self, number: int) -> tuple[int, int]:
        found = self[number] = self._multipliers.term(number)
        return found
