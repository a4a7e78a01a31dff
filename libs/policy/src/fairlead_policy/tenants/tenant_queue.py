"""One tenant in one pool: what runs, what waits in the tenant's own order, and the scores of that.

A value: a change gives another one, which shares all that is the same. Jobs are sorted in and scored when somebody looks,
once, and those of many tenants together: of tenants that another shard's owner looks after nobody here does.

With strict classes, tuples ascend along a tenant's own order (class, submitted, uid): the class never falls, the tag is
a sum that never falls, and the aged instant rises with the submit instant. So the running maximum of the tuple, which
the order is defined by, is the tuple itself. Where classes are not strict, or tenants form a tree, the running maximum
is taken in `tenant_tree`, which merges tenant queues.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, bounded
from fairlead_policy.exact.scoring import (
    JobColumns,
    Scores,
    ShareMeasure,
    TagScale,
    Tenants,
    join_scores,
    lacking_of,
    score,
)
from fairlead_policy.rules.jobs import JobQueue, PositionedJob, WaitingJob
from fairlead_policy.rules.pool_rules import LARGEST
from fairlead_policy.tenants.own_line import OwnLine
from fairlead_policy.tenants.sorted_jobs import OwnLines

_NOBODY: Mapping[str, int] = {}


class TenantHeld(NamedTuple):
    """A tenant's holding before any of its waiting jobs starts, base units by resource."""

    running: int = 0
    """Number of running jobs."""
    use: Mapping[str, int] = _NOBODY
    """Use of the running jobs together."""
    past: Mapping[str, int] = _NOBODY
    """Decayed past use: it counts beside what runs."""


HOLDS_NOTHING = TenantHeld()


class TenantQueue:
    """A tenant's state in a pool: its waiting jobs, its running jobs' use, and past use."""

    def __init__(self, tenant: str, measure: ShareMeasure, line: OwnLine, held: TenantHeld) -> None:
        self.tenant, self.line, self.held = tenant, line, held
        self._measure = measure
        self._count = len(line)
        self._scores: Scores | None = None
        self._scored_among: tuple[Scores, int] | None = None

    def __len__(self) -> int:
        return self._count

    def changed(
        self, gone: Mapping[str, WaitingJob], come: Mapping[str, WaitingJob], held: TenantHeld
    ) -> "TenantQueue":
        """The tenant's queue after a change of its waiting and running jobs.

        Args:
            gone: the jobs that wait no more, as they were, by uid.
            come: the jobs that wait from now on, by uid.
            held: the running jobs' use from now on, and past use.
        """
        return TenantQueue(self.tenant, self._measure, self.line.changed(gone, come), held)

    @property
    def use(self) -> Mapping[str, int]:
        """The running use, base units."""
        return self.held.use

    @property
    def past(self) -> Mapping[str, int]:
        """Decayed past use, base units."""
        return self.held.past

    @property
    def running(self) -> int:
        """The number of running jobs."""
        return self.held.running

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs or is remembered."""
        return not len(self) and not self.running and not self.past

    @cached_property
    def counted_use(self) -> Mapping[str, int]:
        """The tenant's use as it counts, in base units: what runs, and past use."""
        return Counter(self.use) + Counter(self.past) if self.past else self.use

    @property
    def waiting_by_queue(self) -> Mapping[JobQueue, int]:
        """The number of waiting jobs in each queue."""
        return self.line.waiting_by_queue

    @property
    def oldest(self) -> Micros:
        """The earliest submit instant of the waiting jobs; there must be one."""
        return int(self.line.all.columns().submitted.min())

    def uid_at(self, row: int) -> str:
        """The uid of the row-th job of the own order."""
        return self.line.job_at(row).uid

    def job_at(self, row: int) -> WaitingJob:
        """The row-th job of the own order."""
        job: WaitingJob = self.line.head(row + 1).jobs[row]
        return job

    def jobs_at(self, rows: Ints) -> list[WaitingJob]:
        """The jobs at these rows of the own order; there must be one."""
        jobs: list[WaitingJob] = self.line.head(int(rows.max()) + 1).jobs[rows].tolist()
        return jobs

    def row_of(self, job: PositionedJob) -> int | None:
        """The row in the own order of a job; None where it does not wait here."""
        row = self.line.all.row_of(job, self._measure.rules)
        return row if row < len(self) and self.uid_at(row) == job.uid else None

    def columns(self, count: int, start: int = 0) -> JobColumns:
        """The jobs of the own order from `start` up to `count` as columns."""
        return self.line.head(count).columns(count, start)

    @property
    def unblocked(self) -> int:
        """The number of waiting jobs that ask for no saturated resource."""
        if not self._measure.rules.saturated:
            return len(self)
        return int(np.count_nonzero(self.line.all.columns().rank & 1 == 0))

    @property
    def is_scored(self) -> bool:
        """Whether all its jobs are scored."""
        known = self._scores
        return self._scored_among is not None or (known is not None and len(known.rows) >= len(self))

    def scored(self, count: int | None = None) -> Scores:
        """The scores of the first `count` jobs of the own order at least; of all by default."""
        needed = len(self) if count is None else min(count, len(self))
        if self._scored_among is not None:
            scores, start = self._scored_among
            self._scores, self._scored_among = scores.take(slice(start, start + len(self))), None
        if self._scores is None:
            self._scores = self._score(needed)
        elif len(self._scores.rows) < needed:
            # Somebody looks further and further: score the rest at once instead of each step from the beginning.
            self._scores = self._score(len(self))
        return self._scores

    def scored_among(self, scores: Scores, start: int) -> None:
        """Keeps scores of all its jobs, which begin there among those of others."""
        self._scored_among = scores, start

    def _score(self, count: int) -> Scores:
        return _scores(self.columns(count), [self], np.zeros(1, np.int64), self._measure)


