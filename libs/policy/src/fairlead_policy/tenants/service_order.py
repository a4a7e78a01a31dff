"""A top-level tenant's jobs in the sequence in which it serves them, with what each counts as in the pool."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Names, Rows, TieBreak
from fairlead_policy.exact.scoring import JobColumns, Scores, ShareMeasure, lacking_of
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import LARGEST, PoolRules
from fairlead_policy.tenants.merging import JobTable, SequencePrefix, ranked
from fairlead_policy.tenants.tenant_queue import TenantQueue

_FEW = 64
"""Largest number of jobs that are picked one by one."""


class InfiniteCause(NamedTuple):
    """The cause of an infinite share, where that is a resource that the pool has none of."""

    resource: str
    """Name of the resource; empty where no such resource is the cause."""
    amount: int


def cause_of(use: Mapping[str, int], rules: PoolRules) -> InfiniteCause:
    """The cause of an infinite share, where it is a resource that the pool has none of."""
    name = lacking_of(use, rules)
    return InfiniteCause("", 0) if name is None else InfiniteCause(name, min(use[name], LARGEST))


class InSequence(NamedTuple):
    """Some jobs of a top-level tenant's sequence."""

    sequence: "ServiceOrder"
    which: Ints
    """Numbers of these jobs among those that were asked for."""
    at: Ints
    """Positions of these jobs in the sequence."""


