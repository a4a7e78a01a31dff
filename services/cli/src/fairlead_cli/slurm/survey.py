"""Survey of a slurmctld: all that is looked at before levels are written to it."""

import os
import pwd
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from pathlib import Path

import msgspec

from fairlead_cli.errors import ClusterError
from fairlead_cli.findings import Check, Look
from fairlead_cli.slurm.clusters import controller
from fairlead_slurm import SlurmJob
from fairlead_slurm.cluster import NodeReservation, SlurmNode, SlurmPartition, SlurmSettings
from fairlead_slurm.controller import CommandController
from fairlead_slurm.errors import SlurmError
from fairlead_slurm.hooks.installing import asks_over_tls, pods_tokens
from fairlead_slurm.licences import AccountedLicence, LicenceName
from fairlead_slurm.rest.client import RestClient
from fairlead_slurm.rest.controller import RestController
from fairlead_slurm.slurm_token import SlurmToken

_SECONDS = 15.0
_HELD_BY_ADMIN = "JobHeldAdmin"


class RestLook(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a slurmrestd to a look."""

    address: str
    trouble: str = ""
    """Reason for which it cannot be asked; empty where it can."""
    reads: str = ""
    """The version to read by."""
    levels: str | None = None
    """The version to set SiteFactor by."""
    seconds: float = 0.0
    """Seconds that one reading of the queue took."""
    tasks_cut: bool = False
    """Whether it does not name all tasks of an array."""


class SlurmSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """A slurmctld as it was found."""

    settings: SlurmSettings
    waiting: int
    """Records of jobs that may start: what is left of an array is one, as for Slurm's scheduler."""
    held_by_admin: int
    """Records of jobs that an administrator holds."""
    tiers: dict[str, tuple[str, ...]] = {}
    """Partitions that have nodes in common with it and another PriorityTier, by partition."""
    reservations: list[NodeReservation] = []
    """Reservations of nodes, also those that have still to begin."""
    user: str
    """User who shall write levels."""
    administration: str | None
    """AdminLevel of that user in accounting, empty for one it does not know; None where it could not be
    asked."""
    over_tls: bool = False
    """Whether the installed hooks ask at endpoints that other hosts reach, too."""
    tokens: str | None = None
    """The licence that the installed hooks have jobs ask for."""
    tokens_known: bool = True
    """Whether slurmctld has that licence."""
    rest: RestLook | None = None
    """The slurmrestd's answer; None where the bridge asks by Slurm's commands alone."""


def check(
    topic: str, *, fine: str | Callable[[SlurmSurvey], str]
) -> Callable[[Look[SlurmSurvey]], Check[SlurmSurvey]]:
    """Make a check of the function that looks, whose findings have the topic's name unless they state another."""
    return lambda look: Check(topic=topic, names=(topic,), look=look, fine=fine)


async def take(
    conf: Path | None, user: str | None = None, *, rest: str | None = None, token: Path | None = None
) -> SlurmSurvey:
    """Look, by Slurm's own commands.

    Args:
        conf: slurm.conf; where Slurm's commands look, if None.
        user: who shall write levels; whoever runs this, if None.
        rest: address of a slurmrestd that is looked at, too.
        token: a file with a token by which both know us; by default munge says who asks, and the socket of slurmrestd.

    Raises:
        ClusterError: slurmctld cannot be asked.
    """
    asked, user = controller(conf, seconds=_SECONDS, token=token), user or effective_user()
    try:
        settings = await asked.settings()
        jobs = (await asked.jobs()).jobs
        reservations = await asked.reservations()
        tiers = tiers_on_nodes(await asked.partitions(), await asked.nodes())
        tokens = pods_tokens(settings.hooks.get("PrologSlurmctld", ""))  # as it was installed
        known = tokens is None or (
            await AccountedLicence(conf, LicenceName.read(tokens), seconds=_SECONDS).now() is not None
        )
    except SlurmError as error:
        raise ClusterError(str(error), hint="Does `scontrol ping` work with this SLURM_CONF?") from error
    pending = [job for job in jobs if job.state == "PENDING"]
    return SlurmSurvey(
        settings=settings,
        waiting=_records(job for job in pending if job.priority > 0),
        held_by_admin=_records(job for job in pending if job.reason == _HELD_BY_ADMIN),
        tiers=tiers,
        reservations=reservations,
        user=user,
        administration=await _administration(asked, settings, user),
        over_tls=asks_over_tls(settings.hooks.get("PrologSlurmctld", "")),
        tokens=tokens,
        tokens_known=known,
        rest=None if rest is None else await _rest(rest, token, asked),
    )


def tiers_on_nodes(
    partitions: Sequence[SlurmPartition], nodes: Sequence[SlurmNode]
) -> dict[str, tuple[str, ...]]:
    """Partitions that have nodes in common with it and another PriorityTier, by partition; without those that have none."""
    tier = {one.name: one.tier for one in partitions}
    found: dict[str, set[str]] = {}
    for node in nodes:
        for one, other in permutations([name for name in node.partitions if name in tier], 2):
            if tier[one] != tier[other]:
                found.setdefault(one, set()).add(other)
    return {name: tuple(sorted(others)) for name, others in sorted(found.items())}


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


async def _rest(address: str, token: Path | None, commands: CommandController) -> RestLook:
    known_by = None if token is None else SlurmToken(token)
    client = RestClient(address, token=known_by, seconds=_SECONDS)
    controller = RestController(client, commands)
    try:
        api = await client.api()
        began = time.monotonic()
        await controller.jobs()
    except SlurmError as error:
        return RestLook(address=address, trouble=str(error))
    return RestLook(
        address=address,
        reads=api.reads,
        levels=api.levels,
        seconds=time.monotonic() - began,
        tasks_cut=controller.tasks_cut,
    )


def _records(jobs: Iterable[SlurmJob]) -> int:
    return len({job.number for job in jobs})
