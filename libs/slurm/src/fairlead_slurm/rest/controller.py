"""Reading and steering of one slurmctld, by slurmrestd as far as it can, by Slurm's commands for the rest."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import aiohttp
import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_slurm.cluster import Licence, SlurmNode, SlurmPartition, SlurmSettings
from fairlead_slurm.controller import Controller
from fairlead_slurm.errors import CommandFailedError
from fairlead_slurm.queue import QueueReading, SlurmJob
from fairlead_slurm.rest.client import RestClient
from fairlead_slurm.rest.cluster import nodes_of, partitions_of
from fairlead_slurm.rest.jobs import TasksCutError, reading_of
from fairlead_slurm.updates import checked, checked_factor

_SITE_FACTOR = "site_factor"
_NO_FACTOR = 2**31
"""SiteFactor 0 in slurmctld's own count (NICE_OFFSET, slurm.h), which slurmrestd expects, up to v0.0.42 at
least."""
_CONNECTIONS = 8
"""Requests made at a time: with more of them slurmctld answers no sooner."""


class RestController:
    """A controller by slurmrestd.

    What no version of it tells without slurmdbd, accounts and settings, is asked by Slurm's commands; SiteFactors are set by
    them where slurmrestd cannot.
    """

    def __init__(self, client: RestClient, commands: Controller) -> None:
        self._client = client
        self._commands = commands
        self.tasks_cut = False
        """Whether slurmrestd left out tasks of an array at the last reading, so that Slurm's commands did
        that reading."""

    async def jobs(self) -> QueueReading:
        """See `Controller`."""
        try:
            found = reading_of(await self._read("jobs"))
        except TasksCutError:
            self.tasks_cut = True
            return await self._commands.jobs()
        self.tasks_cut = False
        return found

    async def nodes(self) -> list[SlurmNode]:
        """See `Controller`."""
        return nodes_of(await self._read("nodes"))

    async def partitions(self) -> list[SlurmPartition]:
        """See `Controller`."""
        if not (await self._client.api()).tells_partitions:
            return await self._commands.partitions()
        return partitions_of(await self._read("partitions"))

    async def accounts(self) -> list[str]:
        """See `Controller`."""
        return await self._commands.accounts()

    async def settings(self) -> SlurmSettings:
        """See `Controller`."""
        return await self._commands.settings()

    async def licences(self) -> list[Licence]:
        """See `Controller`."""
        return await self._commands.licences()

    async def ended(self, jobs: Sequence[str]) -> list[SlurmJob]:
        """See `Controller`."""
        return await self._commands.ended(jobs)

    async def ended_between(self, since: Micros, until: Micros) -> list[SlurmJob]:
        """See `Controller`."""
        return await self._commands.ended_between(since, until)

    async def ended_of(self, account: str, names: Sequence[str], since: Micros) -> list[SlurmJob]:
        """See `Controller`."""
        return await self._commands.ended_of(account, names, since)

    async def set_site_factors(self, factors: Sequence[tuple[str, int]]) -> dict[str, str]:
        """See `Controller`."""
        if not factors:
            return {}
        version = (await self._client.api()).levels
        single = {
            checked(job): msgspec.json.encode({_SITE_FACTOR: _NO_FACTOR + checked_factor(factor)})
            for job, factor in factors
            if version is not None and "_" not in job
        }

        async def write(session: aiohttp.ClientSession, job: str) -> None:
            await self._client.ask(session, "POST", f"/slurm/{version}/job/{job}", single[job])

        # slurmrestd refuses to change one task of an array.
        refused = await self._commands.set_site_factors([one for one in factors if one[0] not in single])
        return refused | await self._each(single, write)

    async def cancel(self, jobs: Sequence[str]) -> dict[str, str]:
        """See `Controller`."""
        if not jobs:
            return {}
        version = (await self._client.api()).reads

        async def end(session: aiohttp.ClientSession, job: str) -> None:
            await self._client.ask(session, "DELETE", f"/slurm/{version}/job/{job}")

        return await self._each([checked(job) for job in jobs], end)

    async def _read(self, what: str) -> bytes:
        version = (await self._client.api()).reads
        async with self._client.session() as session:
            return await self._client.ask(session, "GET", f"/slurm/{version}/{what}")

    async def _each(
        self, jobs: Iterable[str], do: Callable[[aiohttp.ClientSession, str], Awaitable[None]]
    ) -> dict[str, str]:
        """Change each job, in this order; returns reasons by job, of those that were refused."""
        refused: dict[str, str] = {}
        left = iter(list(jobs))
        async with self._client.session() as session:

            async def work() -> None:
                for job in left:
                    try:
                        await do(session, job)
                    except CommandFailedError as error:
                        refused[job] = str(error)

            # To the last one: none may write on while the caller believes that it has ended.
            ended = await asyncio.gather(*(work() for _ in range(_CONNECTIONS)), return_exceptions=True)
        for found in ended:
            if isinstance(found, BaseException):
                raise found
        return refused
