"""Many waiting jobs at once, tenant by tenant, as tenants' queues keep them.

Read in the order in which the jobs were told: a million objects are then passed once, as they lie in memory.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fairlead_policy.exact.ranking import Ints, Names
from fairlead_policy.exact.scoring import Measure
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import LARGEST
from fairlead_policy.tenants.own_orders import PoolColumns, own_orders, starts_of
from fairlead_policy.tenants.tenant_queue import QueueNumbers


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
    rules, tenants = measure.rules, dict[str, int]()
    found = PoolColumns.of(jobs, tenants, rules)
    grade = np.zeros(len(jobs), np.int64)
    terms: Ints | Names = grade
    if not rules.strict:
        grade = np.array([measure.grades.grade(job) for job in jobs], np.int64)
        terms = _own_terms(grade, found.submitted, measure)
    uid_of = [job.uid for job in jobs].__getitem__
    line = own_orders(found, len(tenants), uid_of, None if rules.strict else terms)
    queue = np.array([queues.number(job.queue) for job in jobs], np.int64)
    columns = np.vstack([found.rank, found.submitted, queue, found.lacking, grade, found.demand])[:, line]
    names, ordered, terms = list(tenants), found.tenant[line], terms[line]
    for start, end in pairwise([*starts_of(ordered).tolist(), len(jobs)]):
        own = [jobs[number] for number in line[start:end].tolist()]
        yield Batch(names[ordered[start]], own, columns[:, start:end], terms[start:end].tolist())


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
