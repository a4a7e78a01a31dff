"""The event log: what was done to jobs, each told on the subject of the job that it is about.

Whoever puts an event goes on at once: `run` waits for the stream to store it, and says what was lost.
Of levels it tells what was written, from which decision, and why; of reserve mode, promises and passes.
"""

import asyncio
from collections.abc import Iterable

from fairlead_admitter.decide.steering import LevelWrite
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.job_traces import JobTraces
from fairlead_admitter.report.record import AdmitterRecord
from fairlead_admitter.report.reservation_record import ReservationNews
from fairlead_bus import Bus, BusError, Publisher
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.events import Event, EventBase, JobReserved, LevelWritten, about
from fairlead_contracts.messages.state import JobState
from fairlead_runtime.clock import wall_clock


class EventLog:
    """Publishes events. It may get a gap when NATS is away, which is counted and told; what was done stands."""

    def __init__(self, bus: Bus, record: AdmitterRecord) -> None:
        self._publisher = Publisher(bus)
        self._record = record
        self._lost = 0
        self._why = ""
        self._due = asyncio.Event()

    async def put(self, event: Event) -> None:
        """Publish an event; its ack is awaited in `run`."""
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


class JobEvents:
    """Logs an event for each level that was written, told to the job's trace, too, and for each piece of news of reserve mode."""

    def __init__(self, log: EventLog, policy: PolicyView, traces: JobTraces) -> None:
        self._log = log
        self._traces = traces
        self._policy = policy

    async def level_written(self, pool: str, write: LevelWrite, mark: str, decision: Decision | None) -> None:
        """Log one level that was written."""
        job, position = write.job, write.position
        tenant = self._policy.tenant_of(job) if position is None else position.tenant
        event = LevelWritten(
            **_about(job, f"level-{job.uid}-{mark}", tenant),
            before=write.before,
            level=write.level,
            pool=pool,
            shard=decision.shard if decision is not None else -1,
            epoch=decision.epoch if decision is not None else 0,
            turn=decision.turn if decision is not None else 0,
            rank=write.rank,
            because=write.because,
        )
        self._traces.wrote(event, decision)
        await self._log.put(event)

    async def reserved(self, news: Iterable[ReservationNews]) -> None:
        """Log the news."""
        for one in news:
            event = JobReserved(
                **_about(one.job, f"{one.job.uid}-{one.what}-{one.mark}", self._policy.tenant_of(one.job)),
                what=one.what,
                pool=one.pool,
                by=None if one.by is None else to_datetime(one.by),
                head=one.head,
                because=one.because,
            )
            await self._log.put(event)


def _about(job: JobState, event_id: str, tenant: str) -> EventBase:
    """The common part of an event of ours, by its id: the admitter knows the tenant."""
    return {**about(job.cluster, job, wall_clock(), ""), "id": event_id, "tenant": tenant}
