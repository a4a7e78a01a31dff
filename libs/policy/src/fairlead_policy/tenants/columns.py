"""Many waiting jobs at once as columns of numbers, in the order of their tenants and of these tenants' own orders.

Read in the order in which the jobs were told: a million objects are then passed once, as they lie in memory.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fairlead_policy.exact.ranking import Ints, Names, bounded
from fairlead_policy.exact.scoring import Measure, lacking_of
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import FARTHEST, LARGEST
from fairlead_policy.tenants.tenant_queue import DEMAND, GRADE, LACKING, QUEUE, RANK, SUBMITTED, QueueNumbers


class Batch(NamedTuple):
    """Jobs of one tenant, in its own order."""

    tenant: str
    jobs: list[WaitingJob]
    columns: Ints
    terms: list[int]
    """What the own order goes by after what is in `RANK`."""


def by_tenant(jobs: Sequence[WaitingJob], measure: Measure, queues: QueueNumbers) -> Iterator[Batch]:
    """The jobs, tenant by tenant."""
    if not jobs:
        return
    columns = _columns(jobs, measure, queues)
    terms = _own_terms(columns, measure)
    numbers: dict[str, int] = {}
    tenant = np.array([numbers.setdefault(job.tenant, len(numbers)) for job in jobs], np.int64)
    line = _line(jobs, tenant, columns, terms)
    names, ordered = list(numbers), tenant[line]
    columns, terms = columns[:, line], terms[line]
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(jobs)]):
        own = [jobs[number] for number in line[start:end].tolist()]
        yield Batch(names[ordered[start]], own, columns[:, start:end], terms[start:end].tolist())


def _line(jobs: Sequence[WaitingJob], tenant: Ints, columns: Ints, terms: Ints | Names) -> Ints:
    """The jobs by tenant, and by its own order."""
    if terms.dtype == np.object_:
        terms = np.unique(terms, return_inverse=True)[1]
    by = columns[SUBMITTED], terms, columns[RANK], tenant
    line = np.lexsort(by)
    same = np.ones(len(line) - 1, np.bool_)
    for column in by:
        same &= column[line[1:]] == column[line[:-1]]
    if same.any():
        starts = np.flatnonzero(np.insert(~same, 0, True)).tolist()
        for start, end in pairwise([*starts, len(line)]):
            if end - start > 1:
                line[start:end] = sorted(line[start:end].tolist(), key=lambda number: jobs[number].uid)
    return line


def _own_terms(columns: Ints, measure: Measure) -> Ints | Names:
    """Of each job, what its tenant's own order goes by after what is in `RANK`; objects where 64 bits do not hold it."""
    rules, submitted = measure.rules, columns[SUBMITTED]
    if rules.strict:
        return np.zeros(len(submitted), np.int64)
    grades, which = np.unique(columns[GRADE], return_inverse=True)
    weights = [rules.own_weight(measure.multipliers.exact[grade]) for grade in grades.tolist()]
    rate, farthest = rules.own_rate, max(-int(submitted.min()), int(submitted.max()))
    if max(map(abs, weights)) + rate * farthest <= LARGEST:
        terms: Ints = np.array(weights, np.int64)[which] + rate * submitted
        return terms
    large: Names = np.array(weights, np.object_)[which]
    large += rate * submitted.astype(np.object_)
    return large


def _columns(jobs: Sequence[WaitingJob], measure: Measure, queues: QueueNumbers) -> Ints:
    rules = measure.rules
    ranks = rules.ranks if rules.strict else {}
    last = len(rules.classes) if rules.strict else 0
    # A snapshot's jobs share what they ask for: each is looked at once.
    numbers: dict[int, int] = {}
    asked = np.array([numbers.setdefault(id(job.demand), len(numbers)) for job in jobs], np.int64)
    demands = list({id(job.demand): job.demand for job in jobs}.values())
    columns = np.zeros((DEMAND + len(rules.resources), len(jobs)), np.int64)
    columns[RANK] = [ranks.get(job.urgency, last) * 2 for job in jobs]
    if rules.saturated:
        columns[RANK] += np.array([rules.asks_for_saturated(demand) for demand in demands])[asked]
    columns[SUBMITTED] = bounded([job.submitted for job in jobs], -FARTHEST, FARTHEST)
    columns[QUEUE] = [queues.number(job.queue) for job in jobs]
    columns[LACKING] = np.array([lacking_of(demand, rules) is not None for demand in demands])[asked]
    if not rules.strict:
        columns[GRADE] = [measure.grades.grade(job) for job in jobs]
    for at, name in enumerate(rules.resources, start=DEMAND):
        columns[at] = bounded([demand.get(name, 0) for demand in demands], 0, LARGEST)[asked]
    return columns
