"""Many waiting jobs as columns of numbers, and tenant by tenant in the tenants' own orders."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairlead_policy.exact.ranking import Flags, Ints, Names, bounded
from fairlead_policy.exact.scoring import lacking_of
from fairlead_policy.rules.jobs import OwnJob
from fairlead_policy.rules.pool_rules import FARTHEST, LARGEST, PoolRules

_KEY_BITS = 63


class PoolColumns(NamedTuple):
    """The waiting jobs of one pool, as equal columns in any order."""

    tenant: Ints
    """Number of the job's tenant."""
    rank: Ints
    """Twice the class position, one beyond the last of a class that the policy does not know; plus one where blocked."""
    submitted: Ints
    """Microseconds, within what rules.FARTHEST allows."""
    demand: Ints
    """(resources, jobs), base units between 0 and rules.LARGEST; the resources are those of the rules."""
    lacking: Flags
    """Whether the job asks for a resource of which the pool has none."""

    @classmethod
    def of(cls, jobs: Sequence[OwnJob], tenants: dict[str, int], rules: PoolRules) -> "PoolColumns":
        """The jobs in their order; tenants that have no number yet get one."""
        # Jobs that ask for the same share it: each demand is looked at once.
        numbers: dict[int, int] = {}
        asked = np.array([numbers.setdefault(id(job.demand), len(numbers)) for job in jobs], np.int64)
        demands = list({id(job.demand): job.demand for job in jobs}.values())
        ranks, last = (rules.ranks, len(rules.classes)) if rules.strict else ({}, 0)
        rank = np.array([ranks.get(job.urgency, last) * 2 for job in jobs], np.int64)
        if rules.saturated:
            rank += np.array([rules.asks_for_saturated(demand) for demand in demands], np.bool_)[asked]
        return cls(
            tenant=np.array([tenants.setdefault(job.tenant, len(tenants)) for job in jobs], np.int64),
            rank=rank,
            submitted=bounded([job.submitted for job in jobs], -FARTHEST, FARTHEST),
            demand=_amounts(demands, rules)[:, asked],
            lacking=np.array([lacking_of(demand, rules) is not None for demand in demands], np.bool_)[asked],
        )


def _amounts(demands: Sequence[Mapping[str, int]], rules: PoolRules) -> Ints:
    """(resources, demands), as they count."""
    names = rules.resources
    # Demand by demand: what one asks for lies together in memory.
    stated = bounded([one.get(name, 0) for one in demands for name in names], 0, LARGEST)
    return np.ascontiguousarray(stated.reshape(len(demands), len(names)).T)


def own_orders(
    columns: PoolColumns, tenants: int, uid_of: Callable[[int], str], terms: Ints | Names | None = None
) -> Ints:
    """The jobs by tenant, and by its own order: (class, terms, submitted, uid).

    Args:
        columns: of the jobs.
        tenants: how many there are.
        uid_of: the uid of a job by its number; asked only where it decides.
        terms: what an own order goes by between class and submit instant, where classes are not strict.
    """
    count = len(columns.tenant)
    if not count:
        return np.empty(0, np.int64)
    ranks, first = int(columns.rank.max()) + 1, int(columns.submitted.min())
    span = (int(columns.submitted.max()) - first).bit_length()
    if terms is None and span + (tenants * ranks).bit_length() <= _KEY_BITS:
        packed = (columns.tenant * ranks + columns.rank << span) + (columns.submitted - first)
        line: Ints = np.argsort(packed)
        ordered = packed[line]
        same: Flags = ordered[1:] == ordered[:-1]
    else:
        by: list[Ints] = [columns.submitted, columns.rank, columns.tenant]
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


def starts_of(tenant: Ints) -> Ints:
    """Where each tenant's jobs begin, tenant by tenant."""
    if not len(tenant):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.append(True, tenant[1:] != tenant[:-1]))
