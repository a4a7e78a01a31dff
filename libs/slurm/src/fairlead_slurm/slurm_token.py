"""The JSON Web Token by which slurmctld knows us: read from a file, made anew before it ends.

It stands in that file, in memory and in the environment of Slurm's commands; never in an argument or a message
(https://slurm.schedmd.com/jwt.html).
"""

import asyncio
import base64
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from fairlead_slurm.errors import SlurmError, SlurmUnreachableError

TOKEN_SECONDS = 3600
"""Life of a token that is made for us, in seconds."""
_LEFT = 0.25
"""Part of its life that is left when a token is made anew."""
_REST_SECONDS = 20.0
"""Seconds without another token after one was asked for: slurmctld may be away for other reasons than our
token."""


type MakeToken = Callable[[int], Awaitable[str]]
"""Makes a token that lasts so many seconds, or raises a `SlurmError`."""


class _TokenClaims(msgspec.Struct, frozen=True):
    exp: float
    iat: float | None = None
    sun: str = ""
    """Slurm's user that the token is of."""


class SlurmToken:
    """A file with a token.

    Args:
        path: path of the file. Somebody else may put a new token into its place at any time.
        make: makes new ones, which are kept there; None where that is left to somebody else.
        made: is told the outcome each time: `made` or `failed`.
    """

    def __init__(
        self,
        path: Path,
        *,
        make: MakeToken | None = None,
        made: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._path = path
        self._make = make
        self._made = made
        self._turn = asyncio.Lock()
        self._asked: float | None = None

    async def text(self) -> str:
        """The token, which still lasts where that is in our power.

        Raises:
            SlurmUnreachableError: there is none.
        """
        async with self._turn:
            found, why = self._read()
            if self._make is not None and (not found or self._ends_soon(found)) and self._may_ask():
                try:
                    return await self._make_anew(self._make)
                except SlurmUnreachableError as error:
                    why = str(error)  # one that still lasts a while is better than none
            if not found:
                raise SlurmUnreachableError(f"no token to ask slurmctld with: {why}")
            return found

    async def renewed(self, refused: str) -> bool:
        """Whether there is another token than the one that slurmctld does not take: it can be asked again with that."""
        async with self._turn:
            if self._read()[0] not in ("", refused):
                return True
            if self._make is None or not self._may_ask():
                return False
            try:
                await self._make_anew(self._make)
            except SlurmUnreachableError:
                return False
            return True

    def _read(self) -> tuple[str, str]:
        """The token, or why there is none."""
        try:
            found = self._path.read_text().strip()
        except OSError as error:
            return "", f"{self._path} cannot be read: {error.strerror or error}"
        except UnicodeDecodeError:
            return "", f"{self._path} holds no text"
        return found, "" if found else f"{self._path} is empty"

    def _may_ask(self) -> bool:
        return self._asked is None or time.time() - self._asked >= _REST_SECONDS

    async def _make_anew(self, make: MakeToken) -> str:
        self._asked = time.time()
        try:
            found = await make(TOKEN_SECONDS)
            self._keep(found)
        except (SlurmError, OSError) as error:
            self._made("failed")
            raise SlurmUnreachableError(f"no new token: {error}") from error
        self._made("made")
        return found

    def _keep(self, token: str) -> None:
        """Write the token whole or not at all, for our own eyes alone."""
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        beside.unlink(missing_ok=True)
        beside.touch(mode=0o600, exist_ok=False)
        beside.write_text(f"{token}\n")
        beside.replace(self._path)

    def _ends_soon(self, token: str) -> bool:
        claims = _claims(token)
        if claims is None:
            return True
        life = claims.exp - (claims.exp - TOKEN_SECONDS if claims.iat is None else claims.iat)
        return claims.exp - time.time() < _LEFT * life


def user_of(token: str) -> str:
    """The user of a token, as it says itself; empty where it says nothing."""
    claims = _claims(token)
    return "" if claims is None else claims.sun


def _claims(token: str) -> _TokenClaims | None:
    """The claims of a token, which slurmctld alone can verify; None where it cannot be read."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 # header, claims and signature (RFC 7519)
        return None
    try:
        words = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(words, type=_TokenClaims)
    except (ValueError, msgspec.MsgspecError):
        return None
