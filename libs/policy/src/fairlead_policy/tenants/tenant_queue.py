"""One tenant in one pool: what runs, what waits in the tenant's own order, and the scores of that.

With strict classes, tuples ascend along a tenant's own order (class, submitted, uid): the class never falls, the tag is
a sum that never falls, and the aged instant rises with the submit instant. So the running maximum of the tuple, which
the order is defined by, is the tuple itself. Where classes are not strict, or tenants form a tree, the running maximum
is taken in `tenant_tree`, which merges tenant queues.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Names
from fairlead_policy.exact.scoring import Jobs, Measure, Scale, Scores, Tenants, lacking_of, score
from fairlead_policy.rules.jobs import Queue, WaitingJob
from fairlead_policy.rules.pool_rules import FARTHEST, LARGEST, PoolRules, override_of

type OwnKey = tuple[int, int, Micros, str]
"""(class, 0, submitted, uid) where classes are strict: what a tenant's own order goes by; see `PoolRules.own_terms`."""

type Row = tuple[int, ...]

RANK, SUBMITTED, QUEUE, LACKING, GRADE, DEMAND = range(6)
"""The columns that jobs are kept in; from the last on, one for each resource."""
_UID: Final = 3

_FEW = 16
"""Changes between two reads that are spliced in one by one; more are sorted in at once."""


class QueueNumbers:
    """Numbers a pool's queues, so that arrays can hold them."""

    def __init__(self) -> None:
        self.queues: list[Queue] = []
        self._numbers: dict[Queue, int] = {}

    def number(self, queue: Queue) -> int:
        """The queue's number."""
        found = self._numbers.get(queue)
        if found is None:
            found = self._numbers[queue] = len(self.queues)
            self.queues.append(queue)
        return found


