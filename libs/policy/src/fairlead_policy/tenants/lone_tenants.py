"""Top-level tenants that stand alone, all their jobs side by side: a pool of thousands is then columns, with no object a job."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fairlead_policy.exact.ranking import Ints, Names, Rows, TieBreak
from fairlead_policy.exact.scoring import JobColumns, Measure
from fairlead_policy.rules.jobs import PlacedJob
from fairlead_policy.tenants.service_order import InfiniteCause, cause_of
from fairlead_policy.tenants.tenant_queue import TenantQueue, scored_side_by_side


class LoneTenants:
    """Jobs by their positions: tenant by tenant, in the tenants' own orders, which are their sequences.

    Args:
        queues: of the tenants; each has jobs.
        measure: of the pool.
    """

    alone = True

    def __init__(self, queues: Sequence[TenantQueue], measure: Measure) -> None:
        self._tenant_queues, self._rules = queues, measure.rules
        self._lines, self.scores = scored_side_by_side(queues, measure)
        self._columns = JobColumns.of(self._lines.numbers)

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def rows(self) -> Rows:
        """Each job by its own terms: it counts as itself."""
        return self.scores.rows

    @property
    def queues(self) -> Ints:
        """The number of each job's queue."""
        return self._columns.queue

    def uids(self) -> Names:
        """The uids of all jobs."""
        return np.array([job.uid for job in self._lines.jobs], np.object_)

    def uid_at(self, position: int) -> str:
        """The uid of a job."""
        return self.job_at(position).uid

    def tie_at(self, position: int) -> TieBreak:
        """The tie that settles equal keys and submit instants."""
        return self.uid_at(position), 0

    def job_at(self, position: int) -> PlacedJob:
        """A job."""
        return self._lines.job_at(position)

    def jobs_at(self, positions: Ints) -> list[PlacedJob]:
        """Some jobs."""
        picked: list[PlacedJob] = self._lines.jobs[positions].tolist()
        return picked

    def cause_at(self, position: int) -> InfiniteCause:
        """The resource that the pool has none of and that makes the share of a job infinite."""
        number = int(np.searchsorted(self._lines.starts, position, side="right")) - 1
        first = self._first_lacking[number].item()
        job = self.job_at(first) if first < position else None
        return cause_of(self._tenant_queues[number].counted, job, self._rules)

    @cached_property
    def _first_lacking(self) -> Ints:
        """By tenant, the position of its first job that asks for a resource that the pool has none of, or its end."""
        starts = self._lines.starts
        asking = np.append(np.flatnonzero(self._columns.lacking), len(self))
        found: Ints = np.minimum(asking[np.searchsorted(asking, starts[:-1])], starts[1:])
        return found
