"""Whether a slurmctld can be steered: what is missing or dangerous in its settings."""

from pathlib import Path

import msgspec

from fairlead_cli.errors import ClusterError
from fairlead_slurm import CommandController, SlurmError, SlurmSettings

FEWEST_LEVELS = 1000
"""Levels that there should be room for: some dozens stand at a time, spread so that new ones find room between."""
_HIGHEST_FACTOR = 2**31


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an operator should know before levels are written."""

    says: str
    is_error: bool = False


async def look(conf: Path) -> list[Finding]:
    """What is to be said of the cluster's settings; nothing where all is well.

    Raises:
        ClusterError: slurmctld cannot be asked.
    """
    try:
        return judge(await CommandController(conf).settings())
    except SlurmError as error:
        raise ClusterError(str(error), hint="Does `scontrol ping` work with this SLURM_CONF?") from error


def judge(settings: SlurmSettings) -> list[Finding]:
    """The findings."""
    found = []
    if settings.priority_type != "priority/multifactor":
        found.append(
            Finding(
                says=f"PriorityType is {settings.priority_type or 'not set'}; SiteFactor counts with"
                " priority/multifactor alone",
                is_error=True,
            )
        )
    if settings.own_priority * FEWEST_LEVELS > _HIGHEST_FACTOR:
        weights = ", ".join(f"{name} {weight}" for name, weight in settings.weights.items())
        found.append(
            Finding(
                says=f"the priority weights add up to {settings.own_priority} ({weights}): steps above that leave room"
                f" for fewer than {FEWEST_LEVELS} levels. Divide them all by the same number: their order stays",
                is_error=True,
            )
        )
    return found
