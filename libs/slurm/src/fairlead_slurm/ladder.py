"""Levels as SiteFactors, and back from the priority that follows. Pure.

priority = SiteFactor + Slurm's own factors - nice (priority_multifactor.c). A level is a rung: the step from one to the
next is larger than all own factors together, so that these only sort within a rung and stay visible in sprio.

A job's owner may raise its nice and lower it again at any time, between two looks. So no SiteFactor ever makes up for a
nice: it would stay when the nice goes, and lift the job over others. A rung has room below the own factors instead, for a
small nice; a larger one takes the job down, as its owner asked, and nobody else.
"""

import msgspec

from fairlead_slurm.updates import HIGHEST_SITE_FACTOR

UNLABELLED = 0
"""The level of a job that nobody labelled: new jobs stand below every rung."""
LOWEST = UNLABELLED + 1
"""The lowest level that is written."""
FEWEST_LEVELS = 1000
"""Levels that there should be room for: some dozens stand at a time, spread so that new ones find room between."""
_ROUNDING = 10
"""Points by which own factors may exceed the sum of their weights: each is rounded by itself."""
_USUAL_NICE = 100
"""Nice that `--nice` without a number gives (sbatch)."""
_LOWEST_PRIORITY = 1
"""The priority below which Slurm lets no job fall that is not held."""


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """Rungs of one height.

    Attributes:
        step: the height of a rung.
        room: the largest nice that leaves a job on its rung.
    """

    step: int
    room: int

    @classmethod
    def over(cls, own_priority: int) -> "Ladder":
        """A power of ten above all that Slurm's own factors add up to, by their weights' sum: people can read it in sprio."""
        own = own_priority + _ROUNDING
        step = _ROUNDING
        while step <= own + _USUAL_NICE:
            step *= 10
        return cls(step=step, room=step - own - 1)

    @property
    def highest(self) -> int:
        """The highest level there is; 0 where the weights leave no room for any."""
        return max(0, HIGHEST_SITE_FACTOR // self.step - 1)

    def site_factor(self, level: int, nice: int) -> int:
        """The SiteFactor of a job on the level's rung, within Slurm's bounds of a SiteFactor.

        Only a nice below 0, which operators may give (and `scontrol top`, where it is enabled), is taken off again: it would
        lift the job over others.
        """
        rung = UNLABELLED if level == UNLABELLED else level * self.step + self.room
        return max(-HIGHEST_SITE_FACTOR, rung + min(0, nice))

    def level(self, priority: int, nice: int, standing: int) -> int:
        """The rung that a job was put on.

        Args:
            standing: the level that is known to have been written, for a priority that tells none: that of a held job
                (0), and the lowest of all, below which no nice takes a job.
        """
        if priority < _LOWEST_PRIORITY or (priority == _LOWEST_PRIORITY and nice > 0):
            return standing
        return min(max(0, priority + max(0, nice)) // self.step, self.highest)
