"""Restraint of plans while room is free: who is woken now, and what waits. Pure; see `waking`."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from fairlead_admitter.decide.frontend_order import LinePosition
from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.steering import GONE, LevelWrite, SteeringPlan, WriteCause
from fairlead_admitter.decide.wake_state import PoolWakes
from fairlead_admitter.decide.waking import (
    MUCH_TRIED_SECONDS,
    WakeInputs,
    WakeStep,
    in_hand_until,
    next_step,
    planning_band,
    wake_level,
)
from fairlead_admitter.decide.window_levels import NeighbourLevels, WindowLevels, at_untried_levels
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.state import JobState, Phase, QueueState
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.levels.free_quota import FreeQuota


def is_short_of_room(trail: PoolWakes, queues: Sequence[QueueState], now: float) -> bool:
    """Whether jobs of the pool park for want of room: none of its queues is short of the frontend's time instead."""
    parks = any(queue.parks for queue in queues)
    return parks and not any(trail.starts_fast(queue.name, now) for queue in queues)


def knows_room(queues: Sequence[QueueState]) -> bool:
    """Whether what is free is known where jobs park."""
    return any(queue.parks and queue.quotas for queue in queues)


class Restraint:
    """Decides at one instant.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, facts: ClusterFacts, expectations: Expectations, now: float) -> None:
        self._facts, self._expectations, self._now = facts, expectations, now

    def restrain(  # what a plan is made from, and what it comes to
        self,
        trail: PoolWakes,
        queues: Sequence[QueueState],
        plan: SteeringPlan,
        window: Sequence[Ranked],
        *,
        known_order: Callable[[], Sequence[Ranked]],
        class_bands: Sequence[ClassBand],
        decided: Callable[[JobState], int],
        always: bool,
        much: bool,
        labels: int | None,
    ) -> tuple[SteeringPlan, PoolWakes]:
        """The part of a plan that may be written now, and the trail to keep once that is written.

        While room is free a job may start as soon as its level is written, so only jobs whose turn it is are written.

        Args:
            trail: the pool's trail; left as it is.
            window: the jobs that it was made for, in the wanted order.
            known_order: the order as far as it is known; asked for where much is free, or all of the window that fits is
                woken.
            class_bands: the bands, with the levels that are kept for waking.
            decided: the state-stream sequence that the order of a job's tenant was made from.
            always: whether a level may be written only to wake.
            much: whether more is free than the policy's `window` of jobs asks for.
            labels: number of levels that may go to jobs that have no room now; None for any number.
        """
        now, trail = self._now, trail.copy()
        trail.take_in(queues, now)
        trail.forget_ordered(decided, now)
        plan = msgspec.structs.replace(plan, while_full=frozenset(queue.name for queue in queues))
        step = self._step(trail, queues, window, known_order, much=much and always)
        trail.due = step.until
        levels = WindowLevels(self._facts, self._expectations, window, class_bands, trail.used)
        if wake := [one for one in step.wake if trail.may_wake(one.job.uid, now)]:
            writes = self._wake_writes(wake, at_untried_levels(plan, levels), levels, always=always)
            for write in writes:
                trail.wake(write.job.uid, now)
            if writes:
                return msgspec.structs.replace(plan, writes=writes), trail
        if step.wake:
            # Nothing wakes them but the batch, and nobody else may come before.
            trail.due = self._wake_inputs(trail).batch_ends
        if step.everything or (trail.due is not None and trail.due <= now):
            return within_budget(at_untried_levels(plan, levels), labels), trail
        return msgspec.structs.replace(plan, writes=[]), trail

    def _step(
        self,
        trail: PoolWakes,
        queues: Sequence[QueueState],
        window: Sequence[Ranked],
        known_order: Callable[[], Sequence[Ranked]],
        *,
        much: bool,
    ) -> WakeStep:
        room, inputs = self._room(queues), self._wake_inputs(trail)
        if not much:
            return next_step(self._candidates(queues, room, inputs, window, known_order), inputs, room.take)
        inputs = msgspec.structs.replace(inputs, tried=max(inputs.tried, MUCH_TRIED_SECONDS))
        fitting = self._fitting(queues, room, inputs, known_order())
        return next_step(fitting, inputs, room.take, self._line_position)

    def _room(self, queues: Sequence[QueueState]) -> FreeQuota:
        charged = {queue.name: self._facts.running.charged(queue.name) for queue in queues}
        return FreeQuota(queues, self._facts.cohorts(queues), charged)

    def _candidates(
        self,
        queues: Sequence[QueueState],
        room: FreeQuota,
        inputs: WakeInputs,
        window: Sequence[Ranked],
        known_order: Callable[[], Sequence[Ranked]],
    ) -> list[Ranked]:
        """The jobs of the window that have room. While all of these are in hand and the batch lasts, those of the whole order."""
        fitting = self._fitting(queues, room, inputs, window)
        in_hand = in_hand_until((one.job.uid for one in fitting), inputs)
        if len(in_hand) == len(fitting) and inputs.now < inputs.batch_ends:
            return self._fitting(queues, room, inputs, known_order())
        return fitting

    def _line_position(self, one: Ranked) -> LinePosition:
        return -self._expectations.level_of(one.job), self._facts.tie(one.job)

    def _fitting(
        self, queues: Sequence[QueueState], room: FreeQuota, inputs: WakeInputs, window: Sequence[Ranked]
    ) -> list[Ranked]:
        """Jobs of the window, and those in hand behind it, that may be parked and fit now in a flavor that takes them."""
        parking = {queue.name for queue in queues if queue.parks}
        return [
            one
            for one in [*window, *self._in_hand_beside(window, inputs)]
            if one.job.queue in parking
            and not (one.job.flavorless or self._expectations.leaves_alone(one.job))
            and room.fits(one.job)
        ]

    def _in_hand_beside(self, window: Sequence[Ranked], inputs: WakeInputs) -> list[Ranked]:
        """The jobs in hand that the order has put behind the window since: what is free is theirs until they were tried."""
        inside = {one.job.uid for one in window}
        jobs = [self._facts.job(uid) for uid in in_hand_until(inputs.woken, inputs) if uid not in inside]
        return [Ranked(GONE, None, job) for job in jobs if job is not None and job.phase is Phase.WAITING]

    def _wake_inputs(self, trail: PoolWakes) -> WakeInputs:
        return WakeInputs(
            now=self._now,
            freed=max(trail.freed),
            ordered=not trail.ended,
            woken=trail.woken,
            refused=trail.refused,
            tried=trail.tried,
            able=trail.able,
        )

    def _wake_writes(
        self, wake: Sequence[Ranked], plan: SteeringPlan, levels: WindowLevels, *, always: bool
    ) -> list[LevelWrite]:
        """The writes that wake jobs, in the wanted order; none behind one that nothing wakes."""
        planned = {write.job.uid: write for write in plan.writes}
        found: list[LevelWrite] = []
        for woken in wake:
            refused = levels.refused_at(woken.job.queue, {write.level for write in found})
            write = self._wake_write(woken, planned, levels, refused)
            if write is None or (write.cause is WriteCause.WAKE and not always):
                break
            planned[woken.job.uid] = write
            found.append(write)
        return found

    def _wake_write(
        self,
        woken: Ranked,
        planned: Mapping[str, LevelWrite],
        levels: WindowLevels,
        refused: Callable[[int], bool],
    ) -> LevelWrite | None:
        """The write that wakes a job: the planned one if it wakes, else one to a level of its own; None where none does."""
        write = planned.get(woken.job.uid)
        if write is not None and not refused(write.level):
            return write
        class_band = levels.class_band_of(woken.job.uid)
        arranged = levels.arranged(planned, class_band)
        if not levels.inside(woken.job.uid):
            arranged.append((woken.job.uid, class_band.band.default))  # from beyond the window
        behind, before = NeighbourLevels(arranged).around(woken.job.uid, class_band.band)
        standing = self._expectations.level_of(woken.job)
        level = wake_level(standing, behind=behind, before=before, band=class_band.band, refused=refused)
        if level is None:
            return None
        return LevelWrite(
            job=woken.job,
            before=standing,
            level=level,
            rank=woken.rank,
            position=woken.position,
            tie=self._facts.tie(woken.job),
            cause=WriteCause.WAKE,
            drifted=self._expectations.drifted(woken.job.uid),
        )


def within_budget(plan: SteeringPlan, most: int | None) -> SteeringPlan:
    """The plan cut to `most` levels; see `writes_in_time`."""
    return msgspec.structs.replace(plan, writes=writes_in_time(plan.writes, most))


def writes_in_time(writes: Sequence[LevelWrite], most: int | None, passed_over: str = "") -> list[LevelWrite]:
    """The writes of a plan that may come in time, and all that take a job back into its class.

    Args:
        writes: the plan's writes, in its order.
        most: number of writes that may be made; None for any number.
        passed_over: the uid of a job whose level is written however many others come too late.
    """
    if most is None:
        return [*writes]
    # A plan may be broken off after each of its writes.
    others = (
        one for one in writes[most:] if one.cause is WriteCause.OUT_OF_BAND or one.job.uid == passed_over
    )
    return [*writes[:most], *others]


def without_wake_levels(class_bands: Sequence[ClassBand]) -> list[ClassBand]:
    """The class bands without the levels that are kept for waking."""
    return [
        ClassBand(job_class=one.job_class, band=planning_band(one.band), ceiling=one.ceiling)
        for one in class_bands
    ]