class ServiceOrder:
    """The beginning of a top-level tenant's sequence at one instant.

    A job counts as the largest tuple up to it: as its *effective job*. Beyond the aging cap that may change with the clock, but
    only between two jobs: a key is `max(tag + rate * submitted, tag + rate * (now - cap))`, so the largest one is that
    of the largest key as submitted, or that of the largest tag.

    Args:
        prefixes: the beginning of each one's sequence, by tenant below the top-level one and that itself.
        use: the use below the top-level tenant: what runs, and past use.
    """

    def __init__(
        self,
        prefixes: Mapping[str, SequencePrefix],
        top: str,
        table: JobTable,
        measure: ShareMeasure,
        *,
        use: Mapping[str, int],
        now: Micros,
    ) -> None:
        self.use = use
        self._inverses: dict[str, Ints] = {}
        self._effective_rows: dict[str, Ints] = {}
        self.top = top
        self.table = table
        self.measure = measure
        self.prefixes = prefixes
        self.prefix = prefixes[top]
        self._now = now
        self.alone = measure.rules.stands_alone(top)
        """Whether it is a single tenant's with strict classes: tuples ascend then, and each job counts as itself."""

    def __len__(self) -> int:
        return len(self.prefix.at)

    @property
    def scores(self) -> Scores:
        """The scores of the jobs by their own terms."""
        return self.prefix.scores

    @property
    def own_rows(self) -> Rows:
        """The rows of the jobs by their own terms."""
        return self.scores.rows

    def first_columns(self, count: int) -> JobColumns:
        """The columns of the first jobs, in this order."""
        return self.table.columns.take(slice(count) if self.alone else self.prefix.at[:count])

    @cached_property
    def rows(self) -> Rows:
        """The rows of the jobs by the terms that each counts by."""
        return self.own_rows if self.alone else self.own_rows.take(self.effective_row)

    @cached_property
    def effective_row(self) -> Ints:
        """The index of the job that each counts as."""
        if self.alone:
            return np.arange(len(self))
        return self._largest(self.prefix, self.measure)

    def effective_row_in(self, tenant: str) -> Ints:
        """The indexes in a tenant's sequence of the jobs that its jobs count as among siblings'."""
        found = self._effective_rows.get(tenant)
        if found is None:
            found = self._effective_rows[tenant] = self._largest(self.prefixes[tenant], self.measure)
        return found

    @cached_property
    def as_submitted(self) -> Ints:
        """The index of the largest tuple up to each job, were nothing capped."""
        if self.measure.rules.cap is None or self.alone:
            return self.effective_row
        return self._largest(self.prefix, self.measure.uncapped)

    @cached_property
    def by_tag(self) -> Ints:
        """The index of the largest (class, tag, submitted, uid) up to each job: far beyond the cap it counts."""
        rules = self.measure.rules
        if rules.cap is None or not rules.rate or self.alone:
            return self.as_submitted
        return self._largest(self.prefix, self.measure.ageless)

    def tops_at(self, indexes: Ints) -> tuple[list[str], Ints]:
        """The top-level tenant, and number 0 for each of these jobs."""
        return [self.top], np.zeros(len(indexes), np.int64)

    def uid_at(self, index: int) -> str:
        """The uid of a job."""
        return self.table.uid_at(self.prefix.at.item(index))

    def tie_at(self, index: int) -> TieBreak:
        """The tie that settles equal keys and submit instants: the uid that the job counts by, and its index."""
        return self.uid_at(self.effective_row.item(index)), index

    def job_at(self, index: int) -> WaitingJob:
        """The job at an index."""
        return self.job_within(self.top, index)

    def jobs_at(self, indexes: Ints) -> list[WaitingJob]:
        """The jobs at these indexes."""
        if len(indexes) <= _FEW:
            return list(map(self.job_at, indexes.tolist()))
        picked: list[WaitingJob] = self._jobs[indexes].tolist()
        return picked

    @cached_property
    def _jobs(self) -> Names:
        numbered: Names = np.empty(len(self.table.row), np.object_)
        for number, tenant_queue in enumerate(self.table.tenant_queues):
            start, end = self.table.starts[number : number + 2].tolist()
            numbered[start:end] = tenant_queue.line.head(end - start).jobs[: end - start]
        picked: Names = numbered[self.prefix.at]
        return picked

    def sequences(self, indexes: Ints) -> Iterator[InSequence]:
        """The sequence itself as that of some of its jobs, where the tenant does not stand alone."""
        if not self.alone:
            yield InSequence(self, np.arange(len(indexes)), indexes)

    def cause_at(self, _: int, /) -> InfiniteCause:
        """The resource that the pool has none of and that makes the shares of all its jobs infinite."""
        return cause_of(self.use, self.measure.rules)

    def job_within(self, tenant: str, index: int) -> WaitingJob:
        """A job by its index in the sequence of a tenant on its way up."""
        at = self.prefixes[tenant].at.item(index)
        return self.table.tenant_queues[self.table.tenant_queue.item(at)].job_at(self.table.row.item(at))

    @cached_property
    def tenant_queues(self) -> Ints:
        """The number of each job's tenant."""
        return self.table.tenant_queue[self.prefix.at]

    @cached_property
    def queues(self) -> Ints:
        """The number of each job's queue."""
        return self.table.columns.queue[self.prefix.at]

    def index_at(self, tenant_queue: TenantQueue, row: int) -> int:
        """The index of a job of this sequence by its tenant's own order."""
        number = next(
            number for number, known in enumerate(self.table.tenant_queues) if known is tenant_queue
        )
        return self._inverse_of(self.top).item(int(self.table.starts[number]) + row)

    def count_by_tenant(self, ahead: int) -> dict[str, int]:
        """The number of each tenant's jobs among the first."""
        if self.alone:
            return {self.top: ahead} if ahead else {}
        counts = np.bincount(self.tenant_queues[:ahead], minlength=len(self.table.tenant_queues)).tolist()
        named = zip(self.table.tenant_queues, counts, strict=True)
        return {tenant_queue.tenant: count for tenant_queue, count in named if count}

    def index_in(self, tenant: str, index: int) -> int:
        """The index of a job in the sequence of a tenant on its way up."""
        return self._inverse_of(tenant).item(self.prefix.at.item(index))

    def _inverse_of(self, tenant: str) -> Ints:
        """The index in a tenant's sequence by number in the table; -1 for a job that is not in it."""
        inverse = self._inverses.get(tenant)
        if inverse is None:
            at = self.prefixes[tenant].at
            inverse = self._inverses[tenant] = np.full(len(self.table.tenant_queue), -1)
            inverse[at] = np.arange(len(at))
        return inverse

    def _largest(self, prefix: SequencePrefix, measure: ShareMeasure) -> Ints:
        """The index of the largest tuple up to each job of a sequence."""
        order, ranks = ranked(prefix.scores.rows, prefix.at, self.table, measure, self._now)
        largest: Ints = order[np.maximum.accumulate(ranks)]
        return largest
