"""What one pool was told of its jobs, by uid, and the snapshots that it comes to."""

from collections.abc import Collection, Iterable, Mapping

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place, Standing
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_snapshot import PoolSnapshot, TenantChange
from fairlead_policy.order.positions import Positions
from fairlead_policy.rules.jobs import Queue, WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import TenantQueue
from fairlead_policy.tenants.tenant_tree import TenantTree


class PoolOrder:
    """What waits and runs in one pool, and was used, as the last facts have it.

    Every change replaces what was known under the uid, so facts may be told again, in any order. Changes are noted at
    once, and a snapshot is made of them when somebody looks.
    """

    def __init__(self, rules: PoolRules) -> None:
        self._known = PoolSnapshot.of_nobody(rules)
        self._changes: dict[str, TenantChange] = {}
        """What the snapshot does not hold yet."""
        self._waiting: dict[str, WaitingJob] = {}
        self._running: dict[str, tuple[str, Mapping[str, int]]] = {}
        self._past: dict[str, Mapping[str, int]] = {}

    @property
    def snapshot(self) -> PoolSnapshot:
        """The pool as it is now."""
        if self._changes:
            self._known, self._changes = self._known.with_changes(self._changes), {}
        return self._known

    def job(self, uid: str) -> WaitingJob | None:
        """The waiting job; None where it does not wait."""
        return self._waiting.get(uid)

    @property
    def remembers(self) -> bool:
        """Whether past use counts, of anybody."""
        return bool(self.snapshot.past)

    @property
    def rules(self) -> PoolRules:
        """What the pool is scored by."""
        return self._known.rules

    def set_rules(self, rules: PoolRules) -> None:
        """Scores by other rules from now on. The same rules again cost nothing."""
        if rules != self.rules:
            self._known = self.snapshot.under(rules)

    def wait(self, job: WaitingJob) -> None:
        """The job waits."""
        if self._waiting.get(job.uid) == job:
            return
        self.forget(job.uid)
        self._waiting[job.uid] = job
        self._change_of(job.tenant).come[job.uid] = job

    def wait_all(self, jobs: Iterable[WaitingJob]) -> None:
        """All these jobs wait."""
        for job in jobs:
            self.wait(job)

    def run(self, uid: str, tenant: str, demand: Mapping[str, int]) -> None:
        """The job runs: its demand, in base units, counts as its tenant's use."""
        counted = {resource: amount for resource, amount in demand.items() if amount > 0}
        if self._running.get(uid) == (tenant, counted):
            return
        self.forget(uid)
        self._running[uid] = tenant, counted
        change = self._change_of(tenant)
        change.running += 1
        change.use.update(counted)

    def forget(self, uid: str) -> None:
        """The job neither waits nor runs, or is not known at all."""
        waited = self._waiting.pop(uid, None)
        if waited is not None:
            change = self._change_of(waited.tenant)
            if change.come.pop(uid, None) is None:
                change.gone[uid] = waited
        ran = self._running.pop(uid, None)
        if ran is not None:
            tenant, demand = ran
            change = self._change_of(tenant)
            change.running -= 1
            change.use.subtract(demand)

    def remember(self, tenant: str, past: Mapping[str, int]) -> None:
        """The tenant's past use comes to this now, in base units; it counts beside what runs."""
        counted = {resource: amount for resource, amount in sorted(past.items()) if amount > 0}
        if self._past.get(tenant, {}) != counted:
            self._past[tenant] = self._change_of(tenant).past = counted

    def _change_of(self, tenant: str) -> TenantChange:
        change = self._changes.get(tenant)
        if change is None:
            change = self._changes[tenant] = TenantChange()
        return change

    def at(self, now: Micros) -> Order:
        """The order at an instant."""
        return Order(self.snapshot, now)

    def counted(self, tenant: str) -> Mapping[str, int]:
        """What counts as the tenant's use, in base units: what runs, and past use."""
        tenant_queue = self.snapshot.tenant_queue(tenant)
        return {} if tenant_queue is None else tenant_queue.counted

    @property
    def trees(self) -> Mapping[str, TenantTree]:
        """By top-level tenant."""
        return self.snapshot.trees

    @property
    def tenant_queues(self) -> Mapping[str, TenantQueue]:
        """By tenant."""
        return {one.tenant: one for one in self.snapshot.tenant_queues()}

    def chosen_trees(self, tenants: Iterable[str] | None) -> list[tuple[TenantTree, Collection[str] | None]]:
        """See `Order.chosen_trees`."""
        return self.at(0).chosen_trees(tenants)

    def front(
        self, now: Micros, window: int, tenants: Iterable[str] | None = None
    ) -> dict[Queue, list[Place]]:
        """See `Order.front`."""
        return self.at(now).front(window, tenants)

    def order(self, now: Micros, tenants: Iterable[str] | None = None) -> list[Place]:
        """Every place, in order, of these tenants or all."""
        return self.in_order(now, tenants)[:]

    def in_order(self, now: Micros, tenants: Iterable[str] | None = None) -> Positions:
        """See `Order.places`."""
        return self.at(now).places(tenants)

    def uids(self, now: Micros, tenants: Iterable[str] | None = None) -> list[str]:
        """See `Order.uids`."""
        return self.at(now).uids(tenants)

    def place(self, uid: str, now: Micros) -> Place | None:
        """The job's place; None where it does not wait."""
        job = self.job(uid)
        return None if job is None else self.at(now).place(job)

    def found(self, uid: str, now: Micros) -> tuple[ServiceOrder, int] | None:
        """See `Order.find`."""
        job = self.job(uid)
        return None if job is None else self.at(now).find(job)

    def place_at(self, sequence: ServiceOrder, position: int, now: Micros) -> Place:
        """See `Order.place_at`."""
        return self.at(now).place_at(sequence, position)

    def standings(self, tenants: Iterable[str] | None = None) -> list[Standing]:
        """See `Order.standings`."""
        return self.at(0).standings(tenants)

    def waiting(self, tenants: Iterable[str] | None = None) -> dict[Queue, int]:
        """See `Order.waiting`."""
        return self.at(0).waiting(tenants)

    def next_flip(
        self, now: Micros, tenants: Iterable[str] | None = None, *, window: int | None = None
    ) -> Micros | None:
        """See `Order.next_flip`."""
        return self.at(now).next_flip(tenants, window=window)
