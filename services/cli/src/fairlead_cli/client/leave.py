"""Leave to steer a cluster, in the policy bucket: read, given, taken back."""

from datetime import UTC, datetime

from fairlead_bus import Bucket, Bus
from fairlead_cli.console import warn
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.messages.leave import LEAVE, REVOCATION, Leave, LeverName, Revocation


async def standing(bus: Bus, cluster: str) -> Leave | None:
    """The leave that stands for the cluster. One that cannot be read is none to services either, and warned of."""
    entry = await Bucket(bus, topology.POLICY).get(subjects.leave_key(cluster))
    if entry is None:
        return None
    try:
        return LEAVE.decode(entry.value)
    except ContractError as error:
        warn(f"the leave to write to {cluster} cannot be read, so nothing is written to it: {error}")
        return None


async def revoked(bus: Bus, cluster: str) -> str:
    """A sentence that leave was taken back and nobody gave it since, by whom and when; empty where that is not so.

    A word that cannot be read is one, too: it says no less that somebody took leave back.
    """
    bucket = Bucket(bus, topology.POLICY)
    entry = await bucket.get(subjects.revocation_key(cluster))
    if entry is None or await bucket.get(subjects.leave_key(cluster)) is not None:
        return ""
    try:
        word = REVOCATION.decode(entry.value)
    except ContractError:
        return "leave was taken back"
    who = f" by {word.by}" if word.by else ""
    return f"leave was taken back{who} at {word.at:%Y-%m-%d %H:%M} UTC"


async def give(bus: Bus, leave: Leave) -> None:
    """Let levels be written to the cluster from now on."""
    key = subjects.leave_key(leave.cluster)
    await Bucket(bus, topology.POLICY).put(key, to_json(leave))


async def take_back(bus: Bus, cluster: str, *, by: str) -> str:
    """Have the levels that stand in the cluster taken away and nothing else written; returns a sentence on that.

    The word that it was taken back goes first: a leave that is merely gone leaves levels as they are.
    """
    bucket = Bucket(bus, topology.POLICY)
    # Of a leave that cannot be read any more, the last that could be says by which lever levels were written.
    found = await bucket.newest_readable(subjects.leave_key(cluster), LEAVE.decode)
    if not found.last_rev:
        return f"{cluster}: there was no leave to write"
    lever: LeverName = "boost" if found.value is None else found.value.lever
    word = Revocation(cluster=cluster, lever=lever, at=datetime.now(UTC), by=by)
    await bucket.put(subjects.revocation_key(cluster), to_json(word))
    await bucket.delete(subjects.leave_key(cluster))
    return (
        f"{cluster}: leave is taken back. Its admitter takes away the levels that stand, then writes no more"
    )
