"""Levels of an order, with as few writes as the wanted order can be had with.

A frontend orders by level, highest first, and breaks ties by itself. So a level has to differ only where the wanted
order goes against the tie. With S_i such strict steps before position i, a window follows the order exactly if
`x_i = level_i + S_i` never rises along it. What can stay is a longest non-rising subsequence of the standing x_i
(patience sorting: Fredman, "On computing the length of longest increasing subsequences", 1975), within the bounds
that the band and the jobs outside the window leave to each position.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from fairlead_policy.exact.ranking import Ints, bounded
from fairlead_policy.levels.ties import CHANCE, Tie


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """The levels that may be written to a queue."""

    default: int
    """Level of a job that nobody labelled; it stands behind every labelled one."""
    lowest: int
    highest: int


class LabelledJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One waiting job as it stands in its frontend: the default level counts as a label like any other."""

    uid: str
    level: int
    tie: Tie
    queue: str = ""
    """Queue of the job, if its frontend has no order between jobs of one instant in two; see `tied_within`."""

    def surely_before(self, other: "LabelledJob") -> bool:
        """Whether it goes first at equal levels, whatever the frontend does where it has no order."""
        if self.tie[0] == other.tie[0] and (self.queue != other.queue or self.queue == CHANCE):
            return False
        return self.tie < other.tie


class LevelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The writes after which the frontend follows the order."""

    writes: list[tuple[str, int]]
    """Writes as (uid, level), in an order that at no moment turns round a pair that stood right before."""
    kept: int
    """Number of jobs of the window that keep their level."""
    dropped: int = 0
    """Number of jobs at the window's end that the band has no level for; they were treated as outside."""


def plan_levels(window: Sequence[LabelledJob], outside: Sequence[LabelledJob], band: Band) -> LevelPlan:
    """The fewest writes after which the queue's heads are the window, in its order.

    Args:
        window: the queue's heads as wanted, in order.
        outside: the queue's other waiting jobs: all that are labelled, and of those at the default level at least
            the first by tie.
    """
    labelled = _WindowInBand.fitting(window, outside, band)
    if labelled is None:
        return LevelPlan(writes=[], kept=0, dropped=len(window))
    floor, kept = labelled.cheapest()
    levels = labelled.spread(floor, kept)
    changes = [(job, level) for job, level in zip(labelled.jobs, levels, strict=True) if job.level != level]
    return LevelPlan(
        writes=_in_safe_order(changes, labelled.to_lower(levels[-1]), band.default),
        kept=len(labelled.jobs) - len(changes),
        dropped=len(window) - len(labelled.jobs),
    )


class _KeptLevels(NamedTuple):
    """The jobs that keep their level, ascending."""

    at: Ints
    """Indexes of the jobs in the window, ascending."""
    xs: Ints
    """`x` of each."""


