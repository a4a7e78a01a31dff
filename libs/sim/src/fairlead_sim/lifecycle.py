"""The events of a simulated job's life. Their ids are made of its uid: each happens once, in every copy the same."""

from fairlead_contracts.events import JobEnded, JobQueued, JobStarted
from fairlead_contracts.instants import Micros, to_datetime, to_seconds
from fairlead_contracts.state import Outcome
from fairlead_sim.jobs import SimJob


def queued(cluster: str, job: SimJob, at: Micros) -> JobQueued:
    """The job stands in its queue. A simulated cluster knows no tenants: it names the scope."""
    return JobQueued(
        id=f"{job.uid}-queued",
        at=to_datetime(at),
        cluster=cluster,
        tenant=job.scope,
        scope=job.scope,
        job=job.id,
        uid=job.uid,
        submission=job.submission,
        traceparent=job.traceparent,
        queue=job.queue,
        demand=job.demand,
        requested_class=job.requested_class,
    )


def started(cluster: str, job: SimJob, at: Micros) -> JobStarted:
    """The job runs."""
    return JobStarted(
        id=f"{job.uid}-started",
        at=to_datetime(at),
        cluster=cluster,
        tenant=job.scope,
        scope=job.scope,
        job=job.id,
        uid=job.uid,
        submission=job.submission,
        traceparent=job.traceparent,
        waited_seconds=to_seconds(at - job.submitted),
        level=job.level,
        demand=job.demand,
    )


def ended(cluster: str, job: SimJob, at: Micros) -> JobEnded:
    """The job is over."""
    return JobEnded(
        id=f"{job.uid}-ended",
        at=to_datetime(at),
        cluster=cluster,
        tenant=job.scope,
        scope=job.scope,
        job=job.id,
        uid=job.uid,
        submission=job.submission,
        traceparent=job.traceparent,
        outcome=job.outcome or Outcome.SUCCEEDED,
        ran_seconds=0.0 if job.started is None else to_seconds(at - job.started),
    )
