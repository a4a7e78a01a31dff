"""Messages that somebody else wrote under the subjects of one owner."""

import asyncio
from collections import deque

from nats.aio.msg import Msg

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import Ack
from fairlead_bus.errors import JetStreamNotFoundError, RetryableBusError
from fairlead_bus.streams.feed import Feed
from fairlead_contracts import subjects, topology

_AGAIN_SECONDS = 0.2


class ForeignWrites:
    """Hears the owner's own subjects. What was not acked to the owner is not the owner's.

    Bodies and headers prove nothing, as whoever may write the subject may write those; the sequence in an ack does.
    Nothing is heard before `begin` and after `end`. Trap: a purge is silent, a consumer hears nothing of it.

    Args:
        bus: the connection that the owner writes by.
        cluster: the cluster whose state the owner writes.
        wake: set when there may be something to take.
    """

    def __init__(self, bus: Bus, *, cluster: str, wake: asyncio.Event) -> None:
        self._bus = bus
        self._filter = subjects.state_filter(cluster)
        self._wake = wake
        self._begun = asyncio.Event()
        self._feed: Feed | None = None
        self._at = 0
        """Stream sequence heard last."""
        self._acked: deque[int] = deque()
        """Sequences that were acked to the owner and not heard yet, ascending: the server acks in that order."""
        self._heard: dict[int, str] = {}
        """Subjects that were heard and not acked to the owner, or not yet; by sequence."""

    def begin(self, after: int) -> None:
        """Takes what stands up to this sequence as known, and hears what comes behind it."""
        self.end()
        self._at = after
        self._begun.set()

    def end(self) -> None:
        """Hears nothing more, and forgets what was heard."""
        self._begun.clear()
        self._acked.clear()
        self._heard.clear()
        if self._feed is not None:
            self._feed.abandon("nothing is owned now, or all was looked at anew")

    def wrote(self, ack: Ack) -> None:
        """Notes a write that was acked to the owner."""
        if self._heard.pop(ack.seq, None) is None and ack.seq > self._at and self._begun.is_set():
            self._acked.append(ack.seq)

    def take(self) -> set[str]:
        """Subjects that somebody else wrote since the last take. Ask only while no write of the owner is unacked."""
        heard, self._heard = self._heard, {}
        return set(heard.values())

    async def run(self) -> None:
        """Hears until cancelled."""
        while True:
            await self._begun.wait()
            await self._bus.connection.until_connected()
            try:
                await self._hear()
            except (RetryableBusError, JetStreamNotFoundError):
                # The next feed begins behind the last message heard, so none is counted twice.
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _hear(self) -> None:
        feed = Feed(
            self._bus,
            stream=topology.STATE,
            subject=self._filter,
            deliver=self._take_in,
            start={"deliver_policy": "by_start_sequence", "opt_start_seq": self._at + 1},
            sliced=True,
        )
        self._feed = feed
        try:
            async with feed:
                await feed.until_broken()
        finally:
            self._feed = None

    def _take_in(self, message: Msg, seq: int) -> None:
        self._at = seq
        while self._acked and self._acked[0] < seq:
            self._acked.popleft()  # overwritten before it could be heard
        if self._acked and self._acked[0] == seq:
            self._acked.popleft()
            return
        if not self._heard:
            self._wake.set()
        self._heard[seq] = message.subject
