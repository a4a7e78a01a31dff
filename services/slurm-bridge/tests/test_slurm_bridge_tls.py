"""The TLS endpoint for hooks on other hosts: callers who get in, and callers who are sent on."""

import asyncio
import json
import ssl

import msgspec
import pytest

from fairlead_slurm_bridge.errors import BridgeError
from fairlead_slurm_bridge.hooks.tls import StrangerError, TlsEndpoint, endpoint, server_context
from fairlead_slurm_bridge.settings import SlurmBridgeSettings


async def vouched(credential: str, word: str) -> int | None:
    """The user of a credential, as munge tells of one who signs the drawn word."""
    return 1000 if credential == f"signed {word}" else None


class Visit:
    """A connection, and all that was written to it."""

    def __init__(self, *, away: str | None = None) -> None:
        self._reader = asyncio.StreamReader()
        self._written: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._endpoint = TlsEndpoint(
            host="",
            port=0,
            context=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
            user_of=vouched,
            why_away=lambda: away,
        )

    def write(self, data: bytes) -> None:
        self._written.put_nowait(json.loads(data))

    async def welcomed(self, credential: str) -> tuple[int | None, dict[str, str]]:
        """The user who got in, and the welcome's last word; `{}` in a credential is the drawn word."""
        coming = asyncio.create_task(self._endpoint.welcome(self._reader, self.write))
        drawn = (await self._written.get())["challenge"]
        self._reader.feed_data(json.dumps({"munge": credential.format(drawn)}).encode() + b"\n")
        return await coming, await self._written.get()


async def test_who_signs_what_was_drawn_gets_in() -> None:
    assert await Visit().welcomed("signed {}") == (1000, {})


async def test_a_credential_of_another_connection_is_no_good() -> None:
    with pytest.raises(StrangerError):
        await Visit().welcomed("signed before")


async def test_a_standby_sends_everybody_on() -> None:
    assert await Visit(away="it does not lead").welcomed("signed {}") == (None, {"away": "it does not lead"})


def test_settings_that_cannot_be_used_are_named() -> None:
    assert endpoint("[::1]:7811") == ("::1", 7811)
    with pytest.raises(BridgeError, match="HOST:PORT"):
        endpoint("7811")
    alone = SlurmBridgeSettings(hooks_listen="a:1")
    with pytest.raises(BridgeError, match="hooks_tls_cert"):
        server_context(alone)
    with pytest.raises(BridgeError, match="cannot be used"):
        server_context(msgspec.structs.replace(alone, hooks_tls_cert="/no", hooks_tls_key="/no"))
