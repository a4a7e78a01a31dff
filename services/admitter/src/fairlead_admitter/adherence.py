"""How well the cluster follows the order, measured by looking alone: the same where levels are written and where none may be.

An admission is judged by the orders that stood within the last moment: nobody can follow one that is younger. Jobs that
came just before, and admissions while a pool has no order, cannot be judged, and are counted apart.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from prometheus_client import Counter, Gauge

from fairlead_admitter.facts import ClusterFacts
from fairlead_admitter.fronts import Fronts, Holders, PoolFront, Unsettled
from fairlead_admitter.merging import MergedFront
from fairlead_admitter.observing import Sight
from fairlead_admitter.policy_view import PolicyView
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import base_units
from fairlead_contracts.messages.members import Followed
from fairlead_contracts.messages.state import JobState, Phase, QueueState
from fairlead_policy import Adherence, Holdings, Look, Rulebook, reserves
from fairlead_runtime import Metrics

REACTION_SECONDS = 0.25
"""From a fact to the levels that follow from it, on a busy machine: what changed since is nobody's fault."""
_STRICT = "StrictFIFO"

type Merge = Callable[[str, PoolFront, Rulebook], MergedFront]


class Seen(Protocol):
    """What is looked at: the cluster's facts, the decisions, the policy."""

    facts: ClusterFacts
    fronts: Fronts
    policy: PolicyView

    def holders(self) -> Holders:
        """The scorers that live now, and what they hold."""


class AdherenceRecord:
    """The metrics. Labels are pools and resources."""

    def __init__(self, metrics: Metrics) -> None:
        self.judged: Counter = metrics.counter(
            "admissions_judged",
            "Admissions of which it is known whether they followed the order.",
            labels=["pool"],
        )
        self.missed: Counter = metrics.counter(
            "admissions_out_of_order",
            "Admissions that went before a waiting job of the order for which there was room.",
            labels=["pool"],
        )
        self.unjudged: Counter = metrics.counter(
            "admissions_unjudged",
            "Admissions of jobs that came just before, or while the pool had no order.",
            labels=["pool"],
        )
        self.idle: Counter = metrics.counter(
            "idle_resource_seconds",
            "What stood free while a job waited that would have fitted: cards, cores or bytes, times seconds.",
            labels=["pool", "resource"],
        )
        self.hindered: Gauge = metrics.gauge(
            "jobs_hindered",
            "Waiting jobs that fit by quota and that something else holds back; they count for nothing here.",
            labels=["pool"],
        )


class _Order:
    """One front, and the jobs in its order once they are asked for."""

    def __init__(self, at: float, front: PoolFront) -> None:
        self.at = at
        self.front = front
        self.merged: MergedFront | None = None


class _Pool:
    def __init__(self, since: Micros) -> None:
        self.since = since
        self.adherence = Adherence()
        self.orders: deque[_Order] = deque()
        self.arrived: dict[str, float] = {}
        """By uid, when jobs came that nobody may have ordered yet."""
        self.settled = 0.0
        """When it had an order last."""
        self.queues: list[QueueState] = []


