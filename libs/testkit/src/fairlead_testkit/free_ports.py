"""Ports on loopback that are free now, and that no outgoing connection takes meanwhile."""

import secrets
import socket

# Below the range that Linux gives to outgoing connections (from 32768): what is restarted finds its port again.
_LOWEST, _HIGHEST = 20_000, 32_000
_LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens on now."""
    found: set[int] = set()
    while len(found) < count:
        port = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST)
        if _is_free(port):
            found.add(port)
    return list(found)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return False
    return True
