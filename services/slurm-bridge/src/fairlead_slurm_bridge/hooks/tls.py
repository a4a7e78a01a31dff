"""The TLS endpoint for hooks on other hosts: TLS shows them that this is the gate, and munge shows the gate who asks.

Before the first word of a hook stands a welcome: `{"challenge": word}` from the gate, `{"munge": credential over it}` from the
hook, and `{}` from the gate, or `{"away": why}` where another bridge leads.
"""

import asyncio
import secrets
import ssl
from collections.abc import Awaitable, Callable

import msgspec

from fairlead_slurm_bridge.errors import BridgeError
from fairlead_slurm_bridge.settings import SlurmBridgeSettings

HANDSHAKE_SECONDS = 10.0


class StrangerError(ValueError):
    """A caller whom nobody vouches for."""


class _Introduction(msgspec.Struct, frozen=True):
    munge: str


_INTRODUCTION = msgspec.json.Decoder(_Introduction)


class TlsEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint of hooks on other hosts, where callers prove who they are."""

    host: str
    port: int
    context: ssl.SSLContext
    user_of: Callable[[str, str], Awaitable[int | None]]
    """Finds the Unix user who made a credential over a word; None where it is bad."""
    why_away: Callable[[], str | None]
    """Reason for which another bridge is to be asked; None where this one leads."""

    async def welcome(self, reader: asyncio.StreamReader, write: Callable[[bytes], None]) -> int | None:
        """Welcome a caller; returns their Unix user, or None where they are sent on to another bridge.

        Raises:
            StrangerError: nobody vouches for them.
            msgspec.DecodeError: they say something else.
        """
        word = secrets.token_hex(16)
        write(msgspec.json.encode({"challenge": word}) + b"\n")
        said = _INTRODUCTION.decode(await reader.readline())
        user = await self.user_of(said.munge, word)
        if user is None:
            raise StrangerError("munge does not vouch for whoever asks")
        why = self.why_away()
        write(msgspec.json.encode({} if why is None else {"away": why}) + b"\n")
        return user if why is None else None


def server_context(settings: SlurmBridgeSettings) -> ssl.SSLContext:
    """The TLS context of the certificate and its key.

    Raises:
        BridgeError: certificate or key is missing, or cannot be read.
    """
    if settings.hooks_tls_cert is None or settings.hooks_tls_key is None:
        raise BridgeError("hooks_listen: hooks_tls_cert and hooks_tls_key are needed, too")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.hooks_tls_cert, settings.hooks_tls_key)
    except OSError as error:
        raise BridgeError(f"hooks_tls_cert and hooks_tls_key cannot be used: {error}") from error
    return context


def endpoint(text: str) -> tuple[str, int]:
    """The host and port of a setting.

    Raises:
        BridgeError: the setting has not that form.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise BridgeError(f"hooks_listen is HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)
