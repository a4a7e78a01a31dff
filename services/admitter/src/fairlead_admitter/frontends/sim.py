"""The simulated cluster as a frontend: its verbs by request-reply, in the place of an API server."""

from fairlead_admitter.creation import Created, Creation, JobOrder
from fairlead_admitter.errors import FrontendBalkedError, FrontendDownError, FrontendRefusedError
from fairlead_admitter.frontends.sim_creations import Creations
from fairlead_admitter.written import Landed
from fairlead_bus import AnswerTimeoutError, Bus, RemoteError, RetryableBusError
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import Message, to_packed
from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.frontend.verbs import (
    CREATE_REPLIES,
    CREATE_REPLY,
    SET_LEVEL_REPLY,
    CreateJob,
    CreateJobs,
    CreateOutcome,
    CreateReply,
    SetLevel,
)
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.subjects import SimVerb

UNSTATED_RUN_SECONDS = 60.0
"""How long a simulated job runs whose submission doesn't say."""
_SERVER_FAULT = 500
"""Codes from here on are the frontend's trouble, below them the request's (as in HTTP)."""


class SimFrontend:
    """Writes levels and makes jobs in a simulated cluster.

    Requests of one connection reach the cluster in the order in which they were sent.
    """

    def __init__(self, bus: Bus, cluster: str, *, patience_seconds: float = 2.0) -> None:
        self._bus = bus
        self._cluster = cluster
        self._patience = patience_seconds
        self._creations = Creations(self._create_together)

    keeps_order = True

    async def write(self, job: JobState, level: int) -> Landed | None:
        """Give a waiting job a level; see LevelWriter."""
        order = SetLevel(scope=job.scope, id=job.id, uid=job.uid, level=level)
        rev = SET_LEVEL_REPLY.decode(await self._ask("level", order)).rev
        return None if rev is None else Landed(mark=str(rev), rev=rev)

    async def create(self, order: JobOrder) -> Created:
        """Make a job of a submission; see JobCreator."""
        reply = await self._creations.create(_creation(order))
        if reply.outcome is CreateOutcome.REFUSED:
            raise FrontendRefusedError(reply.reason)
        return Created(outcome=Creation(reply.outcome.value), queue=reply.queue)

    async def _create_together(self, jobs: list[CreateJob]) -> list[CreateReply]:
        try:
            if len(jobs) == 1:
                return [CREATE_REPLY.decode(await self._ask("create", jobs[0]))]
            return CREATE_REPLIES.decode(await self._ask("creates", CreateJobs(jobs=jobs))).replies
        except FrontendDownError as error:
            if isinstance(error.__cause__, AnswerTimeoutError):  # it listens, and is slow to this one
                raise FrontendBalkedError(str(error)) from error
            raise

    async def _ask(self, verb: SimVerb, message: Message) -> bytes:
        subject = subjects.sim(self._cluster, verb)
        try:
            return await self._bus.request(subject, to_packed(message), timeout=self._patience)
        except RetryableBusError as error:
            raise FrontendDownError(f"the simulated cluster does not answer: {error}") from error
        except RemoteError as error:
            if error.code >= _SERVER_FAULT:
                raise FrontendDownError(f"the simulated cluster is in trouble: {error}") from error
            raise FrontendRefusedError(error.text) from error


def _creation(order: JobOrder) -> CreateJob:
    wish = order.submission
    limit = wish.run_limit_seconds
    run = wish.run_seconds if wish.run_seconds is not None else UNSTATED_RUN_SECONDS
    return CreateJob(
        scope=order.scope,
        id=order.id,
        digest=wish.digest(),
        queue=wish.queue,
        demand=wish.demand,
        pods=wish.pods,
        requested_class=wish.urgency,
        submission=wish.id,
        submitted=order.submitted,
        run=from_seconds(run),
        run_limit=None if limit is None else from_seconds(limit),
        labels=wish.labels,
        traceparent=order.traceparent,
    )
