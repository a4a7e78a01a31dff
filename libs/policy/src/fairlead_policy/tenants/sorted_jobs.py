"""Tenants' waiting jobs in their own orders, as numbers in equal columns. Values: a change gives others.

Many jobs are numbered at once, whosever they are, in the order in which they were told: a million objects are then passed
once, as they lie in memory.
"""

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Flags, Ints, Names, bounded
from fairlead_policy.exact.scoring import NUMBERS, JobColumns, ShareMeasure
from fairlead_policy.rules.jobs import JobQueue, PositionedJob, WaitingJob
from fairlead_policy.rules.pool_rules import FARTHEST, LARGEST, PoolRules

_KEY_BITS = 63
_FEW = 16
"""Largest number of jobs that are looked at, and put in, one by one; with more the line is sorted anew."""


def _columns_of(
    jobs: Sequence[PositionedJob],
    queues: Iterable[JobQueue] | None,
    measure: ShareMeasure,
    apart: Flags | None,
    amounts: Ints | None,
) -> JobColumns:
    """The jobs in their order; the other arguments are those of `OwnLines.of`."""
    rules = measure.rules
    ranks, last = (rules.ranks, len(rules.classes)) if rules.strict else ({}, 0)
    rank = np.array([ranks.get(job.job_class, last) * 2 for job in jobs], np.int64)
    if rules.saturated:
        demands, asked = _distinct([job.demand for job in jobs])
        rank += np.array([rules.asks_for_saturated(demand) for demand in demands], np.bool_)[asked]
    none = np.zeros(len(jobs), np.int64)
    queue = none if queues is None else np.array(list(map(measure.queues.number, queues)), np.int64)
    if amounts is None:
        amounts = amounts_of([job.demand for job in jobs], rules)
    if queues is not None and measure.queues.apart:
        apart = np.isin(queue, measure.queues.apart)
    if apart is not None and apart.any():
        amounts = np.where(apart, 0, amounts)
    return JobColumns(
        rank=rank,
        submitted=bounded([job.submitted for job in jobs], -FARTHEST, FARTHEST),
        queue=queue,
        weight_number=none
        if rules.strict
        else np.array(list(map(measure.weight_numbers.of, jobs)), np.int64),
        demand=amounts,
    )


def _distinct(demands: Sequence[Mapping[str, int]]) -> tuple[Sequence[Mapping[str, int]], Ints | slice]:
    """Demands to look at, and which of them each one is: jobs that ask for the same may share it.

    Where more than half of them differ, to look at each costs less than to tell which are the same.
    """
    if len(demands) <= _FEW:
        return demands, slice(None)
    ids = np.fromiter(map(id, demands), np.int64, len(demands))
    _, first, which = np.unique(ids, return_index=True, return_inverse=True)
    if len(first) > len(demands) / 2:
        return demands, slice(None)
    return [demands[row] for row in first.tolist()], which


def _numbered[T](found: Iterable[T], count: int) -> tuple[Ints, list[T]]:
    """The number of each of `count` values, equal ones alike, and the distinct values in the order in which they come."""
    numbers = defaultdict[T, int](itertools.count().__next__)
    return np.fromiter(map(numbers.__getitem__, found), np.int64, count), list(numbers)


def amounts_of(demands: Sequence[Mapping[str, int]], rules: PoolRules) -> Ints:
    """The amounts as they count, (resources, demands)."""
    names = rules.resources
    distinct, asked = _distinct(demands)
    # Demand by demand: what one asks for lies together in memory.
    stated = bounded([one.get(name, 0) for one in distinct for name in names], 0, LARGEST)
    return np.ascontiguousarray(stated.reshape(len(distinct), len(names)).T)[:, asked]


def own_orders(
    columns: JobColumns,
    tenant: Ints,
    tenants: int,
    uid_of: Callable[[int], str],
    terms: Ints | Names | None,
) -> Ints:
    """The jobs by tenant, and by its own order: (class, terms, submitted, uid).

    Args:
        tenant: number of each job's tenant.
        tenants: their number.
        uid_of: the uid of a job by its number; asked only where it decides.
        terms: the terms of own orders between class and submit instant, where classes are not strict.
    """
    count = len(tenant)
    if not count:
        return np.empty(0, np.int64)
    ranks, first = int(columns.rank.max()) + 1, int(columns.submitted.min())
    span = (int(columns.submitted.max()) - first).bit_length()
    if terms is None and span + (tenants * ranks).bit_length() <= _KEY_BITS:
        packed = (tenant * ranks + columns.rank << span) + (columns.submitted - first)
        line: Ints = np.argsort(packed)
        ordered = packed[line]
        same: Flags = ordered[1:] == ordered[:-1]
    else:
        by: list[Ints] = [columns.submitted, columns.rank, tenant]
        if terms is not None:
            by.insert(1, np.unique(terms, return_inverse=True)[1])
        line = np.lexsort(by)
        same = np.ones(count - 1, np.bool_)
        for column in by:
            same &= column[line[1:]] == column[line[:-1]]
    if same.any():
        _by_uid(line, same, uid_of)
    return line


