"""Asking the helper, over its Unix socket: for one job, or a token of one's own; one line there and one back."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec

from fairlead_slurm.errors import SlurmUnreachableError, SubmitRefusedError
from fairlead_slurm.submitting.batch_job import MOST_BYTES, BatchJob

_LONGEST_REPLY = 64 * 1024


class TokenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Request for a JSON Web Token of the asking user's own."""

    token_seconds: Annotated[int, msgspec.Meta(ge=60, le=86_400)]


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The helper's answer to a request: exactly one of its fields is set."""

    job: str = ""
    """The number of the job that was made."""
    token: str = ""
    """The token that was asked for."""
    refused: str = ""
    """Reason for which the job or token will not be made."""
    away: str = ""
    """Reason for which nobody knows whether the job was made, or for which there is no token now."""


class SubmittingClient:
    """A client of the helper, for jobs and tokens.

    Args:
        socket: path of the helper's socket.
        seconds: longest time of one request.
    """

    def __init__(self, socket: Path, *, seconds: float) -> None:
        self._socket = socket
        self._seconds = seconds

    async def submit(self, job: BatchJob) -> str:
        """Have a job made; returns its number.

        Raises:
            SubmitRefusedError: the job will not be made; says why.
            SlurmUnreachableError: nobody knows whether it was made.
        """
        asked = msgspec.json.encode(job) + b"\n"
        if len(asked) > MOST_BYTES:
            raise SubmitRefusedError(f"the job is larger than {MOST_BYTES} bytes")
        reply = await self._reply(asked)
        if not reply.job:
            raise SlurmUnreachableError(reply.away or "the submitting helper says nothing")
        return reply.job

    async def token(self, seconds: int) -> str:
        """A token of this process's user that lasts so long.

        Raises:
            SubmitRefusedError: there will be none; says why.
            SlurmUnreachableError: there is none now.
        """
        reply = await self._reply(msgspec.json.encode(TokenRequest(seconds)) + b"\n")
        if not reply.token:
            raise SlurmUnreachableError(reply.away or "the submitting helper says nothing")
        return reply.token

    async def _reply(self, asked: bytes) -> Reply:
        try:
            async with asyncio.timeout(self._seconds):
                line = await self._answer_to(asked)
            reply = msgspec.json.decode(line, type=Reply)
        except (TimeoutError, OSError, msgspec.MsgspecError) as error:
            raise SlurmUnreachableError(
                f"the submitting helper at {self._socket}: {str(error) or 'silent'}"
            ) from error
        if reply.refused:
            raise SubmitRefusedError(reply.refused)
        return reply

    async def _answer_to(self, asked: bytes) -> bytes:
        reader, writer = await asyncio.open_unix_connection(self._socket, limit=_LONGEST_REPLY)
        try:
            writer.write(asked)
            await writer.drain()
            return await reader.readline()
        finally:
            writer.close()
