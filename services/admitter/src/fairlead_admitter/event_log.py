"""The event log: what was done to jobs, each told on the subject of the job that it is about."""

from fairlead_admitter.record import Record
from fairlead_bus import Bus, BusError, Publisher
from fairlead_contracts import subjects
from fairlead_contracts.codec import to_json
from fairlead_contracts.events import Event


class EventLog:
    """Publishes events. It may get a gap when NATS is away, which is counted and told; what was done stands."""

    def __init__(self, bus: Bus, record: Record) -> None:
        self._publisher = Publisher(bus)
        self._record = record
        self._lost = 0
        self._why = ""

    async def put(self, event: Event) -> None:
        """Publish one; its ack is awaited in `flush`."""
        subject = subjects.event(event.tenant, event.cluster, event.job)
        try:
            await self._publisher.put(subject, to_json(event), msg_id=event.id)
        except BusError as error:
            self._lose(error)

    async def flush(self) -> None:
        """Return when all are stored, or known not to be."""
        try:
            await self._publisher.flush()
        except BusError as error:
            self._lose(error)
        if self._lost:
            self._record.events_lost(self._lost, self._why)
            self._lost = 0

    def _lose(self, error: BusError) -> None:
        self._lost += 1
        self._why = str(error)
