"""The ports of one lab."""

from dataclasses import dataclass
from typing import Self

from fairlead_testkit.free_ports import free_ports


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
        return cls(*free_ports(len(cls.__dataclass_fields__)))
