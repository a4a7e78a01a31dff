"""Telling the server what became of messages, many at a time.

JetStream has no word for several messages of a durable that acks each by itself. But what one connection says to one
consumer is heard in order: where the last of some verdicts is confirmed, those before it were heard, too. So a handler
does not wait for the server, and a hundred verdicts cost one answer.
"""

import asyncio
from collections import deque

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import BusError, RetryableBusError

ACK_SECONDS = 2.0
MOST_AT_ONCE = 256
TOGETHER_SECONDS = 0.01
"""Seconds within which verdicts are gathered and sent together: no sender waits for them, and each batch costs an
answer of the server."""


class AckBatcher:
    """Sends verdicts to the server in batches: `+ACK`, `-NAK`, `+TERM`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._unsent: deque[tuple[str, bytes]] = deque()
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    def put(self, reply: str, verdict: bytes) -> None:
        """Has the verdict sent soon. Where it gets lost all the same, the message comes again after its ack wait."""
        self._unsent.append((reply, verdict))
        self._settled.clear()
        self._wake.set()

    async def run(self) -> None:
        """Sends verdicts until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(TOGETHER_SECONDS)
            self._wake.clear()
            while self._unsent:
                batch = [self._unsent.popleft() for _ in range(min(len(self._unsent), MOST_AT_ONCE))]
                try:
                    await self._tell(batch)
                except BusError as error:
                    # Nothing is lost: without a verdict they come again after the ack wait.
                    self._bus.observer.count("worker.unsettled", len(batch) - 1)  # the note is the last one
                    self._bus.observer.note("worker.unsettled", messages=len(batch), error=str(error))
            self._settled.set()

    async def finish(self, seconds: float) -> None:
        """Returns when all verdicts are sent, or after so many seconds. `run` must still run meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        except TimeoutError:
            self._bus.observer.count("worker.unsettled", len(self._unsent))

    async def _tell(self, batch: list[tuple[str, bytes]]) -> None:
        """Sends the verdicts, all of them again after a lost connection: a verdict that comes twice does no harm."""
        try:
            await self._send(batch)
        except RetryableBusError:
            await self._bus.connection.until_connected()
            await self._send(batch)

    async def _send(self, batch: list[tuple[str, bytes]]) -> None:
        *others, (reply, verdict) = batch
        for other, its in others:
            await self._bus.connection.send(other, its)
        await self._bus.connection.ask(reply, verdict, timeout=ACK_SECONDS)