class _WindowInBand:
    """The part of the window that the band has levels for, and what stands behind it.

    Inside, the default level is `bottom`, one below the lowest that may be written: levels are then whole numbers
    without a gap. One band serves the queue, so of the bounds per position
    `a_i = max over m >= i of (lo_m + S_m)` is the last position's for all, and `b_i = min over m <= i of (hi_m + S_m)`
    the first one's.
    """

    def __init__(
        self, jobs: Sequence[LabelledJob], behind: Sequence[LabelledJob], band: Band, steps: Sequence[int]
    ) -> None:
        self.jobs = jobs
        self._behind = behind
        self._band = band
        self._steps = steps
        self._bottom, self._highest = _limits(band)
        self._last = jobs[-1]
        self._lowest_floor = _FirstTies(behind, band).floor(self._last, self._bottom)

    @classmethod
    def fitting(
        cls, window: Sequence[LabelledJob], outside: Sequence[LabelledJob], band: Band
    ) -> "_WindowInBand | None":
        """The longest beginning of the window that fits into the band; None where not even one job does."""
        steps = [0, *accumulate(int(not one.surely_before(next_)) for one, next_ in pairwise(window))]
        bottom, highest = _limits(band)
        firsts = _FirstTies(outside, band)
        for count in range(len(window), 0, -1):
            last = window[count - 1]
            if firsts.floor(last, bottom) + steps[count - 1] <= highest:
                return cls(window[:count], [*window[count:], *outside], band, steps[:count])
            firsts.add(last)
        return None

    def cheapest(self) -> tuple[int, "_KeptLevels"]:
        """The last job's least level, and who keeps its level, for the fewest writes.

        A higher floor leaves more labelled jobs behind the window where they are, a lower one lets more of the
        window stay. The number of writes changes only where the floor passes a level of a job outside.
        """
        positions, standing = self._standing()
        lengths, before = _longest_ending_at(standing.tolist())
        count = max(1, len(standing))
        # The longest from each value on, of equally long ones that of the last position; as one number both.
        ascending = np.argsort(standing, kind="stable")
        ends = np.append(np.array(lengths, np.int64)[ascending] * count + ascending, 0)
        longest = np.maximum.accumulate(ends[::-1])[::-1]
        floors = self._floors()
        first = longest[np.searchsorted(standing[ascending], floors + self._steps[-1])]
        writes = len(self.jobs) - first // count
        cheapest = int((writes + self._not_behind(floors)).argmin())
        length, end = divmod(first.item(cheapest), count)
        kept: list[int] = []
        at = end if length else -1
        while at >= 0:
            kept.append(at)
            at = before[at]
        kept.reverse()
        return floors.item(cheapest), _KeptLevels(positions[kept], standing[kept])

    def spread(self, floor: int, kept: "_KeptLevels") -> list[int]:
        """The level of each job: the kept ones' own, the others spread over the gaps between them.

        Neighbours that are both written and already go by their tie share a level: one level for many jobs lets a
        frontend treat them alike.
        """
        stays = np.zeros(len(self.jobs), np.bool_)
        stays[kept.at] = True
        steps = np.array(self._steps, np.int64)
        apart = stays[1:] | stays[:-1] | (steps[1:] > steps[:-1])
        groups = np.append(0, np.cumsum(apart))
        standing = _KeptLevels(groups[kept.at], kept.xs)
        xs = _spread(groups.item(-1) + 1, standing, self._highest, floor + self._steps[-1])
        levels = xs[groups] - steps
        written: list[int] = np.where(levels == self._bottom, self._band.default, levels).tolist()
        return written

    def to_lower(self, last_level: int) -> list[LabelledJob]:
        """The jobs outside that stand, or may stand, in front of the window's last job at that level."""
        return [
            job
            for job in self._behind
            if job.level > last_level or (job.level == last_level and not self._last.surely_before(job))
        ]

    def _standing(self) -> tuple[Ints, Ints]:
        """Positions of the jobs whose level lies in the band, and their `x_i`."""
        stated = [job.level for job in self.jobs]
        # Levels below the band are all alike, and those above it.
        levels = bounded(stated, min(self._band.default, self._bottom) - 1, self._highest + 1)
        inside = np.where(levels == self._band.default, self._bottom, levels)
        xs = inside + np.array(self._steps, np.int64)
        above = (levels == self._band.default) | (inside > self._bottom)
        positions = np.flatnonzero(above & (xs <= self._highest))
        return positions, xs[positions]

    def _floors(self) -> Ints:
        """The floors worth looking at, ascending: of equally cheap ones the lowest leaves most room."""
        least, most = self._lowest_floor, self._highest - self._steps[-1]
        labels = {job.level for job in self._behind if self._band.default < job.level <= most}
        levels = {max(level, self._bottom + 1) for level in labels}
        return np.array(
            sorted({least, *(at for level in levels for at in (level, level + 1) if least < at <= most)})
        )

    def _not_behind(self, floors: Ints) -> Ints:
        """The number of jobs outside that stand in front of a last job at each floor's level."""
        # Twice the level, plus one where the tie may win over the last job's. Levels beyond those that the plan can give
        # are all alike.
        least, most = self._band.default - 1, self._highest + 1
        standing = np.sort(
            [
                2 * min(max(job.level, least), most) + (not self._last.surely_before(job))
                for job in self._behind
            ]
        )
        real = np.where(floors == self._bottom, self._band.default, floors)
        return len(standing) - np.searchsorted(standing, 2 * real + 1)


