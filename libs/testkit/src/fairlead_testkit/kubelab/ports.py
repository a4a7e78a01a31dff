"""Ports on loopback that are free now, and that no outgoing connection takes meanwhile."""

import secrets
import socket
from dataclasses import dataclass
from typing import Self

from fairlead_testkit.kubelab.certificates import LOOPBACK

# Below the range that Linux gives to outgoing connections (from 32768): a part that is restarted finds its port again.
_LOWEST, _HIGHEST = 20_000, 32_000


@dataclass(frozen=True)
class Ports:
    """The ports of one lab, kept over restarts of its parts."""

    etcd: int
    etcd_peer: int
    apiserver: int
    webhook: int
    metrics: int
    health: int

    @classmethod
    def free(cls) -> Self:
        """Ports that nobody listens on now."""
        found: set[int] = set()
        while len(found) < len(cls.__dataclass_fields__):
            port = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST)
            if _is_free(port):
                found.add(port)
        return cls(*found)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
