"""Decides the writes for one pool now: whether any at all, and if so, which levels follow from its order. Pure.

A view of a pool goes in: what is known of it, and what is remembered. A plan comes out, with its reasons and what is to be
remembered. Nothing that the view shows is changed: deciding twice gives the same plan twice.
"""

import sys
from collections.abc import Callable

import msgspec

from fairlead_admitter.decide.merged_order import MergedOrder, Ranked, take_heads
from fairlead_admitter.decide.newcomers import Newcomers
from fairlead_admitter.decide.pace import Pace
from fairlead_admitter.decide.protection import Protection, own_level, settled_by, top_level
from fairlead_admitter.decide.reserving import (
    NOT_WANTED,
    ReserveDecision,
    ReservedPool,
    ReservedQueue,
    ReservePlanner,
)
from fairlead_admitter.decide.restraint import (
    Restraint,
    is_short_of_room,
    knows_room,
    within_budget,
    without_wake_levels,
    writes_in_time,
)
from fairlead_admitter.decide.steering import (
    LevelWrite,
    SteeringPlan,
    WriteCause,
    lower_to_class,
    steer,
    take_levels_away,
)
from fairlead_admitter.decide.wake_state import PoolWakes
from fairlead_admitter.observe.decision_gate import Doubt, PoolHeads, UnsettledPool
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.leave import Leave, LeverName
from fairlead_contracts.messages.state import JobState, QueueState
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.levels.window import WindowSize
from fairlead_policy.levels.withholding import LevelFate, Withholding, may_preempt, reclaimable
from fairlead_policy.rules.rulebook import Rulebook

USUAL_PART = 0.25
"""The part of the running jobs that holds what an end usually frees: larger ones mostly run for longer, and end more seldom."""
_NOTHING = SteeringPlan(writes=[])


class KnownCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of the whole cluster: to be read."""

    facts: ClusterFacts
    expectations: Expectations
    pace: Pace
    newcomers: Newcomers
    protection: Protection
    class_of: Callable[[JobState], str]


class PoolMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a pool between two turns."""

    lever: LeverName | None
    """The lever by which the pool's levels that stand were written; None where none was seen."""
    reserved: ReservedPool | None
    trail: PoolWakes


class MemoryUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to a pool's memory that a plan brings."""

    withheld: bool = False
    """Whether no level may be written, and none is left to be taken away."""
    lever: LeverName | None = None
    reserving: ReserveDecision | None = None
    trail: PoolWakes | None = None
    budgeted: bool = False
    """Whether its labels go to jobs that have no room, as far as is known."""
    settled: tuple[WriteCause, list[JobState]] | None = None
    """Running jobs that stand where they shall, and why they would be written to."""


class PoolView(msgspec.Struct, frozen=True, kw_only=True):
    """A pool of this cluster as it is known at one instant: valid until the next fact is taken in.

    What is large in it is no value: `known` are the live indexes, to be read, and `merged` makes an order when it is asked
    for. A pass reads a few hundred of the jobs, and which ones follows from the levels that it finds. Values of all that
    it may read, made at the start of each pass, made passes 8 times as long at 15,000 waiting jobs and 100 times at
    100,000; tuples of the ties alone 1.2 and 2.9 times. Nothing is taken in while a pass decides, as that awaits nothing.
    """

    pool: str
    queues: list[QueueState]
    rulebook: Rulebook | None
    leave: Leave | None
    withholding: Withholding
    """Whether its order is written at all."""
    heads: PoolHeads | UnsettledPool
    class_bands: list[ClassBand]
    known: "KnownCluster"
    memory: "PoolMemory"
    now: float
    """Monotonic seconds."""
    wall: Micros
    merged: Callable[[PoolHeads, Rulebook], MergedOrder]
    """The order of heads at this instant, made when it is asked for, once."""
    dry_run: bool
    """Whether what is decided is only said."""
    writable: bool
    """Whether levels can be written now."""
    labels: int | None
    """Number of levels that may go to jobs that have no room now; None for any number."""

    @property
    def names(self) -> list[str]:
        """The names of the pool's queues."""
        return [queue.name for queue in self.queues]


class PoolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan for one pool, and its reasons."""

    steering: SteeringPlan = _NOTHING
    withholding: Withholding = Withholding()
    """The withholding of levels, with the reason for which the order is not followed; without a reason where it is."""
    standing: int = 0
    """Number of levels of ours that stand although the order is not followed."""
    doubt: UnsettledPool | None = None
    """The doubt for which there is no order to follow; None where there is one."""
    settled: bool = False
    """Whether there is one, and the levels are its own."""
    no_trace: bool = False
    """Whether no mark of ours is to be left on anything in the pool."""
    sweeps: tuple[LeverName | None, ...] = ()
    """Sweeps beside the loop: of the marks of one lever, or of all (None)."""
    after: MemoryUpdate = MemoryUpdate()
    """The changes to the pool's memory."""


def decide(view: PoolView) -> PoolPlan:
    """Decides the writes for the pool, and says why."""
    if view.withholding.why:
        return _withhold(view)
    plan = _leave_other_lever(view)
    if plan.steering.writes:
        return plan
    followed = _Following(view).plan()
    after = msgspec.structs.replace(followed.after, lever=plan.after.lever)
    return msgspec.structs.replace(followed, sweeps=plan.sweeps, after=after)


def _withhold(view: PoolView) -> PoolPlan:
    """The plan that writes nothing, or takes every level away first: what stood is told for as long as it stands."""
    taken = _take_levels_away(view)
    goes = view.withholding.fate is LevelFate.GO
    no_trace = goes and view.withholding.everywhere
    return PoolPlan(
        steering=taken if goes else _NOTHING,
        withholding=view.withholding,
        standing=len(taken.writes) + taken.left_alone,
        no_trace=no_trace,
        sweeps=(None,) if no_trace and not taken.writes else (),
        after=MemoryUpdate(reserving=NOT_WANTED, withheld=not (goes and taken.writes)),
    )


def _take_levels_away(view: PoolView) -> SteeringPlan:
    known = view.known
    return take_levels_away(known.facts, view.names, known.expectations, at_once=may_preempt(view.queues))


def _leave_other_lever(view: PoolView) -> PoolPlan:
    """Leave was given for another lever: levels by the one before go before any is written by the new one.

    What the state does not show, as boosts that are not read, is swept beside the loop.
    """
    leave = view.leave
    if leave is None:
        return PoolPlan()
    sweeps = () if leave.replaced in (None, leave.lever) else (leave.replaced,)
    after = MemoryUpdate(lever=leave.lever)
    if view.memory.lever in (None, leave.lever):
        return PoolPlan(sweeps=sweeps, after=after)
    plan = _take_levels_away(view)
    return PoolPlan(steering=plan, sweeps=sweeps, after=MemoryUpdate() if plan.writes else after)


