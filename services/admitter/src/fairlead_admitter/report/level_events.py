"""The event log of levels: what was written, from which decision, and why."""

from datetime import UTC, datetime

from fairlead_admitter.decide.steering import LevelWrite
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.event_log import EventLog
from fairlead_admitter.report.job_traces import JobTraces
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.events import LevelWritten


class LevelEvents:
    """Logs an event for each level written, and tells it to the job's trace."""

    def __init__(self, log: EventLog, policy: PolicyView, traces: JobTraces) -> None:
        self._log = log
        self._traces = traces
        self._policy = policy

    async def log(self, pool: str, write: LevelWrite, mark: str, decision: Decision | None) -> None:
        """Log one write."""
        event = self._event(pool, write, mark, decision)
        self._traces.wrote(event, decision)
        await self._log.put(event)

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
            traceparent=job.traceparent,
            before=write.before,
            level=write.level,
            pool=pool,
            shard=decision.shard if decision is not None else -1,
            epoch=decision.epoch if decision is not None else 0,
            turn=decision.turn if decision is not None else 0,
            rank=write.rank,
            because=write.because,
        )