def scored_side_by_side(queues: Sequence[TenantQueue], measure: ShareMeasure) -> tuple[OwnLines, Scores]:
    """The jobs of tenants, each of which has some, and their scores: in one pass for all that nobody scored yet.

    Each tenant keeps what was found of it, so that an event costs its own tenant afterwards.
    """
    lines = _side_by_side(queues, measure)
    new = [queue for queue in queues if not queue.is_scored]
    if new:
        some = lines if len(new) == len(queues) else _side_by_side(new, measure)
        scores = _scored_anew(new, some, measure)
        if some is lines:
            return lines, scores
    return lines, join_scores([queue.scored() for queue in queues])


def score_together(queues: Iterable[TenantQueue], measure: ShareMeasure) -> None:
    """Scores the jobs of tenants, each of which has some, in one pass for all that nobody scored yet: each keeps its own."""
    new = sorted((queue for queue in queues if not queue.is_scored), key=lambda queue: queue.line.beside()[1])
    if new:
        _scored_anew(new, _side_by_side(new, measure), measure)


def _scored_anew(queues: Sequence[TenantQueue], lines: OwnLines, measure: ShareMeasure) -> Scores:
    """The scores of all jobs of these tenants, which lie side by side."""
    scores = _scores(JobColumns.of(lines.numbers), queues, lines.starts[:-1], measure)
    for queue, start in zip(queues, lines.bounds, strict=False):
        queue.scored_among(scores, start)
    return scores


def _side_by_side(queues: Sequence[TenantQueue], measure: ShareMeasure) -> OwnLines:
    """The lines of all jobs of these queues: as they were sorted together, or put together now."""
    among = [queue.line.beside() for queue in queues]
    lines = among[0][0]
    if len(among) == len(lines.tenants) and all(
        one is lines and number == at for at, (one, number) in enumerate(among)
    ):
        return lines
    return OwnLines.joined({queue.tenant: queue.line.all for queue in queues}, measure.rules)


def _scores(jobs: JobColumns, queues: Sequence[TenantQueue], starts: Ints, measure: ShareMeasure) -> Scores:
    """The scores of jobs of these tenants, side by side; `starts` has the position of each tenant's first job."""
    rules = measure.rules
    held, lacking = np.zeros((len(rules.resources), len(queues)), np.int64), np.zeros(len(queues), np.bool_)
    # Mostly few hold anything.
    some = [at for at, queue in enumerate(queues) if queue.held.use or queue.held.past]
    counted = [queues[at].counted_use for at in some]
    for sums, name in zip(held, rules.resources, strict=True):
        sums[some] = bounded([one.get(name, 0) for one in counted], 0, LARGEST)
    lacking[some] = [lacking_of(one, rules) is not None for one in counted]
    scales: dict[TagScale, int] = {}
    found = measure.scales_of(queue.tenant for queue in queues)
    scale = [scales.setdefault(one, len(scales)) for one in found]
    return score(jobs, Tenants(starts, held, lacking, np.array(scale, np.int64), list(scales)), measure)
