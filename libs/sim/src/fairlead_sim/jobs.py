"""One job of a simulated cluster, as the cluster itself keeps it."""

from typing import NamedTuple

import msgspec

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.events import JobEnded, JobQueued, JobStarted, Run, about
from fairlead_contracts.messages.state import JobState, Outcome, Phase


class JobName(NamedTuple):
    """A job's name is unique in its scope."""

    scope: str
    id: str


type JobShapeKey = tuple[tuple[str, int], ...]
"""A demand as sorted pairs. Jobs of one shape fit alike, as in Kueue's scheduling equivalence classes."""


def shape_of(demand: dict[str, int]) -> JobShapeKey:
    """The demand as a shape; resources asked for with 0 are left out."""
    return tuple(sorted((resource, amount) for resource, amount in demand.items() if amount))


class SimJob(msgspec.Struct, kw_only=True, gc=False):
    """One job and its whole life. Only `SimCluster` changes it, through its verbs.

    `run` is how long it runs once started; where `run_limit` is shorter it fails at the limit.
    """

    uid: str
    scope: str
    id: str
    digest: str
    queue: str
    demand: dict[str, int]
    pods: int
    requested_class: str | None
    submission: str | None
    submitted: Micros
    queue_time: Micros
    run: Micros
    run_limit: Micros | None
    labels: dict[str, str]
    traceparent: str | None
    phase: Phase = Phase.WAITING
    level: int = 0
    rev: int = 0
    started: Micros | None = None
    ended: Micros | None = None
    outcome: Outcome | None = None

    @property
    def name(self) -> JobName:
        """The job's name."""
        return JobName(self.scope, self.id)

    @property
    def place(self) -> tuple[int, Micros, str]:
        """The job's place in its queue, lowest first: higher levels, then queue time, then uid."""
        return (-self.level, self.queue_time, self.uid)

    @property
    def runs_for(self) -> Micros:
        """The time for which it holds its demand once started, one microsecond at least."""
        return max(self.run if self.run_limit is None else min(self.run, self.run_limit), 1)

    @property
    def exceeds_limit(self) -> bool:
        """Whether the job would run longer than it may."""
        return self.run_limit is not None and self.run > self.run_limit

    @property
    def ends_by(self) -> Micros | None:
        """The instant at which it is stopped at the latest, while it runs."""
        if self.phase is not Phase.RUNNING or self.started is None or self.run_limit is None:
            return None
        return self.started + self.run_limit

    def state(self, cluster: str, epoch: int) -> JobState:
        """The job as its cluster states it."""
        return JobState(
            cluster=cluster,
            epoch=epoch,
            rev=self.rev,
            id=self.id,
            uid=self.uid,
            scope=self.scope,
            queue=self.queue,
            demand=self.demand,
            phase=self.phase,
            submitted=self.submitted,
            queue_time=self.queue_time,
            level=self.level,
            pods=self.pods,
            requested_class=self.requested_class,
            submission=self.submission,
            started=self.started,
            ended=self.ended,
            outcome=self.outcome,
            run_limit=self.run_limit,
            ends_by=self.ends_by,
            labels=self.labels,
            traceparent=self.traceparent,
        )

    # Events of its life. Their ids are made of its uid: each happens once, in every copy the same.

    def queued_event(self, cluster: str, at: Micros) -> JobQueued:
        """The event that the job stands in its queue."""
        return JobQueued(
            **about(cluster, self, at, "queued"),
            queue=self.queue,
            demand=self.demand,
            requested_class=self.requested_class,
        )

    def started_event(self, cluster: str, at: Micros) -> JobStarted:
        """The event that the job runs."""
        return JobStarted(
            **about(cluster, self, at, "started"),
            waited_seconds=to_seconds(at - self.submitted),
            level=self.level,
            demand=self.demand,
        )

    def ended_event(self, cluster: str, at: Micros) -> JobEnded:
        """The event that the job is over."""
        return JobEnded(
            **about(cluster, self, at, "ended"),
            outcome=self.outcome or Outcome.SUCCEEDED,
            ran_seconds=0.0 if self.started is None else to_seconds(at - self.started),
            run=None
            if self.started is None
            else Run(
                queue=self.queue, started=self.started, ended=at, demand=self.demand, labels=self.labels
            ),
        )
