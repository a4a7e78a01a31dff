"""A flat pool's jobs as columns of numbers, put in order at once, as a line that positions are made from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Flags, Ints, bounded
from fairlead_policy.exact.scoring import Measure, Scores, lacking_of
from fairlead_policy.order.batch import BatchOrder, Holdings, PoolColumns, can_order_batch, order_batch
from fairlead_policy.order.position_columns import PlacedJob
from fairlead_policy.order.positions import InSequence, Positions
from fairlead_policy.rules.pool_rules import FARTHEST, LARGEST, PoolRules
from fairlead_policy.tenants.service_order import Cause


class Counted(Protocol):
    """What tenants have before any job starts."""

    def counted(self, tenant: str) -> Mapping[str, int]:
        """What runs of the tenant's, and its past use, in base units."""


def batch_positions(
    jobs: Sequence[PlacedJob], counted: Counted, rules: PoolRules, now: Micros
) -> Positions | None:
    """The positions of these jobs in order; None where a `PoolOrder` has to find it: see `order_batch`.

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
    measure = Measure(rules)
    whole = order_batch(columns, holdings, measure, now, lambda number: jobs[number].uid)
    if whole is None:
        return None
    return Positions(_BatchLine(jobs, whole, counted, rules), whole.order, measure, now)


def _columns(jobs: Sequence[PlacedJob], tenants: dict[str, int], rules: PoolRules) -> PoolColumns:
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


class _BatchLine:
    """Jobs tenant by tenant, in the tenants' own orders."""

    def __init__(
        self, jobs: Sequence[PlacedJob], whole: BatchOrder, counted: Counted, rules: PoolRules
    ) -> None:
        self._jobs, self._whole, self._counted, self._rules = jobs, whole, counted, rules
        self.scores = Scores(whole.rows, whole.dominant, whole.use, whole.lacking)

    def jobs(self, rows: Ints) -> list[PlacedJob]:
        """Some of the jobs."""
        return list(map(self._jobs.__getitem__, self._whole.line[rows].tolist()))

    def sequences(self, rows: Ints) -> Iterator[InSequence]:
        """All tenants stand alone."""
        del rows
        return iter(())

    def cause(self, row: int) -> Cause:
        """What makes a job's share infinite, where that is a resource that the pool has none of: the first cause."""
        counted = self._counted.counted(self._job(row).tenant)
        name = lacking_of(counted, self._rules)
        if name is not None:
            return Cause(name, min(counted[name], LARGEST), held=True)
        # Asked for by the last job of the tenant whose own share does not take it in.
        demand = self._job(self._last_finite.item(row)).demand
        name = lacking_of(demand, self._rules)
        return Cause(
            "" if name is None else name, 0 if name is None else min(demand[name], LARGEST), held=False
        )

    @cached_property
    def _last_finite(self) -> Ints:
        """By row, the last one up to it before which nothing lacking was asked for."""
        lacking = self._whole.lacking
        found: Ints = np.maximum.accumulate(np.where(lacking, 0, np.arange(len(lacking))))
        return found

    def _job(self, row: int) -> PlacedJob:
        return self._jobs[self._whole.line.item(row)]
