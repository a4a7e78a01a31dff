"""The lanes that only the leader runs: intake and answers.

Losing the lead stops them at once: whatever is being handled is dropped where it stands, unacked, and comes again to
whoever leads then. Both lanes can be dropped at any point, as their effects are idempotent by name.
"""

import asyncio
from collections.abc import Awaitable, Callable

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


class DurableLane:
    """The lane of one durable's deliveries, which are handled while it runs.

    Args:
        bus: the connection.
        stream: the durable's stream.
        durable: the durable's name.
        handle: handles one delivery; may be cancelled anywhere.
        parallel: number of deliveries handled at once; of one tenant, `share_of_a_tenant` of these. Tenants take turns.
        overtaking: pattern of the durable's subjects, where a tenant's flood shall not stand before the others'.
        concerns: whether a delivery is to be handled at all; by default each is.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        stream: str,
        durable: str,
        handle: Callable[[Delivery], Awaitable[None]],
        parallel: int,
        overtaking: str | None = None,
        concerns: Callable[[Delivery], bool] | None = None,
    ) -> None:
        self._bus = bus
        self._stream = stream
        self._durable = durable
        self._handle = handle
        self._parallel = parallel
        self._overtaking = overtaking
        self._concerns = concerns
        self._worker: Worker | None = None
        self._busy: set[asyncio.Task[object]] = set()
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
            self._bus,
            stream=self._stream,
            durable=self._durable,
            handle=self._tracked,
            parallel=self._parallel,
            line_of=subjects.line_of,
            share=share_of_a_tenant(self._parallel),
            overtaking=self._overtaking,
            concerns=self._concerns,
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
        for task in self._busy:
            task.cancel()

    async def _tracked(self, delivery: Delivery) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 # a coroutine runs in a task
        self._busy.add(task)
        try:
            await self._handle(delivery)
            self.settled += 1
        finally:
            self._busy.discard(task)


class LeaderLanes:
    """Runs lanes while this replica leads.

    Args:
        lanes: the lanes to run.
        begin: called before the lanes run, at the beginning of each lead.
        lead: the epoch under which this replica leads, else None.
        led: set when that changes.
        wake: the reconciler's: it has to hear of the change too.
    """

    def __init__(
        self,
        lanes: list[DurableLane],
        *,
        begin: Callable[[], None],
        lead: Callable[[], int | None],
        led: asyncio.Event,
        wake: asyncio.Event,
    ) -> None:
        self._lanes = lanes
        self._begin = begin
        self._lead = lead
        self._led = led
        self._wake = wake
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Follow the lead until cancelled, then come to a clean end."""
        epoch: int | None = None
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    if self._lead() != epoch:
                        epoch = self._lead()
                        self._wake.set()
                        await self._stop()
                        if epoch is not None:
                            self._begin()
                            self._running = group.create_task(self._serve(), name="lanes")
                    await wake_or_timeout(self._led, _LOOK_SECONDS)
            finally:
                await self._come_to_an_end()

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(lane.run())

    async def _come_to_an_end(self) -> None:
        if self._running is not None and self._lead() is not None:
            for lane in self._lanes:
                lane.finish()
            await asyncio.wait([self._running], timeout=_GRACE_SECONDS)
        await self._stop()

    async def _stop(self) -> None:
        if self._running is not None:
            for lane in self._lanes:
                lane.drop()
            self._running.cancel()
            await asyncio.wait([self._running])
            self._running = None
