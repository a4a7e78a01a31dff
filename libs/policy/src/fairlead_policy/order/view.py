"""Several top-level tenants' jobs side by side at one instant."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.flips import first_flip
from fairlead_policy.exact.ranking import Ints, Names, Ranking, Rows, Shared, TieBreak, join
from fairlead_policy.exact.scoring import Measure, Scores, join_scores
from fairlead_policy.order.positions import InSequence, Positions
from fairlead_policy.rules.jobs import PlacedJob
from fairlead_policy.tenants.service_order import InfiniteCause, ServiceOrder
from fairlead_policy.tenants.tenant_tree import SequencePart

_FEW = 256
"""Up to so many jobs are picked one by one."""


class OneSequence:
    """A top-level tenant's jobs, each row its position: as they are, so that few of them cost little.

    Args:
        sequence: of the tenant.
    """

    def __init__(self, sequence: ServiceOrder) -> None:
        self._sequence = sequence
        self.scores: Scores = sequence.stretch.scores

    def jobs(self, rows: Ints) -> Sequence[PlacedJob]:
        """The jobs at some positions."""
        return self._sequence.jobs_at(rows)

    def cause(self, row: int) -> InfiniteCause:
        """What makes a job's share infinite, where that is a resource that the pool has none of."""
        return self._sequence.cause_at(row)

    def sequences(self, rows: Ints) -> Iterator[InSequence]:
        """This one, where the tenant does not stand alone."""
        if not self._sequence.alone:
            yield InSequence(self._sequence, np.arange(len(rows)), rows)


class TopLevelView:
    """The jobs of top-level tenants: all of them, or those that fronts are made from.

    Args:
        measure: of the pool.
        parts: the jobs of each tenant.
        now: the instant.
    """

    def __init__(self, measure: Measure, parts: Sequence[SequencePart], now: Micros) -> None:
        self._now = now
        self._measure = measure
        self._parts = [part.sequence for part in parts]
        self._trees = not all(part.sequence.alone for part in parts)
        self.scores: Scores = join_scores([part.scores for part in parts])
        """Each job by its own terms."""
        self.rows = self.scores.rows if not self._trees else join([part.rows for part in parts])
        """Each job as what it counts as."""
        self.queue = _joined([part.queue for part in parts])
        """Numbers of the queues."""
        self._part = np.repeat(np.arange(len(parts)), [len(part.at) for part in parts])
        self._at = _joined([part.at for part in parts])
        self._is_one_line = (
            len(parts) == 1 and isinstance(self._parts[0], ServiceOrder) and self._parts[0].alone
        )
        """Whether all are jobs of one tenant that stands alone: they are in order already."""

    def uids(self, rows: Ints) -> list[str]:
        """The uids of rows."""
        if not self._parts:
            return []
        uids: list[Names] = [part.uids() for part in self._parts]
        starts = np.cumsum([0, *map(len, uids)])
        picked: list[str] = np.concatenate(uids)[starts[self._part[rows]] + self._at[rows]].tolist()
        return picked

    def ranked(self) -> Ints:
        """The view's rows in order."""
        if self._is_one_line:
            return np.arange(len(self._at))
        return self._ranking(self.rows).order(self._tie_of, self._shared())

    def first(self, rows: Ints, count: int) -> Ints:
        """The first `count` of some rows, which ascend, in order."""
        if self._is_one_line:
            return rows[:count]
        ranking = self._ranking(self.rows.take(rows))
        likely = rows
        if len(among := ranking.likely_first(count)) < len(rows):
            likely = rows[among]
            ranking = self._ranking(self.rows.take(likely))
        shared = self._shared()
        order = ranking.order(
            lambda row: self._tie_of(likely.item(row)), None if shared is None else shared.take(likely)
        )
        return likely[order[:count]]

    def positions(self, rows: Ints) -> Positions:
        """The positions of rows, each made when somebody looks at it."""
        return Positions(self, rows, self._measure, self._now)

    def jobs(self, rows: Ints) -> list[PlacedJob]:
        """The jobs of rows."""
        if len(rows) > _FEW:
            picked: list[PlacedJob] = self._jobs[rows].tolist()
            return picked
        parts = self._parts
        if len(parts) == 1:
            return list(parts[0].jobs_at(self._at[rows]))
        pairs = zip(self._part[rows].tolist(), self._at[rows].tolist(), strict=True)
        return [parts[part].job_at(at) for part, at in pairs]

    @cached_property
    def _jobs(self) -> Names:
        found: Names = np.empty(len(self._at), np.object_)
        for part, (start, end) in zip(self._parts, self._bounds(), strict=True):
            found[start:end] = part.jobs_at(self._at[start:end])
        return found

    def cause(self, row: int) -> InfiniteCause:
        """What makes a job's share infinite, where that is a resource that the pool has none of."""
        return self._parts[self._part.item(row)].cause_at(self._at.item(row))

    def sequences(self, rows: Ints) -> Iterator[InSequence]:
        """Those of some jobs whose tenants do not stand alone, by top-level tenant."""
        if not self._trees:
            return
        parts = self._part[rows]
        for number in np.unique(parts).tolist():
            sequence = self._parts[number]
            if isinstance(sequence, ServiceOrder) and not sequence.alone:
                which = np.flatnonzero(parts == number)
                yield InSequence(sequence, which, self._at[rows[which]])

    def flip_of_tuples(self) -> Micros | None:
        """An instant before which time alone does not make the tuples of jobs here pass each other.

        Of the rows, and of what they count as now or later.
        """
        rules, multipliers = self._measure.rules, self._measure.multipliers
        if not self._trees:
            return first_flip(self.rows.take(self.ranked()), rules, multipliers)
        rows: list[Rows] = []
        uids: list[str] = []
        for number, part in enumerate(self._parts):
            at = self._at[self._part == number]
            if isinstance(part, ServiceOrder) and not part.alone:
                at = np.unique(np.concatenate((at, part.as_submitted[at], part.by_tag[at])))
            rows.append(part.scores.rows.take(at))
            uids += [part.uid_at(one) for one in at.tolist()]
        joined = join(rows)
        order = self._ranking(joined).order(lambda row: (uids[row], 0))
        return first_flip(joined.take(order), rules, multipliers)

    def _tie_of(self, row: int) -> TieBreak:
        return self._parts[self._part.item(row)].tie_at(self._at.item(row))

    def _shared(self) -> Shared | None:
        """Where sequences have many jobs that count as few: which of them, numbered through all parts."""
        if not self._trees:
            return None
        counted = self._at.copy()
        for part, (start, end) in zip(self._parts, self._bounds(), strict=True):
            if isinstance(part, ServiceOrder) and not part.alone:
                counted[start:end] = part.lifter[self._at[start:end]]
        counted += np.cumsum([0, *map(len, self._parts)])[self._part]
        return Shared(counted, self._at)

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """Where each part's rows begin and end."""
        return pairwise(np.searchsorted(self._part, np.arange(len(self._parts) + 1)).tolist())

    def _ranking(self, rows: Rows) -> Ranking:
        return Ranking(rows, self._measure.rules, self._measure.multipliers, self._now)


def _joined(parts: list[Ints]) -> Ints:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
