"""Adherence of the cluster to the order, measured by looking alone: also where no level may be written.

An admission is judged by the orders that stood within the last moment: nobody can follow one that is younger. What
nobody could order is counted apart, by why: jobs that came just before (a frontend may try one of a new shape at once,
while the job that is next is still being woken), admissions while a pool had no order, those around a takeover,
while no admitter led or the new one had not looked yet, and those in looks at which not everything was known.
"""

import enum
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from fairlead_admitter.decide.merged_order import MergedOrder
from fairlead_admitter.decide.planner import DecisionInputs
from fairlead_admitter.decide.waking import batch_seconds
from fairlead_admitter.observe.decision_gate import PoolHeads, UnsettledPool
from fairlead_admitter.observe.watch import Observation
from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.base.quantities import base_units
from fairlead_contracts.messages.members import FollowedOrder, LeaderLease, OutOfTurn
from fairlead_contracts.messages.state import JobState, Phase, QueueState
from fairlead_contracts.topology import LEASE_SECONDS
from fairlead_policy.levels.adherence import AdherenceFold, Holdings, PoolInstant
from fairlead_policy.reserve.easy import reserves
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_runtime.metrics import Metrics

REACTION_SECONDS = 0.25
"""Seconds from a fact to the levels that follow from it, on a busy machine: nobody can have followed a younger
order."""
_EXPIRES_AFTER = round(LEASE_SECONDS * SECOND * 2 / 3)
"""Microseconds. A lease that goes sooner after its last renewal was given back: its leader judged until then."""
RECENT_SECONDS = 60.0
"""Seconds for which a start counts in how well the order is followed now."""
_MANY, _FEWEST_MANY = 0.2, 5
"""Part of the starts out of turn, and their number at the least, from which the order is followed loosely: the degree `close`
allows a few in a hundred, and a busy machine comes to one in ten."""
_SOME, _FEWEST = 0.02, 3
"""Part and number from which it is not followed exactly: of three starts one tells nothing."""
_STANDBY_REMEMBERS = 60 * SECOND
"""Microseconds for which a standby remembers the admissions that it saw."""


class UnjudgedReason(enum.StrEnum):
    """The reason for which an admission is not judged."""

    NEWCOMER = "newcomer"
    TAKEOVER = "takeover"
    NO_ORDER = "no-order"
    UNKNOWN = "unknown"


type Merge = Callable[[str, PoolHeads, Rulebook], MergedOrder]


class AdherenceRecord:
    """The metrics. Labels are pools and resources."""

    def __init__(self, metrics: Metrics) -> None:
        self.judged = metrics.counter(
            "admissions_judged",
            "Admissions of which it is known whether they followed the order.",
            labels=["pool"],
        )
        self.missed = metrics.counter(
            "admissions_out_of_order",
            "Admissions that took room which a waiting job before them in the order should have had.",
            labels=["pool"],
        )
        self.barged = metrics.counter(
            "newcomers_out_of_order",
            "Admissions of jobs that came just before, in room which a waiting job would have taken.",
            labels=["pool"],
        )
        self.unjudged = metrics.counter(
            "admissions_unjudged",
            "Admissions of jobs that came just before, around a takeover, while the pool had no order, or while not everything was known.",
            labels=["pool", "why"],
        )
        self.idle = metrics.counter(
            "idle_resource_seconds",
            "Resources that stood free while a job waited that would have fitted: cards, cores or bytes, times seconds.",
            labels=["pool", "resource"],
        )
        self.hindered = metrics.gauge(
            "jobs_hindered",
            "Waiting jobs that fit by quota and that something else holds back; they count for nothing here.",
            labels=["pool"],
        )


@dataclass(eq=False)
class _Order:
    """Heads, and the jobs in their order once they are asked for."""

    at: float
    heads: PoolHeads
    merged: MergedOrder | None = None


