"""The events of a simulated job's life. Their ids are made of its uid: each happens once, in every copy the same."""

from datetime import datetime
from typing import TypedDict

from fairlead_contracts.events import JobEnded, JobQueued, JobStarted
from fairlead_contracts.instants import Micros, to_datetime, to_seconds
from fairlead_contracts.state import Outcome
from fairlead_sim.jobs import SimJob


class _About(TypedDict):
    """What every event says of its job."""

    id: str
    at: datetime
    cluster: str
    tenant: str
    scope: str
    job: str
    uid: str
    submission: str | None
    traceparent: str | None


def _about(cluster: str, job: SimJob, at: Micros, what: str) -> _About:
    """A simulated cluster knows no tenants: it names the scope."""
    return _About(
        id=f"{job.uid}-{what}",
        at=to_datetime(at),
        cluster=cluster,
        tenant=job.scope,
        scope=job.scope,
        job=job.id,
        uid=job.uid,
        submission=job.submission,
        traceparent=job.traceparent,
    )


def queued(cluster: str, job: SimJob, at: Micros) -> JobQueued:
    """The job stands in its queue."""
    return JobQueued(
        **_about(cluster, job, at, "queued"),
        queue=job.queue,
        demand=job.demand,
        requested_class=job.requested_class,
    )


def started(cluster: str, job: SimJob, at: Micros) -> JobStarted:
    """The job runs."""
    return JobStarted(
        **_about(cluster, job, at, "started"),
        waited_seconds=to_seconds(at - job.submitted),
        level=job.level,
        demand=job.demand,
    )


def ended(cluster: str, job: SimJob, at: Micros) -> JobEnded:
    """The job is over."""
    return JobEnded(
        **_about(cluster, job, at, "ended"),
        outcome=job.outcome or Outcome.SUCCEEDED,
        ran_seconds=0.0 if job.started is None else to_seconds(at - job.started),
    )
