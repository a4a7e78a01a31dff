"""Fairlead's own policy as a discipline: the order and the levels that the services would decide, in lock step.

By the same functions as an admitter's: `take_window` says how far the order is labelled, `plan_class_bands` by which
writes. What is known of the queue is what it states.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.verbs import SetLevel
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import Phase
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.levels.class_band_plan import plan_class_bands
from fairlead_policy.levels.class_bands import ClassBand, class_bands_by
from fairlead_policy.levels.plan import LabelledJob
from fairlead_policy.levels.ties import Tie, TieIndex, tie_of
from fairlead_policy.levels.window import Candidate, WindowSize, take_window
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.startable import is_beyond
from fairlead_sim.changes import ClusterChanges
from fairlead_sim.config import QueueConfig
from fairlead_sim.jobs import SimJob
from fairlead_sim.statements import NO_EPOCH, queue_state
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
        """Creates a pool in which nothing waits.

        Args:
            policy: tenants, weights, classes, aging, window.
            capacity: the pool's capacity, in base units.
            queue: the one queue that is steered.
        """
        self._rulebook = Rulebook(policy, 1)
        pool = self._rulebook.pool_of(_CLUSTER, queue.pool)
        self._order = PoolFacts(self._rulebook.pool_rules(pool, capacity))
        self._queue = queue_state(queue, _CLUSTER, 0)
        self._class_bands = class_bands_by(policy, [self._queue], {})
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
        most = self._rulebook.document.window
        heads = self._order.at(now).queue_heads(most).get(JobQueue(_CLUSTER, self._queue.name), [])
        candidates = [Candidate(self._queue.name, self._waiting[position.uid]) for position in heads]
        waiting = {self._queue.name: len(self._waiting)}
        window = take_window(candidates, waiting, WindowSize.whole(most))
        return self._write(window.jobs)

    def order(self, now: Micros) -> list[Position]:
        """The whole order, with the terms behind each position."""
        return self._order.at(now).positions()[:]

    def _observe(self, job: SimJob) -> None:
        stated = job.state(_CLUSTER, NO_EPOCH)
        match job.phase:
            case Phase.WAITING:
                if job.uid not in self._waiting:
                    self._waiting[job.uid] = job
                    self._unlabelled.put(job.uid, self._tie(job))
                apart = is_beyond(job.demand, self._order.rules.capacity)
                self._order.wait(self._rulebook.waiting_job(stated, apart=apart))
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

    def _write(self, window: Sequence[SimJob]) -> list[SetLevel]:
        inside = {job.uid for job in window}
        outside = [self._waiting[uid] for uid in sorted(self._labelled - inside)]
        first = self._unlabelled.first_outside(inside)
        if first is not None:
            outside.append(self._waiting[first])
        queued = _InLine(window, outside, self._tie)
        # No simulated pool states that it is `reservable`: nobody promises starts in it.
        plan = plan_class_bands(self._class_bands, queued, [self._queue.able], reserved=False)
        return [self._label(self._waiting[change.uid], change.level) for change in plan.changes]

    def _label(self, job: SimJob, level: int) -> SetLevel:
        if level == self._queue.default_level:
            self._labelled.discard(job.uid)
            self._unlabelled.put(job.uid, self._tie(job))
        else:
            self._labelled.add(job.uid)
            self._unlabelled.discard(job.uid)
        return SetLevel(scope=job.scope, id=job.id, uid=job.uid, level=level)

    def _tie(self, job: SimJob) -> Tie:
        return tie_of(self._queue.able.ties, job.queue_time, name=job.id, uid=job.uid)


class _InLine:
    """The jobs of the one queue, which takes levels of one band, whatever their class; see `FrontendQueue`."""

    def __init__(
        self, window: Sequence[SimJob], outside: Sequence[SimJob], tie: Callable[[SimJob], Tie]
    ) -> None:
        self._window = window
        self._outside = outside
        self._tie = tie
        self._levels = {job.uid: job.level for job in [*window, *outside]}

    def window(self, class_band: ClassBand) -> Iterator[LabelledJob]:
        """See `FrontendQueue`."""
        del class_band
        return map(self._labelled, self._window)

    def outside(self, class_band: ClassBand, most: int) -> Iterator[LabelledJob]:
        """See `FrontendQueue`."""
        del class_band, most
        return map(self._labelled, self._outside)

    def out_of_band_jobs(self, class_band: ClassBand) -> Iterator[str]:
        """See `FrontendQueue`. No class has a ceiling here."""
        del class_band
        return iter(())

    def lifted_held(self, class_band: ClassBand) -> Iterator[str]:
        """See `FrontendQueue`. No job is held here."""
        del class_band
        return iter(())

    def level_of(self, uid: str) -> int:
        """See `FrontendQueue`."""
        return self._levels[uid]

    def _labelled(self, job: SimJob) -> LabelledJob:
        return LabelledJob(uid=job.uid, level=job.level, tie=self._tie(job))


def steered(workload: SimWorkload) -> SteeredPool:
    """The discipline that a workload's own policy asks for."""
    [queue] = [queue for queue in workload.cluster.queues if queue.pool == POOL]
    return SteeredPool(workload.policy, workload.capacity(), queue)
