"""One tenant in one pool: what runs, what waits in the tenant's own order, and the scores of that.

A value: a change gives another one, which shares all that is the same. Jobs are sorted in and scored when somebody looks,
once: of tenants that another shard's owner looks after nobody here does.

With strict classes, tuples ascend along a tenant's own order (class, submitted, uid): the class never falls, the tag is
a sum that never falls, and the aged instant rises with the submit instant. So the running maximum of the tuple, which
the order is defined by, is the tuple itself. Where classes are not strict, or tenants form a tree, the running maximum
is taken in `tenant_tree`, which merges tenant queues.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Names
from fairlead_policy.exact.scoring import Jobs, Measure, Scores, Tenants, lacking_of, score
from fairlead_policy.rules.jobs import Queue, WaitingJob
from fairlead_policy.rules.pool_rules import counted_amount
from fairlead_policy.tenants.own_line import (
    DEMAND,
    GRADE,
    LACKING,
    QUEUE,
    RANK,
    SUBMITTED,
    Columns,
    OwnLine,
    own_key,
    own_lines,
)
from fairlead_policy.tenants.own_orders import OwnJob

_NOBODY: Mapping[str, int] = {}
_NONE: Mapping[str, WaitingJob] = {}
_MOST_UNSORTED = 256
"""With more changes the line is made anew."""
_DEEPER = 4
"""So many times as many jobs are looked at where some queue's are not among the first."""
_LONG = 4_096
"""Longer lines are not copied for each change: what somebody looks at is mostly their head."""


class Held(NamedTuple):
    """What a tenant holds before any of its waiting jobs starts, base units by resource."""

    running: int = 0
    """How many jobs run."""
    use: Mapping[str, int] = _NOBODY
    """What these take."""
    past: Mapping[str, int] = _NOBODY
    """Decayed past use: it counts beside what runs."""


