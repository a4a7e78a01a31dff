"""The order of one pool's waiting jobs, kept up as facts change.

From scratch and step by step are the same code: an order depends on what waits and runs, never on how it came to.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from fairlead_contracts.decisions import Place, Standing
from fairlead_contracts.instants import Micros
from fairlead_policy.flips import first_flip
from fairlead_policy.jobs import Queue, WaitingJob
from fairlead_policy.lane import Lane, QueueNumbers
from fairlead_policy.places import place_of, sort_key, sort_key_at, standing_of
from fairlead_policy.ranking import Ints, Ranking, Rows, join
from fairlead_policy.rules import PoolRules
from fairlead_policy.scoring import Measure


class PoolOrder:
    """Incremental state of one pool.

    One event costs its tenant a splice into sorted arrays and the scores of its first jobs; other tenants' fronts
    are kept. Every change replaces what was known under the uid, so facts may be told again, in any order.
    """

    def __init__(self, rules: PoolRules) -> None:
        self._measure = Measure(rules)
        self._queues = QueueNumbers()
        self._lanes: dict[str, Lane] = {}
        self._waiting: dict[str, WaitingJob] = {}
        self._running: dict[str, tuple[str, Mapping[str, int]]] = {}

    @property
    def rules(self) -> PoolRules:
        """What the pool is scored by."""
        return self._measure.rules

    def set_rules(self, rules: PoolRules) -> None:
        """Scores by other rules from now on. The same rules again cost nothing."""
        if rules == self.rules:
            return
        self._measure = Measure(rules)
        for lane in self._lanes.values():
            lane.adopt(self._measure)

    def wait(self, job: WaitingJob) -> None:
        """The job waits."""
        if self._waiting.get(job.uid) == job:
            return
        self.forget(job.uid)
        self._waiting[job.uid] = job
        self._lane(job.tenant).wait(job)

    def run(self, uid: str, tenant: str, demand: Mapping[str, int]) -> None:
        """The job runs: its demand, in base units, counts as its tenant's use."""
        counted = {resource: amount for resource, amount in demand.items() if amount > 0}
        if self._running.get(uid) == (tenant, counted):
            return
        self.forget(uid)
        self._running[uid] = tenant, counted
        self._lane(tenant).start(counted)

    def forget(self, uid: str) -> None:
        """The job neither waits nor runs, or is not known at all."""
        waited = self._waiting.pop(uid, None)
        if waited is not None:
            self._lanes[waited.tenant].leave(uid)
            self._drop_idle(waited.tenant)
        ran = self._running.pop(uid, None)
        if ran is not None:
            tenant, demand = ran
            self._lanes[tenant].end(demand)
            self._drop_idle(tenant)

    def front(
        self, now: Micros, window: int, tenants: Iterable[str] | None = None
    ) -> dict[Queue, list[Place]]:
        """The first `window` places of each queue that has waiting jobs, of these tenants or all."""
        view = _View(self._measure, self._chosen(tenants), now, window)
        fronts = {}
        for number in np.unique(view.queue).tolist():
            rows = np.flatnonzero(view.queue == number)
            fronts[self._queues.queues[number]] = view.places(view.first(rows, window))
        return fronts

    def order(self, now: Micros, tenants: Iterable[str] | None = None) -> list[Place]:
        """Every place, in order, of these tenants or all."""
        view = _View(self._measure, self._chosen(tenants), now)
        return view.places(view.ranked())

    def uids(self, now: Micros, tenants: Iterable[str] | None = None) -> list[str]:
        """The uids of `order`, without the terms behind them."""
        view = _View(self._measure, self._chosen(tenants), now)
        return view.uids(view.ranked())

    def place(self, uid: str, now: Micros) -> Place | None:
        """The job's place; None where it does not wait."""
        job = self._waiting.get(uid)
        if job is None:
            return None
        lane = self._lanes[job.tenant]
        return place_of(lane, lane.row_of(job), now)

    def count_before(self, place: Place, now: Micros, tenants: Iterable[str] | None = None) -> dict[str, int]:
        """How many jobs stand before the place, by tenant. The place may be another shard's."""
        bar = sort_key(place, self.rules, now)
        counts = {}
        for lane in self._chosen(tenants):
            lane.scored()
            # Tuples ascend along a tenant's own order: a binary search finds where the place would stand.
            ahead = bisect_left(range(len(lane)), bar, key=partial(sort_key_at, lane, now=now))
            if ahead:
                counts[lane.tenant] = ahead
        return counts

    def standings(self, tenants: Iterable[str] | None = None) -> list[Standing]:
        """What each of these tenants may have and has, by name; by default each that is named, waits or runs."""
        names = set(tenants) if tenants is not None else {*self.rules.weights, *self._lanes}
        return [standing_of(name, self._lanes.get(name), self.rules) for name in sorted(names)]

    def waiting(self, tenants: Iterable[str] | None = None) -> dict[Queue, int]:
        """How many jobs wait in each queue."""
        counts: dict[Queue, int] = {}
        for lane in self._chosen(tenants):
            for queue, count in lane.waiting_by_queue.items():
                counts[queue] = counts.get(queue, 0) + count
        return dict(sorted(counts.items()))

    def next_flip(
        self, now: Micros, tenants: Iterable[str] | None = None, *, window: int | None = None
    ) -> Micros | None:
        """The first instant after now at which time alone changes the order; None where it never does.

        Args:
            now: the instant of the order as it stands.
            tenants: whose jobs; all by default.
            window: look only at the jobs that fronts of this size are made from.
        """
        if self.rules.cap is None or not self.rules.rate:
            return None
        view = _View(self._measure, self._chosen(tenants), now, window)
        return first_flip(view.rows.take(view.ranked()), self.rules, self._measure.multipliers)

    def _lane(self, tenant: str) -> Lane:
        lane = self._lanes.get(tenant)
        if lane is None:
            lane = self._lanes[tenant] = Lane(tenant, self._measure, self._queues)
        return lane

    def _drop_idle(self, tenant: str) -> None:
        if self._lanes[tenant].idle:
            del self._lanes[tenant]

    def _chosen(self, tenants: Iterable[str] | None) -> list[Lane]:
        lanes = self._lanes
        found = (
            lanes.values()
            if tenants is None
            else (lanes[name] for name in dict.fromkeys(tenants) if name in lanes)
        )
        return [lane for lane in found if len(lane)]


