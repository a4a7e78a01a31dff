"""What the admitter knows of each pool's free room and of who was woken: the state behind `waking`."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from fairlead_admitter.decide.steering import LevelWrite, SteeringPlan, WriteCause
from fairlead_admitter.decide.waking import (
    BATCH_SECONDS,
    ORDERED_SECONDS,
    TRIED_SECONDS,
    WakeInputs,
    WakeStep,
    neighbours,
    next_step,
    planning_band,
    untried_level,
    wake_level,
)
from fairlead_admitter.decide.window import Ranked
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts, JobChange
from fairlead_contracts.messages.state import JobState, Phase, QueueState
from fairlead_policy.levels.class_bands import Segment
from fairlead_policy.levels.free_quota import FreeQuota

PARKING = "BestEffortFIFO"
"""The strategy under which who does not fit is put aside. Under the other one the head is tried again and again."""
MOST_A_SECOND = 20
"""Admissions of a queue. Where there are more, room is always free, and one at a time would be too slow."""
_COUNTED_SECONDS = 10.0
_LONG_AGO = float("-inf")


class _WakeTrail:
    """One pool's trail."""

    def __init__(self) -> None:
        self.freed: deque[float] = deque()
        """When something came free; of those before the last batch the newest."""
        self.woken: dict[str, float] = {}
        """By uid, when a job was woken last."""
        self.refused: set[str] = set()
        """Of those the ones that were seen to be tried since."""
        self.ended: dict[str, tuple[JobState, int, float]] = {}
        """Jobs that ended lately, what was known of the state before, and when."""
        self.used: dict[int, float] = {}
        """Levels that were written or left lately, and when."""
        self.started: dict[str, deque[float]] = {}
        """By queue, when jobs started."""
        self.queues: Sequence[QueueState] = ()
        self.due: float | None = None


