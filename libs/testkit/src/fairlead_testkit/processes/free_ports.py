"""Ports on loopback that are free now, and that no outgoing connection takes meanwhile."""

import os
import secrets
import socket
from collections import deque

from fairlead_testkit.timing.awaiting import until

# Below the range that Linux gives to outgoing connections (from 32768): what is restarted finds its port again.
_LOWEST, _HIGHEST = 20_000, 32_000
_PARTS = 12
"""A worker of a test run (pytest-xdist) takes ports from a part of its own: who was told a port may not listen on it yet."""
_LOOPBACK = "127.0.0.1"
_given: deque[int] = deque(maxlen=200)
"""The last ports that this process was told."""


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on now."""
    own = _own_range()
    found: list[int] = []
    while len(found) < count:
        port = own[secrets.randbelow(len(own))]
        if port not in _given and _is_free(port):
            found.append(port)
            _given.append(port)
    return found


def _own_range() -> range:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not worker.isdecimal():
        return range(_LOWEST, _HIGHEST)
    size = (_HIGHEST - _LOWEST) // _PARTS
    lowest = _LOWEST + int(worker) % _PARTS * size
    return range(lowest, lowest + size)


def await_listening(port: int, seconds: float) -> None:
    """Return when somebody listens on the port.

    Raises:
        NeverHappenedError: the port has no listener within so many seconds.
    """
    until(lambda: listens(port), seconds, f"somebody listens on {port}")


def listens(port: int) -> bool:
    """Whether somebody listens on the port."""
    try:
        socket.create_connection((_LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return False
    return True
