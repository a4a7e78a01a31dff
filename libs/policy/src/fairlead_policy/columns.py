"""Many waiting jobs at once as columns of numbers, in the order of their tenants and of these tenants' own orders.

Read in the order in which the jobs were told: a million objects are then passed once, as they lie in memory.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from fairlead_policy.jobs import WaitingJob
from fairlead_policy.lane import DEMAND, GRADE, LACKING, QUEUE, RANK, SUBMITTED, QueueNumbers
from fairlead_policy.ranking import Ints
from fairlead_policy.rules import FARTHEST, LARGEST, override_of
from fairlead_policy.scoring import Measure, lacking_of

type Batch = tuple[str, list[WaitingJob], Ints]
"""A tenant, jobs of it in its own order, and the same as columns."""


def by_tenant(jobs: Sequence[WaitingJob], measure: Measure, queues: QueueNumbers) -> Iterator[Batch]:
    """The jobs, tenant by tenant."""
    if not jobs:
        return
    columns = _columns(jobs, measure, queues)
    numbers: dict[str, int] = {}
    tenant = np.array([numbers.setdefault(job.tenant, len(numbers)) for job in jobs], np.int64)
    line = _line(jobs, tenant, columns, measure)
    names, ordered = list(numbers), tenant[line]
    columns = columns[:, line]
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(jobs)]):
        own = [jobs[number] for number in line[start:end].tolist()]
        yield names[ordered[start]], own, columns[:, start:end]


def _line(jobs: Sequence[WaitingJob], tenant: Ints, columns: Ints, measure: Measure) -> Ints:
    """The jobs by tenant, and by its own order."""
    rules = measure.rules
    if not rules.strict:
        keys = [
            (
                number,
                *rules.own_terms(
                    job.urgency,
                    override_of(job.override),
                    at,
                    blocked=rules.asks_for_saturated(job.demand),
                ),
                at,
                job.uid,
            )
            for number, at, job in zip(tenant.tolist(), columns[SUBMITTED].tolist(), jobs, strict=True)
        ]
        return np.array(sorted(range(len(jobs)), key=keys.__getitem__))
    line = np.lexsort((columns[SUBMITTED], columns[RANK], tenant))
    same = np.ones(len(line) - 1, np.bool_)
    for column in (tenant, columns[RANK], columns[SUBMITTED]):
        same &= column[line[1:]] == column[line[:-1]]
    if same.any():
        starts = np.flatnonzero(np.insert(~same, 0, True)).tolist()
        for start, end in pairwise([*starts, len(line)]):
            if end - start > 1:
                line[start:end] = sorted(line[start:end].tolist(), key=lambda number: jobs[number].uid)
    return line


def _columns(jobs: Sequence[WaitingJob], measure: Measure, queues: QueueNumbers) -> Ints:
    rules = measure.rules
    ranks = rules.ranks if rules.strict else {}
    last = len(rules.classes) if rules.strict else 0
    demands = [job.demand for job in jobs]
    known = rules.unit_share_by_name.keys()
    columns = np.zeros((DEMAND + len(rules.resources), len(jobs)), np.int64)
    columns[RANK] = [ranks.get(job.urgency, last) * 2 for job in jobs]
    if rules.saturated:
        columns[RANK] += [rules.asks_for_saturated(demand) for demand in demands]
    columns[SUBMITTED] = bounded([job.submitted for job in jobs], -FARTHEST, FARTHEST)
    columns[QUEUE] = [queues.number(job.queue) for job in jobs]
    columns[LACKING] = [
        not demand.keys() <= known and lacking_of(demand, rules) is not None for demand in demands
    ]
    if not rules.strict:
        columns[GRADE] = [measure.grades.grade(job) for job in jobs]
    for at, name in enumerate(rules.resources, start=DEMAND):
        columns[at] = bounded([demand.get(name, 0) for demand in demands], 0, LARGEST)
    return columns


def bounded(stated: list[int], least: int, most: int) -> Ints:
    """The numbers within bounds; facts may be larger than 64 bits hold."""
    try:
        return np.clip(np.array(stated, np.int64), least, most)
    except OverflowError:
        return np.array([min(max(one, least), most) for one in stated], np.int64)
