"""What to write for one pool now: whether at all, and if so, which levels follow from its order."""

import time
from collections.abc import Callable, Mapping

import msgspec

from fairlead_admitter.fronts import Doubt, Origin, PoolFront, Unsettled
from fairlead_admitter.merging import MergedFront
from fairlead_admitter.newcomers import Newcomers
from fairlead_admitter.observing import Watch
from fairlead_admitter.pace import Pace
from fairlead_admitter.patience import Patience
from fairlead_admitter.protection import Protection
from fairlead_admitter.record import Record
from fairlead_admitter.releasing import Release
from fairlead_admitter.reserving import Reserving
from fairlead_admitter.steering import LevelWrite, SteeringPlan, lower, steer, take_back
from fairlead_admitter.wakes import Wakes, spared
from fairlead_admitter.window import Ranked, take_front
from fairlead_admitter.written import Written
from fairlead_contracts.frontend.capabilities import TieRule
from fairlead_contracts.messages.clearance import Lever
from fairlead_contracts.messages.state import JobState, QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.levels.class_bands import Segment, segments_by
from fairlead_policy.levels.window import Extent
from fairlead_policy.levels.withholding import Fate, Withholding, judge_withholding, may_preempt
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_runtime import wall_clock

_NOTHING = SteeringPlan(writes=[])
_NO_DOCUMENT = PolicyDocument(tenants=[])


