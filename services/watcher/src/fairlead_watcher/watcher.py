"""The loop: observe what the API server says, decide what is stated of it, and have it announced.

What NATS says is the announcer's business: it makes it equal after each election and reconnect, and then follows.
A standby does all of this but the announcing, so that it can take over at once.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from fairlead_bus.facts.announcer import Statements
from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_runtime.waiting import Allowance, Pacing
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.instruments import WatcherInstruments
from fairlead_watcher.sources import WatchedKinds

AT_ONCE = 500
"""Workloads to translate before other tasks have a turn: some 20 ms."""
REST_SECONDS = 0.01
"""Between two passes at least: each waits twice for NATS, whether it states one change or many."""
BUSY_REST_SECONDS = 0.25
"""The same at most, while more changes than the allowance is for: as many as Kueue makes on a machine that has nothing left.
What follows in scorers and admitters then comes in as few parts, and a job that starts as it comes is stated once."""
LONGEST_SLEEP = 60.0
"""Seconds between two looks at the clock: it may have been set right meanwhile."""


class WatcherAudience(Protocol):
    """The audience of what is stated differently from now on."""

    def update(self, statements: Statements) -> None:
        """Hears what is so now."""


class Watcher:
    """Keeps the view of a cluster up to date and hands on what changes in it.

    Args:
        sources: of the cluster's objects; they deliver into the view.
        view: of the cluster.
        audience: tells NATS, or the log.
        instruments: counts.
        clock: now.
        wake: set by the sources.
    """

    def __init__(
        self,
        sources: WatchedKinds,
        view: ClusterView,
        audience: WatcherAudience,
        instruments: WatcherInstruments,
        *,
        clock: Callable[[], Micros],
        wake: asyncio.Event,
    ) -> None:
        self._sources = sources
        self._view = view
        self._audience = audience
        self._instruments = instruments
        self._clock = clock
        self._wake = wake
        self._pacing = Pacing(least=REST_SECONDS, rests=[Allowance(BUSY_REST_SECONDS)])
        self._knows = False
        self._held_back: Statements = {}

    async def run(self) -> None:
        """Runs until cancelled."""
        self._wake.set()
        while True:
            await self._something_to_do()
            self._sources.look()
            stated = await self._settle()
            self._tell(stated)
            self._instruments.settled(self._view, len(stated))

    def unknown(self) -> str | None:
        """Why the cluster is not known yet, for /readyz; afterwards what is known is stated, however old."""
        return None if self._knows else self._sources.missing() or "the first look is under way"

    async def _something_to_do(self) -> None:
        due = self._view.next_due()
        wait = LONGEST_SLEEP
        if due is not None:
            wait = min(max(to_seconds(due - self._clock()), 0.0), LONGEST_SLEEP)
        await self._pacing.wake_or_timeout(self._wake, wait)

    async def _settle(self) -> Statements:
        """Settles in parts: leases are renewed meanwhile."""
        stated: Statements = {}
        with self._instruments.settle_seconds.time():
            while True:
                stated |= self._view.settle(self._clock(), at_most=AT_ONCE)
                if not self._view.unsettled:
                    return stated
                await asyncio.sleep(0)

    def _tell(self, stated: Statements) -> None:
        """Nothing before all kinds were heard: half a cluster would look as if the other half had been deleted."""
        self._held_back |= stated
        if not self._knows and self._sources.missing() is not None:
            return
        self._knows = True
        told, self._held_back = self._held_back, {}
        # Also without news: the audience may wait for the sources to be complete again.
        self._audience.update(told)
