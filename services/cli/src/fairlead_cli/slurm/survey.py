"""What is looked at in a slurmctld before levels are written to it."""

import os
import pwd
from collections.abc import Iterable
from pathlib import Path

import msgspec

from fairlead_cli.errors import ClusterError
from fairlead_cli.slurm.clusters import controller
from fairlead_slurm import CommandController, SlurmError, SlurmJob, SlurmSettings

_SECONDS = 15.0
_HELD_BY_ADMIN = "JobHeldAdmin"


class SlurmSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """One look."""

    settings: SlurmSettings
    waiting: int
    """Records of jobs that may start: what is left of an array is one, as for Slurm's scheduler."""
    held_by_admin: int
    """Records of jobs that an administrator holds."""
    user: str
    """Who shall write levels."""
    administration: str | None
    """That user's AdminLevel in accounting, empty for one it does not know; None where it could not be asked."""


async def take(conf: Path | None, user: str) -> SlurmSurvey:
    """Look, by Slurm's own commands.

    Args:
        conf: slurm.conf; where Slurm's commands look, if None.
        user: who shall write levels.

    Raises:
        ClusterError: slurmctld cannot be asked.
    """
    asked = controller(conf, seconds=_SECONDS)
    try:
        settings = await asked.settings()
        jobs = (await asked.jobs()).jobs
    except SlurmError as error:
        raise ClusterError(str(error), hint="Does `scontrol ping` work with this SLURM_CONF?") from error
    pending = [job for job in jobs if job.state == "PENDING"]
    return SlurmSurvey(
        settings=settings,
        waiting=_records(job for job in pending if job.priority > 0),
        held_by_admin=_records(job for job in pending if job.reason == _HELD_BY_ADMIN),
        user=user,
        administration=await _administration(asked, settings, user),
    )


def effective_user() -> str:
    """The name of the user whom munge vouches for: who runs this process, whatever $USER says."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


async def _administration(asked: CommandController, settings: SlurmSettings, user: str) -> str | None:
    if not settings.has_accounting:
        return ""
    try:
        return await asked.administration_level(user)
    except SlurmError:
        return None


def _records(jobs: Iterable[SlurmJob]) -> int:
    return len({job.number for job in jobs})
