"""The import of nats-py, without two parts that took a third of a short command such as `fairlead queue`.

It reads aiohttp wherever it is installed, for addresses that begin with `ws://` or `wss://`; `enable_websockets` gives
it the library with such an address. And it reads its own JetStream client, fifty classes that are written at their import:
this library speaks to JetStream by `connection.jetstream`. That client is there for who asks for it.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from types import ModuleType

from fairlead_bus.errors import ConnectFailedError

_AIOHTTP = "aiohttp"
_WEBSOCKET_SCHEMES = ("ws://", "wss://")
_JETSTREAM = "nats.js"


class _Header(StrEnum):
    """The headers that nats-py's own connection reads, as `nats.js.api` has them."""

    STATUS = "Status"
    DESCRIPTION = "Description"
    CONSUMER_STALLED = "Nats-Consumer-Stalled"


class _Interface(ModuleType):
    """Stands in the place of `nats.js.api`."""

    Header = _Header


class _JetStreamClient(ModuleType):
    """Stands in the place of `nats.js`, which is imported with the first name that is asked of it."""

    api = _Interface(f"{_JETSTREAM}.api")

    def __getattr__(self, name: str) -> object:
        found: object = getattr(importlib.import_module(_JETSTREAM), name)
        return found


@contextmanager
def _in_place_of(name: str, module: ModuleType | None) -> Iterator[None]:
    """Imports `module` under another name for the block; None makes that import fail, as Python's reference says."""
    sys.modules[name] = module  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def _import_without_aiohttp() -> None:
    """Imports nats-py as if aiohttp were not installed; it goes on without, and says so when asked for it."""
    if _AIOHTTP in sys.modules:
        importlib.import_module("nats.aio.transport")
        return
    with _in_place_of(_AIOHTTP, None):
        importlib.import_module("nats.aio.transport")


def _import_client() -> None:
    if _JETSTREAM in sys.modules:
        _import_without_aiohttp()
        return
    stand_in = _JetStreamClient(_JETSTREAM)
    with _in_place_of(_JETSTREAM, stand_in):
        _import_without_aiohttp()
    import nats

    vars(nats)["js"] = stand_in


_import_client()


def enable_websockets(addresses: list[str]) -> None:
    """Gives nats-py what it needs for these addresses.

    Raises:
        ConnectFailedError: some URL is a WebSocket's, and aiohttp is not installed.
    """
    if not any(address.startswith(_WEBSOCKET_SCHEMES) for address in addresses):
        return
    from nats.aio import transport

    try:
        import aiohttp
    except ImportError as error:
        raise ConnectFailedError(
            "an address that begins with ws:// or wss:// needs a part that is not installed: pip install 'fairlead-cli[kube]' brings it"
        ) from error
    vars(transport)[_AIOHTTP] = aiohttp