class Columns(NamedTuple):
    """Jobs in a tenant's own order, as numbers of equal length."""

    rank: Ints
    submitted: Ints
    queue: Ints
    lacking: Ints
    grade: Ints
    demand: Ints
    """(jobs, resources)."""

    def demand_of_startable(self, rules: PoolRules) -> Ints:
        """`demand`, and none of jobs that are larger than the pool: these never start."""
        capacity = np.array([min(rules.capacity[name], LARGEST) for name in rules.resources], np.int64)
        startable = (self.demand <= capacity).all(axis=1) & (self.lacking == 0)
        return np.where(startable[:, np.newaxis], self.demand, 0)

    def take(self, rows: Ints | slice) -> "Columns":
        """Some of the jobs, in that order."""
        return Columns(*(column[rows] for column in self))

    @classmethod
    def joined(cls, parts: Sequence["Columns"]) -> "Columns":
        """The jobs of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _same_columns(before: PoolRules, after: PoolRules) -> bool:
    """Whether what was made of jobs under one policy holds under another."""
    return (
        before.resources == after.resources
        and before.classes == after.classes
        and before.resource_weights == after.resource_weights
        and before.strict
        and after.strict
        and before.saturated == after.saturated
    )


class TenantQueue:
    """One tenant's state in a pool. Changes are noted at once and sorted in when somebody looks."""

    def __init__(self, tenant: str, measure: Measure, queues: QueueNumbers) -> None:
        self.tenant = tenant
        self.use: Counter[str] = Counter()
        self.past: Mapping[str, int] = {}
        """Decayed past use, base units: it counts beside what runs."""
        self.running = 0
        self.waiting_by_queue: Counter[Queue] = Counter()
        self._queues = queues
        self._jobs: dict[str, WaitingJob] = {}
        self._scores: Scores | None = None
        self._uids: Names | None = None
        self._adopt(measure)

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def rules(self) -> PoolRules:
        """The pool's rules."""
        return self._scale.measure.rules

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not self._jobs and not self.running and not self.past

    @property
    def counted(self) -> Mapping[str, int]:
        """What the tenant's share is made of: what runs, and past use."""
        return self.use + Counter(self.past) if self.past else self.use

    def remember(self, past: Mapping[str, int]) -> None:
        """Past use has decayed, or grown, to these amounts."""
        if past != self.past:
            self.past = past
            self._forget_scores()

    def adopt(self, measure: Measure) -> None:
        """Follows new rules; keeps the sorted arrays where they still hold."""
        before, after = self.rules, measure.rules
        if _same_columns(before, after):
            self._scale = Scale(measure, after.entitlement_of(self.tenant))
            self._forget_scores()
        else:
            self._adopt(measure)

    def wait(self, job: WaitingJob) -> None:
        """The job waits; it did not wait here before."""
        row = self._row(job)
        self._jobs[job.uid] = job
        self._touched[job.uid] = row
        self.waiting_by_queue[job.queue] += 1
        self._forget_scores()

    def wait_all(self, jobs: Sequence[WaitingJob], columns: Ints, terms: Sequence[int]) -> None:
        """These jobs wait; none of them waited here before. All in the tenant's own order.

        Args:
            jobs: of the tenant.
            columns: the same as numbers.
            terms: what the own order goes by after what is in `RANK`; see `PoolRules.own_terms`.
        """
        self._sort_in()
        ranks, submits = columns[RANK].tolist(), columns[SUBMITTED].tolist()
        uids = [job.uid for job in jobs]
        keys: list[OwnKey] = list(zip(ranks, terms, submits, uids, strict=True))
        self._jobs.update(zip(uids, jobs, strict=True))
        self._placed.update(zip(uids, keys, strict=True))
        numbers, counts = np.unique(columns[QUEUE], return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self.waiting_by_queue[self._queues.queues[number]] += count
        self._uids = None
        self._insert_columns(keys, columns)
        self._forget_scores()

    def leave(self, uid: str) -> None:
        """The job waits no more."""
        job = self._jobs.pop(uid, None)
        if job is not None:
            self._touched[uid] = None
            self.waiting_by_queue[job.queue] -= 1
            if not self.waiting_by_queue[job.queue]:
                del self.waiting_by_queue[job.queue]
            self._forget_scores()

    def start(self, demand: Mapping[str, int]) -> None:
        """A job runs: its demand is use."""
        self.running += 1
        self.use.update(demand)
        self._forget_scores()

    def end(self, demand: Mapping[str, int]) -> None:
        """It runs no more."""
        self.running -= 1
        self.use.subtract(demand)
        for resource in demand:
            if not self.use[resource]:
                del self.use[resource]
        self._forget_scores()

    def own_key(self, job: WaitingJob) -> OwnKey:
        """The job's place in the tenant's own order."""
        submitted = _instant(job.submitted)
        blocked = self.rules.asks_for_saturated(job.demand)
        terms = self.rules.own_terms(job.urgency, override_of(job.override), submitted, blocked=blocked)
        return *terms, submitted, job.uid

    @property
    def oldest(self) -> Micros:
        """The earliest submit instant of the waiting jobs; there must be one."""
        self._sort_in()
        return int(self._columns[SUBMITTED].min())

    def uid_at(self, row: int) -> str:
        """The uid of the row-th job of the own order."""
        return self._keys[row][_UID]

    def uids(self) -> Names:
        """The uids of all jobs, in the own order."""
        self._sort_in()
        picked = self._uids
        if picked is None:
            picked = self._uids = np.array([key[_UID] for key in self._keys], np.object_)
        return picked

    def job_at(self, row: int) -> WaitingJob:
        """The row-th job of the own order."""
        return self._jobs[self._keys[row][_UID]]

    def jobs_at(self, rows: Ints) -> list[WaitingJob]:
        """Jobs of the own order."""
        keys, jobs = self._keys, self._jobs
        return [jobs[keys[row][_UID]] for row in rows.tolist()]

    def row_of(self, job: WaitingJob) -> int:
        """The position in the own order of a job that waits here."""
        self._sort_in()
        return bisect_left(self._keys, self.own_key(job))

    def scored(self, count: int | None = None) -> Scores:
        """The scores of the first `count` jobs of the own order at least; of all by default."""
        self._sort_in()
        needed = len(self._keys) if count is None else min(count, len(self._keys))
        if self._scores is None:
            self._scores = self._score(needed)
        elif len(self._scores.rows) < needed:
            # Somebody looks further and further: score the rest at once instead of each step from the beginning.
            self._scores = self._score(len(self._keys))
        return self._scores

    @property
    def unblocked(self) -> int:
        """How many waiting jobs ask for no saturated resource."""
        if not self.rules.saturated:
            return len(self._jobs)
        self._sort_in()
        return int(np.count_nonzero(self._columns[RANK] & 1 == 0))

    def columns(self, count: int, start: int = 0) -> "Columns":
        """The jobs of the own order from `start` up to `count` as columns."""
        self._sort_in()
        columns = self._columns[:, start:count]
        return Columns(
            columns[RANK],
            columns[SUBMITTED],
            columns[QUEUE],
            columns[LACKING],
            columns[GRADE],
            columns[DEMAND:].T,
        )

    def _adopt(self, measure: Measure) -> None:
        self._scale = Scale(measure, measure.rules.entitlement_of(self.tenant))
        self._keys: list[OwnKey] = []
        self._uids = None
        self._placed: dict[str, OwnKey] = {}
        self._columns = np.empty((DEMAND + len(measure.rules.resources), 0), np.int64)
        self._touched: dict[str, Row | None] = {uid: self._row(job) for uid, job in self._jobs.items()}
        self._forget_scores()

    def _forget_scores(self) -> None:
        self._scores = None

    def _row(self, job: WaitingJob) -> Row:
        """The job as numbers, in the order of the columns. A tuple: the garbage collector need not look at it."""
        lacking = lacking_of(job.demand, self.rules) is not None
        queue = self._queues.number(job.queue)
        blocked = self.rules.asks_for_saturated(job.demand)
        rank = (self.rules.rank_of(job.urgency) if self.rules.strict else 0) * 2 + blocked
        grade = self._scale.measure.grades.grade(job)
        return (rank, _instant(job.submitted), queue, int(lacking), grade, *self._demands(job))

    def _demands(self, job: WaitingJob) -> list[int]:
        stated = job.demand.get
        return [counted_amount(stated(name, 0)) for name in self._scale.measure.rules.resources]

    def _sort_in(self) -> None:
        """Brings the sorted arrays up to date: splices a few changes, sorts many."""
        if not self._touched:
            return
        touched, self._touched = self._touched, {}
        self._uids = None
        gone = sorted(
            bisect_left(self._keys, self._placed.pop(uid)) for uid in touched if uid in self._placed
        )
        rows = {uid: row for uid, row in touched.items() if row is not None}
        if self.rules.strict:
            come = sorted((row[RANK], 0, row[SUBMITTED], uid) for uid, row in rows.items())
        else:
            come = sorted(self.own_key(self._jobs[uid]) for uid in rows)
        self._placed.update((key[_UID], key) for key in come)
        self._remove(gone)
        self._insert(come, [rows[uid] for *_, uid in come])

    def _remove(self, rows: list[int]) -> None:
        if not rows:
            return
        self._columns = np.delete(self._columns, rows, axis=1)
        if len(rows) <= _FEW:
            for row in reversed(rows):
                del self._keys[row]
        else:
            absent = set(rows)
            self._keys = [key for row, key in enumerate(self._keys) if row not in absent]

    def _insert(self, keys: list[OwnKey], rows: list[Row]) -> None:
        if keys:
            self._insert_columns(keys, np.array(rows, np.int64).T)

    def _insert_columns(self, keys: list[OwnKey], columns: Ints) -> None:
        """Splices jobs in; both sorted."""
        if not self._keys:
            self._keys, self._columns = keys, columns
            return
        places = [bisect_left(self._keys, key) for key in keys]
        self._columns = np.insert(self._columns, places, columns, axis=1)
        if len(keys) <= _FEW:
            for key in keys:
                insort(self._keys, key)
        else:
            self._keys = sorted([*self._keys, *keys])

    def _score(self, count: int) -> Scores:
        columns, counted = self._columns[:, :count], self.counted
        jobs = Jobs(columns[RANK], columns[SUBMITTED], columns[GRADE], columns[DEMAND:], columns[LACKING] > 0)
        use = [counted_amount(counted[name]) if name in counted else 0 for name in self.rules.resources]
        held = lacking_of(counted, self.rules) is not None
        return score(jobs, Tenants.single(self._scale, use, lacking=held), self._scale.measure)

    def first_of_queues(self, window: int) -> Ints:
        """The positions in the own order of the first `window` jobs of each queue."""
        self._sort_in()
        if len(self.waiting_by_queue) <= 1:
            return np.arange(min(window, len(self._keys)))
        numbers = self._columns[QUEUE]
        found = [
            np.flatnonzero(numbers == self._queues.number(queue))[:window] for queue in self.waiting_by_queue
        ]
        return np.sort(np.concatenate(found))


def counted_amount(stated: int) -> int:
    """A stated quantity as it counts: facts are not refused, they are bounded."""
    return min(max(stated, 0), LARGEST)


def _instant(stated: Micros) -> Micros:
    return min(max(stated, -FARTHEST), FARTHEST)
