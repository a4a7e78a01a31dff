"""The order of one pool's waiting jobs, kept up as facts change.

From scratch and step by step are the same code: an order depends on what waits and runs, never on how it came to.
"""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place, Standing
from fairlead_policy.exact.scoring import Measure
from fairlead_policy.order.positions import Positions
from fairlead_policy.order.view import OneSequence, View
from fairlead_policy.rules.jobs import Queue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.columns import by_tenant
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import QueueNumbers, TenantQueue
from fairlead_policy.tenants.tenant_share import standing_of
from fairlead_policy.tenants.tenant_tree import Front, TenantTree


class PoolOrder:
    """Incremental state of one pool.

    One event costs its tenant a splice into sorted arrays and the scores of its first jobs; other tenants' fronts
    are kept. In a tree it costs its top-level tenant the merge of the first jobs below it. Every change replaces what
    was known under the uid, so facts may be told again, in any order.
    """

    def __init__(self, rules: PoolRules) -> None:
        self._measure = Measure(rules)
        self._queues = QueueNumbers()
        self.tenant_queues: dict[str, TenantQueue] = {}
        self.trees: dict[str, TenantTree] = {}
        """By top-level tenant, what waits and runs below it."""
        self._waiting: dict[str, WaitingJob] = {}
        self._running: dict[str, tuple[str, Mapping[str, int]]] = {}
        self._past: dict[str, Mapping[str, int]] = {}

    def job(self, uid: str) -> WaitingJob | None:
        """The waiting job; None where it does not wait."""
        return self._waiting.get(uid)

    @property
    def remembers(self) -> bool:
        """Whether past use counts, of anybody."""
        return bool(self._past)

    @property
    def rules(self) -> PoolRules:
        """What the pool is scored by."""
        return self._measure.rules

    def set_rules(self, rules: PoolRules) -> None:
        """Scores by other rules from now on. The same rules again cost nothing."""
        if rules == self.rules:
            return
        self._measure = Measure(rules)
        self.trees.clear()
        for tenant, tenant_queue in self.tenant_queues.items():
            tenant_queue.adopt(self._measure)
            self._tree(rules.top_of(tenant)).tenant_queues[tenant] = tenant_queue
        for tenant, past in list(self._past.items()):
            self._keep_past(tenant, past)

    def wait(self, job: WaitingJob) -> None:
        """The job waits."""
        if self._waiting.get(job.uid) == job:
            return
        self.forget(job.uid)
        self._waiting[job.uid] = job
        self._tenant_queue(job.tenant).wait(job)

    def wait_all(self, jobs: Iterable[WaitingJob]) -> None:
        """All these jobs wait; many at once cost a fraction of one after another."""
        fresh = {job.uid: job for job in jobs}
        for uid in [uid for uid in fresh if uid in self._waiting or uid in self._running]:
            self.wait(fresh.pop(uid))
        self._waiting.update(fresh)
        for batch in by_tenant(list(fresh.values()), self._measure, self._queues):
            self._tenant_queue(batch.tenant).wait_all(batch.jobs, batch.columns, batch.terms)

    def run(self, uid: str, tenant: str, demand: Mapping[str, int]) -> None:
        """The job runs: its demand, in base units, counts as its tenant's use."""
        counted = {resource: amount for resource, amount in demand.items() if amount > 0}
        if self._running.get(uid) == (tenant, counted):
            return
        self.forget(uid)
        self._running[uid] = tenant, counted
        self._tenant_queue(tenant).start(counted)

    def forget(self, uid: str) -> None:
        """The job neither waits nor runs, or is not known at all."""
        waited = self._waiting.pop(uid, None)
        if waited is not None:
            self._tenant_queue(waited.tenant).leave(uid)
            self._drop_idle(waited.tenant)
        ran = self._running.pop(uid, None)
        if ran is not None:
            tenant, demand = ran
            self._tenant_queue(tenant).end(demand)
            self._drop_idle(tenant)

    def remember(self, tenant: str, past: Mapping[str, int]) -> None:
        """The tenant's past use comes to this now, in base units; it counts beside what runs."""
        counted = {resource: amount for resource, amount in sorted(past.items()) if amount > 0}
        if self._past.get(tenant, {}) == counted:
            return
        if counted:
            self._past[tenant] = counted
        else:
            self._past.pop(tenant, None)
        self._keep_past(tenant, counted)

    def counted(self, tenant: str) -> Mapping[str, int]:
        """What counts as the tenant's use, in base units: what runs, and past use."""
        tenant_queue = self.tenant_queues.get(tenant)
        return {} if tenant_queue is None else tenant_queue.counted

    def front(
        self, now: Micros, window: int, tenants: Iterable[str] | None = None
    ) -> dict[Queue, list[Place]]:
        """The first `window` places of each queue that has waiting jobs, of these tenants or all."""
        view = self._view(tenants, now, window)
        fronts = {}
        for number in np.unique(view.queue).tolist():
            rows = np.flatnonzero(view.queue == number)
            fronts[self._queues.queues[number]] = view.positions(view.first(rows, window))[:]
        return fronts

    def order(self, now: Micros, tenants: Iterable[str] | None = None) -> list[Place]:
        """Every place, in order, of these tenants or all."""
        return self.in_order(now, tenants)[:]

    def in_order(self, now: Micros, tenants: Iterable[str] | None = None) -> Positions:
        """The same, each made when somebody looks at it; to be read before anything changes."""
        view = self._view(tenants, now)
        return view.positions(view.ranked())

    def uids(self, now: Micros, tenants: Iterable[str] | None = None) -> list[str]:
        """The uids of `order`, without the terms behind them."""
        view = self._view(tenants, now)
        return view.uids(view.ranked())

    def place(self, uid: str, now: Micros) -> Place | None:
        """The job's place; None where it does not wait."""
        found = self.found(uid, now)
        return None if found is None else self.place_at(*found, now)

    def found(self, uid: str, now: Micros) -> tuple[ServiceOrder, int] | None:
        """The sequence that the job waits in, as far as its place takes it, and its position; None where it does not wait."""
        job = self._waiting.get(uid)
        return None if job is None else self._tree(self.rules.top_of(job.tenant)).find(job, now)

    def place_at(self, sequence: ServiceOrder, position: int, now: Micros) -> Place:
        """The place of a job of a top-level tenant's sequence at that instant."""
        return Positions(OneSequence(sequence), np.array([position]), self._measure, now)[0]

    def standings(self, tenants: Iterable[str] | None = None) -> list[Standing]:
        """What each of these tenants may have and has, by name, and what those above them have.

        By default of each that is named, waits or runs.
        """
        named = (
            set(tenants)
            if tenants is not None
            else {*self.rules.entitlements, *self.tenant_queues, *self._past}
        )
        names = {one for name in named for one in self.rules.way_up(name)}
        return [self._standing(name) for name in sorted(names)]

    def waiting(self, tenants: Iterable[str] | None = None) -> dict[Queue, int]:
        """How many jobs wait in each queue."""
        counts: dict[Queue, int] = {}
        names = self.tenant_queues if tenants is None else dict.fromkeys(tenants)
        for tenant_queue in (self.tenant_queues[name] for name in names if name in self.tenant_queues):
            for queue, count in tenant_queue.waiting_by_queue.items():
                counts[queue] = counts.get(queue, 0) + count
        return dict(sorted(counts.items()))

    def next_flip(
        self, now: Micros, tenants: Iterable[str] | None = None, *, window: int | None = None
    ) -> Micros | None:
        """An instant after now before which time alone does not change the order; None where it never does.

        In a flat pool with strict classes the order does change then. Elsewhere it may: see `next_flip_of`.

        Args:
            now: the instant of the order as it stands.
            tenants: whose jobs; all by default.
            window: look only at the jobs that fronts of this size are made from.
        """
        if self.rules.cap is None or not self.rules.rate:
            return None
        names = None if tenants is None else list(tenants)
        parts = self._fronts(names, now, window)
        flips = [View(self._measure, parts, now).flip_of_tuples()]
        flips += [self.trees[part.sequence.top].next_flip(part.sequence) for part in parts]
        return min((flip for flip in flips if flip is not None), default=None)

    def _standing(self, tenant: str) -> Standing:
        tree = self.trees.get(self.rules.top_of(tenant))
        if tree is None:
            return standing_of(tenant, [], self.rules)
        return standing_of(
            tenant, list(tree.tenant_queues_below(tenant)), self.rules, tree.past_below(tenant)
        )

    def _tenant_queue(self, tenant: str) -> TenantQueue:
        """The tenant's queue, about to change."""
        tree = self._tree(self.rules.top_of(tenant))
        tenant_queue = self.tenant_queues.get(tenant)
        if tenant_queue is None:
            tenant_queue = self.tenant_queues[tenant] = TenantQueue(tenant, self._measure, self._queues)
            tree.tenant_queues[tenant] = tenant_queue
        tree.changed(tenant)
        return tenant_queue

    def _tree(self, top: str) -> TenantTree:
        tree = self.trees.get(top)
        if tree is None:
            tree = self.trees[top] = TenantTree(top, self._measure, self._queues)
        return tree

    def _keep_past(self, tenant: str, past: Mapping[str, int]) -> None:
        """Of what the pool has: use of what it has no more of must not put its tenant behind all others."""
        past = {name: amount for name, amount in past.items() if not self.rules.lacks(name)}
        if tenant in self.rules.children:
            # Nobody's below: it counts for the tenant itself and those above it.
            self._tree(self.rules.top_of(tenant)).remember(tenant, past)
            if tenant in self.tenant_queues:
                # It had no children under the policy before: its tenant queue would count the same once more.
                self._tenant_queue(tenant).remember({})
                self._drop_idle(tenant)
        else:
            self._tenant_queue(tenant).remember(past)
            self._drop_idle(tenant)

    def _drop_idle(self, tenant: str) -> None:
        if not self.tenant_queues[tenant].idle:
            return
        del self.tenant_queues[tenant]
        top = self.rules.top_of(tenant)
        self.trees[top].tenant_queues.pop(tenant, None)
        if self.trees[top].idle:
            del self.trees[top]

    def chosen_trees(self, tenants: Iterable[str] | None) -> list[tuple[TenantTree, Collection[str] | None]]:
        """By top-level tenant, what one of these tenants waits in, with those of them; None for all."""
        queues, top_of = self.tenant_queues, self.rules.top_of
        names = queues if tenants is None else (name for name in dict.fromkeys(tenants) if name in queues)
        chosen: dict[str, list[str]] = {}
        for name in names:
            if len(queues[name]):
                top = top_of(name)
                if top in chosen:
                    chosen[top].append(name)
                else:
                    chosen[top] = [name]
        return [(self.trees[top], None if tenants is None else found) for top, found in chosen.items()]

    def _fronts(self, tenants: Iterable[str] | None, now: Micros, window: int | None) -> list[Front]:
        return [
            tree.all(now, names) if window is None else tree.front(now, window, names)
            for tree, names in self.chosen_trees(tenants)
        ]

    def _view(self, tenants: Iterable[str] | None, now: Micros, window: int | None = None) -> View:
        return View(self._measure, self._fronts(tenants, now, window), now)
