"""Runs Slurm's programs: never through a shell, in an environment that cannot change what they print.

Arguments and input are handed over as they are, so names, comments and paths may hold whatever their users wrote.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead_slurm.errors import (
    CommandFailedError,
    ConfigurationMissingError,
    ProgramMissingError,
    SlurmUnreachableError,
)
from fairlead_slurm.slurm_token import SlurmToken

_LEFT_OUT = ("SLURM_", "SQUEUE_", "SINFO_", "SBATCH_", "SCONTROL_", "SPRIO_", "SACCT_")
"""Variables that Slurm's programs read as options: the person who starts us may have set some for their own use."""
_AWAY = (
    "unable to contact slurm controller",
    "connection refused",
    "connection reset by peer",  # slurmctld was killed while it was asked
    "connection timed out",
    "socket timed out",
    "zero bytes were transmitted or received",
    "slurmctld is not responding",
    "protocol authentication error",  # munged is down, or has not yet come up
    "munge encode failed",
    "failed to connect to socket",
    "unable to establish control machine address",
    "slurm backup controller in standby mode",
)
"""Messages of Slurm's programs by which slurmctld cannot be reached (slurm_errno.c)."""


class CommandOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A program's output and its exit code."""

    code: int
    out: bytes
    errors: str


class Commands:
    """Slurm's programs for one cluster.

    Args:
        conf: the cluster's slurm.conf; by default the one that the programs themselves take.
        seconds: longest time of a program, which is then ended.
        token: names us to slurmctld where there is no munge; by default munge does.
    """

    def __init__(self, conf: Path | None, *, seconds: float = 20.0, token: SlurmToken | None = None) -> None:
        self._seconds = seconds
        self._token = token
        self._environ = _environment(os.environ, conf)
        self._conf = self._environ.get("SLURM_CONF")

    async def output(self, program: str, *arguments: str) -> str:
        """Standard output of a program that has to succeed.

        Raises:
            SlurmUnreachableError: slurmctld does not answer.
            CommandFailedError: Slurm refused it.
            ProgramMissingError: there is no such program.
            ConfigurationMissingError: there is no such slurm.conf.
        """
        return (await self.printed(program, *arguments)).decode(errors="replace")

    async def printed(self, program: str, *arguments: str) -> bytes:
        """The output as `output` has it, byte for byte."""
        ended = await self.run(program, *arguments)
        if ended.code != 0:
            shown = " ".join(argument[:80] for argument in arguments[:4])
            raise CommandFailedError(f"{program} {shown}: {ended.errors.strip() or ended.code}")
        return ended.out

    async def run(self, program: str, *arguments: str, given: str = "") -> CommandOutput:
        """Run a program to its end, whatever its exit code.

        Args:
            arguments: arguments of the program, as they are.
            given: standard input of the program.

        Raises:
            SlurmUnreachableError: slurmctld does not answer, or there is no token to ask it with.
            ProgramMissingError: there is no such program.
            ConfigurationMissingError: there is no such slurm.conf.
        """
        self._look_first()
        if self._token is None:
            return await self._run({}, program, arguments, given)
        token = await self._token.text()
        try:
            return await self._run(_identity(token), program, arguments, given)
        except SlurmUnreachableError:
            if not await self._token.renewed(token):
                raise
        return await self._run(_identity(await self._token.text()), program, arguments, given)

    async def _run(
        self, identity: dict[str, str], program: str, arguments: Sequence[str], given: str
    ) -> CommandOutput:
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environ | identity,
            )
        except FileNotFoundError as error:
            raise ProgramMissingError(f"{program} is not installed, or not on the PATH") from error
        try:
            async with asyncio.timeout(self._seconds):
                out, errors = await process.communicate(given.encode())
        except TimeoutError as error:
            raise SlurmUnreachableError(f"{program} did not end within {self._seconds:g} s") from error
        finally:
            await end(process)
        ended = CommandOutput(
            code=process.returncode or 0,
            out=out,
            errors=errors.decode(errors="replace"),
        )
        if is_away(ended.errors):
            raise SlurmUnreachableError(f"{program}: {ended.errors.strip()[:500]}")
        return ended

    def _look_first(self) -> None:
        if self._conf is not None and not Path(self._conf).is_file():
            raise ConfigurationMissingError(f"there is no slurm.conf at {self._conf}")


def is_away(errors: str) -> bool:
    """Whether a program of Slurm's says that slurmctld cannot be reached."""
    return any(words in errors.lower() for words in _AWAY)


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a program that nobody awaits any more, so that none stays behind."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _environment(given: Mapping[str, str], conf: Path | None) -> dict[str, str]:
    kept = {name: value for name, value in given.items() if not name.startswith(_LEFT_OUT)}
    where = str(conf) if conf is not None else given.get("SLURM_CONF")
    # Instants as seconds since the epoch, and messages in the language that `_AWAY` knows. Without TZ the C library looks at
    # /etc/localtime for each instant, which was a fourth of squeue's time; and in the hour that a clock repeats, %s is an hour off.
    fixed = {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC0", "LC_ALL": "C.UTF-8"}
    return kept | fixed | ({"SLURM_CONF": where} if where else {})


def _identity(token: str) -> dict[str, str]:
    """The variable that names us to Slurm (https://slurm.schedmd.com/jwt.html), unread by other users."""
    return {"SLURM_JWT": token}
