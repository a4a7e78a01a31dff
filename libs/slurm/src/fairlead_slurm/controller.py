"""Reading and steering of one slurmctld by Slurm's commands."""

import asyncio
from collections.abc import Sequence
from itertools import batched
from pathlib import Path
from typing import Protocol

from fairlead_contracts.base.instants import Micros, to_datetime
from fairlead_slurm import cluster
from fairlead_slurm.cluster import Licence, NodeReservation, SlurmNode, SlurmPartition, SlurmSettings
from fairlead_slurm.commands import Commands
from fairlead_slurm.errors import CommandFailedError
from fairlead_slurm.job_ends import ENDS, FIELDS, ended_jobs, submitted_jobs
from fairlead_slurm.limits import AccountLimits, account_limits
from fairlead_slurm.queue import QueueFormat, QueueReader, QueueReading, SlurmJob
from fairlead_slurm.slurm_token import SlurmToken
from fairlead_slurm.updates import checked, is_id, jobs_of, refusals, site_factor_lines

_FEEDS = 4
"""scontrol processes beside each other: each waits for slurmctld's answer to one line before it sends the next."""
_FEWEST_LINES = 50
"""Fewest lines that are worth an scontrol process of their own, which takes some lines' time to start."""
_ASKED_AT_ONCE = 1000
"""Jobs that one sacct is asked for: an argument holds 128 kB at most."""


class Controller(Protocol):
    """Questions and orders to one slurmctld. Each raises SlurmUnreachableError while it does not answer."""

    async def jobs(self) -> QueueReading:
        """Every job that slurmctld knows, with those that ended a moment ago."""

    async def nodes(self) -> list[SlurmNode]:
        """The cluster's nodes."""

    async def partitions(self) -> list[SlurmPartition]:
        """The cluster's partitions, in the order of slurm.conf."""

    async def accounts(self) -> list[str]:
        """The accounts; empty where there is no accounting."""

    async def settings(self) -> SlurmSettings:
        """The cluster's settings."""

    async def licences(self) -> list[Licence]:
        """The cluster's licences."""

    async def ended(self, jobs: Sequence[str]) -> list[SlurmJob]:
        """The jobs among these that have ended, as accounting has them: slurmctld may have forgotten them."""

    async def ended_between(self, since: Micros, until: Micros) -> list[SlurmJob]:
        """All jobs that ended between these instants, as accounting knows."""

    async def ended_of(self, account: str, names: Sequence[str], since: Micros) -> list[SlurmJob]:
        """The jobs of this account and these names that were made of a submission and ended after that, with their comments, as accounting knows."""

    async def set_site_factors(self, factors: Sequence[tuple[str, int]]) -> dict[str, str]:
        """Give jobs their SiteFactor, in this order; returns reasons by job, of those that were refused."""

    async def cancel(self, jobs: Sequence[str]) -> dict[str, str]:
        """Cancel jobs; returns reasons by job, of those that were refused."""