def _by_uid(line: Ints, same: Flags, uid_of: Callable[[int], str]) -> None:
    """Sorts each run of jobs that are alike but for their uids, in place."""
    tied = np.append(same, False)
    starts = np.flatnonzero(tied & ~np.insert(same, 0, False)).tolist()
    ends = (np.flatnonzero(~tied & np.insert(same, 0, False)) + 1).tolist()
    for start, end in zip(starts, ends, strict=True):
        line[start:end] = sorted(line[start:end].tolist(), key=uid_of)


type OwnKey = tuple[int, int, Micros, str]
"""Key by which a tenant's own order sorts: (class, 0, submitted, uid) where classes are strict; see
`PoolRules.own_terms`."""


class SortedJobs(NamedTuple):
    """Waiting jobs of one tenant in its own order."""

    jobs: Names
    numbers: Ints
    """Jobs as numbers, (what each is, jobs): see `JobColumns.of`."""

    @classmethod
    def of_none(cls, rules: PoolRules) -> "SortedJobs":
        """No waiting job."""
        return cls(np.empty(0, np.object_), np.empty((NUMBERS + len(rules.resources), 0), np.int64))

    def columns(self, count: int | None = None, start: int = 0) -> JobColumns:
        """The jobs from `start` up to `count`, or all."""
        return JobColumns.of(self.numbers[:, start:count])

    def row_of(self, job: PositionedJob, rules: PoolRules) -> int:
        """The row of the job, or the one that it would have."""
        return bisect_left(self.jobs, own_key(job, rules), key=lambda one: own_key(one, rules))

    def without(self, jobs: Sequence[PositionedJob], rules: PoolRules) -> "SortedJobs":
        """The line without some jobs, all of which are in it."""
        if not jobs:
            return self
        kept = np.ones(len(self.jobs), np.bool_)
        kept[[self.row_of(job, rules) for job in jobs]] = False
        return SortedJobs(self.jobs[kept], self.numbers[:, kept])

    def joined_by(self, other: "SortedJobs", measure: ShareMeasure) -> "SortedJobs":
        """The line with the jobs of another one of the same tenant."""
        if not len(self.jobs):
            return other
        if not len(other.jobs):
            return self
        if len(other.jobs) <= _FEW:
            rows = [self.row_of(job, measure.rules) for job in other.jobs]
            return self._with_rows(rows, other)
        jobs = np.concatenate((self.jobs, other.jobs))
        numbers = np.concatenate((self.numbers, other.numbers), axis=1)
        nobody = np.zeros(len(jobs), np.int64)
        lines = OwnLines.of_columns(JobColumns.of(numbers), nobody, jobs, [""], measure)
        return SortedJobs(lines.jobs, lines.numbers)

    def _with_rows(self, rows: Sequence[int], other: "SortedJobs") -> "SortedJobs":
        """The line with others before some of its rows, ascending: as numpy's `insert`, in a third of its time."""
        count = len(self.jobs) + len(rows)
        new = np.zeros(count, np.bool_)
        new[np.array(rows) + np.arange(len(rows))] = True
        jobs: Names = np.empty(count, np.object_)
        numbers: Ints = np.empty((len(self.numbers), count), np.int64)
        jobs[new], jobs[~new] = other.jobs, self.jobs
        numbers[:, new], numbers[:, ~new] = other.numbers, self.numbers
        return SortedJobs(jobs, numbers)


def own_key(job: PositionedJob, rules: PoolRules) -> OwnKey:
    """The job's position in its tenant's own order."""
    submitted = min(max(job.submitted, -FARTHEST), FARTHEST)
    blocked = rules.asks_for_saturated(job.demand)
    terms = rules.own_terms(job.job_class, job.override, submitted, blocked=blocked)
    return *terms, submitted, job.uid


