"""The words of the cluster's admitter that the watcher hears on NATS: the lever that it found, and how late levels are."""

import asyncio
import time

from fairlead_bus import Bus, Mirror, bucket_stream
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.leave import LEVER_FOUND, LeverFound
from fairlead_contracts.messages.members import LEADER_LEASE, LeaderLease
from fairlead_runtime.waiting import until_next
from fairlead_watcher.cluster_view import ClusterView


class LeverSource:
    """A source that tells whether Kueue reads boosts, beside those of the cluster's kinds.

    A boost that Kueue does not read is no part of a level. Nothing in the cluster shows it, and the watcher may not ask
    (that takes a right to create).

    Args:
        view: takes whether boosts are read.
    """

    name = "lever"

    def __init__(self, bus: Bus, cluster: str, view: ClusterView, *, wake: asyncio.Event) -> None:
        self._view = view
        self._mirror: Mirror[LeverFound] = Mirror(
            bus,
            stream=bucket_stream(topology.POLICY),
            filter=subjects.kv_subject(topology.POLICY, subjects.lever_key(cluster)),
            codec=LEVER_FOUND,
            wake=wake,
        )

    @property
    def missing(self) -> str | None:
        """The reason for which it is not known whether boosts are read; None where the bucket was read."""
        return None if self._mirror.complete else "lever: what was found of it is not read yet"

    def age_seconds(self) -> float:
        """0 always: the finding comes from NATS, not from the API server."""
        return 0.0

    def look(self) -> None:
        """Hand over what was found. Where nobody could tell, boosts count: leave is given for these alone where they are read."""
        for found in self._mirror.take().changed.values():
            self._view.boosts(read=found is None or found.lever == "boost")

    async def run(self) -> None:
        """Follow the bucket until cancelled."""
        await self._mirror.run()


class Lateness:
    """Hears how late levels are: a reason to tell changes together.

    A machine without CPU to spare starts jobs faster than levels reach them. Each change that is told by itself then costs
    scorers and admitter a pass, and the cluster the CPU for it.
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
