"""The events of a simulated job's life. Their ids are made of its uid: each happens once, in every copy the same."""

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.events import JobEnded, JobQueued, JobStarted, Run, about
from fairlead_contracts.messages.state import Outcome
from fairlead_sim.jobs import SimJob


def queued(cluster: str, job: SimJob, at: Micros) -> JobQueued:
    """The job stands in its queue."""
    return JobQueued(
        **about(cluster, job, at, "queued"),
        queue=job.queue,
        demand=job.demand,
        requested_class=job.requested_class,
    )


def started(cluster: str, job: SimJob, at: Micros) -> JobStarted:
    """The job runs."""
    return JobStarted(
        **about(cluster, job, at, "started"),
        waited_seconds=to_seconds(at - job.submitted),
        level=job.level,
        demand=job.demand,
    )


def ended(cluster: str, job: SimJob, at: Micros) -> JobEnded:
    """The job is over."""
    return JobEnded(
        **about(cluster, job, at, "ended"),
        outcome=job.outcome or Outcome.SUCCEEDED,
        ran_seconds=0.0 if job.started is None else to_seconds(at - job.started),
        run=None
        if job.started is None
        else Run(queue=job.queue, started=job.started, ended=at, demand=job.demand, labels=job.labels),
    )