class WakeState:
    """The trail of each pool.

    Args:
        facts: of the cluster.
        expectations: the trail of writes.
        clock: monotonic seconds.
    """

    def __init__(
        self, facts: ClusterFacts, expectations: Expectations, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._facts = facts
        self._expectations = expectations
        self._clock = clock
        self._pools: dict[str, _WakeTrail] = {}

    # --- what happened

    def keep(self, pools: Collection[str]) -> None:
        """Only these pools are there at all."""
        for pool in self._pools.keys() - set(pools):
            del self._pools[pool]

    def begin_anew(self) -> None:
        """Another replica may have written meanwhile."""
        self._pools.clear()

    def note(
        self, pools: Mapping[str, Collection[str]], changes: Iterable[JobChange], before_seq: int
    ) -> None:
        """Jobs ended or started, or were tried and put aside again.

        Args:
            pools: the queues of each.
            changes: of one look.
            before_seq: of the state stream: everything up to it was seen before this look.
        """
        now = self._clock()
        pool_of = {queue: pool for pool, queues in pools.items() for queue in queues}
        for change in changes:
            job = change.after or change.before
            pool = pool_of.get(job.queue) if job is not None else None
            if job is None or pool is None:
                continue
            trail = self._trail(pool)
            if change.before is not None and _gave_back(change.before, change.after):
                trail.ended[job.uid] = (change.before, before_seq, now)
                self._free(trail, now)
            elif change.admitted:
                trail.started.setdefault(job.queue, deque()).append(now)
            elif change.before is not None and change.before.said != job.said and job.uid in trail.woken:
                trail.refused.add(job.uid)  # the frontend just said why it does not fit

    def landed(self, pool: str, writes: Iterable[LevelWrite]) -> None:
        """These were written: their levels are used up now, as are those that they had before."""
        now, trail = self._clock(), self._trail(pool)
        for write in writes:
            if write.job.uid in trail.woken:
                self._wake(trail, write.job.uid)  # that it may be tried: from now on
            trail.used[write.level] = trail.used[write.before] = now

    def wake_in(self) -> float | None:
        """Seconds until something is due although nothing happens; None where nothing is."""
        now, due = self._clock(), list[float]()
        for trail in self._pools.values():
            if trail.due is not None:
                due.append(max(0.0, trail.due - now))
                trail.due = (
                    trail.due if trail.due > now else None
                )  # said once: the next turn finds what follows
        return min(due, default=None)

    # --- what follows

    def applies(self, pool: str, queues: Sequence[QueueState]) -> bool:
        """Whether jobs of the pool park, its room is known, and one at a time is quick enough."""
        now, trail = self._clock(), self._trail(pool)
        for queue, starts in trail.started.items():
            while starts and starts[0] <= now - _COUNTED_SECONDS:
                starts.popleft()
            if len(starts) > MOST_A_SECOND * _COUNTED_SECONDS and queue in {one.name for one in queues}:
                return False
        return any(queue.strategy == PARKING and queue.quotas for queue in queues)

    def restrain(  # what a plan is made from, and what it comes to
        self,
        pool: str,
        queues: Sequence[QueueState],
        plan: SteeringPlan,
        window: Sequence[Ranked],
        *,
        beyond: Callable[[], Sequence[Ranked]],
        segments: Sequence[Segment],
        decided: Callable[[JobState], int],
        always: bool,
    ) -> SteeringPlan:
        """As much of a plan as may be written now: while room is free, whoever is written to takes it.

        Args:
            pool: which one.
            queues: its queues.
            plan: what there is to write.
            window: the jobs that it was made for, in the wanted order.
            beyond: the order as far as it is known: asked for where what came free is too little for all of the window.
            segments: the bands, with the levels that are kept for waking.
            decided: of a job's tenant, the state-stream sequence that its order was made from.
            always: whether a level may be written only to wake.
        """
        now, trail = self._clock(), self._trail(pool)
        if list(trail.queues) != list(queues):
            trail.queues = queues
            self._free(trail, now)  # there may be more quota than before
        plan = msgspec.structs.replace(
            plan,
            writes=self._untried(trail, plan, window, segments),
            while_full=frozenset(queue.name for queue in queues),
        )
        fitting = self._fitting(queues, window)
        if not fitting and now < max(trail.freed) + BATCH_SECONDS:
            fitting = self._fitting(queues, beyond())
        step = self._step(trail, fitting, decided, now)
        trail.due = step.until
        if step.everything:
            return plan
        write = self._waking(trail, step.wake, plan, window, segments) if step.wake is not None else None
        if step.wake is not None and write is not None and (always or write.cause is not WriteCause.WAKE):
            self._wake(trail, step.wake.job.uid)
            return msgspec.structs.replace(plan, writes=[write])
        if step.wake is not None:
            # Nothing wakes it but the batch, and nobody else may come before.
            trail.due = max(trail.freed) + BATCH_SECONDS
        if trail.due is not None and trail.due <= now:
            return plan
        return msgspec.structs.replace(plan, writes=[])

    # --- inside

    def _fitting(self, queues: Sequence[QueueState], window: Sequence[Ranked]) -> list[Ranked]:
        """The jobs of the window that park and have room now."""
        room = FreeQuota(
            queues,
            self._facts.cohorts(queues),
            {queue.name: self._facts.running.charged(queue.name) for queue in queues},
        )
        parking = {queue.name for queue in queues if queue.strategy == PARKING}
        return [
            one
            for one in window
            if one.job.queue in parking
            and not self._expectations.leaves_alone(one.job)
            and room.fits(one.job)
        ]

    def _step(
        self, trail: _WakeTrail, fitting: Sequence[Ranked], decided: Callable[[JobState], int], now: float
    ) -> WakeStep:
        trail.ended = {
            uid: (job, seq, at)
            for uid, (job, seq, at) in trail.ended.items()
            if now - at < ORDERED_SECONDS and decided(job) <= seq
        }
        return next_step(
            fitting,
            WakeInputs(
                now=now,
                freed=max(trail.freed),
                ordered=not trail.ended,
                woken=trail.woken,
                refused=trail.refused,
            ),
        )

    def _waking(
        self,
        trail: _WakeTrail,
        woken: Ranked,
        plan: SteeringPlan,
        window: Sequence[Ranked],
        segments: Sequence[Segment],
    ) -> LevelWrite | None:
        """The write that wakes a job: the planned one where it does, else one to a level of its own; None for none."""
        planned = {write.job.uid: write for write in plan.writes}
        refused = self._refusing(trail, woken.job.queue)
        write = planned.get(woken.job.uid)
        if write is not None and not refused(write.level):
            return write
        segment = self._segment_of(woken.job.uid, segments)
        arranged = self._arranged(planned, window, segment)
        if woken.job.uid not in {uid for uid, _ in arranged}:
            arranged.append((woken.job.uid, segment.band.default))  # from beyond the window
        behind, before = neighbours(woken.job.uid, arranged, segment.band)
        standing = self._level_of(woken.job)
        level = wake_level(standing, behind=behind, before=before, band=segment.band, refused=refused)
        if level is None:
            return None
        return LevelWrite(
            job=woken.job,
            before=standing,
            level=level,
            rank=woken.rank,
            place=woken.place,
            tie=self._facts.tie(woken.job),
            cause=WriteCause.WAKE,
            drifted=self._expectations.drifted(woken.job.uid),
        )

    def _untried(
        self, trail: _WakeTrail, plan: SteeringPlan, window: Sequence[Ranked], segments: Sequence[Segment]
    ) -> list[LevelWrite]:
        """The plan's writes, at levels at which the frontend tries at once whoever gets them.

        Kueue notes on a Workload why it does not fit when it first tries it, by a call that takes longer than all else
        of its batch together. What comes free during that call goes to whoever the batch tries next. So nobody of the
        window shall be tried there first.
        """
        planned = {write.job.uid: write for write in plan.writes}
        inside = {one.job.uid for one in window}
        given = set[int]()
        for write in plan.writes:
            uid = write.job.uid
            if uid not in inside or write.cause is not WriteCause.FRONT:
                continue
            segment = self._segment_of(uid, segments)
            band = planning_band(segment.band)
            refused = self._refusing(trail, write.job.queue, given)
            if write.level > band.default and refused(write.level):
                arranged = self._arranged(planned, window, segment)
                outside = self._levels_outside(write.job.queue, planned, inside, segment)
                behind, before = neighbours(uid, arranged, band, others=outside)
                level = untried_level(write.level, behind=behind, before=before, refused=refused)
                planned[uid] = msgspec.structs.replace(write, level=level)
            given.add(planned[uid].level)
        return list(planned.values())

    def _levels_outside(
        self, queue: str, planned: Mapping[str, LevelWrite], inside: Collection[str], segment: Segment
    ) -> list[int]:
        """At which levels jobs of the segment stand, or will, that are not in the window."""
        found = []
        for uid in self._facts.moved(queue):
            job = self._facts.job(uid)
            if job is not None and uid not in inside and segment.takes(self._facts.urgency(uid)):
                found.append(planned[uid].level if uid in planned else self._level_of(job))
        return found

    def _arranged(
        self, planned: Mapping[str, LevelWrite], window: Sequence[Ranked], segment: Segment
    ) -> list[tuple[str, int]]:
        """The segment's jobs of the window in the wanted order, with the levels that they shall have."""
        return [
            (one.job.uid, planned[one.job.uid].level if one.job.uid in planned else self._level_of(one.job))
            for one in window
            if segment.takes(self._facts.urgency(one.job.uid))
        ]

    def _segment_of(self, uid: str, segments: Sequence[Segment]) -> Segment:
        urgency = self._facts.urgency(uid)
        return next(part for part in segments if part.takes(urgency))

    def _trail(self, pool: str) -> _WakeTrail:
        return self._pools.setdefault(pool, _WakeTrail())

    def _free(self, trail: _WakeTrail, now: float) -> None:
        """Who was tried before may fit now. A wake-up that is under way is not repeated."""
        trail.freed.append(now)
        while len(trail.freed) > 1 and trail.freed[1] <= now - BATCH_SECONDS:
            trail.freed.popleft()
        trail.woken = {uid: at for uid, at in trail.woken.items() if now - at < BATCH_SECONDS}
        batch = max((at for at in trail.freed if at <= now - BATCH_SECONDS), default=_LONG_AGO)
        trail.used = {level: at for level, at in trail.used.items() if at >= batch}

    def _wake(self, trail: _WakeTrail, uid: str) -> None:
        trail.woken[uid] = self._clock()
        trail.refused.discard(uid)
        trail.due = trail.woken[uid] + TRIED_SECONDS

    def _refusing(self, trail: _WakeTrail, queue: str, given: Collection[int] = ()) -> Callable[[int], bool]:
        """Of a level, whether some job may have been refused there since the last batch, or will be: of those just `given`."""
        used = trail.used
        standing = {level for queued in self._facts.queued(queue).values() for level in queued.waiting}
        return lambda level: level in used or level in standing or level in given

    def _level_of(self, job: JobState) -> int:
        return self._expectations.level_of(job)


def spared(segments: Sequence[Segment]) -> list[Segment]:
    """The segments without the levels that are kept for waking."""
    return [
        Segment(urgency=one.urgency, band=planning_band(one.band), ceiling=one.ceiling) for one in segments
    ]


def _gave_back(before: JobState, after: JobState | None) -> bool:
    """Whether a job holds less quota than it did."""
    if before.phase is not Phase.RUNNING:
        return False
    return after is None or after.phase is not Phase.RUNNING or after.charged != before.charged
