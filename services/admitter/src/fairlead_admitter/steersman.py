"""The loop: observe, decide, apply, record.

One turn at a time. A turn looks at everything new, and for each pool that has an order plans what to write and writes
it. Whatever a turn does not finish, or somebody undoes, is in the next turn's plan again.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from fairlead_admitter.applying import Applied
from fairlead_admitter.fronts import Doubt, Origin, PoolFront, Unsettled
from fairlead_admitter.latency import Arrivals
from fairlead_admitter.level_events import LevelEvents
from fairlead_admitter.merging import MergedFront
from fairlead_admitter.observing import Sight, Watch
from fairlead_admitter.patience import Patience
from fairlead_admitter.record import Record
from fairlead_admitter.steering import (
    LevelWrite,
    SteeringPlan,
    Window,
    common_band,
    steer,
    take_back,
    take_window,
)
from fairlead_admitter.written import Written
from fairlead_contracts.control import Mode
from fairlead_contracts.decisions import Decision
from fairlead_contracts.state import Phase
from fairlead_policy import Rulebook
from fairlead_runtime import wake_or_timeout, wall_clock

_QUEUED = (Phase.WAITING, Phase.HELD)


class Carrier(Protocol):
    """Carries plans out, or only says so."""

    async def carry_out(
        self, pool: str, writes: Sequence[LevelWrite], may_write: Callable[[], bool]
    ) -> Applied:
        """Write front to back as long as `may_write` says so."""


class Steersman:
    """Makes one cluster follow the order of its pools.

    Args:
        watch: what is seen.
        carrier: carries plans out.
        written: the trail of writes, as `carrier` keeps it.
        events: logs each level written on the event stream.
        record: metrics and log.
        patience: how long pools have lacked an order.
        lead: the epoch under which this replica leads and may trust it, else None; asked before each write.
        wake: set when there is something to look at.
        tick: seconds after which a turn is made anyway.
    """

    def __init__(
        self,
        watch: Watch,
        carrier: Carrier,
        written: Written,
        *,
        events: LevelEvents,
        record: Record,
        patience: Patience,
        lead: Callable[[], int | None],
        wake: asyncio.Event,
        tick: float,
    ) -> None:
        self._watch = watch
        self._carrier = carrier
        self._written = written
        self._events = events
        self._record = record
        self._patience = patience
        self._lead = lead
        self._epoch: int | None = None
        self._wake = wake
        self._tick = tick
        self._arrivals = Arrivals()
        self._merged: dict[str, tuple[float, MergedFront]] = {}

    async def run(self) -> None:
        """Turn after turn, until cancelled."""
        while True:
            await wake_or_timeout(self._wake, self._tick)
            await self.turn()

    async def turn(self) -> None:
        """Observe, and for each pool decide, apply and record."""
        sight = await self._watch.look()
        self._take_note(sight)
        self._notice_lead()
        pools = self._pools()
        self._patience.keep(pools if self._may_write() else ())
        self._merged = {pool: merged for pool, merged in self._merged.items() if pool in pools}
        if self._watch.unknown() is not None:
            return
        for pool, queues in pools.items():
            if not self._may_write():
                return
            plan = self._decide(pool, queues)
            if plan.writes:
                applied = await self._apply(pool, plan)
                await self._record_applied(pool, applied)

    def _may_write(self) -> bool:
        return self._lead() is not None

    # --- observe

    def _notice_lead(self) -> None:
        epoch = self._lead()
        if epoch != self._epoch:
            self._epoch = epoch
            self._written.begin_anew()
            self._record.lead(epoch)

    def _take_note(self, sight: Sight) -> None:
        for decision, verdict in sight.judged:
            self._record.judged(decision, verdict)
        for change in sight.jobs:
            if change.after is not None and change.after.phase in _QUEUED:
                before = change.before
                sighting = self._written.see(change.after, before, sight.at)
                self._record.sighted(change.after, sighting)
            elif change.before is not None:
                self._written.forget(change.before.uid)
        self._record.left_alone.set(self._written.fights)
        if sight.jobs and sight.news:
            self._record.admitted(sum(change.admitted for change in sight.jobs))
            self._arrivals.note(sight.state_seq, sight.at)

    def _pools(self) -> dict[str, frozenset[str]]:
        return self._watch.policy.queues_by_pool(self._watch.facts.cluster, self._watch.facts.queues)

    # --- decide

    def _decide(self, pool: str, queues: frozenset[str]) -> SteeringPlan:
        """What to write for the pool now."""
        match self._watch.policy.mode(pool):
            case Mode.PAUSED:
                self._patience.excuse(pool)
                return SteeringPlan(writes=[])
            case Mode.RELEASED:
                self._patience.excuse(pool)
                return self._release(queues)
            case Mode.ACTIVE:
                return self._follow(pool, queues)

    def _release(self, queues: frozenset[str]) -> SteeringPlan:
        facts = self._watch.facts
        defaults = {queue: facts.queues[queue].default_level for queue in queues}
        return take_back(facts, sorted(queues), self._written, defaults)

    def _follow(self, pool: str, queues: frozenset[str]) -> SteeringPlan:
        with self._record.pass_time.labels(pool).time():
            rulebook = self._watch.policy.rulebook
            if rulebook is None:
                self._patience.lack(pool, Unsettled(doubt=Doubt.NO_POLICY))
                return SteeringPlan(writes=[])
            front = self._watch.fronts.settle(
                pool,
                shards=rulebook.document.shards,
                policy=rulebook.revision,
                holders=self._watch.holders(),
            )
            facts = self._watch.facts
            band = common_band(facts.queues[queue] for queue in queues)
            if band is None and isinstance(front, PoolFront):
                front = Unsettled(doubt=Doubt.NO_BAND)
            if isinstance(front, Unsettled):
                self._patience.lack(pool, front)
                return SteeringPlan(writes=[])
            assert band is not None  # noqa: S101 # else unsettled above
            self._patience.satisfy(pool)
            window = self._take_window(pool, front, rulebook)
            plan = steer(window.ranked, facts, sorted(queues), self._written, band)
            self._record.planned(pool, plan.kept)
            return plan

    def _take_window(self, pool: str, front: PoolFront, rulebook: Rulebook) -> Window:
        merged = self._merge(pool, front, rulebook)
        waiting = front.waiting(self._watch.facts.cluster)
        size = rulebook.document.window
        window = take_window(merged.beginning, waiting, self._watch.facts, size)
        while not window.closed:
            window = take_window(merged.deepen(), waiting, self._watch.facts, size)
        return window

    def _merge(self, pool: str, front: PoolFront, rulebook: Rulebook) -> MergedFront:
        """The pool's order at this instant. Past the aging cap it moves by time alone, so it is kept for a tick."""
        now = time.monotonic()
        made, known = self._merged.get(pool, (0.0, None))
        if known is not None and known.front.same_as(front) and now - made < self._tick:
            return known
        rules = rulebook.pool_rules(pool, front.basis.capacity)
        merged = MergedFront(front, rules, wall_clock(), rulebook.document.window)
        self._merged[pool] = (now, merged)
        return merged

    # --- apply

    async def _apply(self, pool: str, plan: SteeringPlan) -> Applied:
        def may_write() -> bool:
            return self._may_write() and self._watch.control_stands(pool)

        applied = await self._carrier.carry_out(pool, plan.writes, may_write)
        if applied.withheld and not applied.failed:
            self._wake.set()  # the rest of the plan is planned anew, at once
        return applied

    # --- record

    async def _record_applied(self, pool: str, applied: Applied) -> None:
        self._record.troubled(pool, failed=applied.failed, gone=applied.gone, trouble=applied.trouble)
        _, merged = self._merged.get(pool, (0.0, None))
        origins: Mapping[str, Origin] = merged.beginning.origins if merged is not None else {}
        newest: Decision | None = None
        for write, rev in applied.landed:
            origin = origins.get(write.job.uid)
            decision = origin.decision if origin is not None else None
            self._record.wrote(pool, write)
            await self._events.log(pool, write, rev, decision)
            if decision is not None and (newest is None or decision.at > newest.at):
                newest = decision
        if newest is not None:
            self._measure(newest)
        await self._events.flush()

    def _measure(self, decision: Decision) -> None:
        seconds = self._arrivals.measure(decision.revision.get(self._watch.facts.cluster, 0))
        if seconds is not None:
            self._record.reacted(seconds, decision.traceparent)
