"""Identity of callers on other hosts of Slurm: munge vouches for it, which all of them have and Slurm itself relies on.

A credential is made over a word that whoever asks has drawn a moment ago, so that none can be used twice, nor elsewhere.
"""

import asyncio
import re

from fairlead_slurm.commands import end
from fairlead_slurm.errors import ProgramMissingError

_CREDENTIAL = re.compile(r"MUNGE:[A-Za-z0-9+/=]{1,4096}:", re.ASCII)
_FOUND = re.compile(r"STATUS: +0\nUID: +(\d+)\n\n(.*)", re.DOTALL)
_AT_ONCE = 16
_SECONDS = 5.0
"""Seconds that reading one credential may take."""


class Munge:
    """A reader of munge's credentials, at munged's socket: by default the one that its commands look for."""

    def __init__(self, socket: str | None) -> None:
        self._socket = [] if socket is None else [f"--socket={socket}"]
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def user_of(self, credential: str, word: str) -> int | None:
        """The Unix user who made a credential over this word; None where the credential is bad.

        Raises:
            ProgramMissingError: munge is not installed.
        """
        if _CREDENTIAL.fullmatch(credential) is None:
            return None
        command = ["unmunge", "--numeric", "--keys=STATUS,UID", *self._socket]
        async with self._turns:
            try:
                async with asyncio.timeout(_SECONDS):
                    printed = await _output(command, credential)
            except TimeoutError:
                return None
        found = _FOUND.fullmatch(printed)
        return int(found[1]) if found is not None and found[2] == word else None


async def _output(command: list[str], given: str) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise ProgramMissingError(f"{command[0]} is not installed, or not on the PATH") from error
    try:
        out, _ = await process.communicate(given.encode())
    finally:
        await end(process)
    return out.decode(errors="replace")
