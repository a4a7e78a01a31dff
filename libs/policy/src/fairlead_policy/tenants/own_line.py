"""One tenant's waiting jobs in its own order: what was sorted last, what came and went since, and the head of both."""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fairlead_policy.exact.ranking import Ints
from fairlead_policy.exact.scoring import ShareMeasure
from fairlead_policy.rules.jobs import JobQueue, PositionedJob, WaitingJob
from fairlead_policy.tenants.sorted_jobs import OwnLines, SortedJobs, own_key, sorted_jobs

_NOBODY: Mapping[str, WaitingJob] = {}
_MOST_UNSORTED = 256
"""Largest number of changes that are kept beside a line; with more it is made anew."""
_DEEPER = 4
"""Factor by which more jobs are looked at where some queue's are not among the first."""
_LONG = 4_096
"""Longer lines are not copied for each change: what somebody looks at is mostly their head."""


class _KnownParts(NamedTuple):
    """The parts that a line is made from."""

    lines: OwnLines
    """The lines that were sorted last: this tenant's and those of other tenants beside it."""
    number: int
    """The tenant's number among the lines."""
    gone: Mapping[str, WaitingJob] = _NOBODY
    """Sorted jobs that wait no more, by uid."""
    come: Mapping[str, WaitingJob] = _NOBODY
    """Jobs that wait and are not sorted in yet, by uid."""

    @property
    def sorted(self) -> SortedJobs:
        """The jobs as they were sorted last."""
        return self.lines.sorted_of(self.number)

    @property
    def sorted_count(self) -> int:
        """The number of jobs that were sorted last."""
        bounds, number = self.lines.bounds, self.number
        return bounds[number + 1] - bounds[number]


class OwnLine:
    """A tenant's own line, as a value: a change gives another one. Jobs are sorted in when somebody looks, once, and as deep as they look."""

    def __init__(self, measure: ShareMeasure, known: _KnownParts) -> None:
        self._measure = measure
        self._known = known
        self._count = known.sorted_count - len(known.gone) + len(known.come)
        self._known_head: SortedJobs | None = None

    @classmethod
    def of_none(cls, measure: ShareMeasure) -> "OwnLine":
        """The line of a tenant without waiting jobs."""
        return cls(measure, _alone(SortedJobs.of_none(measure.rules), measure))

    @classmethod
    def of(cls, lines: OwnLines, measure: ShareMeasure) -> "dict[str, OwnLine]":
        """The lines by tenant of all that were sorted together."""
        return {
            tenant: cls(measure, _KnownParts(lines, number)) for number, tenant in enumerate(lines.tenants)
        }

    def __len__(self) -> int:
        return self._count

    @property
    def is_new(self) -> bool:
        """Whether nothing was sorted in yet."""
        return not self._known.sorted_count and not self._known.come

    def beside(self) -> tuple[OwnLines, int]:
        """The line beside the jobs of the tenants that it was sorted with, and its tenant's number among these."""
        known = self._known
        if known.gone or known.come:
            left = known.sorted.without(list(known.gone.values()), self._measure.rules)
            come = sorted_jobs(list(known.come.values()), self._measure)
            known = self._known = _alone(left.joined_by(come, self._measure), self._measure)
        return known.lines, known.number

    @property
    def all(self) -> SortedJobs:
        """The whole line."""
        lines, number = self.beside()
        return lines.sorted_of(number)

    def under(self, measure: ShareMeasure) -> "OwnLine":
        """The line with the same jobs under rules that number them alike."""
        return OwnLine(measure, _KnownParts(*self.beside()))

    def changed(self, gone: Mapping[str, WaitingJob], come: Mapping[str, WaitingJob]) -> "OwnLine":
        """The line without some jobs, as they were, and with others, by uid."""
        known = self._known
        if not gone and not come:
            return self
        if len(known.gone) + len(known.come) > _MOST_UNSORTED:
            known = _KnownParts(*self.beside())
        left, unsorted = {**known.gone}, {**known.come}
        left |= {uid: job for uid, job in gone.items() if unsorted.pop(uid, None) is None}
        return OwnLine(self._measure, _KnownParts(known.lines, known.number, left, {**unsorted, **come}))

    @cached_property
    def waiting_by_queue(self) -> Mapping[JobQueue, int]:
        """The number of waiting jobs in each queue."""
        known, queues = self._known, self._measure.queues.queues
        found = np.bincount(known.sorted.columns().queue).tolist()
        counts = Counter({queues[number]: count for number, count in enumerate(found)})
        counts.update(job.queue for job in known.come.values())
        counts.subtract(job.queue for job in known.gone.values())
        return {queue: count for queue, count in counts.items() if count}

    def head(self, count: int) -> SortedJobs:
        """The first `count` jobs at least."""
        head, known = self._known_head, self._known
        if head is None or len(head.jobs) < min(count, len(self)):
            cut = 2 * count + len(known.gone)
            is_long = (known.gone or known.come) and known.sorted_count > max(cut, _LONG)
            head = self._known_head = self._made_head(known, cut) if is_long else self.all
        return head

    def job_at(self, row: int) -> PositionedJob:
        """The row-th job."""
        known = self._known
        if not (known.gone or known.come):
            return known.lines.job_at(known.lines.bounds[known.number] + row)
        job: PositionedJob = self.head(row + 1).jobs[row]
        return job

    def first_of_queues(self, window: int) -> Ints:
        """The rows of the first `window` jobs of each queue."""
        if len(self.waiting_by_queue) == 1:
            return np.arange(min(window, len(self)))
        number = self._measure.queues.number
        waiting = {number(queue): count for queue, count in self.waiting_by_queue.items()}
        depth = window
        while True:
            numbers = self.head(depth).columns().queue
            found = first_of_queues(numbers, waiting, window)
            if found is not None:
                return found
            depth = _DEEPER * len(numbers)

    def _made_head(self, known: _KnownParts, cut: int) -> SortedJobs:
        """The beginning of the line: the first `cut` sorted jobs without those that went, with those that came before the last."""
        rules, (jobs, numbers) = self._measure.rules, known.sorted
        head, last = SortedJobs(jobs[:cut], numbers[:, :cut]), own_key(jobs[cut - 1], rules)
        head = head.without([job for job in known.gone.values() if own_key(job, rules) <= last], rules)
        come = [job for job in known.come.values() if own_key(job, rules) < last]
        return head.joined_by(sorted_jobs(come, self._measure), self._measure)


def first_of_queues(numbers: Ints, waiting: Mapping[int, int], window: int) -> Ints | None:
    """The rows of the first `window` jobs of each queue, ascending; None where some are not among these.

    Args:
        numbers: number of each job's queue.
        waiting: number of jobs that wait in each of these queues.
        window: the number of jobs.
    """
    found = [np.flatnonzero(numbers == number)[:window] for number in waiting]
    if any(len(rows) < min(window, count) for rows, count in zip(found, waiting.values(), strict=True)):
        return None
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def _alone(jobs: SortedJobs, measure: ShareMeasure) -> _KnownParts:
    return _KnownParts(OwnLines.joined({"": jobs}, measure.rules), 0)