class Planner:
    """Decides pool by pool.

    Args:
        watch: what is seen.
        written: the trail of writes.
        record: metrics and log.
        patience: how long pools have lacked an order.
        release: cleans what a release leaves behind.
        reserving: keeps promises where the policy wants them.
        tick: seconds for which an order is kept that nothing but time changes.
        rehearsed: what is decided is only said.
    """

    def __init__(
        self,
        watch: Watch,
        written: Written,
        *,
        record: Record,
        patience: Patience,
        release: Release,
        reserving: Reserving,
        tick: float,
        rehearsed: bool = False,
    ) -> None:
        self._watch = watch
        self._rehearsed = rehearsed
        self._written = written
        self._record = record
        self._patience = patience
        self._release = release
        self._reserving = reserving
        self._tick = tick
        self.pace = Pace()
        self.newcomers = Newcomers()
        self.protection = Protection()
        self.wakes = Wakes(watch.facts, written)
        self._merged: dict[str, tuple[float, MergedFront]] = {}
        self._levers: dict[str, Lever] = {}
        """By which the pool's levels that stand were written."""

    def keep(self, pools: Mapping[str, frozenset[str]]) -> None:
        """Only these pools are there at all."""
        self._merged = {pool: merged for pool, merged in self._merged.items() if pool in pools}
        self.pace.keep(pools)
        self.wakes.keep(pools)
        self._levers = {pool: lever for pool, lever in self._levers.items() if pool in pools}
        self._record.keep_withheld(pools)
        self._reserving.keep(pools)

    def lead(self, epoch: int | None) -> None:
        """This replica leads from now on, or stands by (None)."""
        self.protection.begin_anew(self._watch.facts)
        self._release.begin_anew()
        self.wakes.begin_anew()
        self._levers.clear()
        self._reserving.lead(epoch)

    def wake_in(self) -> float | None:
        """Seconds until time alone makes something due; None where nothing is."""
        due = [self._reserving.wake_in(wall_clock()), self.wakes.wake_in()]
        return min((seconds for seconds in due if seconds is not None), default=None)

    def origins(self, pool: str) -> Mapping[str, Origin]:
        """Which decision placed a job, by uid."""
        _, merged = self._merged.get(pool, (0.0, None))
        return merged.beginning.origins if merged is not None else {}

    def decide(self, pool: str, names: frozenset[str], may_write: Callable[[], bool]) -> SteeringPlan:
        """What to write for the pool now."""
        queues = [self._watch.facts.queues[name] for name in sorted(names)]
        rulebook = self._watch.policy.rulebook
        judged = self._judge(pool, queues, _NO_DOCUMENT if rulebook is None else rulebook.document)
        if judged.why:
            self._patience.excuse(pool)
            self._reserving.let_go(pool)
            return self._withhold(pool, queues, judged, may_write)
        self._release.over(pool)
        self._record.followed(pool)
        if (plan := self._leave_other_lever(pool, queues, may_write)).writes:
            return plan
        with self._record.pass_time.labels(pool).time():
            return self._follow(pool, queues, rulebook)

    def _judge(self, pool: str, queues: list[QueueState], document: PolicyDocument) -> Withholding:
        cluster, policy = self._watch.facts.cluster, self._watch.policy
        return judge_withholding(
            document,
            queues,
            policy.clearance(cluster),
            control=policy.control(pool),
            values=self._watch.facts.classes,
            found=policy.lever_found(cluster),
            revocation=policy.revocation(cluster),
            rehearsed=self._rehearsed,
        )

    def _withhold(
        self, pool: str, queues: list[QueueState], judged: Withholding, may_write: Callable[[], bool]
    ) -> SteeringPlan:
        """Nothing is written, or every level is taken away first: what stood is told for as long as it stands."""
        names = [queue.name for queue in queues]
        plan = take_back(self._watch.facts, names, self._written, at_once=may_preempt(queues))
        self._record.restraints.withheld(pool, judged, standing=len(plan.writes) + plan.left_alone)
        if judged.fate is not Fate.GO:
            self._release.over(pool)
            return _NOTHING
        if not judged.everywhere:
            self._release.over(pool)
        elif not plan.writes:
            self._release.wanted(pool, names, may_write)
        return plan

    def _leave_other_lever(
        self, pool: str, queues: list[QueueState], may_write: Callable[[], bool]
    ) -> SteeringPlan:
        """Leave was given for another lever: levels by the one before go before any is written by the new one.

        What the state does not show, as boosts that are not read, is swept beside the loop.
        """
        clearance = self._watch.policy.clearance(self._watch.facts.cluster)
        if clearance is None:
            return _NOTHING
        names = [queue.name for queue in queues]
        if clearance.replaced not in (None, clearance.lever):
            self._release.wanted(pool, names, may_write, only=clearance.replaced)
        if self._levers.setdefault(pool, clearance.lever) == clearance.lever:
            return _NOTHING
        plan = take_back(self._watch.facts, names, self._written, at_once=may_preempt(queues))
        if not plan.writes:
            self._levers[pool] = clearance.lever
        return plan

    def _follow(self, pool: str, queues: list[QueueState], rulebook: Rulebook | None) -> SteeringPlan:
        if rulebook is None:
            self._patience.lack(pool, Unsettled(doubt=Doubt.NO_POLICY))
            return _NOTHING
        front = self._watch.fronts.settle(
            pool,
            shards=rulebook.document.shards,
            policy=rulebook.revision,
            holders=self._watch.holders(),
        )
        segments = segments_by(rulebook.document, queues, self._watch.facts.classes)
        if not segments and isinstance(front, PoolFront):
            front = Unsettled(doubt=Doubt.NO_BAND)
        if isinstance(front, Unsettled):
            self._patience.lack(pool, front)
            return self._without_order(pool, queues, rulebook, segments)
        self._patience.satisfy(pool)
        return self._steer_by(front, pool, queues, rulebook=rulebook, segments=segments)

    def _steer_by(
        self,
        front: PoolFront,
        pool: str,
        queues: list[QueueState],
        *,
        rulebook: Rulebook,
        segments: list[Segment],
    ) -> SteeringPlan:
        names = [queue.name for queue in queues]
        line = self._reserving.line(pool, queues, rulebook.document, segments)
        waking = not self._rehearsed and self.wakes.applies(pool, queues)
        most = rulebook.document.window
        ahead = max(queue.able.labelled_ahead for queue in queues)
        labelled = max(self.pace.size(pool, most, woken=waking), min(most, ahead))
        if line is None:
            room = self._watch.facts.running.largest(names)
            window = self._take_window(pool, front, rulebook, Extent(least=labelled, most=most, room=room))
        else:  # all that may pass is looked at; not all of it is labelled
            whole = self._take_window(pool, front, rulebook, Extent(least=most, most=most))
            window = self._reserving.arrange(line, whole, more=labelled, now=wall_clock())
        decided = self._decided(front, rulebook)
        plan = steer(
            window,
            self._watch.facts,
            names,
            self._written,
            spared(segments) if waking else segments,
            newcomers=self.newcomers.undecided(decided),
            sealed=line is not None or any(queue.able.ties is TieRule.CHANCE for queue in queues),
        )
        self._record.planned(pool, kept=plan.kept, window=plan.window)
        if waking:
            plan = self.wakes.restrain(
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

    def _without_order(
        self, pool: str, queues: list[QueueState], rulebook: Rulebook, segments: list[Segment]
    ) -> SteeringPlan:
        """What stands, stands. But a pass that is not taken back in time stays before the head."""
        line = self._reserving.line(pool, queues, rulebook.document, segments) if segments else None
        if line is None:
            return _NOTHING
        uids = self._reserving.withdraw(line, wall_clock())
        return lower(uids, self._watch.facts, self._written, segments)

    def _lifts(
        self, queues: list[QueueState], segments: list[Segment], rulebook: Rulebook
    ) -> list[LevelWrite]:
        if rulebook.document.preemption != "protect":
            return []
        names = {queue.name for queue in queues if may_preempt([queue])}
        return self.protection.lifts(names, segments, self._watch.policy.urgency_of)

    def _take_window(self, pool: str, front: PoolFront, rulebook: Rulebook, extent: Extent) -> list[Ranked]:
        merged = self.merged(pool, front, rulebook)
        waiting = front.waiting(self._watch.facts.cluster)
        window = take_front(
            merged.beginning, waiting, self._watch.facts, extent, left_alone=self._written.leaves_alone
        )
        while not window.closed:
            window = take_front(
                merged.deepen(), waiting, self._watch.facts, extent, left_alone=self._written.leaves_alone
            )
        return window.jobs

    def _decided(self, front: PoolFront, rulebook: Rulebook) -> Callable[[JobState], int]:
        """Of a job, up to where its tenant's decision knew the state."""
        cluster = self._watch.facts.cluster

        def decided(job: JobState) -> int:
            shard = rulebook.shard_of(rulebook.tenant_of(job))
            return front.decisions[shard].revision.get(cluster, 0)

        return decided

    def merged(self, pool: str, front: PoolFront, rulebook: Rulebook) -> MergedFront:
        """The order of a pool's front at this instant, made once for all who ask in a turn.

        Past the aging cap it moves by time alone, so it is kept for a tick then.
        """
        now = time.monotonic()
        made, known = self._merged.get(pool, (0.0, None))
        same = known is not None and known.front.same_as(front)
        if known is not None and same and (now - made < self._tick or not known.moves_at(wall_clock())):
            return known
        rules = rulebook.pool_rules(pool, front.basis.capacity)
        merged = MergedFront(front, rules, wall_clock(), rulebook.document.window)
        self._merged[pool] = (now, merged)
        return merged
