"""Levels as SiteFactors, and back from the priority that follows. Pure.

priority = SiteFactor + Slurm's own factors - nice (priority_multifactor.c). A level is a rung: the step from one to the
next is larger than all own factors together, so that these only sort within a rung and stay visible in sprio. The job's
nice is added to its SiteFactor: it moves the job nowhere among others then, and counts in its tenant's own order instead.
"""

import msgspec

from fairlead_slurm.updates import HIGHEST_SITE_FACTOR

UNLABELLED = 0
"""The level of a job that nobody labelled: new jobs stand below every rung."""
_LEAST_STEP = 10


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """Rungs of one height."""

    step: int

    @classmethod
    def over(cls, own_priority: int) -> "Ladder":
        """A power of ten above all that Slurm's own factors add up to: people can read it in sprio.

        Args:
            own_priority: the sum of the configured weights.
        """
        step = _LEAST_STEP
        # Each factor is rounded by itself: a few points above the sum are possible.
        while step <= own_priority + _LEAST_STEP:
            step *= 10
        return cls(step=step)

    @property
    def highest(self) -> int:
        """The highest level there is; 0 where the weights leave no room for any."""
        return max(0, HIGHEST_SITE_FACTOR // self.step - 1)

    def site_factor(self, level: int, nice: int) -> int:
        """The SiteFactor of a job of this nice on the level's rung, within Slurm's bounds of a SiteFactor."""
        wanted = level * self.step + nice
        return max(-HIGHEST_SITE_FACTOR, min(wanted, HIGHEST_SITE_FACTOR))

    def level(self, priority: int) -> int:
        """The rung that a job of this priority stands on. A held job has priority 0, and no level."""
        return min(max(0, priority) // self.step, self.highest)