class _Following:
    """Follows the order of a pool, as far as there is one."""

    def __init__(self, view: PoolView) -> None:
        self._view, self._known = view, view.known
        self._after = MemoryUpdate()

    def plan(self) -> PoolPlan:
        """Plans the writes."""
        view = self._view
        if view.rulebook is None:
            return PoolPlan(doubt=UnsettledPool(doubt=Doubt.NO_POLICY))
        if isinstance(view.heads, UnsettledPool):
            steering = self._without_order(view.rulebook)
            return PoolPlan(steering=steering, doubt=view.heads, after=self._after)
        steering = self._steer_by(view.heads, view.rulebook)
        return PoolPlan(steering=steering, settled=True, after=self._after)

    def _steer_by(self, heads: PoolHeads, rulebook: Rulebook) -> SteeringPlan:
        view, facts, most = self._view, self._known.facts, rulebook.document.window
        queues, names, class_bands = view.queues, view.names, view.class_bands
        trail = view.memory.trail
        budgeted = is_short_of_room(trail, queues, view.now)
        waking = budgeted and knows_room(queues) and not view.dry_run
        window, reserved = self._window(heads, rulebook, waking=waking)
        # The state that each shard's decision was made from.
        decided = [decision.revision.get(facts.cluster, 0) for decision in heads.decisions]
        head = next((one.job.uid for one in window if not one.job.flavorless), "")
        trail = trail.led_by(head, view.now)
        plan = steer(
            window,
            facts,
            names,
            self._known.expectations,
            without_wake_levels(class_bands) if waking else class_bands,
            newcomers=self._known.newcomers.undecided(decided),
            reserved=reserved,
        )
        if waking:
            much = view.merged(heads, rulebook).much
            plan, trail = Restraint(facts, self._known.expectations, view.now).restrain(
                trail,
                queues,
                plan,
                window,
                known_order=lambda: self._take_window(
                    heads, rulebook, WindowSize.whole(sys.maxsize if much else most)
                ),
                class_bands=class_bands,
                decided=lambda job: decided[rulebook.shard_of(rulebook.tenant_of(job))],
                always=rulebook.document.wake == "always",
                much=much,
                labels=view.labels,
            )
        elif budgeted:
            plan = within_budget(plan, view.labels)
        self._remember(trail=trail, budgeted=budgeted)
        writes = plan.writes  # what a promise takes is not what starts next
        if not reserved:
            writes = writes_in_time(writes, trail.most_writes(view.now), trail.passed_over())
        return msgspec.structs.replace(plan, writes=self._with_running(rulebook, writes))

    def _window(self, heads: PoolHeads, rulebook: Rulebook, *, waking: bool) -> tuple[list[Ranked], bool]:
        """The jobs to label, in the wanted order, and whether starts are promised among them."""
        view, most = self._view, rulebook.document.window
        starts = self._known.pace.size(view.pool, most, woken=waking)
        able = [queue.able for queue in view.queues]
        reserved = self._reserved_line(rulebook)
        if reserved is None:
            running = self._known.facts.running
            window_size = WindowSize.of_next(
                starts,
                most,
                able,
                across_queues=waking,
                room=running.freed(view.names),
                together=running.freed(view.names, USUAL_PART) if waking else None,
            )
            return self._take_window(heads, rulebook, window_size), False
        planner, line = reserved
        # All that may pass is looked at; not all of it is labelled.
        whole = self._take_window(heads, rulebook, WindowSize.whole(most))
        labelled = WindowSize.of_next(starts, most, able).least
        window, reserving = planner.arrange(line, whole, more=labelled, now=view.wall)
        self._remember(reserving=reserving)
        return window, True

    def _without_order(self, rulebook: Rulebook) -> SteeringPlan:
        """Leaves what stands. But a pass that is not taken back in time would stay before the head."""
        view = self._view
        reserved = self._reserved_line(rulebook) if view.class_bands else None
        if reserved is None:
            return _NOTHING
        planner, line = reserved
        uids, reserving = planner.withdraw(line, view.wall)
        self._remember(reserving=reserving)
        return lower_to_class(uids, self._known.facts, self._known.expectations, view.class_bands)

    def _with_running(self, rulebook: Rulebook, waiting: list[LevelWrite]) -> list[LevelWrite]:
        """The writes for what waits with those for what runs: lifts before all others, what only clears up after them."""
        view, policy = self._view, rulebook.document.preemption
        # One queue's setting may stop what runs in another.
        unsafe, reclaimed = may_preempt(view.queues), reclaimable(view.queues)
        if unsafe and policy == "protect":
            running = self._settle(view.names, top_level, WriteCause.PROTECT)
            return [*running, *waiting]
        if unsafe:
            return waiting
        if reclaimed:
            started_by = settled_by(view.wall, self._known.pace.starts_in(view.pool))
            return [*waiting, *self._settle(reclaimed, own_level, WriteCause.STARTED, started_by=started_by)]
        return [*waiting, *self._settle(view.names, own_level, WriteCause.CHECKED)]

    def _settle(
        self,
        queues: list[str],
        target: Callable[[JobState, ClassBand], int],
        cause: WriteCause,
        *,
        started_by: Micros | None = None,
    ) -> list[LevelWrite]:
        known, class_bands = self._known, self._view.class_bands
        writes, settled = known.protection.due(
            queues, class_bands, known.class_of, target, cause, started_by=started_by
        )
        self._remember(settled=(cause, settled))
        return writes

    def _take_window(self, heads: PoolHeads, rulebook: Rulebook, window_size: WindowSize) -> list[Ranked]:
        facts, left_alone = self._known.facts, self._known.expectations.leaves_alone
        merged, waiting = self._view.merged(heads, rulebook), heads.waiting(facts.cluster)
        window = take_heads(merged.beginning, waiting, facts, window_size, left_alone=left_alone)
        while not window.closed:
            window = take_heads(merged.deepen(), waiting, facts, window_size, left_alone=left_alone)
        return window.jobs

    def _reserved_line(self, rulebook: Rulebook) -> tuple[ReservePlanner, ReservedQueue] | None:
        """The line in which starts are promised, and who plans it; None, which is remembered, where none are."""
        view = self._view
        planner = ReservePlanner(
            self._known.facts, self._known.expectations, view.memory.reserved, writable=view.writable
        )
        line = planner.line(view.pool, view.queues, rulebook.document, view.class_bands)
        if isinstance(line, ReserveDecision):
            self._remember(reserving=line)
            return None
        return planner, line

    def _remember(self, **changes: object) -> None:
        self._after = msgspec.structs.replace(self._after, **changes)
