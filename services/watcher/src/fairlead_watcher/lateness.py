"""Lateness of levels, as the cluster's admitter tells it: a reason to tell changes together.

A machine without CPU to spare starts jobs faster than levels reach them. Each change that is told by itself then costs
scorers and admitter a pass, and the cluster the CPU for it.
"""

import asyncio
import time

from fairlead_bus import Bus, Mirror, bucket_stream
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.members import LEADER_LEASE, LeaderLease
from fairlead_runtime.waiting import until_next


class Lateness:
    """Hears the lease of the cluster's admitter.

    Args:
        bus: the connection.
        cluster: the watcher's.
    """

    def __init__(self, bus: Bus, cluster: str) -> None:
        self._subject = subjects.kv_subject(topology.MEMBERS, subjects.leader_key("admitter", cluster))
        self._lease: Mirror[LeaderLease] = Mirror(
            bus,
            stream=bucket_stream(topology.MEMBERS),
            filter=self._subject,
            codec=LEADER_LEASE,
            wake=asyncio.Event(),
        )

    def due(self) -> float:
        """Seconds to rest now. All kinds rest until the same instants, so that one pass tells what they show."""
        lease = self._lease.values.get(self._subject)
        return 0.0 if lease is None else until_next(lease.late_by, time.monotonic())

    async def run(self) -> None:
        """Hears until cancelled."""
        await self._lease.run()