class OwnLines:
    """Waiting jobs of many tenants side by side: tenant by tenant, each in its own order. A value.

    Args:
        told: the jobs as they came.
        line: numbers of these, in this order; None where they came in it.
        numbers: the jobs as numbers, in this order: see `JobColumns.of`.
        tenants: the names of all that have jobs.
        starts: the row of each one's first job, and behind them the number of all jobs.
    """

    def __init__(
        self,
        told: Sequence[PositionedJob] | Names,
        line: Ints | None,
        numbers: Ints,
        tenants: Sequence[str],
        starts: Ints,
    ) -> None:
        self.numbers, self.tenants, self.starts = numbers, tenants, starts
        self.bounds: list[int] = starts.tolist()
        self._told, self._line = told, line

    @classmethod
    def of(
        cls,
        jobs: Sequence[PositionedJob],
        queues: Iterable[JobQueue] | None,
        measure: ShareMeasure,
        apart: Flags | None = None,
        amounts: Ints | None = None,
    ) -> "OwnLines":
        """The lines of these jobs.

        Args:
            jobs: the jobs, whosever they are.
            queues: the queue of each; None where nobody asks for the first of a queue.
            apart: whether each cannot start as things are, where its queue does not say so; None where all can.
            amounts: their demands, see `amounts_of`, where they are known.
        """
        if len(jobs) == 1:  # as at most events: there is nothing to sort
            alone = _columns_of(jobs, queues, measure, apart, amounts).numbers()
            return cls(jobs, None, alone, [jobs[0].tenant], np.array([0, 1]))
        tenant, tenants = _numbered([job.tenant for job in jobs], len(jobs))
        return cls.of_columns(
            _columns_of(jobs, queues, measure, apart, amounts), tenant, jobs, tenants, measure
        )

    @classmethod
    def of_columns(
        cls,
        columns: JobColumns,
        tenant: Ints,
        told: Sequence[PositionedJob] | Names,
        tenants: Sequence[str],
        measure: ShareMeasure,
    ) -> "OwnLines":
        """The lines of jobs that are numbers already.

        Args:
            columns: the columns of the jobs as they came.
            tenant: number of each one's tenant.
            told: the jobs; asked for their uids only where these decide.
            tenants: the tenants' names by number.
        """
        is_by_class = measure.rules.strict or not len(tenant)
        terms = None if is_by_class else _own_terms(columns.weight_number, columns.submitted, measure)
        line = own_orders(columns, tenant, len(tenants), lambda number: told[number].uid, terms)
        *stated, demand = columns
        numbers = np.empty((len(stated) + len(demand), len(line)), np.int64)
        for row, ordered in zip((*stated, *demand), numbers, strict=True):
            if row.any():
                np.take(row, line, out=ordered, mode="clip")  # half the time of one gather of them all
            else:
                ordered.fill(0)
        owner = tenant[line]
        starts = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])[: len(owner)])
        named = [tenants[number] for number in owner[starts].tolist()]
        return cls(told, line, numbers, named, np.append(starts, len(line)))

    @classmethod
    def joined(cls, parts: Mapping[str, SortedJobs], rules: PoolRules) -> "OwnLines":
        """The jobs of some tenants, each of which has some, that are in their own orders already."""
        if len(parts) == 1:
            [(jobs, numbers)] = parts.values()
        else:
            none = SortedJobs.of_none(rules)
            jobs = np.concatenate([none.jobs, *(part.jobs for part in parts.values())])
            numbers = np.concatenate([none.numbers, *(part.numbers for part in parts.values())], axis=1)
        starts = np.array([0, *itertools.accumulate(len(part.jobs) for part in parts.values())])
        return cls(jobs, None, numbers, list(parts), starts)

    def __len__(self) -> int:
        return self.bounds[-1]

    @cached_property
    def jobs(self) -> Names:
        """All jobs, tenant by tenant."""
        told: Names = np.empty(len(self._told), np.object_)
        told[:] = self._told
        return told if self._line is None else told[self._line]

    def job_at(self, row: int) -> PositionedJob:
        """The job of a row."""
        job: PositionedJob = self._told[row if self._line is None else self._line.item(row)]
        return job

    def sorted_of(self, number: int) -> SortedJobs:
        """The jobs of the tenant of that number."""
        start, end = self.bounds[number : number + 2]
        return SortedJobs(self.jobs[start:end], self.numbers[:, start:end])


def sorted_jobs(jobs: Sequence[WaitingJob], measure: ShareMeasure) -> SortedJobs:
    """Jobs of one tenant in its own order."""
    if not jobs:
        return SortedJobs.of_none(measure.rules)
    lines = OwnLines.of(jobs, (job.queue for job in jobs), measure)
    return SortedJobs(lines.jobs, lines.numbers)


def _own_terms(weight_number: Ints, submitted: Ints, measure: ShareMeasure) -> Ints | Names:
    """The terms of a tenant's own order after class and what is used up, for each job; objects where 64 bits do not hold them."""
    rules = measure.rules
    weight_numbers, which = np.unique(weight_number, return_inverse=True)
    weights = [rules.own_weight(measure.multipliers.exact[one]) for one in weight_numbers.tolist()]
    rate, farthest = rules.own_rate, max(-int(submitted.min()), int(submitted.max()))
    if max(map(abs, weights)) + rate * farthest <= LARGEST:
        terms: Ints = np.array(weights, np.int64)[which] + rate * submitted
        return terms
    large: Names = np.array(weights, np.object_)[which]
    large += rate * submitted.astype(np.object_)
    return large
