"""The lever that the cluster's admitter found: a boost that Kueue does not read is no part of a level.

Nothing in the cluster shows it, and the watcher may not ask (that takes a right to create), so it is heard on NATS.
"""

import asyncio
from typing import Protocol

from fairlead_bus import Bus, Mirror, bucket_stream
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.leave import LEVER_FOUND, LeverFound


class DeliverLever(Protocol):
    """A receiver that is told whether Kueue reads boosts."""

    def __call__(self, *, read: bool) -> None:
        """Takes whether Kueue reads boosts."""


class LeverSource:
    """A source that tells whether Kueue reads boosts, beside those of the cluster's kinds.

    Args:
        bus: the connection.
        cluster: the watcher's.
        deliver: takes whether boosts are read.
        wake: set when there is something to look at.
    """

    name = "lever"

    def __init__(self, bus: Bus, cluster: str, deliver: DeliverLever, *, wake: asyncio.Event) -> None:
        self._deliver = deliver
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
            self._deliver(read=found is None or found.lever == "boost")

    async def run(self) -> None:
        """Follow the bucket until cancelled."""
        await self._mirror.run()
