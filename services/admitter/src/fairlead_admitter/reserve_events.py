"""The event log of reserve mode: promises and passes, on the subject of the job that they are about."""

from collections.abc import Iterable

from fairlead_admitter.policy_view import PolicyView
from fairlead_admitter.record import Record
from fairlead_admitter.reservations import News
from fairlead_bus import Bus, BusError, Publisher
from fairlead_contracts import subjects
from fairlead_contracts.codec import to_json
from fairlead_contracts.events import JobReserved
from fairlead_contracts.instants import to_datetime
from fairlead_runtime import wall_clock


class ReserveEvents:
    """Publishes an event for each piece of news. The log may get a gap when NATS is away."""

    def __init__(self, bus: Bus, policy: PolicyView, record: Record) -> None:
        self._publisher = Publisher(bus)
        self._policy = policy
        self._record = record

    async def log(self, news: Iterable[News]) -> None:
        """Publish, and return when all are stored or known not to be."""
        lost, why = 0, ""
        for one in news:
            event = self._event(one)
            subject = subjects.event(event.tenant, event.cluster, event.job)
            try:
                await self._publisher.put(subject, to_json(event), msg_id=event.id)
            except BusError as error:
                lost, why = lost + 1, str(error)
        try:
            await self._publisher.flush()
        except BusError as error:
            lost, why = lost + 1, str(error)
        if lost:
            self._record.event_lost(lost, why)

    def _event(self, news: News) -> JobReserved:
        job = news.job
        return JobReserved(
            id=f"{job.uid}-{news.what}-{news.mark}",
            at=to_datetime(wall_clock()),
            cluster=job.cluster,
            tenant=self._policy.tenant_of(job),
            scope=job.scope,
            job=job.id,
            uid=job.uid,
            submission=job.submission,
            traceparent=job.traceparent,
            what=news.what,
            pool=news.pool,
            by=None if news.by is None else to_datetime(news.by),
            head=news.head,
            because=news.because,
        )
