"""Leave to steer a cluster, in the policy bucket: read, given, taken back."""

from fairlead_bus import Bucket, Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.clearance import CLEARANCE, Clearance
from fairlead_contracts.codec import to_json


async def standing(bus: Bus, cluster: str) -> Clearance | None:
    """The leave that stands for the cluster."""
    entry = await Bucket(bus, topology.POLICY).get(subjects.clearance_key(cluster))
    return None if entry is None else CLEARANCE.decode(entry.value)


async def give(bus: Bus, clearance: Clearance) -> None:
    """Let levels be written to the cluster from now on."""
    key = subjects.clearance_key(clearance.cluster)
    await Bucket(bus, topology.POLICY).put(key, to_json(clearance))


async def take_back(bus: Bus, cluster: str) -> bool:
    """Let nothing be written to the cluster from now on; returns whether there was leave. What stands, stands."""
    if await standing(bus, cluster) is None:
        return False
    await Bucket(bus, topology.POLICY).delete(subjects.clearance_key(cluster))
    return True
