"""The places of a pool that was put in order at once; each is made when somebody looks at it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol, overload

import numpy as np

from fairlead_contracts.decisions import Place
from fairlead_contracts.instants import Micros
from fairlead_policy.columns import bounded
from fairlead_policy.places import Line, PlacedJob, places_of
from fairlead_policy.ranking import Ints
from fairlead_policy.rules import FARTHEST, LARGEST, PoolRules
from fairlead_policy.scoring import Measure, lacking_of
from fairlead_policy.whole import (
    Holdings,
    PoolColumns,
    WeightMultipliers,
    Whole,
    can_order_whole,
    order_whole,
)

_AT_ONCE = 4096
"""Places that are made together while one reads on."""


class Counted(Protocol):
    """What tenants have before any job starts."""

    def counted(self, tenant: str) -> Mapping[str, int]:
        """What runs of the tenant's, and its past use, in base units."""


def whole_places[J: PlacedJob](
    jobs: Sequence[J], counted: Counted, rules: PoolRules, now: Micros
) -> "WholePlaces[J] | None":
    """The places of these jobs in order; None where a `PoolOrder` has to find it: see `order_whole`.

    Args:
        jobs: all that wait in the pool, each uid once.
        counted: what their tenants have.
        rules: of the pool.
        now: the instant.
    """
    if not can_order_whole(rules):
        return None
    tenants: dict[str, int] = {}
    columns = _columns(jobs, tenants, rules)
    holdings = _holdings(tenants, counted, rules)
    whole = order_whole(columns, holdings, Measure(rules), now, lambda number: jobs[number].uid)
    if whole is None:
        return None
    return WholePlaces(jobs, whole, counted, rules, now, oversized=_may_be_oversized(columns, rules))


def _columns[J: PlacedJob](jobs: Sequence[J], tenants: dict[str, int], rules: PoolRules) -> PoolColumns:
    """Numbers the tenants on the way."""
    ranks, last = rules.ranks, len(rules.classes)
    names, known = rules.resources, rules.unit_share_by_name.keys()
    demands = [job.demand for job in jobs]
    # Job by job: what one asks for lies together in memory.
    asked = bounded([one.get(name, 0) for one in demands for name in names], 0, LARGEST)
    lacks = [not one.keys() <= known and lacking_of(one, rules) is not None for one in demands]
    return PoolColumns(
        tenant=np.array([tenants.setdefault(job.tenant, len(tenants)) for job in jobs], np.int64),
        urgency=np.array([ranks.get(job.urgency, last) for job in jobs], np.int64),
        submitted=bounded([job.submitted for job in jobs], -FARTHEST, FARTHEST),
        demand=np.ascontiguousarray(asked.reshape(len(jobs), len(names)).T),
        lacking=np.array(lacks, np.bool_) if any(lacks) else None,
    )


def _may_be_oversized(columns: PoolColumns, rules: PoolRules) -> bool:
    """Whether some job may ask for more of a resource than the pool has; resources that do not count are not looked at."""
    if columns.lacking is not None or not all(map(rules.counts, rules.capacity)):
        return True
    largest = columns.demand.max(axis=1, initial=0).tolist()
    return any(asked > rules.capacity[name] for name, asked in zip(rules.resources, largest, strict=True))


def _holdings(tenants: Iterable[str], counted: Counted, rules: PoolRules) -> Holdings:
    names = list(tenants)
    held = [counted.counted(name) for name in names]
    use = [bounded([one.get(resource, 0) for one in held], 0, LARGEST) for resource in rules.resources]
    return Holdings(
        weights=[rules.weight_of(name) for name in names],
        use=np.array(use, np.int64).reshape(len(rules.resources), len(names)),
        lacking=np.array([lacking_of(one, rules) is not None for one in held], np.bool_),
    )


class WholePlaces[J: PlacedJob](Sequence[Place]):
    """Places in order, first job first. A million at rest are the numbers that they are made from."""

    def __init__(
        self,
        jobs: Sequence[J],
        whole: Whole,
        counted: Counted,
        rules: PoolRules,
        now: Micros,
        *,
        oversized: bool,
    ) -> None:
        self.oversized = oversized
        """Whether some job may ask for more than the pool has."""
        self._jobs = jobs
        self._whole = whole
        self._counted = counted
        self._rules = rules
        self._now = now
        self._terms = _Terms(whole.multipliers)

    def __len__(self) -> int:
        return len(self._whole.order)

    def __iter__(self) -> Iterator[Place]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._made(self._whole.order[start : start + _AT_ONCE])

    @overload
    def __getitem__(self, at: int) -> Place: ...

    @overload
    def __getitem__(self, at: slice) -> list[Place]: ...

    def __getitem__(self, at: int | slice) -> Place | list[Place]:
        if isinstance(at, slice):
            return self._made(self._whole.order[at])
        return self._made(self._whole.order[[at]])[0]

    def in_order(self) -> Iterator[J]:
        """The jobs themselves, first job first."""
        return map(self._jobs.__getitem__, self._whole.jobs.tolist())

    def _made(self, at: Ints) -> list[Place]:
        """The places at positions of the line."""
        whole, jobs = self._whole, self._jobs
        rows = whole.rows.take(at)
        line = Line([jobs[number] for number in whole.line[at].tolist()], rows, whole.dominant[at])
        places = places_of(line, self._rules, self._terms, self._now)
        for number in np.flatnonzero(rows.rank & 1).tolist():
            places[number] = self._unbounded(places[number], at.item(number))
        return places

    def _unbounded(self, place: Place, at: int) -> Place:
        """The same of a job whose share is infinite."""
        whole = self._whole
        dominant, use = "", whole.use.item(at)
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
            demand=place.demand,
        )

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

    def __init__(self, multipliers: WeightMultipliers) -> None:
        super().__init__()
        self._multipliers = multipliers

    def __missing__(self, number: int) -> tuple[int, int]:
        found = self[number] = self._multipliers.term(number)
        return found
