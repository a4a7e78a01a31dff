"""The loop: observe what the API server says, decide what is stated of it, and have it announced.

What NATS says is the announcer's business: it makes it equal after each election and reconnect, and then follows.
A standby does all of this but the announcing, so that it can take over at once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

from fairlead_bus.facts.announcer import Statements
from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_runtime.waiting import CpuTokenBucket, Pacing
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.instruments import WatcherInstruments
from fairlead_watcher.sources import WatchedKinds

AT_ONCE = 500
"""Workloads to translate before other tasks have a turn: they take some 20 ms."""
REST_SECONDS = 0.01
"""Seconds between two passes at least: each waits twice for NATS, whether it states one change or many."""
BUSY_REST_SECONDS = 0.25
"""Seconds between two passes at most, while changes exceed the allowance, as on a machine without CPU to spare. Scorers
and admitters then follow in as few passes, and a job that starts at once is stated once."""
LONGEST_SLEEP = 60.0
"""Seconds between two looks at the clock: it may have been set right meanwhile."""


class WatcherAudience(Protocol):
    """The audience of changed statements."""

    def update(self, statements: Statements) -> None:
        """Hears the statements that changed."""


@dataclass(eq=False)
class Watcher:
    """Keeps the view of a cluster up to date and hands on what changes in it."""

    sources: WatchedKinds
    """Sources of the cluster's objects; they deliver into the view."""
    view: ClusterView
    audience: WatcherAudience
    """Tells NATS, or the log."""
    instruments: WatcherInstruments
    _: KW_ONLY
    clock: Callable[[], Micros]
    wake: asyncio.Event
    """Set by the sources."""

    def __post_init__(self) -> None:
        self._pacing = Pacing(least=REST_SECONDS, rests=[CpuTokenBucket(BUSY_REST_SECONDS).due])
        self._all_heard = False
        self._held_back: Statements = {}

    async def run(self) -> None:
        """Runs until cancelled."""
        self.wake.set()
        while True:
            await self._wait_for_work()
            self.sources.look()
            stated = await self._settle()
            self._tell(stated)
            self.instruments.settled(self.view, len(stated))

    def unknown(self) -> str | None:
        """The reason for which the cluster is not known yet; None once it was: what is known is stated, however old."""
        return None if self._all_heard else self.sources.missing() or "the first look is under way"

    async def _wait_for_work(self) -> None:
        due = self.view.next_due()
        wait = LONGEST_SLEEP
        if due is not None:
            wait = min(max(to_seconds(due - self.clock()), 0.0), LONGEST_SLEEP)
        await self._pacing.wake_or_timeout(self.wake, wait)

    async def _settle(self) -> Statements:
        """Settles the view in parts: leases are renewed in between."""
        stated: Statements = {}
        with self.instruments.settle_seconds.time():
            while True:
                stated |= self.view.settle(self.clock(), at_most=AT_ONCE)
                if not self.view.unsettled:
                    return stated
                await asyncio.sleep(0)

    def _tell(self, stated: Statements) -> None:
        """Tells statements once all kinds were heard: without one kind, all of its objects would seem deleted."""
        self._held_back |= stated
        if not self._all_heard and self.sources.missing() is not None:
            return
        self._all_heard = True
        told, self._held_back = self._held_back, {}
        # Also without news: the audience may wait for the sources to be complete again.
        self.audience.update(told)
