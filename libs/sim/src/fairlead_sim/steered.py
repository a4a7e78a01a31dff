"""Fairlead's own policy as a discipline: the order and the levels that the services would decide, in lock step."""

from bisect import bisect_left, insort
from collections.abc import Mapping

from fairlead_contracts.decisions import Place
from fairlead_contracts.document import PolicyDocument
from fairlead_contracts.instants import Micros
from fairlead_contracts.simulation import SetLevel
from fairlead_contracts.state import Phase
from fairlead_policy import Band, LabelledJob, PoolOrder, Rulebook, WaitingJob, plan_levels
from fairlead_sim.changes import Changes
from fairlead_sim.config import QueueConfig
from fairlead_sim.jobs import SimJob
from fairlead_sim.workload import POOL, Workload

_CLUSTER = "sim"


class Steered:
    """Orders one pool by a policy document and labels the front of its queue, as scorer and admitter do."""

    def __init__(
        self,
        policy: PolicyDocument,
        capacity: Mapping[str, int],
        queue: QueueConfig,
        *,
        cluster: str = _CLUSTER,
    ) -> None:
        """A pool that nothing waits in.

        Args:
            policy: tenants, weights, classes, aging, window.
            capacity: of the pool, base units.
            queue: the one queue that is steered.
            cluster: its name, as the policy's pools and match rules know it.
        """
        self._rulebook = Rulebook(policy, 1)
        pool = self._rulebook.pool_of(cluster, queue.pool)
        self._order = PoolOrder(self._rulebook.pool_rules(pool, capacity))
        self._cluster = cluster
        self._queue = queue
        self._band = Band(default=queue.default_level, lowest=queue.lowest_level, highest=queue.highest_level)
        self._waiting: dict[str, SimJob] = {}
        self._unlabelled: list[tuple[Micros, str]] = []
        self._labelled: set[str] = set()

    def first_level(self, job: SimJob) -> int | None:
        """See `Discipline`."""
        del job
        return None

    def react(self, changes: Changes, now: Micros) -> list[SetLevel]:
        """See `Discipline`."""
        for job in changes.jobs.values():
            self._observe(job)
        fronts = self._order.front(now, self._rulebook.document.window)
        window = [self._waiting[place.uid] for place in fronts.get((self._cluster, self._queue.name), [])]
        return self._write(window)

    def order(self, now: Micros) -> list[Place]:
        """The whole order, with the terms behind each place."""
        return self._order.order(now)

    def _observe(self, job: SimJob) -> None:
        match job.phase:
            case Phase.WAITING:
                if job.uid not in self._waiting:
                    self._waiting[job.uid] = job
                    insort(self._unlabelled, (job.queue_time, job.uid))
                self._order.wait(self._waiting_job(job))
            case Phase.RUNNING:
                self._leave(job)
                self._order.run(job.uid, self._tenant(job), job.demand)
            case _:
                self._leave(job)
                self._order.forget(job.uid)

    def _leave(self, job: SimJob) -> None:
        if self._waiting.pop(job.uid, None) is None:
            return
        if job.uid in self._labelled:
            self._labelled.discard(job.uid)
        else:
            del self._unlabelled[bisect_left(self._unlabelled, (job.queue_time, job.uid))]

    def _write(self, window: list[SimJob]) -> list[SetLevel]:
        inside = {job.uid for job in window}
        outside = [self._waiting[uid] for uid in sorted(self._labelled - inside)]
        first = next((uid for _, uid in self._unlabelled if uid not in inside), None)
        if first is not None:  # of the unlabelled rest, the first by tie speaks for all
            outside.append(self._waiting[first])
        plan = plan_levels(
            [self._labelled_job(job) for job in window],
            [self._labelled_job(job) for job in outside],
            self._band,
        )
        return [self._label(self._waiting[uid], level) for uid, level in plan.writes]

    def _label(self, job: SimJob, level: int) -> SetLevel:
        tie = (job.queue_time, job.uid)
        was, labelled = job.uid in self._labelled, level != self._band.default
        if labelled and not was:
            self._labelled.add(job.uid)
            del self._unlabelled[bisect_left(self._unlabelled, tie)]
        elif was and not labelled:
            self._labelled.discard(job.uid)
            insort(self._unlabelled, tie)
        return SetLevel(scope=job.scope, id=job.id, uid=job.uid, level=level)

    def _labelled_job(self, job: SimJob) -> LabelledJob:
        return LabelledJob(uid=job.uid, level=job.level, tie=(job.queue_time, job.uid))

    def _tenant(self, job: SimJob) -> str:
        return self._rulebook.tenant_of(job.state(self._cluster, 0))

    def _waiting_job(self, job: SimJob) -> WaitingJob:
        tenant = self._tenant(job)
        return WaitingJob(
            uid=job.uid,
            scope=job.scope,
            id=job.id,
            tenant=tenant,
            urgency=self._rulebook.class_of(job, tenant).urgency,
            submitted=job.submitted,
            demand=job.demand,
            queue=(self._cluster, self._queue.name),
        )


def steered(workload: Workload) -> Steered:
    """The discipline that a workload's own policy asks for."""
    [queue] = [queue for queue in workload.cluster.queues if queue.pool == POOL]
    return Steered(workload.policy, workload.capacity(), queue)
