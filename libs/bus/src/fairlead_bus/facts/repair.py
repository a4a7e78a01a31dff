"""Repair of an owner's statements: it says again what somebody else wrote over, deleted or added under its subjects.

Nobody hears of a purge: of all that is looked for by the sync mark, of single subjects by an audit now and then.
"""

import asyncio
import random
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import JetStreamNotFoundError, RetryableBusError
from fairlead_bus.facts.foreign_writes import ForeignWrites
from fairlead_bus.observer import RateLimitedNotes
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.streams.feed import Feed
from fairlead_contracts import subjects, topology

AUDIT_SECONDS = 600.0
"""Seconds between two audits: whoever starts anew misses a subject that was purged by hand for so long at most. At
100,000 jobs an audit takes a second of the processor."""
LOOK_SECONDS = 5.0
"""Seconds between two looks whether the sync mark still stands."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds of pause after what others wrote was put back: whoever overwrites without end causes few writes of ours."""
QUIET_SECONDS = 60.0
"""Seconds without anything to put back after which the first pause holds again."""


@dataclass(eq=False)
class Repair:
    """Knows which subjects of a cluster the owner must state again, and when."""

    bus: Bus
    """The connection that the owner writes by."""
    leadership: Leadership
    _: KW_ONLY
    cluster: str
    wake: asyncio.Event
    """Set when there may be something due."""
    said: Callable[[], AbstractSet[str]]
    """The subjects that were acked to the owner and not deleted since; none while nobody knows."""

    def __post_init__(self) -> None:
        self._notes = RateLimitedNotes(self.bus.observer)
        self.foreign = ForeignWrites(self.bus, cluster=self.cluster, wake=self.wake)
        self._overwritten: set[str] = set()
        self._pause = FIRST_PAUSE
        self._put_back_at = -QUIET_SECONDS
        """Monotonic seconds at which objects were last put back."""
        self._mark_looked_at = 0.0
        """Monotonic seconds at which the mark was last looked for."""
        self.put_back = 0
        """Times that an object was stated again."""

    def begin(self, after: int) -> None:
        """Hears what others write behind this stream sequence: all before it was looked at."""
        self.foreign.begin(after)
        self._overwritten.clear()

    def end(self) -> None:
        """Hears nothing more: we own nothing now."""
        self.foreign.end()
        self._overwritten.clear()

    async def run(self) -> None:
        """Listens and looks until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.foreign.run(), name=f"own subjects of {self.cluster}")
            group.create_task(self._audit(), name=f"audit of {self.cluster}")

    async def was_purged(self) -> bool:
        """Whether the state was purged: whatever takes all of a cluster's state away takes its mark away, too."""
        now = asyncio.get_running_loop().time()
        if now - self._mark_looked_at < LOOK_SECONDS:
            return False
        self._mark_looked_at = now
        if await self.bus.last(topology.STATE, subjects.mark(self.cluster)) is not None:
            return False
        self._notes.note("announcer.purged", cluster=self.cluster)
        return True

    async def _audit(self) -> None:
        while True:
            await asyncio.sleep(AUDIT_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - not a secret
            try:
                missing = await self._missing()
            except (RetryableBusError, JetStreamNotFoundError):
                continue  # a reconnect compares everything anyway
            if missing:
                self.bus.observer.count("announcer.purged", len(missing))
                self._overwritten |= missing
                self.wake.set()

    async def _missing(self) -> set[str]:
        """Subjects that should have stood during the whole replay, and were not in it."""
        unshown = set(self.said())
        if not unshown:
            return unshown
        feed = Feed(
            self.bus,
            stream=topology.STATE,
            subject=subjects.state_filter(self.cluster),
            deliver=lambda message, _: unshown.discard(message.subject),
            sliced=True,
        )
        async with feed:
            await feed.catch_up()
        return unshown & self.said()

    async def due(self) -> set[str]:
        """The subjects to state again now. Ask while all our writes are acked.

        None before the server has confirmed our lease: a leader that lost it without knowing would write over what the next
        one states.

        Raises:
            RetryableBusError: whether we lead could not be found out.
        """
        self._overwritten |= self.foreign.take()
        if not self._overwritten:
            return set()
        loop = asyncio.get_running_loop()
        since = loop.time() - self._put_back_at
        if since < self._pause:
            loop.call_later(self._pause - since, self.wake.set)
            return set()
        if not await self.leadership.is_confirmed():
            return set()
        changed, self._overwritten = self._overwritten, set()
        self._notes.note(
            "announcer.overwritten", subject=min(changed), subjects=len(changed), cluster=self.cluster
        )
        return changed

    def done(self, subjects: int) -> None:
        """Notes that so many were said again."""
        self.put_back += subjects
        self.bus.observer.count("announcer.put_back", subjects)
        now = asyncio.get_running_loop().time()
        quiet = now - self._put_back_at > QUIET_SECONDS
        self._pause = FIRST_PAUSE if quiet else min(2 * self._pause, LONGEST_PAUSE)
        self._put_back_at = now
