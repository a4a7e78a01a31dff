"""Reading the event stream for runs that are over: of jobs that were stopped, or that nobody states any more."""

import asyncio

from fairlead_bus import Bus, Delivery, Follower, RetryableBusError
from fairlead_contracts import subjects
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.messages.events import EVENT, JobEnded, JobEvicted
from fairlead_contracts.topology import EVENT as EVENT_STREAM
from fairlead_scorer.state.past import FinishedRun

_SLACK = 60 * SECOND
"""Microseconds by which to begin earlier: the server's clock may be ahead of that by which an end is told."""
_TELLS_A_RUN = b'"run":{'
"""A text in the payload of each event that tells a run; others are not decoded."""


class RunHistory:
    """Runs that are over, from an instant on, each told at least once.

    Every connection reads again from the instant: a server that crashed may have given its last sequences anew.

    Args:
        bus: the connection.
        wake: set when there is something to take.
    """

    def __init__(self, bus: Bus, wake: asyncio.Event) -> None:
        self._bus = bus
        self._wake = wake
        self._since: Micros | None = None
        self._asked = asyncio.Event()
        self._reread = asyncio.Event()
        self._found: list[FinishedRun] = []
        self._seq = 0
        self._end: int | None = None
        self.complete = False
        """Whether all is read that was on the stream when we began to read."""

    def want(self, since: Micros) -> None:
        """Reads from this instant on, unless it is being read already from there or from before."""
        if self._since is None:
            self._since = since
            self._asked.set()
        elif since < self._since:
            self._begin_again()

    def take(self) -> list[FinishedRun]:
        """Takes the runs that were read since the last take."""
        found, self._found = self._found, []
        return found

    async def run(self) -> None:
        """Reads until cancelled, once it is known from where on."""
        forget = self._bus.on_connection(lambda _: self._begin_again())
        try:
            while True:
                await self._asked.wait()
                self._asked.clear()
                self._reread.clear()
                if self._since is not None:
                    await self._read_until_reread(self._since - _SLACK)
        finally:
            forget()

    def _begin_again(self) -> None:
        self.complete = False
        self._since = None
        self._reread.set()
        self._wake.set()

    async def _read_until_reread(self, since: Micros) -> None:
        self._seq, self._end = 0, None
        follower = Follower(self._bus, stream=EVENT_STREAM, filter=subjects.event_filter(), since=since)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._follow(follower), name="events"),
                group.create_task(self._find_end(follower, since), name="end of the events"),
            ]
            await self._reread.wait()
            for task in tasks:
                task.cancel()

    async def _follow(self, follower: Follower) -> None:
        async for delivery in follower:
            self._take_in(delivery)
            self._seq = delivery.stream_seq
            self._check_complete()

    async def _find_end(self, follower: Follower, since: Micros) -> None:
        await follower.ready.wait()
        try:
            last = await self._bus.last(EVENT_STREAM, subjects.event_filter())
        except RetryableBusError:
            self._begin_again()
            return
        self._end = 0 if last is None or last.at < since else last.seq
        self._check_complete()

    def _check_complete(self) -> None:
        if not self.complete and self._end is not None and self._seq >= self._end:
            self.complete = True
            self._wake.set()

    def _take_in(self, delivery: Delivery) -> None:
        if _TELLS_A_RUN not in delivery.payload:
            return
        try:
            event = EVENT.decode(delivery.payload)
        except ContractError as error:
            self._bus.observer.note("journal.malformed", subject=delivery.subject, error=str(error))
            return
        if isinstance(event, JobEvicted | JobEnded) and event.run is not None:
            found = FinishedRun.of(event.run, cluster=event.cluster, scope=event.scope, uid=event.uid)
            self._found.append(found)
            self._wake.set()
