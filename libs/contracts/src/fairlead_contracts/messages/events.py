"""Events: the lifecycle of jobs and the log of what was written. Answers to senders and past use are made of them.

JSON on `fairlead.v1.event.<tenant>.<cluster>.<job>`, kept for a limited age. Delivery is at least once: an event's
`id` is the same in each copy.
"""

import enum
from datetime import datetime
from typing import Protocol, TypedDict

import msgspec

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.instants import Micros, Moment, to_datetime
from fairlead_contracts.base.quantities import Quantities
from fairlead_contracts.messages.state import JobShape, JobState, Outcome


class Event(Message, frozen=True, kw_only=True):
    """The base of every event."""

    id: str
    at: Moment
    cluster: str
    tenant: str
    """The tenant, where the writer knows it, else the job's scope."""
    scope: str
    job: str
    uid: str
    submission: str | None = None
    traceparent: str | None = None


class JobQueued(Event, frozen=True, kw_only=True, tag_field="kind", tag="queued"):
    """The job stands in its frontend's queue."""

    queue: str
    demand: Quantities
    requested_class: str | None = None


class JobStarted(Event, frozen=True, kw_only=True, tag_field="kind", tag="started"):
    """The frontend admitted the job."""

    waited_seconds: float
    level: int
    demand: Quantities


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that is over: its use, and by what the policy tells whose it was. The job itself may be forgotten by then."""

    queue: str
    started: Micros
    ended: Micros
    demand: Quantities
    pods: int = 1
    shapes: tuple[JobShape, ...] = ()
    """Requests of its pods for cards, where the demand does not say them."""
    local_queue: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def run_of(job: JobState, started: Micros, ended: Micros) -> Run:
    """A run of a job, by what its cluster states of the job."""
    return Run(
        queue=job.queue,
        started=started,
        ended=ended,
        demand=job.demand,
        pods=job.pods,
        shapes=job.shapes,
        local_queue=job.local_queue,
        labels=job.labels,
        annotations=job.annotations,
    )


class JobEvicted(Event, frozen=True, kw_only=True, tag_field="kind", tag="evicted"):
    """The frontend stopped the job and put it back into its queue."""

    ran_seconds: float
    reason: str
    """The frontend's own word for it, such as `Preempted`."""
    run: Run | None = None
    """The run that was stopped; None from a writer that does not tell it."""


class JobEnded(Event, frozen=True, kw_only=True, tag_field="kind", tag="ended"):
    """The job ended."""

    outcome: Outcome
    ran_seconds: float
    run: Run | None = None
    """The last run; None where the job never ran, and from a writer that does not tell it."""


class LevelWritten(Event, frozen=True, kw_only=True, tag_field="kind", tag="level"):
    """The admitter wrote a level, and from which decision."""

    before: int
    level: int
    pool: str
    shard: int
    epoch: int
    turn: int
    rank: int
    """Rank among the pool's merged heads, from 0; -1 where the job left them and went back to the
    default."""
    because: str


class Reserving(enum.StrEnum):
    """An event of a job in reserve mode."""

    PROMISED = "promised"
    """The job heads its line, and starts by `by` at the latest."""
    KEPT = "kept"
    """The job started in time."""
    BROKEN = "broken"
    """The job started late, or will: something happened that no promise is made against."""
    LET_GO = "let-go"
    """The job waits no more, or starts are not promised there any more."""
    PASSED = "passed"
    """The job may start before the head."""
    TAKEN = "taken"
    """The job started before the head."""
    WITHDRAWN = "withdrawn"
    """The job did not start before the head, and stands behind it again."""


class JobReserved(Event, frozen=True, kw_only=True, tag_field="kind", tag="reserved"):
    """A promise or a pass of reserve mode: made, kept, taken back."""

    what: Reserving
    pool: str
    by: Moment | None = None
    """Instant at which a promised job starts at the latest, or a passing one has ended; None for one that
    leaves room for the head."""
    head: str | None = None
    """The uid of the job that a passing one goes before; None with a promise."""
    because: str


type AnyEvent = JobQueued | JobStarted | JobEvicted | JobEnded | LevelWritten | JobReserved

EVENT: Codec[AnyEvent] = Codec(
    JobQueued | JobStarted | JobEvicted | JobEnded | LevelWritten | JobReserved, "event", packed=False
)


class EventBase(TypedDict):
    """The base of every event of a job."""

    id: str
    at: datetime
    cluster: str
    tenant: str
    scope: str
    job: str
    uid: str
    submission: str | None
    traceparent: str | None


class TracedJob(Protocol):
    """The facts of a job that has a trace: stated of it, or told by its events."""

    @property
    def uid(self) -> str:
        """The frontend's own."""

    @property
    def submission(self) -> str | None:
        """The job's id on NATS; None where it was not submitted there."""

    @property
    def traceparent(self) -> str | None:
        """The root that it carries."""


class EventJob(TracedJob, Protocol):
    """A job that events are about, as a frontend knows it."""

    @property
    def scope(self) -> str:
        """Namespace or account."""

    @property
    def id(self) -> str:
        """The job's name in its scope."""


def about(cluster: str, job: EventJob, at: Micros, what: str) -> EventBase:
    """The common part of an event of a frontend, which knows no tenants: it names the scope.

    Args:
        what: makes the event's id with the job's uid: each thing happens once, in every copy the same.
    """
    return EventBase(
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
