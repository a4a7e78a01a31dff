"""The levels of one pool in one frontend, segment by segment, in an order that is safe at every step.

Admitters plan by it from what stands now, and so does whoever asks on paper: they differ in how they find the jobs (an
index of what is queued, a list) and in how many they look at, and in nothing else.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from fairlead_policy.levels.class_bands import Segment, SegmentChanges, in_safe_order
from fairlead_policy.levels.plan import Band, LabelledJob, LevelPlan, plan_levels
from fairlead_policy.levels.ties import Tie

_FIRST: Tie = (-(2**63), "")
"""Of a job that may come at any moment, before every other of its level: it is never there, and never lowered."""

type PlanLevels = Callable[[tuple[LabelledJob, ...], tuple[LabelledJob, ...], Band], LevelPlan]


class QueuedFront(Protocol):
    """The jobs queued in one frontend of a pool: those of the window, and what a plan must know of the others.

    Each job is given as it stands, or will be seen to stand once what was written is seen.
    """

    def window(self, segment: Segment) -> Iterable[LabelledJob]:
        """The segment's jobs in the window, in the wanted order."""

    def outside(self, segment: Segment, most: int) -> Iterable[LabelledJob]:
        """Its other waiting jobs that can be moved, and of those at the default level at least the first.

        Of each level the first `most` are enough: to lower so many is never cheaper than to label the window above them.
        """

    def trespassers(self, segment: Segment) -> Iterable[str]:
        """The uids of those outside that stand above everything that the segment may have, the highest first."""

    def lifted_held(self, segment: Segment) -> Iterable[str]:
        """The uids of its held jobs that stand above the default level; asked where the window is sealed."""

    def level_of(self, uid: str) -> int:
        """The level of one of these."""


class LevelChange(msgspec.Struct, frozen=True, gc=False):
    """One level to write."""

    uid: str
    before: int
    level: int
    trespass: bool = False
    """Whether it stood above its class."""


class SegmentPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The writes after which the frontend follows the window."""

    changes: list[LevelChange]
    """In an order that is safe at every step."""
    kept: int
    """How many jobs of the window keep their level."""
    dropped: int
    """How many jobs of segments' ends there is no level for."""


def plan_segments(
    segments: Sequence[Segment], queued: QueuedFront, *, sealed: bool = False, plan: PlanLevels = plan_levels
) -> SegmentPlan:
    """The fewest writes after which the frontend follows the window.

    Args:
        segments: the bands, highest first; each queued job belongs to one.
        queued: the jobs.
        sealed: the window stands above the default level as a whole, whatever the ties: whoever comes, comes behind it.
            So does who is let go: held jobs lose the levels that they got while they waited.
        plan: `plan_levels`, or what remembers it.
    """
    parts: list[SegmentChanges[LevelChange]] = []
    kept = dropped = 0
    for segment in segments:
        window = tuple(queued.window(segment))
        outside = [_settled(job, segment) for job in queued.outside(segment, len(window) + 1)]
        if sealed:
            outside.append(LabelledJob(uid="", level=segment.band.default, tie=_FIRST))
        found = plan(window, tuple(outside), segment.band)
        kept += found.kept
        dropped += found.dropped
        wanted = dict(found.writes)
        if sealed:
            wanted |= dict.fromkeys(queued.lifted_held(segment), segment.band.default)
        parts.append(
            SegmentChanges(
                [LevelChange(uid, queued.level_of(uid), level) for uid, level in wanted.items()],
                [
                    LevelChange(uid, queued.level_of(uid), segment.band.default, trespass=True)
                    for uid in queued.trespassers(segment)
                ],
            )
        )
    return SegmentPlan(changes=in_safe_order(parts), kept=kept, dropped=dropped)


def _settled(job: LabelledJob, segment: Segment) -> LabelledJob:
    """The job with the level to plan by: a trespasser's counts as what it will be."""
    level = segment.settled(job.level)
    return job if level == job.level else msgspec.structs.replace(job, level=level)
