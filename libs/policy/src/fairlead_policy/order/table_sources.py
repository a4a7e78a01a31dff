"""What many places of trees, and of classes that are not strict, are made from: as columns over all their jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from fairlead_policy.exact.ranking import Flags, Ints, Names
from fairlead_policy.exact.scoring import Scores
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import TenantQueue

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Depth:
    """What jobs stand at among their siblings at one depth below the top-level tenants."""

    tenant: Ints
    """Number of the tenant there, the job's own or one above it; `NOBODY` where its own stands higher."""
    at: Ints
    """Position in that tenant's sequence."""
    use: Ints
    dominant: Ints
    lifter: Ints
    """Position in that sequence of the job that it counts as."""
    finite: Flags

    @classmethod
    def of_nobody(cls, jobs: int) -> "Depth":
        """To be filled in."""
        at, use, dominant, lifter = np.zeros((4, jobs), np.int64)
        return cls(np.full(jobs, NOBODY), at, use, dominant, lifter, np.ones(jobs, np.bool_))

    def take(self, rows: Ints) -> "Depth":
        """Some of the jobs."""
        return Depth(
            self.tenant[rows],
            self.at[rows],
            self.use[rows],
            self.dominant[rows],
            self.lifter[rows],
            self.finite[rows],
        )


class Lifters(NamedTuple):
    """Positions of the jobs that each counts as: as submitted, far beyond the cap, and now."""

    lifted: Ints
    late: Ints
    counted: Ints


@dataclass(frozen=True, slots=True)
class Gathered:
    """Jobs of tenants that stand alone, and of top-level tenants' sequences, as equal columns."""

    jobs: Names
    finite: Flags
    """Whether the share is, at every depth."""
    rank: Ints
    use: Ints
    dominant: Ints
    submitted: Ints
    lifted: Ints
    """Positions in the sequence of the jobs that it counts as: as submitted, and far beyond the cap."""
    late: Ints
    counted: Ints
    """The same now."""
    depths: Sequence[Depth]
    """From the top down."""

    @classmethod
    def of(cls, jobs: Names, scores: Scores, lifters: Lifters, depths: Sequence[Depth]) -> "Gathered":
        """Jobs as they are scored."""
        finite = scores.finite
        for depth in depths:
            finite = finite & depth.finite
        rows = scores.rows
        own = rows.rank, scores.use, scores.dominant, rows.submitted
        return cls(jobs, finite, *own, *lifters, depths)

    def take(self, rows: Ints) -> "Gathered":
        """Some of the jobs."""
        return Gathered(
            self.jobs[rows],
            self.finite[rows],
            self.rank[rows],
            self.use[rows],
            self.dominant[rows],
            self.submitted[rows],
            self.lifted[rows],
            self.late[rows],
            self.counted[rows],
            [depth.take(rows) for depth in self.depths],
        )


class Gathering:
    """Gathers what places are made from. Tenants below top-level ones get numbers on the way.

    Args:
        rules: of the pool.
    """

    def __init__(self, rules: PoolRules) -> None:
        self.tenants: list[str] = []
        """By number."""
        self._rules = rules

    def all_of(self, parts: Sequence[TenantQueue | ServiceOrder]) -> Gathered:
        """The jobs of tenants that stand alone and of sequences, one after the other; there is one at least."""
        return _joined([self._of(one) for one in parts])

    def _of(self, part: TenantQueue | ServiceOrder) -> Gathered:
        if isinstance(part, TenantQueue):
            positions = np.arange(len(part))
            lifters = Lifters(positions, positions, positions)
            return Gathered.of(_objects(part.jobs_at(positions)), part.scored(), lifters, [])
        counts = np.diff(part.field.starts).tolist()
        numbered = [
            job
            for tenant_queue, count in zip(part.field.tenant_queues, counts, strict=True)
            for job in tenant_queue.jobs_at(np.arange(count))
        ]
        at, scores = part.stretch.at, part.stretch.scores
        depths = [depth.take(at) for depth in self._depths_of(part)]
        lifters = Lifters(part.as_submitted, part.by_tag, part.lifter)
        return Gathered.of(_objects(numbered)[at], scores, lifters, depths)

    def _depths_of(self, sequence: ServiceOrder) -> list[Depth]:
        """By number in the field."""
        found: list[Depth] = []
        for tenant, stretch in sequence.stretches.items():
            number = len(self._rules.way_up(tenant)) - 2
            if number < 0:
                continue  # the top-level tenant itself
            while len(found) <= number:
                found.append(Depth.of_nobody(len(sequence.field.tenant_queue)))
            depth, at, scores = found[number], stretch.at, stretch.scores
            depth.tenant[at] = len(self.tenants)
            depth.at[at] = np.arange(len(at))
            depth.use[at], depth.dominant[at] = scores.use, scores.dominant
            depth.lifter[at] = sequence.lifter_in(tenant)
            depth.finite[at] = scores.finite
            self.tenants.append(tenant)
        return found


def _objects(jobs: Sequence[WaitingJob]) -> Names:
    found: Names = np.empty(len(jobs), np.object_)
    found[:] = jobs
    return found


def _joined(parts: Sequence[Gathered]) -> Gathered:
    """There is one at least."""
    by_depth = zip_longest(*(part.depths for part in parts))
    lengths = [len(part.jobs) for part in parts]
    return Gathered(
        np.concatenate([part.jobs for part in parts]),
        np.concatenate([part.finite for part in parts]),
        np.concatenate([part.rank for part in parts]),
        np.concatenate([part.use for part in parts]),
        np.concatenate([part.dominant for part in parts]),
        np.concatenate([part.submitted for part in parts]),
        np.concatenate([part.lifted for part in parts]),
        np.concatenate([part.late for part in parts]),
        np.concatenate([part.counted for part in parts]),
        [
            _joined_depths([one or Depth.of_nobody(n) for one, n in zip(depths, lengths, strict=True)])
            for depths in by_depth
        ],
    )


def _joined_depths(parts: Sequence[Depth]) -> Depth:
    return Depth(
        np.concatenate([part.tenant for part in parts]),
        np.concatenate([part.at for part in parts]),
        np.concatenate([part.use for part in parts]),
        np.concatenate([part.dominant for part in parts]),
        np.concatenate([part.lifter for part in parts]),
        np.concatenate([part.finite for part in parts]),
    )
