"""The event log of reserve mode: promises and passes, on the subject of the job that they are about."""

from collections.abc import Iterable

from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.event_log import EventLog
from fairlead_admitter.report.reservation_record import ReservationNews
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages.events import JobReserved
from fairlead_runtime.clock import wall_clock


class ReserveEvents:
    """Logs an event for each piece of news."""

    def __init__(self, log: EventLog, policy: PolicyView) -> None:
        self._log = log
        self._policy = policy

    async def log(self, news: Iterable[ReservationNews]) -> None:
        """Log them."""
        for one in news:
            await self._log.put(self._event(one))

    def _event(self, news: ReservationNews) -> JobReserved:
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
