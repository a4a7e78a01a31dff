"""The order of one pool's waiting jobs at one instant: a pure function of a snapshot, worked out as far as somebody looks.

What is worked out of a tenant stays with it in the snapshot, and in all others that share the tenant. So from scratch and
step by step are the same code: an order depends on what waits and runs, never on how it came to.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_policy.order.pool_snapshot import PoolSnapshot
from fairlead_policy.order.positions import Positions
from fairlead_policy.order.top_level_view import TopLevelView
from fairlead_policy.rules.jobs import JobQueue, PositionedJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.sequence_columns import SequenceColumns
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import score_together
from fairlead_policy.tenants.tenant_tree import TenantTree


@dataclass(frozen=True, slots=True)
class Order:
    """The waiting jobs of a pool, in order."""

    snapshot: PoolSnapshot
    now: Micros

    @property
    def rules(self) -> PoolRules:
        """The rules that the pool is scored by."""
        return self.snapshot.rules

    def queue_heads(
        self, window: int, tenants: Iterable[str] | None = None
    ) -> dict[JobQueue, list[Position]]:
        """The first `window` positions of each queue that has waiting jobs, of these tenants or all."""
        view = self._view(tenants, window)
        if not len(view.jobs.columns.queue):
            return {}  # as after most events where little waits
        queue_heads = {}
        for number in np.unique(view.jobs.columns.queue).tolist():
            rows = np.flatnonzero(view.jobs.columns.queue == number)
            queue = self.snapshot.measure.queues.queues[number]
            queue_heads[queue] = view.positions(view.first(rows, window))[:]
        return queue_heads

    def positions(self, tenants: Iterable[str] | None = None) -> Positions:
        """Every position, in order, of these tenants or all; each made when somebody looks at it."""
        view = self._view(tenants)
        return view.positions(view.ranked())

    def uids(self, tenants: Iterable[str] | None = None) -> list[str]:
        """The uids of `positions`, without the terms behind them."""
        view = self._view(tenants)
        return [job.uid for job in view.jobs_at(view.ranked())]

    def position(self, job: PositionedJob) -> Position | None:
        """The job's position; None where it does not wait."""
        found = self.find(job)
        return None if found is None else self.position_at(*found)

    def find(self, job: PositionedJob) -> tuple[ServiceOrder, int] | None:
        """The sequence that the job waits in, as far as up to it, and its index there; None where it does not wait."""
        tree = self.snapshot.trees.get(self.rules.top_of(job.tenant))
        return None if tree is None else tree.find(job, self.now)

    def position_at(self, sequence: ServiceOrder, index: int) -> Position:
        """The position of a job of a top-level tenant's sequence."""
        return Positions(sequence, np.array([index]), self.snapshot.measure, self.now)[0]

    def next_flip(self, tenants: Iterable[str] | None = None, *, window: int | None = None) -> Micros | None:
        """An instant after now before which time alone does not change the order; None where it never does.

        In a flat pool with strict classes the order does change then. Elsewhere it may: some job's own
        key passes another's, which counts only if neither is held back by its tenant's sequence.

        Args:
            tenants: the tenants whose jobs these are; all by default.
            window: look only at the jobs that so many heads of each queue are taken from.
        """
        if self.rules.cap is None or not self.rules.rate:
            return None
        view = self._view(None if tenants is None else list(tenants), window)
        flips = [view.flip_of_tuples()]
        flips += [
            self.snapshot.trees[sequence.top].next_flip(sequence) for sequence in view.jobs.served.values()
        ]
        return min((flip for flip in flips if flip is not None), default=None)

    def chosen_trees(self, tenants: Iterable[str] | None) -> list[tuple[TenantTree, Collection[str] | None]]:
        """Trees in which these tenants wait, each with the tenants that wait there; None stands for all of its tenants."""
        trees, ways = self.snapshot.trees, self.rules.ways
        if tenants is None:
            return [(tree, None) for tree in trees.values() if any(map(len, tree.tenant_queues.values()))]
        chosen: dict[TenantTree, list[str]] = {}
        for name in dict.fromkeys(tenants):
            tree = trees.get(ways[name][-1] if name in ways else name)
            if tree is not None and tree.tenant_queues.get(name):
                chosen.setdefault(tree, []).append(name)
        return [*chosen.items()]

    def _view(self, tenants: Iterable[str] | None, window: int | None = None) -> TopLevelView:
        measure, now = self.snapshot.measure, self.now
        if window is not None:
            return TopLevelView(measure, self._head_columns(tenants, window), now)
        chosen = self.chosen_trees(tenants)
        lone = [tree for tree, _ in chosen if tree.alone]
        parts = (
            [SequenceColumns.of_own_orders(lone, [tree.lone_queue for tree in lone], measure)] if lone else []
        )
        if not self.rules.rescaled:
            below = chain.from_iterable(tree.tenant_queues.values() for tree, _ in chosen if not tree.alone)
            score_together(filter(len, below), measure)
        parts += [tree.all(now, names) for tree, names in chosen if not tree.alone]
        return TopLevelView(measure, SequenceColumns.joined(parts), now)

    def _head_columns(self, tenants: Iterable[str] | None, window: int) -> SequenceColumns:
        names = None if tenants is None else tuple(dict.fromkeys(tenants))
        if names is None or self.rules.parents:
            chosen = self.chosen_trees(names)
        else:  # of ten thousand tenants none is looked at that did not change
            chosen = [(tree, None) for tree in map(self.snapshot.trees.get, names) if tree is not None]
        return self.snapshot.head_columns.columns(chosen, self.now, window, names)
