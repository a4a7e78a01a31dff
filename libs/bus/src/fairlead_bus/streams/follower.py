"""New messages of a stream, in order, over reconnects."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from datetime import UTC

from nats.aio.msg import Msg

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import RetryableBusError
from fairlead_bus.streams.delivery import Delivery, read_delivery
from fairlead_bus.streams.feed import NEW, Feed
from fairlead_contracts.base.instants import Micros, to_datetime

BACKLOG = 65_536
"""Messages held for a slow reader; beyond it the feed ends and resumes where the reader stands."""


class Follower:
    """Iterates over the messages of a filter, from now or from an instant on, without a durable.

    For streams whose messages stay: a break resumes behind the last message given, so nothing is lost or given twice.
    Wait for `ready` before causing what shall be followed.
    """

    def __init__(self, bus: Bus, *, stream: str, filter: str, since: Micros | None = None) -> None:  # noqa: A002 - the word of NATS
        self._bus = bus
        self._stream = stream
        self._filter = filter
        self._since = since
        self._after: int | None = None
        self._held: deque[Delivery] = deque()
        self._more = asyncio.Event()
        self.ready = asyncio.Event()
        """Set once the server knows of us: what is published from then on will be given."""

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while True:
            await self._bus.connection.until_connected()
            try:
                async with self._feed() as feed:
                    if self._after is None and self._since is None:
                        self._after = feed.created.delivered.stream_seq
                    self.ready.set()
                    async for delivery in self._given(feed):
                        yield delivery
            except RetryableBusError as error:
                self._bus.observer.note("follower.resumed", filter=self._filter, reason=str(error))
            self._held.clear()
            await asyncio.sleep(0.05)

    async def _given(self, feed: Feed) -> AsyncIterator[Delivery]:
        feed.broken.add_done_callback(lambda _: self._more.set())
        while True:
            while self._held:
                delivery = self._held.popleft()
                self._after = delivery.stream_seq
                yield delivery
            feed.check()
            self._more.clear()
            await self._more.wait()

    def _feed(self) -> Feed:
        """Feeds the reader; ends when the reader is too slow: what it then lacks is behind the message given last."""

        def hold(message: Msg, seq: int) -> None:
            del seq  # the delivery has it
            if len(self._held) >= BACKLOG:
                self._bus.observer.count("follower.overflow")
                feed.abandon("the reader is slower than the stream")
                return
            self._held.append(read_delivery(message))
            self._more.set()

        feed = Feed(self._bus, stream=self._stream, subject=self._filter, deliver=hold, start=self._start())
        return feed

    def _start(self) -> Mapping[str, object]:
        if self._after is not None:
            return {"deliver_policy": "by_start_sequence", "opt_start_seq": self._after + 1}
        if self._since is not None:
            start = to_datetime(self._since).astimezone(UTC).isoformat().replace("+00:00", "Z")
            return {"deliver_policy": "by_start_time", "opt_start_time": start}
        return NEW