class _PoolAdherence:
    def __init__(self, since: Micros) -> None:
        self.since = since
        self.adherence = AdherenceFold()
        self.orders: deque[_Order] = deque()
        self.arrived: dict[str, float] = {}
        """Monotonic second at which each job came that may be in no order yet, by uid."""
        self.settled = 0.0
        """Monotonic seconds at which the pool had an order last."""
        self.queues: list[QueueState] = []
        self.unjudged = Counter[UnjudgedReason]()
        self._recent: deque[tuple[float, OutOfTurn]] = deque()
        self._is_loose = False

    def note_starts(self, at: float, starts: int, missed: int, barged: int) -> None:
        """Notes the starts of one look."""
        if starts:
            self._recent.append((at, OutOfTurn(starts=starts, passed=missed, newcomers=barged)))
        while self._recent and self._recent[0][0] <= at - RECENT_SECONDS:
            self._recent.popleft()

    def out_of_turn(self, now: float) -> OutOfTurn | None:
        """The starts of the last minute; None where all but a few in a hundred followed the order."""
        recent = [one for at, one in self._recent if at > now - RECENT_SECONDS]
        found = OutOfTurn(
            starts=sum(one.starts for one in recent),
            passed=sum(one.passed for one in recent),
            newcomers=sum(one.newcomers for one in recent),
        )
        part = _MANY / 2 if self._is_loose else _MANY  # the word shall not flip about the threshold
        passed = found.passed + found.newcomers
        self._is_loose = passed >= max(_FEWEST_MANY, part * found.starts)
        if not self._is_loose and passed < max(_FEWEST, _SOME * found.starts):
            return None
        return msgspec.structs.replace(found, many=self._is_loose)


class _Standby:
    """Admissions since somebody led last, as a replica sees them that does not lead."""

    def __init__(self) -> None:
        self.led_until: Micros | None = None
        """Instant until which somebody is known to have led; None where nobody ever did."""
        self._leader: LeaderLease | None = None
        self._admitted: deque[tuple[Micros, str, int]] = deque()

    def note(self, now: Micros, leader: LeaderLease | None, admitted: Mapping[str, int]) -> None:
        if leader is not None:
            self.led_until = leader.renewed
        elif self._leader is not None and now - self._leader.renewed < _EXPIRES_AFTER:
            self.led_until = now
        self._leader = leader
        self._admitted += [(now, pool, jobs) for pool, jobs in admitted.items() if jobs]
        while self._admitted and self._admitted[0][0] < now - _STANDBY_REMEMBERS:
            self._admitted.popleft()

    def take(self, pool: str) -> int:
        """Takes the number of the pool's jobs that were admitted since somebody led; each is given once."""
        since = self.led_until
        mine = [(at, jobs) for at, name, jobs in self._admitted if name == pool]
        self._admitted = deque(one for one in self._admitted if one[1] != pool)
        return sum(jobs for at, jobs in mine if since is not None and at > since)


