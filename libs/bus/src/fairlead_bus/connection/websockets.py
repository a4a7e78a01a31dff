"""NATS over WebSockets, without their library where nobody speaks so.

nats-py reads aiohttp wherever it is installed, for addresses that begin with `ws://` or `wss://`: that was a third of
what a short command such as `fairlead queue` took. It is kept from doing so, and given the library with such an address.
"""

import sys

from fairlead_bus.errors import ConnectFailedError

_AIOHTTP = "aiohttp"
_SCHEMES = ("ws://", "wss://")


def _import_without_aiohttp() -> None:
    """Imports nats-py's transports as if aiohttp were not installed; it goes on without, and says so when asked for it."""
    if _AIOHTTP in sys.modules:
        return
    sys.modules[_AIOHTTP] = None  # type: ignore[assignment] # as the reference of import says: "not to be found"
    try:
        import nats.aio.transport  # noqa: F401 # here, while the library is out of sight
    finally:
        del sys.modules[_AIOHTTP]


_import_without_aiohttp()


def enable(addresses: list[str]) -> None:
    """Gives nats-py what it needs for these addresses.

    Raises:
        ConnectFailedError: one is a WebSocket's, and aiohttp is not installed.
    """
    if not any(address.startswith(_SCHEMES) for address in addresses):
        return
    from nats.aio import transport

    try:
        import aiohttp
    except ImportError as error:
        raise ConnectFailedError(
            "an address that begins with ws:// or wss:// needs a part that is not installed: pip install 'fairlead-cli[kube]' brings it"
        ) from error
    vars(transport)[_AIOHTTP] = aiohttp
