"""The event log of levels: what was written, from which decision, and why."""

from datetime import UTC, datetime

from fairlead_admitter.policy_view import PolicyView
from fairlead_admitter.record import Record
from fairlead_admitter.steering import LevelWrite
from fairlead_bus import Bus, BusError, Publisher
from fairlead_contracts import subjects
from fairlead_contracts.codec import to_json
from fairlead_contracts.decisions import Decision
from fairlead_contracts.events import LevelWritten


class LevelEvents:
    """Publishes an event for each level written. The log may get a gap when NATS is away; the write stands."""

    def __init__(self, bus: Bus, policy: PolicyView, record: Record) -> None:
        self._publisher = Publisher(bus)
        self._policy = policy
        self._record = record
        self._lost = 0
        self._why = ""

    async def log(self, pool: str, write: LevelWrite, mark: str, decision: Decision | None) -> None:
        """Publish the event of one write; its acks are awaited in `flush`."""
        event = self._event(pool, write, mark, decision)
        subject = subjects.event(event.tenant, event.cluster, event.job)
        try:
            await self._publisher.put(subject, to_json(event), msg_id=event.id)
        except BusError as error:
            self._lost += 1
            self._why = str(error)

    async def flush(self) -> None:
        """Return when the events are stored, or known not to be."""
        try:
            await self._publisher.flush()
        except BusError as error:
            self._lost += 1
            self._why = str(error)
        if self._lost:
            self._record.event_lost(self._lost, self._why)
            self._lost = 0

    def _event(self, pool: str, write: LevelWrite, mark: str, decision: Decision | None) -> LevelWritten:
        job = write.job
        return LevelWritten(
            id=f"level-{job.uid}-{mark}",
            at=datetime.now(UTC),
            cluster=job.cluster,
            tenant=write.place.tenant if write.place is not None else self._policy.tenant_of(job),
            scope=job.scope,
            job=job.id,
            uid=job.uid,
            submission=job.submission,
            traceparent=job.traceparent or (decision.traceparent if decision is not None else None),
            before=write.before,
            level=write.level,
            pool=pool,
            shard=decision.shard if decision is not None else -1,
            epoch=decision.epoch if decision is not None else 0,
            turn=decision.turn if decision is not None else 0,
            rank=write.rank,
            because=write.because,
        )