class AdherenceWatch:
    """Measures each pool whose queues state their quota, as long as this replica leads.

    Args:
        clock: microseconds since the Unix epoch.
    """

    def __init__(
        self, watch: DecisionInputs, record: AdherenceRecord, *, merge: Merge, clock: Callable[[], Micros]
    ) -> None:
        self._watch, self._facts = watch, watch.facts
        self._record = record
        self._merge = merge
        self._clock = clock
        self._pools: dict[str, _PoolAdherence] = {}
        self._standby = _Standby()
        self._unseen = Counter[str]()
        """Number of jobs admitted while not everything was known, by pool that is not measured yet."""
        self._took_over: float | None = None
        """Monotonic second at which this replica took the lead from another; None where nobody led before."""

    def stated(self) -> list[FollowedOrder]:
        """The adherence as the lease states it."""
        return [
            FollowedOrder(
                pool=name,
                since=pool.since,
                admissions=pool.adherence.judged,
                missed=pool.adherence.missed,
                idle={resource: round(amount, 3) for resource, amount in pool.adherence.idle.items()},
                hindered=pool.adherence.hindered,
                newcomers=pool.unjudged[UnjudgedReason.NEWCOMER],
                takeovers=pool.unjudged[UnjudgedReason.TAKEOVER],
                unordered=pool.unjudged[UnjudgedReason.NO_ORDER],
                unseen=pool.unjudged[UnjudgedReason.UNKNOWN],
            )
            for name, pool in sorted(self._pools.items())
        ]

    def out_of_turn(self, now: float) -> dict[str, OutOfTurn]:
        """The pools in which some starts of the last minute did not follow the order, at a monotonic second."""
        found = {name: pool.out_of_turn(now) for name, pool in sorted(self._pools.items())}
        return {name: starts for name, starts in found.items() if starts is not None}

    def begin_anew(self, at: float, *, leads: bool) -> None:
        """Begins anew: this replica leads from now on, or does not any more, and judged nothing yet.

        Args:
            at: monotonic seconds.
        """
        self._pools.clear()
        self._unseen.clear()
        self._took_over = at if leads and self._standby.led_until is not None else None

    def stand_by(
        self, seen: Observation, pools: Mapping[str, frozenset[str]], leader: LeaderLease | None
    ) -> None:
        """Takes in one look while this replica does not lead: what nobody judged is counted once it does.

        Args:
            seen: the look; the facts hold it already.
            pools: the queues of each.
        """
        self.lose_sight()
        self._standby.note(self._clock(), leader, _admissions(seen, pools))

    def overlook(self, seen: Observation, pools: Mapping[str, frozenset[str]]) -> None:
        """Takes in one look at which not everything was known: its admissions are counted, and not judged.

        Args:
            seen: the look; the facts hold it already.
            pools: the queues of each.
        """
        self.lose_sight()
        for name, jobs in _admissions(seen, pools).items():
            if (pool := self._pools.get(name)) is not None:
                self._leave_unjudged(name, pool, UnjudgedReason.UNKNOWN, jobs)
            else:
                self._unseen[name] += jobs

    def lose_sight(self) -> None:
        """Stops counting: what happens now is not known."""
        for pool in self._pools.values():
            pool.adherence.lose_sight()
            pool.orders.clear()

    def observe(self, seen: Observation, pools: Mapping[str, frozenset[str]]) -> None:
        """Takes in one look.

        Args:
            seen: the look; the facts hold it already.
            pools: the queues of each.
        """
        rulebook = self._watch.policy.rulebook
        if rulebook is None or not seen.news:
            self.lose_sight()
            return
        # Reserve mode keeps room free on purpose, and lets jobs pass: the order alone does not say who is next.
        measured = {
            name: queues
            for name, queues in pools.items()
            if not reserves(rulebook.document, name)
            and any(self._facts.queues[queue].quotas for queue in queues)
        }
        for name in self._pools.keys() - measured.keys():
            del self._pools[name]
        for name, queues in measured.items():
            pool = self._pools.get(name) or self._begin(name)
            self._observe_pool(name, pool, queues, seen=seen, rulebook=rulebook)

    def _begin(self, name: str) -> _PoolAdherence:
        pool = self._pools[name] = _PoolAdherence(self._clock())
        for counter in (self._record.judged, self._record.missed, self._record.barged):
            counter.labels(name)  # it is shown from now on
        if self._took_over is not None:
            self._leave_unjudged(name, pool, UnjudgedReason.TAKEOVER, self._standby.take(name))
        self._leave_unjudged(name, pool, UnjudgedReason.UNKNOWN, self._unseen.pop(name, 0))
        return pool

    def _observe_pool(
        self,
        name: str,
        pool: _PoolAdherence,
        queues: frozenset[str],
        *,
        seen: Observation,
        rulebook: Rulebook,
    ) -> None:
        changes = [
            change
            for change in seen.jobs
            if any(job is not None and job.queue in queues for job in (change.before, change.after))
        ]
        admitted = [change.after for change in changes if change.admitted and change.after is not None]
        pool.arrived = {uid: at for uid, at in pool.arrived.items() if seen.at - at < REACTION_SECONDS}
        pool.arrived |= {
            change.after.uid: seen.at
            for change in changes
            if change.before is None and change.after is not None
        }
        fresh = self._note_heads(name, pool, seen.at, rulebook)
        states = [self._facts.queues[queue] for queue in sorted(queues)]
        quiet = states == pool.queues and not (changes or fresh or pool.adherence.stands_idle)
        pool.queues = states
        if quiet:
            return
        judged, newcomers = self._judgeable(name, pool, admitted, seen.at)
        # Admissions are held against all orders of the last moment; what stands idle follows from the newest alone.
        orders = [
            self._jobs_of(name, order, queues, rulebook=rulebook, admitted=admitted)
            for order in (pool.orders if judged else list(pool.orders)[-1:])
        ]
        fold = pool.adherence
        before = fold.judged, fold.missed, fold.barged, dict(fold.idle)
        holdings = self._holdings(states)
        fold.look(
            PoolInstant(at=seen.at, orders=orders, admitted=judged, newcomers=newcomers, holdings=holdings)
        )
        pool.note_starts(seen.at, len(admitted), fold.missed - before[1], fold.barged - before[2])
        self._count(name, fold, before)

    def _judgeable(
        self, name: str, pool: _PoolAdherence, admitted: list[JobState], at: float
    ) -> tuple[list[JobState], list[JobState]]:
        """The admissions that an order can be held against, and the newcomers; others are counted by why no order can."""
        if not pool.orders:
            self._leave_unjudged(name, pool, UnjudgedReason.NO_ORDER, len(admitted))
            return [], []
        # Until the frontend's own batch has passed, the leader before may have woken what starts.
        batch = max(batch_seconds(queue.able) for queue in pool.queues)
        if self._took_over is not None and at - self._took_over < batch:
            self._leave_unjudged(name, pool, UnjudgedReason.TAKEOVER, len(admitted))
            return [], []
        judged = [job for job in admitted if job.uid not in pool.arrived]
        newcomers = [job for job in admitted if job.uid in pool.arrived]
        self._leave_unjudged(name, pool, UnjudgedReason.NEWCOMER, len(newcomers))
        return judged, newcomers

    def _leave_unjudged(self, name: str, pool: _PoolAdherence, why: UnjudgedReason, jobs: int) -> None:
        if jobs:
            pool.unjudged[why] += jobs
            self._record.unjudged.labels(name, why).inc(jobs)

    def _note_heads(self, name: str, pool: _PoolAdherence, at: float, rulebook: Rulebook) -> bool:
        """Keeps the orders by which somebody may still act; returns whether there is a new one."""
        heads = self._watch.gate.settle(
            name,
            shards=rulebook.document.shards,
            policy=rulebook.revision,
            holders=self._watch.holders(),
        )
        if isinstance(heads, UnsettledPool):
            if at - pool.settled >= REACTION_SECONDS:
                pool.orders.clear()
            return False
        pool.settled = at
        fresh = not pool.orders or not pool.orders[-1].heads.same_as(heads)
        if fresh:
            pool.orders.append(_Order(at, heads))
        # Nobody acts any more by an order that the next one replaced so long ago.
        while len(pool.orders) > 1 and at - pool.orders[1].at >= REACTION_SECONDS:
            pool.orders.popleft()
        return fresh

    def _jobs_of(
        self,
        name: str,
        order: _Order,
        queues: frozenset[str],
        *,
        rulebook: Rulebook,
        admitted: list[JobState],
    ) -> list[JobState]:
        """The waiting jobs of this cluster in an order, with those that were just admitted where they stood."""
        if order.merged is None:
            order.merged = self._merge(name, order.heads, rulebook)
        started = {job.uid for job in admitted}
        found: dict[str, JobState] = {}
        for position in order.merged.known().positions:
            job = self._facts.job(position.uid)
            if job is None or job.queue not in queues:
                continue
            if job.phase is Phase.WAITING or job.uid in started:
                found.setdefault(job.uid, job)
        return list(found.values())

    def _holdings(self, states: list[QueueState]) -> Holdings:
        return Holdings(
            queues=states,
            cohorts=self._facts.cohorts(states),
            held={state.name: self._facts.running.charged(state.name) for state in states},
            strict={state.name for state in states if state.blocks},
        )

    def _count(self, name: str, now: AdherenceFold, before: tuple[int, int, int, dict[str, float]]) -> None:
        judged, missed, barged, idle = before
        self._record.hindered.labels(name).set(now.hindered)
        if now.judged > judged:
            self._record.judged.labels(name).inc(now.judged - judged)
            self._record.missed.labels(name).inc(now.missed - missed)
        if now.barged > barged:
            self._record.barged.labels(name).inc(now.barged - barged)
        for resource, amount in now.idle.items():
            if more := amount - idle.get(resource, 0.0):
                self._record.idle.labels(name, resource).inc(more / base_units(resource))


def _admissions(seen: Observation, pools: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """Number of jobs of each pool that a look saw admitted; what a first replay shows happened long ago."""
    if not seen.news:
        return {}
    admitted = [change.after.queue for change in seen.jobs if change.admitted and change.after is not None]
    counts = {name: sum(queue in queues for queue in admitted) for name, queues in pools.items()}
    return {name: jobs for name, jobs in counts.items() if jobs}
