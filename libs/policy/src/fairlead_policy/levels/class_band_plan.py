"""The levels of one pool in one frontend, class band by class band, in an order that is safe at every step.

Admitters plan by it from what stands now, and so does whoever asks on paper: they differ in how they find the jobs (an
index of what is queued, a list) and in how many they look at, and in nothing else.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_policy.levels.class_bands import ClassBand, ClassBandChanges, LevelChange, in_safe_order
from fairlead_policy.levels.plan import Band, LabelledJob, LevelPlan, plan_levels
from fairlead_policy.levels.ties import Tie

_FIRST: Tie = (-(2**63), "")
"""The tie of a job that may come at any moment, before every other of its level. No such job is ever lowered."""

type PlanLevels = Callable[[tuple[LabelledJob, ...], tuple[LabelledJob, ...], Band], LevelPlan]


class FrontendQueue(Protocol):
    """The jobs queued in one frontend of a pool: those of the window, and what a plan must know of the others.

    Each job is given as it stands, or will be seen to stand once what was written is seen.
    """

    def window(self, class_band: ClassBand) -> Iterable[LabelledJob]:
        """The class band's jobs in the window, in the wanted order."""

    def outside(self, class_band: ClassBand, most: int) -> Iterable[LabelledJob]:
        """The queue's other waiting jobs that can be moved, and of those at the default level at least the first.

        Of each level the first `most` are enough: to lower so many is never cheaper than to label the window above them.
        """

    def out_of_band_jobs(self, class_band: ClassBand) -> Iterable[str]:
        """The uids of those outside that stand above everything that the class band may have, the highest first."""

    def lifted_held(self, class_band: ClassBand) -> Iterable[str]:
        """The uids of its held jobs that stand above the default level; asked where the window is sealed."""

    def sunken(self, class_band: ClassBand) -> Iterable[str]:
        """The uids of those outside that stand below the default level, and would not if nobody steered."""

    def level_of(self, uid: str) -> int:
        """The level of a queued job."""


class ClassBandPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The writes after which the frontend follows the window."""

    changes: list[LevelChange]
    """Writes in an order that is safe at every step."""
    kept: int
    """Number of jobs of the window that keep their level."""
    dropped: int
    """Number of jobs at the ends of class bands that there is no level for."""


def plan_class_bands(
    class_bands: Sequence[ClassBand],
    queued: FrontendQueue,
    able: Iterable[Capabilities],
    *,
    reserved: bool,
    plan: PlanLevels = plan_levels,
) -> ClassBandPlan:
    """The fewest writes after which the frontend follows the window.

    Args:
        class_bands: the bands, highest first; each queued job belongs to one.
        able: capabilities of the queues' frontends.
        reserved: whether starts are promised there.
        plan: `plan_levels`, or what remembers it.
    """
    # Sealed, the window stands above the default level as a whole, whatever the ties: whoever comes, or is let go, comes
    # behind it. A promise needs that, and so does an order among jobs of which nobody can tell who stands first at equal
    # levels. Held jobs lose the levels that they got while they waited.
    sealed = reserved or any(one.ties is TieRule.CHANCE for one in able)
    parts: list[ClassBandChanges] = []
    kept = dropped = 0
    for class_band in class_bands:
        window = tuple(queued.window(class_band))
        outside = [_settled(job, class_band) for job in queued.outside(class_band, len(window) + 1)]
        if sealed:
            outside.append(LabelledJob(uid="", level=class_band.band.default, tie=_FIRST))
        found = plan(window, tuple(outside), class_band.band)
        kept += found.kept
        dropped += found.dropped
        wanted = dict(found.writes)
        if sealed:
            wanted |= dict.fromkeys(queued.lifted_held(class_band), class_band.band.default)
        wanted |= dict.fromkeys(queued.sunken(class_band), class_band.band.default)
        parts.append(
            ClassBandChanges(
                [LevelChange(uid, queued.level_of(uid), level) for uid, level in wanted.items()],
                [
                    LevelChange(uid, queued.level_of(uid), class_band.band.default, out_of_band=True)
                    for uid in queued.out_of_band_jobs(class_band)
                ],
            )
        )
    return ClassBandPlan(changes=in_safe_order(parts), kept=kept, dropped=dropped)


def _settled(job: LabelledJob, class_band: ClassBand) -> LabelledJob:
    """The job with the level to plan by: an out-of-band job's counts as what it will be."""
    level = class_band.settled(job.level)
    return job if level == job.level else msgspec.structs.replace(job, level=level)
