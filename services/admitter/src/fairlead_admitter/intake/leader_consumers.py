"""The consumers that only the leader runs: intake and answers.

Losing the lead stops them at once: whatever is being handled is dropped where it stands, unacked, and comes again to
whoever leads then. Both consumers can be dropped at any point, as their effects are idempotent by name.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass

from fairlead_bus import Bus, Delivery
from fairlead_bus.work.worker import Worker
from fairlead_contracts import subjects
from fairlead_contracts.base.instants import Micros
from fairlead_runtime.waiting import wake_or_timeout

_SHARE_OF_A_TENANT = 4
"""The part of all places that one tenant's deliveries take at most: its namespace may be in trouble."""
_LOOK_SECONDS = 1.0
_GRACE_SECONDS = 2.0
"""Seconds that deliveries in hand get on a clean end: an unfinished one waits for its ack wait to pass."""


def share_of_a_tenant(parallel: int) -> int:
    """Number of deliveries of one tenant that are handled at once, of `parallel` in all."""
    return max(1, parallel // _SHARE_OF_A_TENANT)


@dataclass(eq=False)
class DurableConsumer:
    """The consumer of one durable's deliveries, which are handled while it runs."""

    bus: Bus
    _: KW_ONLY
    stream: str
    """The durable's stream."""
    durable: str
    """The durable's name."""
    handle: Callable[[Delivery], Awaitable[None]]
    """Handles one delivery; may be cancelled anywhere."""
    parallel: int
    """Number of deliveries handled at once; of one tenant, `share_of_a_tenant` of these. Tenants take turns."""
    overtaking: str | None = None
    """Pattern of the durable's subjects, where a tenant's flood shall not stand before the others'."""
    concerns: Callable[[Delivery], bool] | None = None
    """Whether a delivery is to be handled at all; by default each is."""

    def __post_init__(self) -> None:
        self._worker: Worker | None = None
        self.settled = 0
        """Number of deliveries that were handled to their end."""

    @property
    def held(self) -> list[Delivery]:
        """The deliveries that wait in line or are being handled."""
        return [] if self._worker is None else self._worker.held

    @property
    def oldest(self) -> Micros | None:
        """The instant at which the oldest delivery was stored that is not settled yet; None where there is none."""
        return None if self._worker is None else self._worker.oldest

    @property
    def parked(self) -> int:
        """Number of deliveries that are kept until they can be handled."""
        return 0 if self._worker is None else self._worker.parked

    async def run(self) -> None:
        """Handle deliveries until told to finish, or cancelled."""
        self._worker = Worker(
            self.bus,
            stream=self.stream,
            durable=self.durable,
            handle=self._counted,
            parallel=self.parallel,
            line_of=subjects.line_of,
            share=share_of_a_tenant(self.parallel),
            overtaking=self.overtaking,
            concerns=self.concerns,
        )
        try:
            await self._worker.run()
        finally:
            self._worker = None

    def finish(self) -> None:
        """Takes no more deliveries; `run` returns when those in hand are done."""
        if self._worker is not None:
            self._worker.stop()

    def drop(self) -> None:
        """Drops the deliveries in hand. A worker waits for its handlers, so they have to end before it is cancelled."""
        if self._worker is not None:
            self._worker.drop()

    async def _counted(self, delivery: Delivery) -> None:
        await self.handle(delivery)
        self.settled += 1


@dataclass(eq=False)
class LeaderConsumers:
    """Runs consumers while this replica leads."""

    consumers: list[DurableConsumer]
    """The consumers to run."""
    _: KW_ONLY
    begin: Callable[[], None]
    """Called before the consumers run, at the beginning of each lead."""
    lead: Callable[[], int | None]
    """The epoch under which this replica leads, else None."""
    led: asyncio.Event
    """Set when that changes."""
    wake: asyncio.Event
    """The event that wakes the reconciler, which has to hear of the change too."""

    def __post_init__(self) -> None:
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Follow the lead until cancelled, then come to a clean end."""
        epoch: int | None = None
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    if self.lead() != epoch:
                        epoch = self.lead()
                        self.wake.set()
                        await self._stop()
                        if epoch is not None:
                            self.begin()
                            self._running = group.create_task(self._serve(), name="consumers")
                    await wake_or_timeout(self.led, _LOOK_SECONDS)
            finally:
                await self._come_to_an_end()

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as group:
            for consumer in self.consumers:
                group.create_task(consumer.run())

    async def _come_to_an_end(self) -> None:
        if self._running is not None and self.lead() is not None:
            for consumer in self.consumers:
                consumer.finish()
            await asyncio.wait([self._running], timeout=_GRACE_SECONDS)
        await self._stop()

    async def _stop(self) -> None:
        if self._running is not None:
            for consumer in self.consumers:
                consumer.drop()
            self._running.cancel()
            await asyncio.wait([self._running])
            self._running = None
