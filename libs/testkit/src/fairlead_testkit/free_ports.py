"""Ports on loopback that are free now, and that no outgoing connection takes meanwhile."""

import contextlib
import secrets
import socket
import time

# Below the range that Linux gives to outgoing connections (from 32768): what is restarted finds its port again.
_LOWEST, _HIGHEST = 20_000, 32_000
_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.01


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on now."""
    found: set[int] = set()
    while len(found) < count:
        port = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST)
        if _is_free(port):
            found.add(port)
    return list(found)


def await_listening(port: int, seconds: float) -> None:
    """Return when somebody listens on the port.

    Raises:
        TimeoutError: nobody does within so many seconds.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection((_LOOPBACK, port), timeout=1):
            return
        time.sleep(_POLL_SECONDS)
    raise TimeoutError(f"nothing listens on {port}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return False
    return True
