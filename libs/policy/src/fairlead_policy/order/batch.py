"""A whole flat pool put in order at once: from columns of numbers to ranks, with no object a job or a tenant.

What a `PoolFacts` does for each tenant that changed is done here for all tenants in one pass, by the same arithmetic: one
sort by own order, one score, one sort by the tuple. For pools with strict classes and no tree; elsewhere `PoolFacts`
serves. Both give the same order to the last tie.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Flags, Ints, Ranking, bounded
from fairlead_policy.exact.scoring import Jobs, Measure, Scale, Scores, Tenants, lacking_of, score
from fairlead_policy.order.position_columns import PlacedJob
from fairlead_policy.order.positions import InSequence, Positions
from fairlead_policy.rules.pool_rules import LARGEST, PoolRules
from fairlead_policy.tenants.own_orders import PoolColumns, own_orders, starts_of
from fairlead_policy.tenants.service_order import Cause


class Counted(Protocol):
    """What tenants have before any job starts."""

    def counted(self, tenant: str) -> Mapping[str, int]:
        """What runs of the tenant's, and its past use, in base units."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the tenants of the jobs have before any of these starts, tenant by tenant."""

    entitlements: Sequence[Fraction]
    use: Ints
    """(resources, tenants), base units: what runs, and past use."""
    lacking: Flags
    """Whether that takes in a resource of which the pool has none."""

    @classmethod
    def of(cls, tenants: Sequence[str], counted: Counted, rules: PoolRules) -> "Holdings":
        """Of these tenants."""
        held = [counted.counted(name) for name in tenants]
        use = [bounded([one.get(resource, 0) for one in held], 0, LARGEST) for resource in rules.resources]
        return cls(
            entitlements=[rules.entitlement_of(name) for name in tenants],
            use=np.array(use, np.int64).reshape(len(rules.resources), len(tenants)),
            lacking=np.array([lacking_of(one, rules) is not None for one in held], np.bool_),
        )

    def tenants(self, numbers: Ints, starts: Ints, measure: Measure) -> Tenants:
        """Some of them, with where their jobs begin."""
        scales: dict[Fraction, int] = {}
        scale = np.array([scales.setdefault(one, len(scales)) for one in self.entitlements], np.int64)
        return Tenants(
            starts,
            self.use[:, numbers],
            self.lacking[numbers],
            scale[numbers],
            [Scale(measure, entitled) for entitled in scales],
        )


@dataclass(frozen=True)
class BatchOrder:
    """A pool in order. Its arrays but `order` go by the jobs' line: tenant by tenant, in the tenants' own orders."""

    line: Ints
    """Numbers of the jobs."""
    order: Ints
    """Positions in the line, first job first."""
    scores: Scores

    @cached_property
    def jobs(self) -> Ints:
        """The jobs' numbers in order."""
        return self.line[self.order]

    @cached_property
    def ranks(self) -> Ints:
        """Each job's rank, from 0."""
        ranks = np.empty_like(self.order)
        ranks[self.jobs] = np.arange(len(ranks))
        return ranks


def can_order_batch(rules: PoolRules) -> bool:
    """Whether pools of such rules may be put in order at once."""
    return rules.strict and not rules.parents and not rules.rescaled


def order_batch(
    columns: PoolColumns, holdings: Holdings, measure: Measure, now: Micros, uid_of: Callable[[int], str]
) -> BatchOrder:
    """The pool in order.

    Args:
        columns: of all waiting jobs.
        holdings: of their tenants.
        measure: of the pool; see `can_order_batch`.
        now: what the aging cap is measured from.
        uid_of: the uid of a job by its number; asked only where it decides.
    """
    line = own_orders(columns, len(holdings.entitlements), uid_of)
    tenant = columns.tenant[line]
    starts = starts_of(tenant)
    demand = np.empty_like(columns.demand)
    for stated, ordered in zip(columns.demand, demand, strict=True):
        np.take(stated, line, out=ordered, mode="clip")  # half the time of one gather of them all
    jobs = Jobs(columns.rank[line], columns.submitted[line], None, demand, columns.lacking[line])
    scores = score(jobs, holdings.tenants(tenant[starts], starts, measure), measure)
    ranking = Ranking(scores.rows, measure.rules, measure.multipliers, now)
    return BatchOrder(line, ranking.order(lambda at: (uid_of(line.item(at)), 0)), scores)


def batch_positions(
    jobs: Sequence[PlacedJob], counted: Counted, rules: PoolRules, now: Micros
) -> Positions | None:
    """The positions of these jobs in order; None where a `PoolFacts` has to find it.

    Args:
        jobs: all that wait in the pool, each uid once.
        counted: what their tenants have.
        rules: of the pool.
        now: the instant.
    """
    if not can_order_batch(rules):
        return None
    tenants: dict[str, int] = {}
    columns, measure = PoolColumns.of(jobs, tenants, rules), Measure(rules)
    holdings = Holdings.of(list(tenants), counted, rules)
    whole = order_batch(columns, holdings, measure, now, lambda number: jobs[number].uid)
    return Positions(_BatchLine(jobs, whole, counted, rules), whole.order, measure, now)


class _BatchLine:
    """Jobs tenant by tenant, in the tenants' own orders."""

    def __init__(
        self, jobs: Sequence[PlacedJob], whole: BatchOrder, counted: Counted, rules: PoolRules
    ) -> None:
        self._jobs, self._line, self._counted, self._rules = jobs, whole.line, counted, rules
        self.scores = whole.scores

    def jobs(self, rows: Ints) -> list[PlacedJob]:
        """Some of the jobs."""
        return list(map(self._jobs.__getitem__, self._line[rows].tolist()))

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
        lacking = self.scores.lacking
        found: Ints = np.maximum.accumulate(np.where(lacking, 0, np.arange(len(lacking))))
        return found

    def _job(self, row: int) -> PlacedJob:
        return self._jobs[self._line.item(row)]
