"""A run in virtual time under Fairlead: its order, and the fewest levels for it, in lock step."""

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.verbs import SetLevel
from fairlead_contracts.messages.state import Phase
from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_policy.levels.ties import tie_of
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_sim.changes import ClusterChanges
from fairlead_sim.jobs import SimJob
from fairlead_sim.statements import NO_EPOCH, queue_state
from fairlead_sim.virtual import VirtualRun, fifo
from fairlead_sim.workload import POOL, SimWorkload

_CLUSTER = "sim"


class SteeredRun(VirtualRun):
    """A run under the workload's own policy, whose pool has one queue.

    Args:
        reaction: the time from a change to its levels; what happens in between goes by the old ones.
    """

    def __init__(self, workload: SimWorkload, *, reaction: Micros = 0) -> None:
        super().__init__(workload, fifo)
        self.writes = 0
        """Number of levels that were written."""
        self._rulebook = Rulebook(workload.policy, 1)
        [queue] = [queue for queue in workload.cluster.queues if queue.pool == POOL]
        self._queue = queue_state(queue, _CLUSTER, 0)
        rules = self._rulebook.pool_rules(self._rulebook.pool_of(_CLUSTER, POOL), workload.capacity())
        self._order = PoolFacts(rules)
        self._waiting: dict[str, SimJob] = {}
        """Waiting jobs by uid, as they came: at equal levels, the queue starts them so."""
        self._reaction = reaction
        self._unseen = ClusterChanges()
        self._react_at: Micros | None = None

    def next_instant(self) -> Micros | None:
        """The next instant at which anything happens, or levels are written."""
        instants = (super().next_instant(), self._react_at)
        return min((instant for instant in instants if instant is not None), default=None)

    def observe(self) -> ClusterChanges:
        """Takes what has changed since the last look, to decide the next levels from."""
        changes = super().observe()
        self._unseen.jobs |= changes.jobs
        self._unseen.events += changes.events
        return changes

    def step(self, now: Micros) -> None:
        """Does everything that happens at one instant; then levels that are due are written."""
        super().step(now)
        if self._react_at is not None and self._react_at <= now:
            self._react_at = None
            unseen, self._unseen = self._unseen, ClusterChanges()
            writes = self._levels(unseen, now)
            for write in writes:
                self.cluster.set_level(write)
            self.writes += len(writes)
            # Levels may let a strict queue start its new head.
            self.cluster.advance(now)
            self.observe()
        if self._react_at is None and self._unseen.events:
            self._react_at = now + self._reaction

    def _levels(self, changes: ClusterChanges, now: Micros) -> list[SetLevel]:
        """The writes after which the queue's heads are the order's."""
        for job in changes.jobs.values():
            self._note(job)
        most = self._rulebook.document.window
        heads = self._order.at(now).queue_heads(most).get(JobQueue(_CLUSTER, self._queue.name), [])
        window = {head.uid: self._waiting[head.uid] for head in heads}
        default = self._queue.default_level
        outside = [job for uid, job in self._waiting.items() if uid not in window and job.level != default]
        unlabelled = (job for uid, job in self._waiting.items() if uid not in window and job.level == default)
        outside += [job for job in [next(unlabelled, None)] if job is not None]
        band = Band(default=default, lowest=self._queue.lowest_level, highest=self._queue.highest_level)
        plan = plan_levels(
            list(map(self._labelled, window.values())), list(map(self._labelled, outside)), band
        )
        found = [(self._waiting[uid], level) for uid, level in plan.writes]
        return [SetLevel(scope=job.scope, id=job.id, uid=job.uid, level=level) for job, level in found]

    def _note(self, job: SimJob) -> None:
        stated = job.state(_CLUSTER, NO_EPOCH)
        if job.phase is Phase.WAITING:
            self._waiting.setdefault(job.uid, job)
            self._order.wait(self._rulebook.waiting_job(stated, apart=False))
            return
        self._waiting.pop(job.uid, None)
        if job.phase is Phase.RUNNING:
            self._order.run(job.uid, self._rulebook.tenant_of(stated), job.demand)
        else:
            self._order.forget(job.uid)

    def _labelled(self, job: SimJob) -> LabelledJob:
        tie = tie_of(self._queue.able.ties, job.queue_time, name=job.id, uid=job.uid)
        return LabelledJob(uid=job.uid, level=job.level, tie=tie)
