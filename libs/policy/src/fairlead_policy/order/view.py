"""Several tenants' jobs side by side at one instant."""

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place
from fairlead_policy.exact.flips import first_flip
from fairlead_policy.exact.ranking import Ints, Names, Ranking, Rows, Shared, TieBreak, join
from fairlead_policy.exact.rounding import Fractions
from fairlead_policy.exact.scoring import Measure
from fairlead_policy.order.position_columns import Line, plain_places
from fairlead_policy.order.position_table import PositionTable
from fairlead_policy.order.positions import place_at
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import TenantQueue
from fairlead_policy.tenants.tenant_tree import TenantTree

_FEW = 256
"""Up to so many places are made one by one: gathering what they are made from costs more."""


class View:
    """The jobs of tenant queues and trees: all of them, or those that fronts are made from.

    Args:
        measure: of the pool.
        tenant_queues: of tenants that stand alone.
        trees: each with the tenants in it that are looked at; None for all.
        now: the instant.
        window: how many jobs of each queue; None for all.
    """

    def __init__(
        self,
        measure: Measure,
        tenant_queues: Sequence[TenantQueue],
        trees: Sequence[tuple[TenantTree, Collection[str] | None]],
        now: Micros,
        window: int | None,
    ) -> None:
        self._now = now
        self._measure = measure
        self._trees = [tree for tree, _ in trees]
        self._parts: list[TenantQueue | ServiceOrder] = list(tenant_queues)
        rows, at, queues = _of_tenant_queues(tenant_queues, window)
        for tree, tenants in trees:
            sequence, positions = _of_tree(tree, tenants, now, window)
            self._parts.append(sequence)
            rows.append(sequence.rows.take(positions))
            at.append(positions)
            queues.append(sequence.queues[positions])
        self.rows = join(rows)
        self.queue = _joined(queues)
        """Numbers of the queues; of fronts alone."""
        self._part = np.repeat(np.arange(len(at)), [len(numbers) for numbers in at])
        self._at = _joined(at)

    def uids(self, rows: Ints) -> list[str]:
        """The uids of rows."""
        if not self._parts:
            return []
        uids: list[Names] = [part.uids() for part in self._parts]
        starts = np.cumsum([0, *map(len, uids)])
        picked: list[str] = np.concatenate(uids)[starts[self._part[rows]] + self._at[rows]].tolist()
        return picked

    def ranked(self) -> Ints:
        """The view's rows in order."""
        return self._ranking(self.rows).order(self._tie_of, self._shared())

    def first(self, rows: Ints, count: int) -> Ints:
        """The first `count` of some rows, in order."""
        likely = rows[self._ranking(self.rows.take(rows)).likely_first(count)]
        shared = self._shared()
        order = self._ranking(self.rows.take(likely)).order(
            lambda row: self._tie_of(likely.item(row)), None if shared is None else shared.take(likely)
        )
        return likely[order[:count]]

    def places(self, rows: Ints) -> list[Place]:
        """The places of rows."""
        tenant_queues = [part for part in self._parts if isinstance(part, TenantQueue)]
        plain = len(tenant_queues) == len(self._parts) and self._measure.rules.strict
        if plain and len(rows) > _FEW and not (self.rows.rank[rows] & 3).any():
            terms = [(one.numerator, one.denominator) for one in self._measure.multipliers.exact]
            return plain_places(
                self._line(tenant_queues, rows), self._measure.rules, Fractions(terms), self._now
            ).places()
        parts = self._parts
        return [
            place_at(parts[part], at, self._now)
            for part, at in zip(self._part[rows].tolist(), self._at[rows].tolist(), strict=True)
        ]

    def in_order(self) -> Sequence[Place]:
        """The places of all rows, each made when somebody looks at it where that can be; of a view of all jobs."""
        rows, rules = self.ranked(), self._measure.rules
        if rules.rescaled or not len(rows):
            return self.places(rows)
        return PositionTable(self._parts, rows, rules=rules, now=self._now)

    def _line(self, tenant_queues: Sequence[TenantQueue], rows: Ints) -> Line[WaitingJob]:
        """Rows of tenant queues with what places are made from, in their order: they are then made as they will be read."""
        jobs = np.empty(len(self._at), np.object_)
        dominant = np.empty(len(self._at), np.int64)
        bounds = np.searchsorted(self._part, np.arange(len(tenant_queues) + 1)).tolist()
        for tenant_queue, (start, end) in zip(tenant_queues, pairwise(bounds), strict=True):
            at = self._at[start:end]
            jobs[start:end] = tenant_queue.jobs_at(at)
            dominant[start:end] = tenant_queue.scored(int(at.max(initial=-1)) + 1).dominant[at]
        return Line(jobs[rows].tolist(), self.rows.take(rows), dominant[rows])

    def next_flip(self) -> Micros | None:
        """An instant before which time alone does not change the order of the rows, nor any tree's sequence."""
        rules, multipliers = self._measure.rules, self._measure.multipliers
        if not self._trees:
            return first_flip(self.rows.take(self.ranked()), rules, multipliers)
        sequences = [part for part in self._parts if isinstance(part, ServiceOrder)]
        flips = [
            self._flip_of_tuples(),
            *(tree.next_flip(sequence) for tree, sequence in zip(self._trees, sequences, strict=True)),
        ]
        return min((flip for flip in flips if flip is not None), default=None)

    def _flip_of_tuples(self) -> Micros | None:
        """When the first of all tuples that count here pass each other: of the rows, and of what they count as."""
        rows: list[Rows] = []
        uids: list[str] = []
        for number, part in enumerate(self._parts):
            at = self._at[self._part == number]
            if isinstance(part, ServiceOrder):
                at = np.unique(np.concatenate((at, part.as_submitted[at], part.by_tag[at])))
                rows.append(part.own.take(at))
            else:
                rows.append(part.scored().rows.take(at))
            uids += [part.uid_at(one) for one in at.tolist()]
        joined = join(rows)
        order = self._ranking(joined).order(lambda row: (uids[row], 0))
        return first_flip(joined.take(order), self._measure.rules, self._measure.multipliers)

    def _tie_of(self, row: int) -> TieBreak:
        return self._parts[self._part.item(row)].tie_at(self._at.item(row))

    def _shared(self) -> Shared | None:
        """Where sequences have many jobs that count as few: which of them, numbered through all parts."""
        if not self._trees:
            return None
        counted = self._at.copy()
        bounds = pairwise(np.searchsorted(self._part, np.arange(len(self._parts) + 1)).tolist())
        for part, (start, end) in zip(self._parts, bounds, strict=True):
            if isinstance(part, ServiceOrder):
                counted[start:end] = part.lifter[self._at[start:end]]
        counted += np.cumsum([0, *map(len, self._parts)])[self._part]
        return Shared(counted, self._at)

    def _ranking(self, rows: Rows) -> Ranking:
        return Ranking(rows, self._measure.rules, self._measure.multipliers, self._now)


def _of_tenant_queues(
    tenant_queues: Sequence[TenantQueue], window: int | None
) -> tuple[list[Rows], list[Ints], list[Ints]]:
    if window is None:
        return (
            [tenant_queue.scored().rows for tenant_queue in tenant_queues],
            [np.arange(len(tenant_queue)) for tenant_queue in tenant_queues],
            [],
        )
    fronts = [tenant_queue.front_rows(window) for tenant_queue in tenant_queues]
    return [rows for _, rows, _ in fronts], [at for at, *_ in fronts], [queue for *_, queue in fronts]


def _of_tree(
    tree: TenantTree, tenants: Collection[str] | None, now: Micros, window: int | None
) -> tuple[ServiceOrder, Ints]:
    if window is not None:
        return tree.front(now, window, tenants)
    sequence = tree.sequence(now)
    return sequence, tree.positions(sequence, tenants)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
