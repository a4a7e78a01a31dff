"""Fairlead's own policy as a discipline: the order and the levels that the services would decide, in lock step."""

from collections.abc import Mapping

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.capabilities import SIMULATED
from fairlead_contracts.frontend.verbs import SetLevel
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import Phase
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_policy.levels.ties import Tie, TieIndex, tie_of
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_sim.changes import ClusterChanges
from fairlead_sim.config import QueueConfig
from fairlead_sim.jobs import SimJob
from fairlead_sim.statements import NO_EPOCH
from fairlead_sim.workload import POOL, SimWorkload

_CLUSTER = "sim"


class SteeredPool:
    """Orders one pool by a policy document and labels the heads of its queue, as scorer and admitter do."""

    def __init__(
        self,
        policy: PolicyDocument,
        capacity: Mapping[str, int],
        queue: QueueConfig,
    ) -> None:
        """A pool that nothing waits in.

        Args:
            policy: tenants, weights, classes, aging, window.
            capacity: the pool's capacity, in base units.
            queue: the one queue that is steered.
        """
        self._rulebook = Rulebook(policy, 1)
        pool = self._rulebook.pool_of(_CLUSTER, queue.pool)
        self._order = PoolFacts(self._rulebook.pool_rules(pool, capacity))
        self._queue = queue
        self._band = Band(default=queue.default_level, lowest=queue.lowest_level, highest=queue.highest_level)
        self._waiting: dict[str, SimJob] = {}
        self._unlabelled = TieIndex()
        self._labelled: set[str] = set()

    def first_level(self, job: SimJob) -> int | None:
        """See `Discipline`."""
        del job
        return None

    def react(self, changes: ClusterChanges, now: Micros) -> list[SetLevel]:
        """See `Discipline`."""
        for job in changes.jobs.values():
            self._observe(job)
        queue_heads = self._order.at(now).queue_heads(self._rulebook.document.window)
        window = [
            self._waiting[position.uid]
            for position in queue_heads.get(JobQueue(_CLUSTER, self._queue.name), [])
        ]
        return self._write(window)

    def order(self, now: Micros) -> list[Position]:
        """The whole order, with the terms behind each position."""
        return self._order.at(now).positions()[:]

    def _observe(self, job: SimJob) -> None:
        stated = job.state(_CLUSTER, NO_EPOCH)
        match job.phase:
            case Phase.WAITING:
                if job.uid not in self._waiting:
                    self._waiting[job.uid] = job
                    self._unlabelled.put(job.uid, _tie(job))
                self._order.wait(self._rulebook.waiting_job(stated))
            case Phase.RUNNING:
                self._leave(job)
                self._order.run(job.uid, self._rulebook.tenant_of(stated), job.demand)
            case _:
                self._leave(job)
                self._order.forget(job.uid)

    def _leave(self, job: SimJob) -> None:
        if self._waiting.pop(job.uid, None) is not None:
            self._labelled.discard(job.uid)
            self._unlabelled.discard(job.uid)

    def _write(self, window: list[SimJob]) -> list[SetLevel]:
        inside = {job.uid for job in window}
        outside = [self._waiting[uid] for uid in sorted(self._labelled - inside)]
        first = self._unlabelled.first_outside(inside)
        if first is not None:
            outside.append(self._waiting[first])
        plan = plan_levels(
            [_labelled_job(job) for job in window], [_labelled_job(job) for job in outside], self._band
        )
        return [self._label(self._waiting[uid], level) for uid, level in plan.writes]

    def _label(self, job: SimJob, level: int) -> SetLevel:
        if level == self._band.default:
            self._labelled.discard(job.uid)
            self._unlabelled.put(job.uid, _tie(job))
        else:
            self._labelled.add(job.uid)
            self._unlabelled.discard(job.uid)
        return SetLevel(scope=job.scope, id=job.id, uid=job.uid, level=level)


def _labelled_job(job: SimJob) -> LabelledJob:
    return LabelledJob(uid=job.uid, level=job.level, tie=_tie(job))


def _tie(job: SimJob) -> Tie:
    return tie_of(SIMULATED.ties, job.queue_time, name=job.id, uid=job.uid)


def steered(workload: SimWorkload) -> SteeredPool:
    """The discipline that a workload's own policy asks for."""
    [queue] = [queue for queue in workload.cluster.queues if queue.pool == POOL]
    return SteeredPool(workload.policy, workload.capacity(), queue)