def _limits(band: Band) -> tuple[int, int]:
    bottom = max(band.lowest, band.default + 1) - 1
    return bottom, max(band.highest, bottom)


class _FirstTies:
    """The first tie by queue among jobs behind the window that stand at the default level, or may have to."""

    def __init__(self, behind: Iterable[LabelledJob], band: Band) -> None:
        self._default = band.default
        self._by_queue: dict[str, LabelledJob] = {}
        for job in behind:
            self.add(job)

    def add(self, job: LabelledJob) -> None:
        """Adds a job that stands behind the window, too."""
        if job.level < self._default:
            return
        first = self._by_queue.get(job.queue)
        if first is None or job.tie < first.tie:
            self._by_queue[job.queue] = job

    def floor(self, last: LabelledJob, bottom: int) -> int:
        """The least level of the window's last job: the default one only where its tie already wins over all of them."""
        return bottom if all(map(last.surely_before, self._by_queue.values())) else bottom + 1


def _longest_ending_at(values: Sequence[int]) -> tuple[list[int], list[int]]:
    """The length of the longest non-rising subsequence that ends at each position, and its one but last.

    The one but last is -1 where there is none.
    """
    lengths: list[int] = []
    before: list[int] = []
    tails: list[int] = []  # negated: the last value of the best subsequence of each length, ascending
    holders = [-1]  # where that is, of each length from 0
    lowest = values[0] if values else 0
    for position, value in enumerate(values):
        if value <= lowest:
            # Most go on with the longest: a glance is cheaper than a search.
            before.append(holders[-1])
            tails.append(-value)
            holders.append(position)
            lengths.append(len(tails))
            lowest = value
        else:
            length = bisect_right(tails, -value)
            before.append(holders[length])
            tails[length], holders[length + 1] = -value, position
            lengths.append(length + 1)
            lowest = -tails[-1]
    return lengths, before


def _in_safe_order(
    changes: Iterable[tuple[LabelledJob, int]], outside: Iterable[LabelledJob], default: int
) -> list[tuple[str, int]]:
    """Raised jobs front first, then lowered ones back first: no pair that stood right is ever turned round."""
    raised: list[tuple[str, int]] = []
    lowered: list[tuple[str, int]] = []
    for job, level in changes:
        (raised if level > job.level else lowered).append((job.uid, level))
    gone = sorted(outside, key=lambda job: (-job.level, job.tie))
    lowered += [(job.uid, default) for job in gone]
    return [*raised, *reversed(lowered)]


def _spread(count: int, kept: _KeptLevels, top: int, bottom: int) -> Ints:
    """`x` of every position: the kept ones' own, those of runs between them over the gap."""
    xs = np.empty(count, np.int64)
    xs[kept.at] = kept.xs
    starts, ends = np.append(0, kept.at + 1), np.append(kept.at, count)
    above, below = np.append(top, kept.xs), np.append(kept.xs, bottom)
    for number in np.flatnonzero(ends > starts).tolist():
        start, end, x = starts.item(number), ends.item(number), below.item(number)
        spacing = (above.item(number) - x) // (2 * count)
        xs[start:end] = _over_gap(above.item(number), x, end - start, _Ends(spacing, not start, end == count))
    return xs


class _Ends(NamedTuple):
    """The ends of the window that a run reaches, and the steps between its jobs there."""

    spacing: int
    first: bool
    last: bool


def _over_gap(above: int, below: int, run: int, ends: _Ends) -> list[int]:
    """`x` of a run of jobs between two kept ones.

    A run at an end of the window leaves most of the gap to what comes after it: jobs start at the front and enter at
    the back, and halving the gap for each of them would use it up in a score of steps.
    """
    gap, spacing = above - below, ends.spacing
    if ends.first and ends.last and spacing:
        return [above - (gap - spacing * (run - 1)) // 2 - spacing * row for row in range(run)]
    if ends.first and spacing:
        return [below + spacing * (run - row) for row in range(run)]
    if ends.last and spacing:
        return [above - spacing * (row + 1) for row in range(run)]
    return [above - gap * (row + 1) // (run + 1) for row in range(run)]
