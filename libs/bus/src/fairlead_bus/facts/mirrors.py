"""Mirrors of facts, of the decisions on them and of the policy, as whoever goes by them reads them."""

import asyncio

from fairlead_bus.connection.bus import Bus
from fairlead_bus.streams.bucket import bucket_stream
from fairlead_bus.streams.mirror import Mirror
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import Codec
from fairlead_contracts.messages.decisions import Decision, StatedPastUse, is_decided_at
from fairlead_contracts.messages.state import STATE, State, is_stated_at


def state_mirror(bus: Bus, cluster: str | None = None, wake: asyncio.Event | None = None) -> Mirror[State]:
    """A mirror of what a cluster states, or all do; it does not run yet.

    Args:
        bus: the connection.
        cluster: the cluster; None for all.
        wake: set by each change.
    """
    return Mirror(
        bus,
        stream=topology.STATE,
        filter=subjects.state_filter(cluster),
        codec=STATE,
        wake=wake or asyncio.Event(),
        stamp=lambda state: state.stamp,
        belongs=is_stated_at,
    )


def decision_mirror[T: (Decision, StatedPastUse)](
    bus: Bus, codec: Codec[T], wake: asyncio.Event | None = None
) -> Mirror[T]:
    """A mirror of all decisions, as far as the codec reads them; it does not run yet.

    It goes by no stamp: a claim doesn't know its epoch yet.

    Args:
        bus: the connection.
        codec: reads them.
        wake: set by each change.
    """
    return Mirror(
        bus,
        stream=topology.DECISION,
        filter=subjects.decision_filter(),
        codec=codec,
        wake=wake or asyncio.Event(),
        belongs=is_decided_at,
    )


class _UnreadValue:
    """Leaves values as they are: a document that does not validate is refused with all its problems, and is not missing."""

    def decode(self, payload: bytes) -> bytes:
        return payload


def policy_mirror(bus: Bus, wake: asyncio.Event) -> Mirror[bytes]:
    """A mirror of the policy's bucket, operators' words included; it does not run yet.

    Args:
        bus: the connection.
        wake: set by each change.
    """
    everything = subjects.kv_subject(topology.POLICY, ">")
    return Mirror(
        bus, stream=bucket_stream(topology.POLICY), filter=everything, codec=_UnreadValue(), wake=wake
    )
