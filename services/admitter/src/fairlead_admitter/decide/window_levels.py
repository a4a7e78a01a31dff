"""Levels of a window after a plan, and those at which the frontend tries a job at once.

Pure; see `waking`. Within one decision nothing of what is looked up changes, so each part is made once.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.steering import LevelWrite, SteeringPlan, WriteCause
from fairlead_admitter.decide.waking import planning_band, untried_level
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.levels.plan import Band

_NOBODY = sys.maxsize
"""A level in place of nobody's, above all levels; its negative is below them."""


class NeighbourLevels:
    """The levels of jobs in the wanted order: who asks for a job's neighbours need not go through all others.

    Two segment trees, of the lowest and of the highest levels: looking round a job, and giving it another level, takes as
    many steps as the number of jobs has binary digits.

    Args:
        arranged: the jobs of one class band in the wanted order, with the levels that they shall have.
    """

    def __init__(self, arranged: Sequence[tuple[str, int]]) -> None:
        self._at = {uid: at for at, (uid, _) in enumerate(arranged)}
        self._leaves = 1 << max(0, len(arranged) - 1).bit_length()
        levels = [level for _, level in arranged]
        rest = self._leaves - len(levels)
        self._lowest = [_NOBODY] * self._leaves + levels + [_NOBODY] * rest
        self._highest = [-_NOBODY] * self._leaves + levels + [-_NOBODY] * rest
        for node in range(self._leaves - 1, 0, -1):
            self._sum_up(node)

    def around(self, uid: str, band: Band) -> tuple[int, int]:
        """The highest level behind a job, at least the default one, and the lowest before it; above the band for nobody."""
        behind, before = band.default, _NOBODY
        node = self._leaves + self._at[uid]
        while node > 1:
            if node % 2:
                before = min(before, self._lowest[node - 1])
            else:
                behind = max(behind, self._highest[node + 1])
            node //= 2
        return behind, band.highest + 1 if before == _NOBODY else before

    def put(self, uid: str, level: int) -> None:
        """Gives a job another level."""
        node = self._leaves + self._at[uid]
        self._lowest[node] = self._highest[node] = level
        while node > 1:
            node //= 2
            self._sum_up(node)

    def _sum_up(self, node: int) -> None:
        first, second = 2 * node, 2 * node + 1
        self._lowest[node] = min(self._lowest[first], self._lowest[second])
        self._highest[node] = max(self._highest[first], self._highest[second])


class WindowLevels:
    """The levels that stand and those of a plan, of the jobs of a window and of those outside of it.

    Args:
        window: the jobs that a plan was made for, in the wanted order.
        class_bands: the bands, with the levels that are kept for waking.
        used: levels that were written or left lately.
    """

    def __init__(
        self,
        facts: ClusterFacts,
        expectations: Expectations,
        window: Sequence[Ranked],
        class_bands: Sequence[ClassBand],
        used: Collection[int],
    ) -> None:
        self._facts, self._expectations, self._used = facts, expectations, used
        self._window, self._class_bands = window, class_bands
        self._inside = {one.job.uid for one in window}
        self._standing: dict[str, set[int]] = {}

    def inside(self, uid: str) -> bool:
        """Whether the job is in the window."""
        return uid in self._inside

    def class_band_of(self, uid: str) -> ClassBand:
        """The class band that a job belongs to."""
        job_class = self._facts.job_class(uid)
        return next(part for part in self._class_bands if part.takes(job_class))

    def arranged(self, planned: Mapping[str, LevelWrite], class_band: ClassBand) -> list[tuple[str, int]]:
        """The class band's jobs of the window in the wanted order, with the levels that they shall have."""
        inside = [one.job for one in self._window if class_band.takes(self._facts.job_class(one.job.uid))]
        return [
            (job.uid, planned[job.uid].level if job.uid in planned else self._expectations.level_of(job))
            for job in inside
        ]

    def highest_outside(
        self, queue: str, planned: Mapping[str, LevelWrite], class_band: ClassBand
    ) -> int | None:
        """The highest level at which a queue's jobs of the class band stand, or will, that are not in the window."""
        found = []
        for uid in self._facts.moved(queue):
            job = self._facts.job(uid)
            if job is not None and uid not in self._inside and class_band.takes(self._facts.job_class(uid)):
                found.append(planned[uid].level if uid in planned else self._expectations.level_of(job))
        return max(found, default=None)

    def refused_at(self, queue: str, given: Collection[int] = ()) -> Callable[[int], bool]:
        """Whether some job may have been refused at a level since the last batch, or will be: one of those just `given`."""
        used = self._used
        standing = self._standing.get(queue)
        if standing is None:
            waiting = (queued.waiting for queued in self._facts.queued(queue).values())
            standing = self._standing[queue] = {level for levels in waiting for level in levels}
        return lambda level: level in used or level in standing or level in given


def at_untried_levels(plan: SteeringPlan, levels: WindowLevels) -> SteeringPlan:
    """The plan, with levels at which the frontend tries at once whoever gets them.

    A frontend may note why a job does not fit when it first tries it, by a call that takes longer than all else of its batch
    together (Kueue does, in the Workload's status). What comes free during that call goes to whoever the batch tries next.
    So nobody of the window shall be tried there first.
    """
    planned = {write.job.uid: write for write in plan.writes}
    parts: dict[str | None, _PlannedClassBand] = {}
    given = set[int]()
    for write in plan.writes:
        uid = write.job.uid
        if not levels.inside(uid) or write.cause is not WriteCause.HEADS:
            continue
        class_band = levels.class_band_of(uid)
        refused = levels.refused_at(write.job.queue, given)
        if write.level > class_band.band.default and refused(write.level):
            part = parts.get(class_band.job_class)
            if part is None:
                part = parts[class_band.job_class] = _PlannedClassBand(levels, planned, class_band)
            level = part.move(write, refused)
            planned[uid] = msgspec.structs.replace(write, level=level)
        given.add(planned[uid].level)
    return msgspec.structs.replace(plan, writes=list(planned.values()))


class _PlannedClassBand:
    """A class band's part of a plan, while its levels are moved."""

    def __init__(
        self, levels: WindowLevels, planned: Mapping[str, LevelWrite], class_band: ClassBand
    ) -> None:
        self._levels, self._planned, self._class_band = levels, planned, class_band
        self._band = planning_band(class_band.band)
        self._neighbours = NeighbourLevels(levels.arranged(planned, class_band))
        self._outside: dict[str, int] = {}

    def move(self, write: LevelWrite, refused: Callable[[int], bool]) -> int:
        """The level that a job of the window gets instead, between those of its neighbours."""
        uid, queue = write.job.uid, write.job.queue
        behind, before = self._neighbours.around(uid, self._band)
        behind = max(behind, self._highest_outside(queue))
        level = untried_level(write.level, behind=behind, before=before, refused=refused)
        self._neighbours.put(uid, level)
        return level

    def _highest_outside(self, queue: str) -> int:
        """The highest level of those that the plan moves no more, as they are not in the window."""
        if queue not in self._outside:
            found = self._levels.highest_outside(queue, self._planned, self._class_band)
            self._outside[queue] = self._band.default if found is None else found
        return self._outside[queue]
