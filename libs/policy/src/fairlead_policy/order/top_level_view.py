"""Several top-level tenants' jobs side by side at one instant."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.flips import first_flip
from fairlead_policy.exact.ranking import EffectiveTies, Ints, Names, Ranking, Rows, TieBreak, join
from fairlead_policy.exact.scoring import Scores, ShareMeasure
from fairlead_policy.order.positions import Positions
from fairlead_policy.rules.jobs import PositionedJob
from fairlead_policy.tenants.sequence_columns import SequenceColumns
from fairlead_policy.tenants.service_order import InfiniteCause, InSequence

_FEW = 256
"""Largest number of jobs that are picked one by one."""


class TopLevelView:
    """The jobs of top-level tenants: all of them, or those that queues' heads are taken from."""

    def __init__(self, measure: ShareMeasure, jobs: SequenceColumns, now: Micros) -> None:
        self._now = now
        self._measure = measure
        self.jobs = jobs
        self.scores: Scores = jobs.columns.scores
        """Scores of the jobs by their own terms."""
        self._is_own_order = len(jobs.tenants) == 1 and not jobs.served
        """Whether all are jobs of one tenant that stands alone: they are in order already."""

    @cached_property
    def _tenant(self) -> Ints:
        """The number of each job's top-level tenant."""
        return np.repeat(np.arange(len(self.jobs.counts)), self.jobs.counts)

    def ranked(self) -> Ints:
        """The view's rows in order."""
        columns = self.jobs.columns
        if self._is_own_order:
            return np.arange(len(columns.at))
        return self._ranking(columns.rows).order(self._tie_of, self._effective_ties())

    def first(self, rows: Ints, count: int) -> Ints:
        """The first `count` of some rows, which ascend, in order."""
        if self._is_own_order:
            return rows[:count]
        all_rows = self.jobs.columns.rows
        ranking = self._ranking(all_rows if len(rows) == len(all_rows) else all_rows.take(rows))
        likely = rows
        if len(among := ranking.likely_first(count)) < len(rows):
            likely = rows[among]
            ranking = self._ranking(all_rows.take(likely))
        effective_ties = self._effective_ties()
        order = ranking.order(
            lambda row: self._tie_of(likely.item(row)),
            None if effective_ties is None else effective_ties.take(likely),
        )
        return likely[order[:count]]

    def positions(self, rows: Ints) -> Positions:
        """The positions of rows, each made when somebody looks at it."""
        return Positions(self, rows, self._measure, self._now)

    def jobs_at(self, rows: Ints) -> list[PositionedJob]:
        """The jobs of rows."""
        if len(rows) > _FEW:
            picked: list[PositionedJob] = self._all_jobs[rows].tolist()
            return picked
        tenants, at = self.jobs.tenants, self.jobs.columns.at
        if len(tenants) == 1 and len(rows):
            return list(tenants[0].jobs_at(at[rows]))
        pairs = zip(self._tenant[rows].tolist(), at[rows].tolist(), strict=True)
        return [tenants[tenant].job_at(index) for tenant, index in pairs]

    @cached_property
    def _all_jobs(self) -> Names:
        at = self.jobs.columns.at
        found: Names = np.empty(len(at), np.object_)
        for tenant, (start, end) in zip(self.jobs.tenants, pairwise(self.jobs.bounds()), strict=True):
            if start < end:
                found[start:end] = tenant.jobs_at(at[start:end])
        return found

    def tops_at(self, rows: Ints) -> tuple[Sequence[str], Ints]:
        """Names of top-level tenants, and the number among them of each of these jobs'."""
        numbers = self._tenant[rows]
        if len(rows) > _FEW:
            return self._tops, numbers
        return [self.jobs.tenants[number].top for number in numbers.tolist()], np.arange(len(rows))

    @cached_property
    def _tops(self) -> list[str]:
        return [tenant.top for tenant in self.jobs.tenants]

    def cause_at(self, row: int) -> InfiniteCause:
        """The resource that the pool has none of and that makes the share of a job infinite."""
        return self.jobs.tenants[self._tenant.item(row)].cause_at(self.jobs.columns.at.item(row))

    def sequences(self, rows: Ints) -> Iterator[InSequence]:
        """The sequences of some jobs whose tenants do not stand alone, by top-level tenant."""
        served = self.jobs.served
        if not served:
            return
        tenants = self._tenant[rows]
        for number in np.unique(tenants).tolist():
            if number in served:
                which = np.flatnonzero(tenants == number)
                yield InSequence(served[number], which, self.jobs.columns.at[rows[which]])

    def flip_of_tuples(self) -> Micros | None:
        """An instant before which time alone does not make the tuples of jobs here pass each other.

        Of the rows, and of what they count as now or later.
        """
        rules, multipliers, columns = self._measure.rules, self._measure.multipliers, self.jobs.columns
        if not self.jobs.served:
            return first_flip(columns.rows.take(self.ranked()), rules, multipliers)
        rows: list[Rows] = []
        uids: list[str] = []
        for number, (tenant, (start, end)) in enumerate(
            zip(self.jobs.tenants, pairwise(self.jobs.bounds()), strict=True)
        ):
            sequence, at = self.jobs.served.get(number), columns.at[start:end]
            if sequence is None:
                rows.append(self.scores.rows.take(slice(start, end)))
            else:
                at = np.unique(np.concatenate((at, sequence.as_submitted[at], sequence.by_tag[at])))
                rows.append(sequence.own_rows.take(at))
            uids += [tenant.job_at(one).uid for one in at.tolist()]
        joined = join(rows)
        order = self._ranking(joined).order(lambda row: (uids[row], 0))
        return first_flip(joined.take(order), rules, multipliers)

    def _tie_of(self, row: int) -> TieBreak:
        return self.jobs.tenants[self._tenant.item(row)].tie_at(self.jobs.columns.at.item(row))

    def _effective_ties(self) -> EffectiveTies | None:
        """The many jobs of sequences that count as few: which of them, numbered through all tenants."""
        served, at = self.jobs.served, self.jobs.columns.at
        if not served:
            return None
        effective, bounds = at.copy(), self.jobs.bounds()
        for number, sequence in served.items():
            some = slice(bounds[number], bounds[number + 1])
            effective[some] = sequence.effective_row[at[some]]
        effective += self._tenant * (int(at.max(initial=0)) + 1)
        return EffectiveTies(effective, at)

    def _ranking(self, rows: Rows) -> Ranking:
        return Ranking(rows, self._measure.rules, self._measure.multipliers, self._now)