class AdherenceWatch:
    """Measures each pool whose queues state their quota, as long as this replica leads.

    Args:
        watch: what is seen.
        record: the metrics.
        merge: the order of a pool's front.
        clock: microseconds since the Unix epoch.
    """

    def __init__(
        self, watch: Seen, record: AdherenceRecord, *, merge: Merge, clock: Callable[[], Micros]
    ) -> None:
        self._watch = watch
        self._record = record
        self._merge = merge
        self._clock = clock
        self._pools: dict[str, _Pool] = {}

    @property
    def _facts(self) -> ClusterFacts:
        return self._watch.facts

    def stated(self) -> list[Followed]:
        """What the lease says."""
        return [
            Followed(
                pool=name,
                since=pool.since,
                admissions=pool.adherence.judged,
                missed=pool.adherence.missed,
                idle={resource: round(amount, 3) for resource, amount in pool.adherence.idle.items()},
                hindered=pool.adherence.hindered,
            )
            for name, pool in sorted(self._pools.items())
        ]

    def begin_anew(self) -> None:
        """This replica leads from now on, or does not any more: it saw nothing yet."""
        self._pools.clear()

    def lose_sight(self) -> None:
        """What happens now is not known."""
        for pool in self._pools.values():
            pool.adherence.lose_sight()
            pool.orders.clear()

    def observe(self, sight: Sight, pools: Mapping[str, frozenset[str]]) -> None:
        """Take in what one look brought.

        Args:
            sight: the look; the facts hold it already.
            pools: the queues of each.
        """
        rulebook = self._watch.policy.rulebook
        if rulebook is None or not sight.news:
            self.lose_sight()
            return
        measured = {
            name: queues for name, queues in pools.items() if self._measurable(name, queues, rulebook)
        }
        for name in self._pools.keys() - measured.keys():
            del self._pools[name]
        for name, queues in measured.items():
            pool = self._pools.setdefault(name, _Pool(self._clock()))
            self._observe_pool(name, pool, queues, sight=sight, rulebook=rulebook)

    def _measurable(self, name: str, queues: frozenset[str], rulebook: Rulebook) -> bool:
        """Reserve mode keeps room free on purpose, and lets jobs pass: the order alone does not say who is next."""
        return not reserves(rulebook.document, name) and any(
            self._facts.queues[queue].quotas for queue in queues
        )

    def _observe_pool(
        self, name: str, pool: _Pool, queues: frozenset[str], *, sight: Sight, rulebook: Rulebook
    ) -> None:
        changes = [
            change
            for change in sight.jobs
            if any(job is not None and job.queue in queues for job in (change.before, change.after))
        ]
        admitted = [change.after for change in changes if change.admitted and change.after is not None]
        pool.arrived = {uid: at for uid, at in pool.arrived.items() if sight.at - at < REACTION_SECONDS}
        pool.arrived |= {
            change.after.uid: sight.at
            for change in changes
            if change.before is None and change.after is not None
        }
        fresh = self._note_front(name, pool, sight.at, rulebook)
        states = [self._facts.queues[queue] for queue in sorted(queues)]
        quiet = states == pool.queues and not (changes or fresh or pool.adherence.stands_idle)
        pool.queues = states
        if quiet:
            return
        orders = [
            self._jobs_of(name, order, queues, rulebook=rulebook, admitted=admitted) for order in pool.orders
        ]
        # Who came just before and stands in no order yet was ordered by nobody.
        ordered = {job.uid for order in orders for job in order}
        judged = [job for job in admitted if orders and (job.uid in ordered or job.uid not in pool.arrived)]
        before = pool.adherence.judged, pool.adherence.missed, dict(pool.adherence.idle)
        pool.adherence.look(
            Look(at=sight.at, orders=orders, admitted=judged, holdings=self._holdings(states))
        )
        self._count(name, pool, before, unjudged=len(admitted) - len(judged))

    def _note_front(self, name: str, pool: _Pool, at: float, rulebook: Rulebook) -> bool:
        """Keep the orders of which somebody may still act; gives whether there is a new one."""
        front = self._watch.fronts.settle(
            name,
            shards=rulebook.document.shards,
            policy=rulebook.revision,
            holders=self._watch.holders(),
        )
        if isinstance(front, Unsettled):
            if at - pool.settled >= REACTION_SECONDS:
                pool.orders.clear()
            return False
        pool.settled = at
        fresh = not pool.orders or not pool.orders[-1].front.same_as(front)
        if fresh:
            pool.orders.append(_Order(at, front))
        # One that was overtaken by the next before the last moment is over for everybody.
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
            order.merged = self._merge(name, order.front, rulebook)
        started = {job.uid for job in admitted}
        found: dict[str, JobState] = {}
        for place in order.merged.beginning.places:
            job = self._facts.job(place.uid)
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
            strict={state.name for state in states if state.strategy == _STRICT},
        )

    def _count(
        self, name: str, pool: _Pool, before: tuple[int, int, dict[str, float]], *, unjudged: int
    ) -> None:
        judged, missed, idle = before
        now = pool.adherence
        self._record.judged.labels(name).inc(now.judged - judged)
        self._record.missed.labels(name).inc(now.missed - missed)
        self._record.unjudged.labels(name).inc(unjudged)
        self._record.hindered.labels(name).set(now.hindered)
        for resource, amount in now.idle.items():
            more = (amount - idle.get(resource, 0.0)) / base_units(resource)
            self._record.idle.labels(name, resource).inc(more)
