"""A tenant's waiting jobs in its own order, as numbers in equal columns. Values: a change gives another line.

Many jobs are numbered at once, whosever they are, in the order in which they were told: a million objects are then passed
once, as they lie in memory.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Names
from fairlead_policy.exact.scoring import Measure
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import FARTHEST, LARGEST, PoolRules, override_of
from fairlead_policy.tenants.own_orders import OwnJob, PoolColumns, own_orders, starts_of

type OwnKey = tuple[int, int, Micros, str]
"""(class, 0, submitted, uid) where classes are strict: what a tenant's own order goes by; see `PoolRules.own_terms`."""

RANK, SUBMITTED, QUEUE, LACKING, GRADE, DEMAND = range(6)
"""The rows of a line's numbers; from the last on, one for each resource."""

_FEW = 16
"""Up to so many jobs are put in one by one; with more the line is sorted anew."""


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


class OwnLine(NamedTuple):
    """Waiting jobs of one tenant in its own order."""

    jobs: Names
    numbers: Ints
    """(what each is, jobs): see `RANK`."""

    @classmethod
    def of_none(cls, rules: PoolRules) -> "OwnLine":
        """Nobody waits."""
        return cls(np.empty(0, np.object_), np.empty((DEMAND + len(rules.resources), 0), np.int64))

    def columns(self, count: int, start: int = 0) -> Columns:
        """The jobs from `start` up to `count`."""
        numbers = self.numbers[:, start:count]
        return Columns(
            numbers[RANK],
            numbers[SUBMITTED],
            numbers[QUEUE],
            numbers[LACKING],
            numbers[GRADE],
            numbers[DEMAND:].T,
        )

    def row_of(self, job: OwnJob, rules: PoolRules) -> int:
        """Where the job stands, or would."""
        return bisect_left(self.jobs, own_key(job, rules), key=lambda one: own_key(one, rules))

    def without(self, jobs: Sequence[OwnJob], rules: PoolRules) -> "OwnLine":
        """The line without some jobs, all of which are in it."""
        if not jobs:
            return self
        rows = [self.row_of(job, rules) for job in jobs]
        return OwnLine(np.delete(self.jobs, rows), np.delete(self.numbers, rows, axis=1))

    def joined_by(self, other: "OwnLine", measure: Measure) -> "OwnLine":
        """The line with the jobs of another one of the same tenant."""
        if not len(self.jobs):
            return other
        if not len(other.jobs):
            return self
        if len(other.jobs) <= _FEW:
            rows = [self.row_of(job, measure.rules) for job in other.jobs]
            return OwnLine(
                np.insert(self.jobs, rows, other.jobs), np.insert(self.numbers, rows, other.numbers, axis=1)
            )
        jobs = np.concatenate((self.jobs, other.jobs))
        numbers = np.concatenate((self.numbers, other.numbers), axis=1)
        return _sorted(jobs, numbers, np.zeros(len(jobs), np.int64), 1, measure)[0]


def own_key(job: OwnJob, rules: PoolRules) -> OwnKey:
    """The job's place in its tenant's own order."""
    submitted = min(max(job.submitted, -FARTHEST), FARTHEST)
    blocked = rules.asks_for_saturated(job.demand)
    terms = rules.own_terms(job.urgency, override_of(job.override), submitted, blocked=blocked)
    return *terms, submitted, job.uid


def own_lines(jobs: Sequence[WaitingJob], measure: Measure) -> dict[str, OwnLine]:
    """The jobs in lines, by tenant."""
    if not jobs:
        return {}
    tenants: dict[str, int] = {}
    found = PoolColumns.of(jobs, tenants, measure.rules)
    strict = measure.rules.strict
    grade = np.array([0 if strict else measure.grades.grade(job) for job in jobs], np.int64)
    queue = np.array([measure.queues.number(job.queue) for job in jobs], np.int64)
    numbers = np.vstack([found.rank, found.submitted, queue, found.lacking, grade, found.demand])
    told: Names = np.empty(len(jobs), np.object_)
    told[:] = jobs
    line, tenant = _sorted(told, numbers, found.tenant, len(tenants), measure)
    names = list(tenants)
    return {
        names[tenant.item(start)]: OwnLine(line.jobs[start:end], line.numbers[:, start:end])
        for start, end in pairwise([*starts_of(tenant).tolist(), len(jobs)])
    }


def _sorted(jobs: Names, numbers: Ints, tenant: Ints, tenants: int, measure: Measure) -> tuple[OwnLine, Ints]:
    """The jobs by tenant and its own order, and whose each is."""
    rank, submitted, grade = numbers[RANK], numbers[SUBMITTED], numbers[GRADE]
    columns = PoolColumns(tenant, rank, submitted, numbers[DEMAND:], numbers[LACKING] > 0)
    terms = None if measure.rules.strict else _own_terms(grade, submitted, measure)
    line = own_orders(columns, tenants, lambda number: jobs[number].uid, terms)
    return OwnLine(jobs[line], numbers[:, line]), tenant[line]


def _own_terms(grade: Ints, submitted: Ints, measure: Measure) -> Ints | Names:
    """Of each job, what its tenant's own order goes by after what is in `RANK`; objects where 64 bits do not hold it."""
    rules = measure.rules
    grades, which = np.unique(grade, return_inverse=True)
    weights = [rules.own_weight(measure.multipliers.exact[one]) for one in grades.tolist()]
    rate, farthest = rules.own_rate, max(-int(submitted.min()), int(submitted.max()))
    if max(map(abs, weights)) + rate * farthest <= LARGEST:
        terms: Ints = np.array(weights, np.int64)[which] + rate * submitted
        return terms
    large: Names = np.array(weights, np.object_)[which]
    large += rate * submitted.astype(np.object_)
    return large
