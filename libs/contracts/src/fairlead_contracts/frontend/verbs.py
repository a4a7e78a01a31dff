"""Requests to a frontend that lives behind the bus: `fairlead.v1.frontend.<cluster>.<verb>`.

MessagePack over request-reply. A request is a batch and carries the epoch of the leader who sends it: a frontend that
has obeyed a higher one rejects it as a whole, with the code `FENCED`. Each item is idempotent by its own name and is
answered by itself, in the order in which it was asked for; the reply is sent after all of it is durable.
"""

import enum

import msgspec

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import Quantities
from fairlead_contracts.frontend.templates import JobTemplate

MALFORMED, FENCED, UNAVAILABLE = 400, 409, 503
"""Codes of a request that is rejected as a whole, as in HTTP. Only the last is worth asking again: nothing
happened."""
MOST_IN_A_REQUEST = 1024
LARGEST_REQUEST = 512 * 1024
"""Bytes: twice a submission's limit, half of what a message of NATS may have by default."""


class CreateJob(msgspec.Struct, frozen=True, kw_only=True):
    """Make a job, named after its submission."""

    scope: str
    id: str
    digest: str
    """Digest of the submission's body: the same name with another digest is refused as a conflict."""
    queue: str | None
    """Queue for the job; None takes the scope's queue."""
    demand: Quantities
    pods: int
    requested_class: str | None
    submission: str
    submitted: Micros
    run: Micros | None = None
    """Time for which the job is expected to run; None where its submission does not say."""
    run_limit: Micros | None = None
    labels: dict[str, str] = {}
    template: JobTemplate | None = None
    """Program to run; None where its submission does not say."""
    traceparent: str | None = None


class CreateOutcome(enum.StrEnum):
    """The outcome of a creation."""

    CREATED = "created"
    EXISTS = "exists"
    """The job was made before, with the same body; it is not made twice."""
    CONFLICT = "conflict"
    """A job of that name with another body exists."""
    NO_QUEUE = "no-queue"
    """The scope has no queue, or no queue of that name exists."""
    REFUSED = "refused"
    """The job is none that can be kept."""


class CreateReply(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome, and the queue that the job stands in."""

    outcome: CreateOutcome
    queue: str = ""
    reason: str = ""
    """Reason for which the job is refused."""
    job: str = ""
    """The name that it has there; empty where it is the one asked for."""


class SetLevel(msgspec.Struct, frozen=True, kw_only=True):
    """Give a waiting job a level, or take it away (None): then it stands as one that nobody labelled."""

    scope: str
    id: str
    uid: str
    level: int | None


class VerbOutcome(enum.StrEnum):
    """The outcome of a level or a deletion."""

    DONE = "done"
    REFUSED = "refused"
    """The frontend will not do it; asking again is no use."""
    GONE = "gone"
    """No such job is there; for a level, none that waits."""
    LATER = "later"
    """The submission came in after the cancellation; its job goes on."""


class LevelReply(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to one level; `rev`, the revision of the job's state that shows it, is None until it is known."""

    verdict: VerbOutcome
    rev: int | None = None
    reason: str = ""
    """Reason for which the level is refused."""


class DeleteJob(msgspec.Struct, frozen=True, kw_only=True):
    """Take a job away: a waiting one leaves the queue, a running one is cancelled."""

    scope: str
    id: str
    uid: str | None = None
    """The job's uid; None takes whichever job has the name now."""
    submission: str | None = None
    """Submission that the job was made of, where it is named by that, and `id` is empty: the frontend knows the name that
    the job has there."""
    before: Micros | None = None
    """The instant at which the cancellation came in, where there is one: it is for submissions before it."""

    def spares(self, submitted: Micros) -> bool:
        """Whether it is not for a job whose submission came in then."""
        return self.before is not None and submitted > self.before


class DeleteReply(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the job is away."""

    verdict: VerbOutcome
    reason: str = ""
    """Reason for which the deletion is refused."""


class FrontendRequest(Message, frozen=True, kw_only=True):
    """The base of every batch."""

    epoch: int
    """Epoch of the leader who asks."""


class CreateJobs(FrontendRequest, frozen=True, kw_only=True):
    """Make jobs."""

    jobs: list[CreateJob]


class SetLevels(FrontendRequest, frozen=True, kw_only=True):
    """Set levels, in this order: no job may overtake one, on the way to what is asked for, that shall stay ahead."""

    levels: list[SetLevel]


class DeleteJobs(FrontendRequest, frozen=True, kw_only=True):
    """Take jobs away."""

    jobs: list[DeleteJob]


class CreateReplies(Message, frozen=True, kw_only=True):
    """Replies to creations, one a job, in order."""

    replies: list[CreateReply]


class LevelReplies(Message, frozen=True, kw_only=True):
    """Replies to levels, one a job, in order."""

    replies: list[LevelReply]


class DeleteReplies(Message, frozen=True, kw_only=True):
    """Replies to deletions, one a job, in order."""

    replies: list[DeleteReply]


CREATE_JOBS: Codec[CreateJobs] = Codec(CreateJobs, "create jobs", packed=True)
CREATE_REPLIES: Codec[CreateReplies] = Codec(CreateReplies, "create replies", packed=True)
SET_LEVELS: Codec[SetLevels] = Codec(SetLevels, "set levels", packed=True)
LEVEL_REPLIES: Codec[LevelReplies] = Codec(LevelReplies, "level replies", packed=True)
DELETE_JOBS: Codec[DeleteJobs] = Codec(DeleteJobs, "delete jobs", packed=True)
DELETE_REPLIES: Codec[DeleteReplies] = Codec(DeleteReplies, "delete replies", packed=True)
