"""The facts of one pool: what it was told of its jobs, by uid, and the snapshots that come of it."""

from collections.abc import Iterable, Mapping

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_policy.order.order import Order
from fairlead_policy.order.pool_snapshot import PoolSnapshot, TenantChange
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules


class PoolFacts:
    """The last facts of one pool: what waits, runs and was used.

    Every change replaces what was known under the uid, so facts may be told again, in any order. Changes are noted at
    once, and a snapshot is made of them when somebody looks.
    """

    def __init__(self, rules: PoolRules) -> None:
        self._known = PoolSnapshot.of_nobody(rules)
        self._changes: dict[str, TenantChange] = {}
        """Changes that the snapshot does not hold yet, by tenant."""
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
    def rules(self) -> PoolRules:
        """The rules that the pool is scored by."""
        return self._known.rules

    def set_rules(self, rules: PoolRules) -> None:
        """Scores by other rules from now on. The same rules again cost nothing."""
        if rules != self.rules:
            self._known = self.snapshot.under(rules)

    def wait(self, job: WaitingJob) -> None:
        """Lets the job wait."""
        if self._waiting.get(job.uid) == job:
            return
        self.forget(job.uid)
        self._waiting[job.uid] = job
        self._change_of(job.tenant).come[job.uid] = job

    def wait_all(self, jobs: Iterable[WaitingJob]) -> None:
        """Lets all these jobs wait."""
        for job in jobs:
            self.wait(job)

    def run(self, uid: str, tenant: str, demand: Mapping[str, int]) -> None:
        """Lets the job run: its demand, in base units, counts as its tenant's use."""
        counted = {resource: amount for resource, amount in demand.items() if amount > 0}
        if self._running.get(uid) == (tenant, counted):
            return
        self.forget(uid)
        self._running[uid] = tenant, counted
        change = self._change_of(tenant)
        change.running += 1
        change.take(counted, 1)

    def forget(self, uid: str) -> None:
        """Forgets a job that neither waits nor runs, or is not known at all."""
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
            change.take(demand, -1)

    def remember(self, tenant: str, past: Mapping[str, int]) -> None:
        """Takes in the tenant's past use as it is now, in base units; it counts beside what runs."""
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

    def position(self, uid: str, now: Micros) -> Position | None:
        """The position of a job at an instant; None where it does not wait."""
        job = self.job(uid)
        return None if job is None else self.at(now).position(job)
