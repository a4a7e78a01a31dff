"""Repair of an owner's statements: it says again what somebody else wrote over, deleted or added under its subjects.

An `Audit` looks now and then whether all that the owner said still stands: nobody hears of a purge.
"""

import asyncio
import random
from collections.abc import Callable
from collections.abc import Set as AbstractSet

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
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds of pause after what others wrote was put back: whoever overwrites without end causes few writes of ours."""
QUIET_SECONDS = 60.0
"""Seconds without anything to put back after which the first pause holds again."""


class Audit:
    """Replays an owner's subjects now and then, and tells what is missing.

    Args:
        filter: pattern of the subjects.
        said: the subjects that were acked to the owner and not deleted since; none while nobody knows.
        lacks: told those that do not stand.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        stream: str,
        filter: str,  # noqa: A002 - the word of NATS
        said: Callable[[], AbstractSet[str]],
        lacks: Callable[[set[str]], None],
    ) -> None:
        self._bus = bus
        self._stream = stream
        self._filter = filter
        self._said = said
        self._lacks = lacks

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            await asyncio.sleep(AUDIT_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - not a secret
            try:
                if found := await self._missing():
                    self._bus.observer.count("announcer.purged", len(found))
                    self._lacks(found)
            except (RetryableBusError, JetStreamNotFoundError):
                continue  # a reconnect compares everything anyway

    async def _missing(self) -> set[str]:
        """The subjects that should have stood all through a replay, and that it did not show."""
        unshown = set(self._said())
        if not unshown:
            return unshown
        feed = Feed(
            self._bus,
            stream=self._stream,
            subject=self._filter,
            deliver=lambda message, _: unshown.discard(message.subject),
            sliced=True,
        )
        async with feed:
            await feed.catch_up()
        return unshown & self._said()


class Repair:
    """The subjects of a cluster that are due to be said again, and the time of it.

    Args:
        bus: the connection that the owner writes by.
        wake: set when there may be something due.
        said: the subjects that should stand; none while nobody knows.
    """

    def __init__(
        self,
        bus: Bus,
        leadership: Leadership,
        *,
        cluster: str,
        wake: asyncio.Event,
        said: Callable[[], AbstractSet[str]],
    ) -> None:
        self._leadership = leadership
        self._cluster = cluster
        self._wake = wake
        self._observer = bus.observer
        self._notes = RateLimitedNotes(bus.observer)
        filtered = subjects.state_filter(cluster)
        self.foreign = ForeignWrites(bus, stream=topology.STATE, filter=filtered, wake=wake)
        self._audit = Audit(bus, stream=topology.STATE, filter=filtered, said=said, lacks=self._add)
        self._overwritten: set[str] = set()
        self._pause = FIRST_PAUSE
        self._put_back_at = -QUIET_SECONDS
        """Monotonic seconds at which objects were last put back."""
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
            group.create_task(self.foreign.run(), name=f"own subjects of {self._cluster}")
            group.create_task(self._audit.run(), name=f"audit of {self._cluster}")

    def _add(self, missing: set[str]) -> None:
        self._overwritten |= missing
        self._wake.set()

    async def due(self) -> set[str]:
        """The subjects to state again now, once it is sure that we lead. Ask while all our writes are acked.

        Else a leader that lost its lease without knowing would write over what the next one states.

        Raises:
            RetryableBusError: whether we lead could not be found out.
        """
        self._overwritten |= self.foreign.take()
        if not self._overwritten:
            return set()
        loop = asyncio.get_running_loop()
        since = loop.time() - self._put_back_at
        if since < self._pause:
            loop.call_later(self._pause - since, self._wake.set)
            return set()
        if not await self._leadership.is_confirmed():
            return set()
        changed, self._overwritten = self._overwritten, set()
        self._notes.note(
            "announcer.overwritten", subject=min(changed), subjects=len(changed), cluster=self._cluster
        )
        return changed

    def done(self, subjects: int) -> None:
        """Notes that so many were said again."""
        self.put_back += subjects
        self._observer.count("announcer.put_back", subjects)
        now = asyncio.get_running_loop().time()
        quiet = now - self._put_back_at > QUIET_SECONDS
        self._pause = FIRST_PAUSE if quiet else min(2 * self._pause, LONGEST_PAUSE)
        self._put_back_at = now
