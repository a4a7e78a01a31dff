"""The loop: observe, decide, apply, record.

One turn at a time. A turn looks at everything new, plans for each pool that has an order what to write, and writes it.
Whatever a turn does not finish, or somebody undoes, is in the next turn's plan again.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from fairlead_admitter.apply.frontend_backoff import FrontendBackoff, weigh
from fairlead_admitter.apply.release import PoolRelease
from fairlead_admitter.decide.deciding import PoolPlan, decide
from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.decide.pace import Arrivals
from fairlead_admitter.decide.planner import Planner
from fairlead_admitter.decide.steering import LevelWrite, SteeringPlan
from fairlead_admitter.decide.turn_clock import TurnClock
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.watch import Observation, Watch
from fairlead_admitter.report.adherence import AdherenceWatch
from fairlead_admitter.report.event_log import JobEvents
from fairlead_admitter.report.job_traces import JobTraces
from fairlead_admitter.report.record import AdmitterRecord
from fairlead_admitter.report.reservation_record import ReservationRecord
from fairlead_admitter.report.staleness import Staleness
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.state import Phase
from fairlead_runtime.waiting import Pacing

_QUEUED = (Phase.WAITING, Phase.HELD)


class PlanApplier(Protocol):
    """Carries plans out, or only tells them."""

    async def carry_out(
        self, pool: str, writes: Sequence[LevelWrite], may_write: Callable[[], bool]
    ) -> PlanOutcome:
        """Writes front to back as long as `may_write` says so."""


@dataclass(eq=False)
class Reconciler:
    """Makes one cluster follow the order of its pools."""

    watch: Watch
    planner: Planner
    adherence: AdherenceWatch
    applier: PlanApplier
    expectations: Expectations
    """The trail of writes, as `applier` keeps it."""
    _: KW_ONLY
    events: JobEvents
    """Logs each level written on the event stream, and what happened to promises and passes."""
    reservations: ReservationRecord
    record: AdmitterRecord
    traces: JobTraces
    staleness: Staleness
    release: PoolRelease
    clock: TurnClock
    frontend_backoff: FrontendBackoff
    lead: Callable[[], int | None]
    """The epoch under which this replica leads and may trust it, else None; asked before each write."""
    wake: asyncio.Event
    """Set when there is something to look at."""
    tick: float
    """Seconds after which a turn is made anyway."""

    def __post_init__(self) -> None:
        self._epoch: int | None = None
        self._words: dict[str, tuple[bytes | None, ...]] = {}
        """The operators' words on each pool, as they were heard last."""
        self._took_over = False
        """Whether this replica leads anew, and has not told the traces of what it found."""
        self._arrivals = Arrivals()
        self._pacing = Pacing(rests=[self.planner.pace.late_by])

    async def run(self) -> None:
        """Turn after turn, until cancelled."""
        while True:
            await self._pacing.wake_or_timeout(self.wake, self._rest())
            await self.turn()

    def _rest(self) -> float:
        """Seconds until a turn is made although nothing is new."""
        self.clock.look()
        due = self.planner.wake_in()
        return min(
            self.tick, self.frontend_backoff.seconds_left or self.tick, self.tick if due is None else due
        )

    async def turn(self) -> None:
        """Observe, and for each pool decide, apply and record."""
        seen = await self.watch.look()
        self.clock.look()
        pools = self.watch.pools()
        self._take_note(seen, pools)
        self._notice_lead()
        self.staleness.keep(pools if self._may_write() else ())
        self.planner.keep(pools)
        self.record.withheld_levels.keep(pools)
        if not self._may_write():
            leader = self.watch.leader()
            self.adherence.stand_by(seen, pools, leader)
            self.expectations.stand_by(leader, seen.at)
            return
        if self.watch.unknown() is not None:
            self.adherence.overlook(seen, pools)
            return
        self.adherence.observe(seen, pools)
        self._tell_of_starts(seen, pools)
        self._hear_operators(pools)
        plans = {pool: self._decide(pool, queues) for pool, queues in pools.items()}
        for pool, plan in plans.items():
            self._have_swept(pool, pools[pool], plan)
        if not self.frontend_backoff.seconds_left:
            await self._carry_out({pool: plan.steering for pool, plan in plans.items()}, pools)
        # The log may take its time: no write waits for it.
        await self.events.reserved(self.reservations.take_news())

    def _decide(self, pool: str, queues: frozenset[str]) -> PoolPlan:
        with self.record.pass_time.labels(pool).time():
            plan = decide(self.planner.view(pool, queues))
        self.planner.remember(pool, plan.after)
        self._record_plan(pool, plan)
        return plan

    async def _carry_out(
        self, plans: Mapping[str, SteeringPlan], pools: Mapping[str, frozenset[str]]
    ) -> None:
        if not any(plan.writes for plan in plans.values()) and not self.expectations.backoff:
            self.frontend_backoff.forget()
        # Pools have no order among each other: none waits for the writes of another.
        async with asyncio.TaskGroup() as group:
            applying = {
                pool: group.create_task(self._apply(pool, pools[pool], plan))
                for pool, plan in plans.items()
                if plan.writes
            }
        for pool, task in applying.items():
            await self._record_applied(pool, task.result())

    def _may_write(self) -> bool:
        return self.lead() is not None

    def _permit(self, pool: str, queues: frozenset[str]) -> Callable[[], bool]:
        """Whether the pool may be written to, to be asked before each write."""
        watch = self.watch
        return lambda: self._may_write() and watch.control_stands(pool) and watch.preemption_stands(queues)

    def _permit_plan(self, pool: str, queues: frozenset[str], plan: SteeringPlan) -> Callable[[], bool]:
        """Permits as `_permit`, but stops where room comes free meanwhile: a new turn finds who is next."""
        permit = self._permit(pool, queues)
        return lambda: permit() and not (plan.while_full and self.watch.room_comes(plan.while_full))

    # --- observe

    def _notice_lead(self) -> None:
        epoch = self.lead()
        if epoch != self._epoch:
            self._epoch = epoch
            self.frontend_backoff.forget()  # a standby whose last write failed is as ready as any
            self.expectations.begin_anew()
            self.planner.lead(epoch)
            self.release.begin_anew()
            self.adherence.begin_anew(time.monotonic(), leads=epoch is not None)
            self.record.lead(epoch)
            self._took_over = epoch is not None

    def _take_note(self, seen: Observation, pools: dict[str, frozenset[str]]) -> None:
        for decision, verdict in seen.judged:
            self.record.judged(decision, verdict)
        for change in seen.jobs:
            if change.after is not None and change.after.phase in _QUEUED:
                before = change.before
                found = self.expectations.see(change.after, before, seen.at)
                self.record.level_compared(change.after, found)
            elif change.before is not None:
                self.expectations.forget(change.before.uid)
        self.expectations.doubt(seen.at)
        self.expectations.end_given_up(self.watch.facts.job, seen.at)
        self.planner.note(seen, pools)
        contested = self._pool_of_each(self.expectations.contested(seen.at), pools)
        self.record.left_alone.note(self._fought_over(pools), contested.values())
        self.record.resting.set(len(self.expectations.backoff))
        if seen.jobs and seen.news:
            self.record.admissions.inc(sum(change.admitted for change in seen.jobs))
            self._arrivals.note(seen.state_seq, seen.at)

    def _fought_over(self, pools: Mapping[str, frozenset[str]]) -> dict[str, str]:
        """The pool of each job that is left alone after a fight, by uid; empty for a job in none."""
        return self._pool_of_each(self.expectations.fought, pools)

    def _pool_of_each(self, uids: Iterable[str], pools: Mapping[str, frozenset[str]]) -> dict[str, str]:
        jobs = [job for job in map(self.watch.facts.job, uids) if job is not None]
        pool_of = {queue: pool for pool, queues in pools.items() for queue in queues} if jobs else {}
        return {job.uid: pool_of.get(job.queue, "") for job in jobs}

    def _hear_operators(self, pools: Mapping[str, frozenset[str]]) -> None:
        """Ends the fights in each pool of which an operator said a word since: it asks for another try."""
        words = {pool: self.watch.words_heard(pool) for pool in pools}
        spoken = {pool for pool in pools if self._words.get(pool, words[pool]) != words[pool]}
        self._words = words
        if spoken:
            fought = self._fought_over(pools).items()
            self.expectations.end_fights(uid for uid, pool in fought if pool in spoken)

    def _tell_of_starts(self, seen: Observation, pools: dict[str, frozenset[str]]) -> None:
        """Tells traces and the measured waits of starts; a job that ran for a moment is seen only once it has ended."""
        if self._took_over:
            self._took_over = False
            self.traces.took_over(self._epoch or 0, self.watch.facts.all_jobs())
        for job in seen.started if seen.news else ():
            pool = next((name for name, queues in pools.items() if job.queue in queues), "")
            self.record.waited(pool, self.watch.policy.granted_class(job), job, self.traces.admitted(job))

    # --- apply

    def _have_swept(self, pool: str, queues: frozenset[str], plan: PoolPlan) -> None:
        """Has marks of ours taken off beside the loop, where the plan wants that; else gives it up."""
        if not plan.no_trace:
            self.release.over(pool)
        for only in plan.sweeps:
            self.release.wanted(pool, sorted(queues), self._permit(pool, queues), only=only)

    async def _apply(self, pool: str, queues: frozenset[str], plan: SteeringPlan) -> PlanOutcome:
        applied = await self.applier.carry_out(pool, plan.writes, self._permit_plan(pool, queues, plan))
        self.clock.look()
        self.planner.applied(pool, applied)
        queued, backoff = self.watch.facts.queued_jobs(), self.expectations.backoff
        if weigh(applied, queued, backoff=backoff, frontend=self.frontend_backoff):
            self.wake.set()
        return applied

    # --- record

    def _record_plan(self, pool: str, plan: PoolPlan) -> None:
        """Tells the plan to whom it concerns."""
        if plan.withholding.why:
            self.staleness.excuse(pool)
            self.record.withheld_levels.withheld(pool, plan.withholding, standing=plan.standing)
            return
        self.record.withheld_levels.lifted(pool)
        if plan.doubt is not None:
            self.staleness.lack(pool, plan.doubt)
        elif plan.settled:
            self.staleness.satisfy(pool)
            self.record.planned(pool, kept=plan.steering.kept, window=plan.steering.window)

    async def _record_applied(self, pool: str, applied: PlanOutcome) -> None:
        self.record.troubled(
            pool,
            failed=applied.failed + len(applied.refused_lifts),
            gone=applied.gone,
            trouble=applied.trouble,
            jobs=[write.job for write in (*applied.missed, *applied.refused_lifts)],
        )
        for write, verdict in applied.drifted:
            self.record.level_compared(write.job, verdict)
        origins = self.planner.origins(pool)
        newest: Decision | None = None
        for write, landed in applied.landed:
            origin = origins.get(write.job.uid)
            decision = origin.decision if origin is not None else None
            self.record.wrote(pool, write)
            await self.events.level_written(pool, write, landed.mark, decision)
            if decision is not None and (newest is None or decision.at > newest.at):
                newest = decision
        if newest is not None:
            self._measure(newest)

    def _measure(self, decision: Decision) -> None:
        seconds = self._arrivals.measure(decision.revision.get(self.watch.facts.cluster, 0))
        if seconds is not None:
            self.planner.pace.reacted(seconds)
            self.record.reacted(seconds, decision.traceparent)