class CommandController:
    """A controller by squeue, scontrol and scancel.

    Args:
        conf: slurm.conf; by default where Slurm's commands look.
        seconds: longest time of one command.
        token: names us to slurmctld; by default munge does.
    """

    def __init__(
        self, conf: Path | None = None, *, seconds: float = 20.0, token: SlurmToken | None = None
    ) -> None:
        self._commands = Commands(conf, seconds=seconds, token=token)
        self._queue = QueueReader()

    async def jobs(self) -> QueueReading:
        """See `Controller`."""
        form = QueueFormat()
        return self._queue.read(await self._commands.printed("squeue", *form.arguments), form)

    async def nodes(self) -> list[SlurmNode]:
        """See `Controller`."""
        return cluster.nodes(await self._shown("node"))

    async def partitions(self) -> list[SlurmPartition]:
        """See `Controller`."""
        return cluster.partitions(await self._shown("partition"))

    async def accounts(self) -> list[str]:
        """See `Controller`."""
        try:
            return cluster.accounts(await self._shown("assoc_mgr", "flags=assoc"))
        except CommandFailedError:
            return []

    async def settings(self) -> SlurmSettings:
        """See `Controller`."""
        return cluster.settings(await self._shown("config"))

    async def licences(self) -> list[Licence]:
        """See `Controller`."""
        return cluster.licences(await self._shown("licenses"))

    async def ended(self, jobs: Sequence[str]) -> list[SlurmJob]:
        """See `Controller`."""
        found: list[SlurmJob] = []
        # Whatever somebody wrote on NATS keeps no end of the others back: accounting has no job of such an id.
        for part in batched(filter(is_id, jobs), _ASKED_AT_ONCE, strict=False):
            found += ended_jobs(await self._accounted(f"--jobs={','.join(part)}"))
        return found

    async def ended_between(self, since: Micros, until: Micros) -> list[SlurmJob]:
        """See `Controller`."""
        return ended_jobs(await self._ended(since, until))

    async def ended_of(self, account: str, names: Sequence[str], since: Micros) -> list[SlurmJob]:
        """See `Controller`."""
        which = (f"--accounts={account}", f"--name={','.join(names)}")
        return submitted_jobs(await self._ended(since, None, *which, fields=(*FIELDS, "submitline")))

    async def _ended(
        self, since: Micros, until: Micros | None, *which: str, fields: Sequence[str] = FIELDS
    ) -> str:
        # The time zone of our commands is UTC.
        begins, ends = (
            "now" if at is None else f"{to_datetime(at):%Y-%m-%dT%H:%M:%S}" for at in (since, until)
        )
        when = (f"--starttime={begins}", f"--endtime={ends}", f"--state={','.join(ENDS)}")
        return await self._accounted("--allusers", *when, *which, fields=fields)

    async def _accounted(self, *which: str, fields: Sequence[str] = FIELDS) -> str:
        words = ("--noheader", "--parsable2", "--allocations", f"--format={','.join(fields)}")
        return await self._commands.output("sacct", *words, *which)

    async def reservations(self) -> list[NodeReservation]:
        """Reservations of nodes, also those that have still to begin."""
        return cluster.reservations(await self._shown("reservation"))

    async def limits(self) -> AccountLimits:
        """Limits of accounts, users and QOS; none where there is no accounting, or this user may not see them."""
        try:
            return account_limits(await self._shown("assoc_mgr", "flags=assoc,qos"))
        except CommandFailedError:
            return AccountLimits()

    async def administration_level(self, user: str) -> str:
        """A user's AdminLevel in accounting: `None`, `Operator` or `Administrator`; empty for a stranger.

        Raises:
            SlurmError: slurmdbd does not answer, or there is none.
        """
        where = ("where", f"name={user}", "format=AdminLevel")
        found = await self._commands.output("sacctmgr", "--noheader", "--parsable2", "show", "user", *where)
        return found.strip()

    async def set_site_factors(self, factors: Sequence[tuple[str, int]]) -> dict[str, str]:
        """See `Controller`."""
        lines = site_factor_lines(factors)
        if not lines:
            return {}
        feeds = min(_FEEDS, -(-len(lines) // _FEWEST_LINES))
        # Dealt out in turn: what is written out of its order is a few places away from it.
        feeding = (self._fed(lines[first::feeds]) for first in range(feeds))
        refused: dict[str, str] = {}
        # To the last one: none may write on while the caller believes that it has ended.
        for found in await asyncio.gather(*feeding, return_exceptions=True):
            if isinstance(found, BaseException):
                raise found
            refused |= found
        return refused

    async def _fed(self, lines: Sequence[str]) -> dict[str, str]:
        ended = await self._commands.run("scontrol", given="\n".join([*lines, "quit", ""]))
        return self._refused(ended.code, ended.errors, [job for line in lines for job in jobs_of(line)])

    async def cancel(self, jobs: Sequence[str]) -> dict[str, str]:
        """See `Controller`."""
        if not jobs:
            return {}
        ended = await self._commands.run("scancel", "--verbose", *(checked(job) for job in jobs))
        return self._refused(
            ended.code, ended.errors.replace("scancel: error: Kill job error on job id ", ""), jobs
        )

    async def _shown(self, *what: str) -> str:
        return await self._commands.output("scontrol", "--oneliner", "show", *what)

    def _refused(self, code: int, errors: str, jobs: Sequence[str]) -> dict[str, str]:
        found = refusals(errors, jobs)
        if code != 0 and not found:
            why = errors.strip()[:200] or f"it ended with {code}"
            return dict.fromkeys(jobs, why)
        return found
