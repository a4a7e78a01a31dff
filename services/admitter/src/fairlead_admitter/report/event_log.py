"""The event log: what was done to jobs, each told on the subject of the job that it is about.

Whoever puts an event goes on at once: `run` waits for the stream to store it, and says what was lost.
"""

import asyncio

from fairlead_admitter.report.record import AdmitterRecord
from fairlead_bus import Bus, BusError, Publisher
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.events import Event


class EventLog:
    """Publishes events. It may get a gap when NATS is away, which is counted and told; what was done stands."""

    def __init__(self, bus: Bus, record: AdmitterRecord) -> None:
        self._publisher = Publisher(bus)
        self._record = record
        self._lost = 0
        self._why = ""
        self._due = asyncio.Event()

    async def put(self, event: Event) -> None:
        """Publish one; its ack is awaited in `run`."""
        self._due.set()
        subject = subjects.event(event.tenant, event.cluster, event.job)
        try:
            await self._publisher.put(subject, to_json(event), msg_id=event.id)
        except BusError as error:
            self._lose(error)

    async def run(self) -> None:
        """Hear of each event whether it is stored, until cancelled; the last ones are heard of even then."""
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                await self._settle()
        finally:
            await self._settle()

    async def _settle(self) -> None:
        try:
            await self._publisher.flush()
        except BusError as error:
            self._lose(error)
        if self._lost:
            self._record.events_lost(self._lost, self._why)
            self._lost = 0

    def _lose(self, error: BusError) -> None:
        self._lost += 1
        self._due.set()
        self._why = str(error)
