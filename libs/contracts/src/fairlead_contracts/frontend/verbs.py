"""Requests to a simulated cluster, in the place of an API server: `fairlead.v1.sim.<cluster>.<verb>`.

MessagePack over request-reply. Every verb is idempotent by its own name; a reply is sent after the change is durable.
"""

import enum

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.instants import Micros


class CreateJob(Message, frozen=True, kw_only=True):
    """Make a job, named after its submission."""

    scope: str
    id: str
    digest: str
    """Of the submission's body: the same name with another digest is refused as a conflict."""
    queue: str | None
    """None takes the scope's queue."""
    demand: dict[str, int]
    pods: int
    requested_class: str | None
    submission: str
    submitted: Micros
    run: Micros
    run_limit: Micros | None = None
    labels: dict[str, str] = {}
    traceparent: str | None = None


class CreateOutcome(enum.StrEnum):
    """What became of a creation."""

    CREATED = "created"
    EXISTS = "exists"
    """The same job was made before: done, not done twice."""
    CONFLICT = "conflict"
    """A job of that name with another body exists."""
    NO_QUEUE = "no-queue"
    """The scope has no queue, or no queue of that name exists."""
    REFUSED = "refused"
    """It is no job that can be kept. Of one among several; one that is asked for alone is refused as a request."""


class CreateReply(Message, frozen=True, kw_only=True):
    """The outcome, and the queue that the job stands in."""

    outcome: CreateOutcome
    queue: str = ""
    reason: str = ""
    """Why it is refused."""


class CreateJobs(Message, frozen=True, kw_only=True):
    """Make several jobs: each as if it were asked for alone, all of them durable before the reply."""

    jobs: list[CreateJob]


class CreateReplies(Message, frozen=True, kw_only=True):
    """What became of each, in the order in which they were asked for."""

    replies: list[CreateReply]


class SetLevel(Message, frozen=True, kw_only=True):
    """Give a waiting job a level."""

    scope: str
    id: str
    uid: str
    level: int


class SetLevelReply(Message, frozen=True, kw_only=True):
    """`rev` is the object's revision after the write; None where no such job waits any more."""

    rev: int | None


class DeleteJob(Message, frozen=True, kw_only=True):
    """Take a job away: a waiting one leaves the queue, a running one is cancelled."""

    scope: str
    id: str


class DeleteReply(Message, frozen=True, kw_only=True):
    """Whether there was such a job."""

    deleted: bool


CREATE_JOB: Codec[CreateJob] = Codec(CreateJob, "create job", packed=True)
CREATE_REPLY: Codec[CreateReply] = Codec(CreateReply, "create reply", packed=True)
CREATE_JOBS: Codec[CreateJobs] = Codec(CreateJobs, "create jobs", packed=True)
CREATE_REPLIES: Codec[CreateReplies] = Codec(CreateReplies, "create replies", packed=True)
SET_LEVEL: Codec[SetLevel] = Codec(SetLevel, "set level", packed=True)
SET_LEVEL_REPLY: Codec[SetLevelReply] = Codec(SetLevelReply, "set level reply", packed=True)
DELETE_JOB: Codec[DeleteJob] = Codec(DeleteJob, "delete job", packed=True)
DELETE_REPLY: Codec[DeleteReply] = Codec(DeleteReply, "delete reply", packed=True)