class _View:
    """Several tenants' jobs side by side at one instant: all of them, or those that fronts are made from."""

    def __init__(self, measure: Measure, lanes: list[Lane], now: Micros, window: int | None = None) -> None:
        self._lanes = lanes
        self._now = now
        self._measure = measure
        if window is None:
            self.rows = join([lane.scored().rows for lane in lanes])
            numbers = [np.arange(len(lane)) for lane in lanes]
        else:
            fronts = [lane.front_rows(window) for lane in lanes]
            self.rows = join([rows for _, rows, _ in fronts])
            self.queue = _joined([queue for *_, queue in fronts])
            numbers = [rows for rows, *_ in fronts]
        self._lane = np.repeat(np.arange(len(lanes)), [len(rows) for rows in numbers])
        self._row = _joined(numbers)

    def uid_of(self, row: int) -> str:
        """The uid of a row of the view."""
        return self._lanes[self._lane.item(row)].uid_at(self._row.item(row))

    def uids(self, rows: Ints) -> list[str]:
        """The uids of rows."""
        if not self._lanes:
            return []
        uids = [lane.uids() for lane in self._lanes]
        starts = np.cumsum([0, *map(len, uids)])
        picked: list[str] = np.concatenate(uids)[starts[self._lane[rows]] + self._row[rows]].tolist()
        return picked

    def ranked(self) -> Ints:
        """The view's rows in order."""
        return self._ranking(self.rows).order(self.uid_of)

    def first(self, rows: Ints, count: int) -> Ints:
        """The first `count` of some rows, in order."""
        likely = rows[self._ranking(self.rows.take(rows)).likely_first(count)]
        order = self._ranking(self.rows.take(likely)).order(lambda row: self.uid_of(likely[row]))
        return likely[order[:count]]

    def places(self, rows: Ints) -> list[Place]:
        """The places of rows."""
        lanes = self._lanes
        return [
            place_of(lanes[lane], row, self._now)
            for lane, row in zip(self._lane[rows].tolist(), self._row[rows].tolist(), strict=True)
        ]

    def _ranking(self, rows: Rows) -> Ranking:
        return Ranking(rows, self._measure.rules, self._measure.multipliers, self._now)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
