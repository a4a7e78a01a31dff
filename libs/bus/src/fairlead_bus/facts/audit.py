"""Whether all that an owner said still stands: nobody hears of a purge."""

import asyncio
import random
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import JetStreamNotFoundError, RetryableBusError
from fairlead_bus.streams.catching_up import CatchingUp
from fairlead_bus.streams.feed import Feed

AUDIT_SECONDS = 600.0
"""A subject that was purged by hand is missed by whoever starts anew, for so long at most. At 100,000 jobs a look takes a
second of the processor."""


class Audit:
    """Replays an owner's subjects now and then, and tells what is missing.

    Args:
        bus: the connection.
        stream: of the subjects.
        filter: of the subjects.
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
        """What stood from the beginning to the end of a whole replay is shown by it."""
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
            await CatchingUp(self._bus, stream=self._stream, filter=self._filter).until(feed)
        return unshown & self._said()
