"""What to write for one pool now: whether at all, and if so, which levels follow from its order.

The planner decides and tells nobody: it makes a view of what is known of a pool, and of the view a plan with its reasons.
The loop carries plans out and records them. Time is a value; what the planner remembers between two turns (who was
woken, what was promised, how fast jobs start) changes by what it is told alone. So the same things told in the same
order give the same plans.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from fairlead_admitter.decide.merged_order import MergedOrder
from fairlead_admitter.decide.newcomers import Newcomers
from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.decide.pace import Pace
from fairlead_admitter.decide.protection import Protection
from fairlead_admitter.decide.reserving import Reservations
from fairlead_admitter.decide.steering import LevelWrite, SteeringPlan, WriteCause, lower, steer, take_back
from fairlead_admitter.decide.turn_clock import TurnClock
from fairlead_admitter.decide.wake_state import WakeState, spared
from fairlead_admitter.decide.window import Ranked, take_front
from fairlead_admitter.observe.decision_gate import (
    DecisionGate,
    DecisionOrigin,
    Doubt,
    Holders,
    PoolHeads,
    Unsettled,
)
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.observe.watch import Observation
from fairlead_contracts.frontend.capabilities import TieRule
from fairlead_contracts.messages.clearance import Clearance, Lever
from fairlead_contracts.messages.state import JobState, QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.levels.class_bands import Segment, segments_by
from fairlead_policy.levels.window import Extent
from fairlead_policy.levels.withholding import Fate, Withholding, judge_withholding, may_preempt
from fairlead_policy.rules.rulebook import Rulebook

_NOTHING = SteeringPlan(writes=[])
_NO_DOCUMENT = PolicyDocument(tenants=[])


class PlanInputs(Protocol):
    """What the planner looks at."""

    facts: ClusterFacts
    fronts: DecisionGate
    policy: PolicyView

    def holders(self) -> Holders:
        """The scorers that live now, and what they hold."""


class PoolView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one pool of this cluster at one instant."""

    pool: str
    queues: list[QueueState]
    rulebook: Rulebook | None
    clearance: Clearance | None
    withholding: Withholding
    """Whether its order is written at all."""
    front: PoolHeads | Unsettled
    segments: list[Segment]

    @property
    def names(self) -> list[str]:
        """Of its queues."""
        return [queue.name for queue in self.queues]


class PoolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is decided for one pool, and why."""

    steering: SteeringPlan = _NOTHING
    withholding: Withholding = Withholding()
    """Why the order is not followed; without a reason where it is."""
    standing: int = 0
    """How many levels of ours stand although it is not."""
    doubt: Unsettled | None = None
    """Why there is no order to follow."""
    settled: bool = False
    """Whether there is one, and the levels are its own."""
    no_trace: bool = False
    """Whether no mark of ours is to be left on anything in the pool."""
    sweeps: tuple[Lever | None, ...] = ()
    """What is to be swept beside the loop: the marks of one lever, or all (None)."""


class Planner:
    """Decides pool by pool.

    Args:
        known: what is seen.
        expectations: the trail of writes.
        reserving: keeps promises where the policy wants them.
        clock: of the turn.
        tick: seconds for which an order is kept that nothing but time changes.
        rehearsed: what is decided is only said.
    """

    def __init__(
        self,
        known: PlanInputs,
        expectations: Expectations,
        *,
        reserving: Reservations,
        clock: TurnClock,
        tick: float,
        rehearsed: bool = False,
    ) -> None:
        self._known = known
        self._rehearsed = rehearsed
        self._expectations = expectations
        self._reservations = reserving
        self._clock = clock
        self._tick = tick
        self._pace = Pace(clock.monotonic)
        self._newcomers = Newcomers()
        self._protection = Protection(clock.monotonic)
        self._wake_state = WakeState(known.facts, expectations, clock.monotonic)
        self._merged: dict[str, tuple[float, MergedOrder]] = {}
        self._levers: dict[str, Lever] = {}
        """By which the pool's levels that stand were written."""

    # What it is told

    def keep(self, pools: Mapping[str, frozenset[str]]) -> None:
        """Only these pools are there at all."""
        self._merged = {pool: merged for pool, merged in self._merged.items() if pool in pools}
        self._pace.keep(pools)
        self._wake_state.keep(pools)
        self._levers = {pool: lever for pool, lever in self._levers.items() if pool in pools}
        self._reservations.keep(pools)

    def lead(self, epoch: int | None) -> None:
        """This replica leads from now on, or stands by (None)."""
        self._protection.begin_anew(self._known.facts)
        self._wake_state.begin_anew()
        self._levers.clear()
        self._reservations.lead(epoch)

    def note(self, seen: Observation, pools: Mapping[str, frozenset[str]]) -> None:
        """This was seen to happen."""
        self._protection.note(seen.jobs)
        self._wake_state.note(pools, seen.jobs, seen.before_seq)
        self._newcomers.forget_old(seen.at)
        if not (seen.jobs and seen.news):
            return
        self._newcomers.note(seen.jobs, seen.state_seq, seen.at)
        started = [change.after.queue for change in seen.jobs if change.admitted and change.after is not None]
        for pool, queues in pools.items():
            self._pace.started(pool, sum(queue in queues for queue in started))

    def applied(self, pool: str, applied: PlanOutcome) -> None:
        """This became of a plan's writes."""
        self._wake_state.landed(pool, (write for write, _ in applied.landed))
        self._protection.lifted(
            write.job.uid for write, _ in applied.landed if write.cause is WriteCause.PROTECT
        )
        self._protection.refused(write.job.uid for write in applied.refused_lifts)

    def reacted(self, seconds: float) -> None:
        """A level was written so long after what caused it."""
        self._pace.reacted(seconds)

    def wake_in(self) -> float | None:
        """Seconds until time alone makes something due; None where nothing is."""
        due = [self._reservations.wake_in(self._clock.wall()), self._wake_state.wake_in()]
        return min((seconds for seconds in due if seconds is not None), default=None)

    def origins(self, pool: str) -> Mapping[str, DecisionOrigin]:
        """Which decision placed a job, by uid."""
        _, merged = self._merged.get(pool, (0.0, None))
        return merged.beginning.origins if merged is not None else {}

    # What follows

    def view(self, pool: str, names: frozenset[str]) -> PoolView:
        """What is known of a pool now."""
        facts, policy = self._known.facts, self._known.policy
        queues = [facts.queues[name] for name in sorted(names)]
        rulebook = policy.rulebook
        clearance = policy.clearance(facts.cluster)
        front: PoolHeads | Unsettled = Unsettled(doubt=Doubt.NO_POLICY)
        segments: list[Segment] = []
        if rulebook is not None:
            front = self._known.fronts.settle(
                pool,
                shards=rulebook.document.shards,
                policy=rulebook.revision,
                holders=self._known.holders(),
            )
            segments = segments_by(rulebook.document, queues, facts.classes)
            if not segments and isinstance(front, PoolHeads):
                front = Unsettled(doubt=Doubt.NO_BAND)
        return PoolView(
            pool=pool,
            queues=queues,
            rulebook=rulebook,
            clearance=clearance,
            withholding=judge_withholding(
                _NO_DOCUMENT if rulebook is None else rulebook.document,
                queues,
                clearance,
                control=policy.control(pool),
                values=facts.classes,
                found=policy.lever_found(facts.cluster),
                revocation=policy.revocation(facts.cluster),
                rehearsed=self._rehearsed,
            ),
            front=front,
            segments=segments,
        )

    def decide(self, view: PoolView) -> PoolPlan:
        """What to write for the pool, and why."""
        if view.withholding.why:
            self._reservations.let_go(view.pool)
            return self._withhold(view)
        if (plan := self._leave_other_lever(view)).steering.writes:
            return plan
        followed = self._follow(view)
        return msgspec.structs.replace(followed, sweeps=plan.sweeps)

    def _withhold(self, view: PoolView) -> PoolPlan:
        """Nothing is written, or every level is taken away first: what stood is told for as long as it stands."""
        taken = self._take_back(view)
        goes = view.withholding.fate is Fate.GO
        no_trace = goes and view.withholding.everywhere
        return PoolPlan(
            steering=taken if goes else _NOTHING,
            withholding=view.withholding,
            standing=len(taken.writes) + taken.left_alone,
            no_trace=no_trace,
            sweeps=(None,) if no_trace and not taken.writes else (),
        )

    def _take_back(self, view: PoolView) -> SteeringPlan:
        facts = self._known.facts
        return take_back(facts, view.names, self._expectations, at_once=may_preempt(view.queues))

    def _leave_other_lever(self, view: PoolView) -> PoolPlan:
        """Leave was given for another lever: levels by the one before go before any is written by the new one.

        What the state does not show, as boosts that are not read, is swept beside the loop.
        """
        clearance = view.clearance
        if clearance is None:
            return PoolPlan()
        sweeps = () if clearance.replaced in (None, clearance.lever) else (clearance.replaced,)
        if self._levers.setdefault(view.pool, clearance.lever) == clearance.lever:
            return PoolPlan(sweeps=sweeps)
        plan = self._take_back(view)
        if not plan.writes:
            self._levers[view.pool] = clearance.lever
        return PoolPlan(steering=plan, sweeps=sweeps)

    def _follow(self, view: PoolView) -> PoolPlan:
        if view.rulebook is None:
            return PoolPlan(doubt=Unsettled(doubt=Doubt.NO_POLICY))
        if isinstance(view.front, Unsettled):
            return PoolPlan(steering=self._without_order(view, view.rulebook), doubt=view.front)
        return PoolPlan(steering=self._steer_by(view.front, view, view.rulebook), settled=True)

    def _steer_by(self, front: PoolHeads, view: PoolView, rulebook: Rulebook) -> SteeringPlan:
        pool, queues, names, segments = view.pool, view.queues, view.names, view.segments
        facts = self._known.facts
        line = self._reservations.line(pool, queues, rulebook.document, segments)
        waking = not self._rehearsed and self._wake_state.applies(pool, queues)
        most = rulebook.document.window
        ahead = max(queue.able.labelled_ahead for queue in queues)
        labelled = max(self._pace.size(pool, most, woken=waking), min(most, ahead))
        if line is None:
            room = facts.running.largest(names)
            window = self._take_window(pool, front, rulebook, Extent(least=labelled, most=most, room=room))
        else:  # all that may pass is looked at; not all of it is labelled
            whole = self._take_window(pool, front, rulebook, Extent(least=most, most=most))
            window = self._reservations.arrange(line, whole, more=labelled, now=self._clock.wall())
        decided = self._decided(front, rulebook)
        plan = steer(
            window,
            facts,
            names,
            self._expectations,
            spared(segments) if waking else segments,
            newcomers=self._newcomers.undecided(decided, at_least=self._decided_by_all(front)),
            sealed=line is not None or any(queue.able.ties is TieRule.CHANCE for queue in queues),
        )
        if waking:
            plan = self._wake_state.restrain(
                pool,
                queues,
                plan,
                window,
                beyond=lambda: self._take_window(pool, front, rulebook, Extent(least=most, most=most)),
                segments=segments,
                decided=decided,
                always=rulebook.document.wake == "always",
            )
        lifts = self._lifts(queues, segments, rulebook)
        return msgspec.structs.replace(plan, writes=[*lifts, *plan.writes])

    def _without_order(self, view: PoolView, rulebook: Rulebook) -> SteeringPlan:
        """What stands, stands. But a pass that is not taken back in time stays before the head."""
        if not view.segments:
            return _NOTHING
        line = self._reservations.line(view.pool, view.queues, rulebook.document, view.segments)
        if line is None:
            return _NOTHING
        uids = self._reservations.withdraw(line, self._clock.wall())
        return lower(uids, self._known.facts, self._expectations, view.segments)

    def _lifts(
        self, queues: list[QueueState], segments: list[Segment], rulebook: Rulebook
    ) -> list[LevelWrite]:
        if rulebook.document.preemption != "protect":
            return []
        names = {queue.name for queue in queues if may_preempt([queue])}
        return self._protection.lifts(names, segments, self._known.policy.urgency_of)

    def _take_window(self, pool: str, front: PoolHeads, rulebook: Rulebook, extent: Extent) -> list[Ranked]:
        merged = self.merged(pool, front, rulebook)
        waiting = front.waiting(self._known.facts.cluster)
        window = take_front(
            merged.beginning, waiting, self._known.facts, extent, left_alone=self._expectations.leaves_alone
        )
        while not window.closed:
            window = take_front(
                merged.deepen(),
                waiting,
                self._known.facts,
                extent,
                left_alone=self._expectations.leaves_alone,
            )
        return window.jobs

    def _decided(self, front: PoolHeads, rulebook: Rulebook) -> Callable[[JobState], int]:
        """Of a job, up to where its tenant's decision knew the state."""
        cluster = self._known.facts.cluster

        def decided(job: JobState) -> int:
            shard = rulebook.shard_of(rulebook.tenant_of(job))
            return front.decisions[shard].revision.get(cluster, 0)

        return decided

    def _decided_by_all(self, front: PoolHeads) -> int:
        """Up to where every decision knew the state."""
        cluster = self._known.facts.cluster
        return min(decision.revision.get(cluster, 0) for decision in front.decisions)

    def merged(self, pool: str, front: PoolHeads, rulebook: Rulebook) -> MergedOrder:
        """The order of a pool's front at this instant, made once for all who ask in a turn.

        Past the aging cap it moves by time alone, so it is kept for a tick then.
        """
        now = self._clock.monotonic()
        made, known = self._merged.get(pool, (0.0, None))
        same = known is not None and known.front.same_as(front)
        if known is not None and same and (now - made < self._tick or not known.moves_at(self._clock.wall())):
            return known
        rules = rulebook.pool_rules(pool, front.basis.capacity)
        merged = MergedOrder(front, rules, self._clock.wall(), rulebook.document.window)
        self._merged[pool] = (now, merged)
        return merged