class TenantQueue:
    """One tenant's state in a pool.

    Args:
        tenant: its name.
        measure: of the pool.
        line: what waits, or did.
        held: what runs, and past use.
        gone: by uid, jobs of the line that wait no more.
        come: by uid, jobs that wait beside those of the line.
    """

    def __init__(
        self,
        tenant: str,
        measure: Measure,
        line: OwnLine,
        held: Held,
        *,
        gone: Mapping[str, WaitingJob] = _NONE,
        come: Mapping[str, WaitingJob] = _NONE,
    ) -> None:
        self.tenant = tenant
        self.held = held
        self._measure = measure
        self._sorted, self._gone, self._come = line, gone, come
        self._scores: Scores | None = None
        self._known_head: OwnLine | None = None if gone or come else line

    def __len__(self) -> int:
        return len(self._sorted.jobs) - len(self._gone) + len(self._come)

    @property
    def is_new(self) -> bool:
        """Whether nothing was sorted in yet."""
        return not len(self._sorted.jobs) and not self._come

    @property
    def line(self) -> OwnLine:
        """What waits, in the tenant's own order."""
        if self._gone or self._come:
            line = self._sorted.without(list(self._gone.values()), self._measure.rules)
            for come in own_lines(list(self._come.values()), self._measure).values():
                line = line.joined_by(come, self._measure)
            self._sorted, self._gone, self._come, self._known_head = line, _NONE, _NONE, line
        return self._sorted

    def changed(
        self, gone: Mapping[str, WaitingJob], come: Mapping[str, WaitingJob], held: Held
    ) -> "TenantQueue":
        """The tenant with other jobs that wait, and other ones that run.

        Args:
            gone: by uid, those that wait no more, as they were.
            come: by uid, those that wait from now on.
            held: what runs from now on, and past use.
        """
        if len(self._gone) + len(self._come) > _MOST_UNSORTED:
            line, left, unsorted = self.line, {**gone}, {**come}
        else:
            line, left, unsorted = self._sorted, {**self._gone}, {**self._come}
            for uid, job in gone.items():
                if unsorted.pop(uid, None) is None:
                    left[uid] = job
            unsorted |= come
        return TenantQueue(self.tenant, self._measure, line, held, gone=left, come=unsorted)

    @property
    def use(self) -> Mapping[str, int]:
        """What runs, base units."""
        return self.held.use

    @property
    def past(self) -> Mapping[str, int]:
        """Decayed past use, base units."""
        return self.held.past

    @property
    def running(self) -> int:
        """How many jobs run."""
        return self.held.running

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs or is remembered."""
        return not len(self) and not self.running and not self.past

    @cached_property
    def counted(self) -> Mapping[str, int]:
        """What the tenant's share is made of: what runs, and past use."""
        return Counter(self.use) + Counter(self.past) if self.past else self.use

    @cached_property
    def waiting_by_queue(self) -> Mapping[Queue, int]:
        """How many jobs wait in each queue."""
        queues, numbers = self._measure.queues, self._sorted.numbers[QUEUE]
        counts = Counter(
            {queues.queues[number]: count for number, count in enumerate(np.bincount(numbers).tolist())}
        )
        counts.update(job.queue for job in self._come.values())
        counts.subtract(job.queue for job in self._gone.values())
        return {queue: count for queue, count in counts.items() if count}

    @property
    def oldest(self) -> Micros:
        """The earliest submit instant of the waiting jobs; there must be one."""
        return int(self.line.numbers[SUBMITTED].min())

    def uid_at(self, row: int) -> str:
        """The uid of the row-th job of the own order."""
        return self.job_at(row).uid

    @cached_property
    def uids(self) -> Names:
        """The uids of all jobs, in the own order."""
        return np.array([job.uid for job in self.line.jobs], np.object_)

    def job_at(self, row: int) -> WaitingJob:
        """The row-th job of the own order."""
        job: WaitingJob = self._head(row + 1).jobs[row]
        return job

    def row_of(self, job: OwnJob) -> int | None:
        """The position in the own order of a job; None where it does not wait here."""
        row = self.line.row_of(job, self._measure.rules)
        return row if row < len(self) and self.uid_at(row) == job.uid else None

    def columns(self, count: int, start: int = 0) -> Columns:
        """The jobs of the own order from `start` up to `count` as columns."""
        return self._head(count).columns(count, start)

    def scored(self, count: int | None = None) -> Scores:
        """The scores of the first `count` jobs of the own order at least; of all by default."""
        needed = len(self) if count is None else min(count, len(self))
        if self._scores is None:
            self._scores = self._score(needed)
        elif len(self._scores.rows) < needed:
            # Somebody looks further and further: score the rest at once instead of each step from the beginning.
            self._scores = self._score(len(self))
        return self._scores

    @property
    def unblocked(self) -> int:
        """How many waiting jobs ask for no saturated resource."""
        if not self._measure.rules.saturated:
            return len(self)
        return int(np.count_nonzero(self.line.numbers[RANK] & 1 == 0))

    def first_of_queues(self, window: int) -> Ints:
        """The positions in the own order of the first `window` jobs of each queue."""
        if len(self.waiting_by_queue) == 1:
            return np.arange(min(window, len(self)))
        number = self._measure.queues.number
        waiting = {number(queue): count for queue, count in self.waiting_by_queue.items()}
        depth = window
        while True:
            numbers = self._head(depth).numbers[QUEUE]
            found = [np.flatnonzero(numbers == number)[:window] for number in waiting]
            if all(
                len(rows) == min(window, count) for rows, count in zip(found, waiting.values(), strict=True)
            ):
                return np.sort(np.concatenate(found))
            depth = _DEEPER * len(numbers)

    def _head(self, count: int) -> OwnLine:
        """The first `count` jobs of the own order at least."""
        known = self._known_head
        if known is None or (len(known.jobs) < count and known is not self._sorted):
            cut = 2 * count + len(self._gone)
            known = (
                self.line
                if cut >= len(self._sorted.jobs) or len(self._sorted.jobs) <= _LONG
                else self._made_head(cut)
            )
            self._known_head = known
        return known

    def _made_head(self, cut: int) -> OwnLine:
        """What is left of the first `cut` jobs that were sorted in, with those that came before the last of them."""
        rules, jobs = self._measure.rules, self._sorted.jobs
        head, last = OwnLine(jobs[:cut], self._sorted.numbers[:, :cut]), own_key(jobs[cut - 1], rules)
        head = head.without([job for job in self._gone.values() if own_key(job, rules) <= last], rules)
        come = [job for job in self._come.values() if own_key(job, rules) < last]
        for line in own_lines(come, self._measure).values():
            head = head.joined_by(line, self._measure)
        return head

    def _score(self, count: int) -> Scores:
        numbers, counted, measure = self._head(count).numbers[:, :count], self.counted, self._measure
        jobs = Jobs(numbers[RANK], numbers[SUBMITTED], numbers[GRADE], numbers[DEMAND:], numbers[LACKING] > 0)
        use = [counted_amount(counted.get(name, 0)) for name in measure.rules.resources]
        held = lacking_of(counted, measure.rules) is not None
        return score(jobs, Tenants.single(measure.scale_of(self.tenant), use, lacking=held), measure)
