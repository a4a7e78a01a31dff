"""Leave to steer a cluster, in the policy bucket: read, given, taken back."""

from datetime import UTC, datetime

from fairlead_bus import Bucket, Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.clearance import CLEARANCE, Clearance, Revocation
from fairlead_contracts.codec import to_json


async def standing(bus: Bus, cluster: str) -> Clearance | None:
    """The leave that stands for the cluster."""
    entry = await Bucket(bus, topology.POLICY).get(subjects.clearance_key(cluster))
    return None if entry is None else CLEARANCE.decode(entry.value)


async def give(bus: Bus, clearance: Clearance) -> None:
    """Let levels be written to the cluster from now on."""
    key = subjects.clearance_key(clearance.cluster)
    await Bucket(bus, topology.POLICY).put(key, to_json(clearance))


async def take_back(bus: Bus, cluster: str, *, by: str) -> bool:
    """Have the levels that stand in the cluster taken away and nothing else written; returns whether there was leave.

    The word that it was taken back goes first: a leave that is merely gone leaves levels as they are.
    """
    before = await standing(bus, cluster)
    if before is None:
        return False
    word = Revocation(cluster=cluster, lever=before.lever, at=datetime.now(UTC), by=by)
    bucket = Bucket(bus, topology.POLICY)
    await bucket.put(subjects.revocation_key(cluster), to_json(word))
    await bucket.delete(subjects.clearance_key(cluster))
    return True
