"""A client of one slurmrestd, by HTTP over TCP with a token, or over a Unix socket that knows who asks.

A token that slurmctld does not take any more is not told from a slurmctld that is away: 22.05 answers both with status
500 and an "Unspecified error". So a token that is refused is made anew, and the request repeated once.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Literal

import aiohttp
import msgspec

from fairlead_slurm.errors import CommandFailedError, SlurmUnreachableError
from fairlead_slurm.rest.api import RestApi, api_of
from fairlead_slurm.slurm_token import SlurmToken, user_of

UNIX = "unix:"
_DESCRIPTION = "/openapi/v3"
_OK = 200
_ILL_FORMED = (400, 422)
_REFUSALS = range(2000, 4000)
"""Numbers of errors that are slurmctld's own answer (slurm_errno.h); others come from the way to it."""
_LONGEST_ERROR = 300

type Method = Literal["GET", "POST", "DELETE"]


class _RestError(msgspec.Struct, frozen=True):
    error: str = ""
    description: str = ""
    error_number: int = 0
    error_code: int = 0
    errno: int = 0

    @property
    def number(self) -> int:
        """The error's number, under whichever name this endpoint gives it."""
        return self.error_number or self.error_code or self.errno

    @property
    def text(self) -> str:
        """The error in words: slurmctld's own, or all that slurmrestd says."""
        return self.error if self.number in _REFUSALS else f"{self.error} {self.description}".strip()


class _RestErrors(msgspec.Struct, frozen=True):
    errors: list[_RestError] = []


class RestClient:
    """A client of one slurmrestd.

    Args:
        address: `http://HOST:PORT`, or `unix:/PATH` of a socket whose slurmrestd runs as the user who asks.
        token: token of the user whom slurmctld takes us for; None over a socket.
        seconds: longest time of one request.
    """

    def __init__(self, address: str, *, token: SlurmToken | None, seconds: float) -> None:
        self.address = address
        self._socket = address.removeprefix(UNIX) if address.startswith(UNIX) else None
        self._base = "http://slurmrestd" if self._socket is not None else address.rstrip("/")
        self._token = token
        self._seconds = seconds
        self._api: RestApi | None = None

    async def api(self) -> RestApi:
        """The versions that slurmrestd has, asked for once, and again after a question that failed.

        Raises:
            SlurmUnreachableError: slurmrestd does not answer.
            UnreadableError: no version of it is known here.
        """
        if self._api is None:
            async with self.session() as session:
                self._api = api_of(await self.ask(session, "GET", _DESCRIPTION))
        return self._api

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Connections for requests that follow one another."""
        connector = aiohttp.TCPConnector() if self._socket is None else aiohttp.UnixConnector(self._socket)
        timeout = aiohttp.ClientTimeout(total=self._seconds)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            yield session

    async def ask(
        self, session: aiohttp.ClientSession, method: Method, path: str, body: bytes | None = None
    ) -> bytes:
        """The answer to a request that may be made twice without harm.

        Raises:
            SlurmUnreachableError: there is none, or slurmctld does not know us.
            CommandFailedError: slurmctld refuses it; carries why.
        """
        token = None if self._token is None else await self._token.text()
        try:
            return await self._ask(session, method, path, body, token)
        except SlurmUnreachableError:
            if self._token is None or token is None or not await self._token.renewed(token):
                raise
        return await self._ask(session, method, path, body, await self._token.text())

    async def _ask(
        self, session: aiohttp.ClientSession, method: Method, path: str, body: bytes | None, token: str | None
    ) -> bytes:
        headers = {}
        if token is not None:  # 22.05 looks at a token only beside its user's name
            headers = {"X-SLURM-USER-NAME": user_of(token), "X-SLURM-USER-TOKEN": token}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with session.request(
                method, self._base + path, data=body, headers=headers, allow_redirects=False
            ) as answer:
                content = await answer.read()
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            why = str(error) or f"silent for {self._seconds:g} s"
            raise SlurmUnreachableError(f"slurmrestd at {self.address}: {why}") from error
        content = _readable(content)
        if answer.status == _OK:
            return content
        failure = _failure(self.address, answer.status, content)
        if isinstance(failure, SlurmUnreachableError):
            self._api = None  # it may be another version since
        raise failure


def _readable(content: bytes) -> bytes:
    """The answer as UTF-8: slurmrestd passes on what users wrote, and no job's bytes may hide all jobs."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode(errors="replace").encode()
    return content


def _failure(address: str, status: int, content: bytes) -> SlurmUnreachableError | CommandFailedError:
    try:
        errors = msgspec.json.decode(content, type=_RestErrors).errors
    except msgspec.MsgspecError:
        errors = []
    for error in errors:
        if error.number in _REFUSALS or status in _ILL_FORMED:
            return CommandFailedError(error.text[:_LONGEST_ERROR])
    said = "; ".join(error.text for error in errors) or content[:_LONGEST_ERROR].decode(errors="replace")
    why = f"slurmrestd at {address} answers with status {status}: {said.strip()[:_LONGEST_ERROR]}"
    return SlurmUnreachableError(why)
