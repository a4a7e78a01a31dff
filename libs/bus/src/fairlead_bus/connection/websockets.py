"""NATS over WebSockets: their library is given to nats-py with the first such address, see `client_import`."""

from fairlead_bus.errors import ConnectFailedError

_AIOHTTP = "aiohttp"
_SCHEMES = ("ws://", "wss://")


def enable(addresses: list[str]) -> None:
    """Gives nats-py what it needs for these addresses.

    Raises:
        ConnectFailedError: some URL is a WebSocket's, and aiohttp is not installed.
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
