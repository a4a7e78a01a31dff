"""Which lever a Kueue obeys: the boost annotation, or the priority itself."""

import enum

import msgspec

from fairlead_kube.client import KubeClient


class Lever(enum.StrEnum):
    """How a Workload is moved."""

    BOOST = "boost"
    PRIORITY = "priority"
    UNKNOWN = "unknown"
    """The probe cannot tell: a setting has to."""


class LeverProbe(msgspec.Struct, frozen=True):
    """What the probe found, and by what."""

    lever: Lever
    evidence: str


async def probe_lever(client: KubeClient, namespace: str) -> LeverProbe:
    """Asks Kueue's webhook by server-side dry runs; needs the right to create Workloads in the namespace."""
    raise NotImplementedError
