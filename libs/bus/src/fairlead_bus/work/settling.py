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
"""Verdicts that come within so long are told together: no sender waits for them, and each time costs an answer of the server."""


class Settling:
    """Verdicts on their way to the server: `+ACK`, `-NAK`, `+TERM`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._due: deque[tuple[str, bytes]] = deque()
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    def put(self, reply: str, verdict: bytes) -> None:
        """Say it soon. Where it gets lost all the same, the message comes again after its ack wait."""
        self._due.append((reply, verdict))
        self._settled.clear()
        self._wake.set()

    async def run(self) -> None:
        """Tell the server until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(TOGETHER_SECONDS)
            self._wake.clear()
            while self._due:
                batch = [self._due.popleft() for _ in range(min(len(self._due), MOST_AT_ONCE))]
                try:
                    await self._tell(batch)
                except BusError as error:
                    # Nothing is lost: without a verdict they come again after the ack wait.
                    self._bus.observer.count("worker.unsettled", len(batch))
                    self._bus.observer.note("worker.unsettled", messages=len(batch), error=str(error))
            self._settled.set()

    async def finish(self, seconds: float) -> None:
        """Returns when all is said, or after so long; `run` must still do so."""
        try:
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        except TimeoutError:
            self._bus.observer.count("worker.unsettled", len(self._due))

    async def _tell(self, batch: list[tuple[str, bytes]]) -> None:
        """All of them once more over a reconnect: any may be lost like any message, and to hear one twice does no harm."""
        try:
            await self._send(batch)
        except RetryableBusError:
            await self._bus.wire.until_connected()
            await self._send(batch)

    async def _send(self, batch: list[tuple[str, bytes]]) -> None:
        *others, (reply, verdict) = batch
        for other, its in others:
            await self._bus.wire.send(other, its)
        await self._bus.wire.ask(reply, verdict, timeout=ACK_SECONDS)
