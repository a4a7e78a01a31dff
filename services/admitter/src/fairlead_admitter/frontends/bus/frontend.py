"""A frontend that lives behind the bus: its verbs by request-reply, in batches, in the place of an API server.

Creations that are asked for in the same moment travel together: a request costs as much for twenty as for one.

Those of one scope only: what holds one scope up is no business of the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from itertools import count

import msgspec

from fairlead_admitter.apply.level_applier import WriteResult
from fairlead_admitter.decide.steering import LevelWrite
from fairlead_admitter.errors import FrontendDownError, FrontendRefusedError, FrontendSlowError
from fairlead_admitter.intake.creation import CreatedJob, Creation, JobOrder, Removal
from fairlead_admitter.observe.expectations import WriteConfirmation
from fairlead_bus import AnswerTimeoutError, Bus, RemoteError, RetryableBusError
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_contracts.frontend.verbs import (
    CREATE_REPLIES,
    DELETE_REPLIES,
    FENCED,
    LEVEL_REPLIES,
    CreateJob,
    CreateJobs,
    CreateOutcome,
    CreateReply,
    DeleteJob,
    DeleteJobs,
    FrontendRequest,
    LevelReply,
    SetLevel,
    SetLevels,
    VerbOutcome,
)
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.messages.submissions import Cancellation
from fairlead_contracts.subjects import FrontendVerb

MOST_TOGETHER = 48
LARGEST_TOGETHER = 8 * 1024
"""Bytes of a job that shares a request; a larger one travels alone."""
_SERVER_FAULT = 500
"""Codes from here on are the frontend's trouble, below them the request's (as in HTTP)."""


type CreateSeveral = Callable[[list[CreateJob]], Awaitable[list[CreateReply]]]
type _Waiting = tuple[CreateJob, asyncio.Future[CreateReply]]


class Creations:
    """Collects creations by scope; the first of some carries the others along.

    Args:
        carry_out: asks for several, and gives a reply for each.
    """

    def __init__(self, carry_out: CreateSeveral) -> None:
        self._carry_out = carry_out
        self._joining: dict[str, list[_Waiting]] = {}
        """Requests by scope that go along with who asked first."""

    async def create(self, job: CreateJob) -> CreateReply:
        """The reply to the creation of this job.

        Raises:
            as `carry_out`, to all that travelled together.
        """
        if len(msgspec.msgpack.encode(job)) > LARGEST_TOGETHER:
            return (await self._carry_out([job]))[0]
        joining = self._joining.get(job.scope)
        if joining is not None:
            return await self._join(job, joining)
        return await self._carry(job)

    async def _join(self, job: CreateJob, joining: list[_Waiting]) -> CreateReply:
        replied: asyncio.Future[CreateReply] = asyncio.get_running_loop().create_future()
        joining.append((job, replied))
        if len(joining) >= MOST_TOGETHER - 1:
            self._joining.pop(job.scope, None)
        return await replied

    async def _carry(self, job: CreateJob) -> CreateReply:
        others = self._joining[job.scope] = []
        try:
            await asyncio.sleep(0)  # who is as far as this asks now
            if self._joining.get(job.scope) is others:
                del self._joining[job.scope]
            own, *replies = await self._carry_out([job, *(other for other, _ in others)])
        except BaseException as error:
            if self._joining.get(job.scope) is others:
                del self._joining[job.scope]
            told = error if isinstance(error, Exception) else FrontendDownError("it was not waited for")
            for _, replied in others:
                if not replied.done():
                    replied.set_exception(told)
            raise
        for (_, replied), reply in zip(others, replies, strict=True):
            if not replied.done():
                replied.set_result(reply)
        return own


@dataclass(eq=False)
class BusFrontend:
    """Writes levels and makes jobs in a cluster whose frontend serves them on the bus.

    Requests of one connection reach the frontend in the order in which they were sent.
    """

    bus: Bus
    cluster: str
    _: KW_ONLY
    epoch: Callable[[], int | None]
    """Epoch of our leadership; None while we do not lead."""
    overtaken: Callable[[int], None]
    """Told our epoch where the frontend has obeyed a later one."""
    unsteered: Callable[[JobState], int]
    """The level that a job has when nobody steers."""
    timeout_seconds: InitVar[float] = 2.0
    """Longest wait for a reply."""

    def __post_init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._creations = Creations(self._create_together)
        self._marks = count()

    keeps_order = True
    keeps_names = True

    async def write(self, batch: Sequence[LevelWrite]) -> Sequence[WriteResult]:
        """Give waiting jobs their levels; see LevelWriter."""
        levels = [
            SetLevel(
                scope=write.job.scope,
                id=write.job.id,
                uid=write.job.uid,
                level=None if write.level == self.unsteered(write.job) else write.level,
            )
            for write in batch
        ]
        try:
            asked = await self._ask("levels", SetLevels(epoch=self._lead(), levels=levels))
        except (FrontendDownError, FrontendRefusedError) as error:
            return [error] * len(batch)
        return [self._result(reply) for reply in LEVEL_REPLIES.decode(asked).replies]

    def begin_anew(self) -> None:
        """Forgets nothing: what a frontend behind the bus answers is kept nowhere; see JobCreator."""

    async def create(self, order: JobOrder) -> CreatedJob:
        """Make a job of a submission; see JobCreator."""
        reply = await self._creations.create(_creation(order))
        if reply.outcome is CreateOutcome.REFUSED:
            raise FrontendRefusedError(reply.reason)
        return CreatedJob(outcome=Creation(reply.outcome.value), queue=reply.queue, job=reply.job)

    async def cancel(self, wanted: Cancellation, before: Micros) -> Removal:
        """Take the job of a submission away; see JobCreator."""
        # No id: a frontend of an older release passes over the submission, and would take whichever job has that name.
        job = DeleteJob(scope=wanted.tenant, id="", submission=wanted.id, before=before)
        asked = await self._ask_of_scope("delete", DeleteJobs(epoch=self._lead(), jobs=[job]))
        [reply] = DELETE_REPLIES.decode(asked).replies
        if reply.verdict is VerbOutcome.REFUSED:
            raise FrontendRefusedError(reply.reason)
        return Removal(reply.verdict.value)

    async def _create_together(self, jobs: list[CreateJob]) -> list[CreateReply]:
        asked = await self._ask_of_scope("create", CreateJobs(epoch=self._lead(), jobs=jobs))
        return CREATE_REPLIES.decode(asked).replies

    async def _ask_of_scope(self, verb: FrontendVerb, message: FrontendRequest) -> bytes:
        try:
            return await self._ask(verb, message)
        except FrontendDownError as error:
            if isinstance(error.__cause__, AnswerTimeoutError):  # it listens, and is slow to this one
                raise FrontendSlowError(str(error)) from error
            raise

    def _lead(self) -> int:
        epoch = self.epoch()
        if epoch is None:
            raise FrontendDownError(f"this admitter does not lead for cluster {self.cluster!r}")
        return epoch

    def _result(self, reply: LevelReply) -> WriteResult:
        match reply.verdict:
            case VerbOutcome.DONE:
                mark = f"{self.epoch()}.{next(self._marks)}" if reply.rev is None else str(reply.rev)
                return WriteConfirmation(mark=mark, rev=reply.rev)
            case VerbOutcome.REFUSED:
                return FrontendRefusedError(reply.reason)
            case VerbOutcome.GONE | VerbOutcome.LATER:
                return None

    async def _ask(self, verb: FrontendVerb, message: FrontendRequest) -> bytes:
        subject = subjects.frontend(self.cluster, verb)
        try:
            return await self.bus.request(subject, to_packed(message), timeout=self._timeout)
        except RetryableBusError as error:
            raise FrontendDownError(f"the frontend of {self.cluster} does not answer: {error}") from error
        except RemoteError as error:
            if error.code == FENCED:
                self.overtaken(message.epoch)
            if error.code >= _SERVER_FAULT or error.code == FENCED:
                raise FrontendDownError(f"the frontend of {self.cluster} is in trouble: {error}") from error
            raise FrontendRefusedError(error.text) from error


def _creation(order: JobOrder) -> CreateJob:
    request = order.submission
    run, limit = request.run_seconds, request.run_limit_seconds
    return CreateJob(
        scope=order.scope,
        id=order.id,
        digest=request.digest(),
        queue=request.queue,
        demand=request.demand,
        pods=request.pods,
        requested_class=request.job_class,
        submission=request.id,
        submitted=order.submitted,
        run=None if run is None else from_seconds(run),
        run_limit=None if limit is None else from_seconds(limit),
        labels=request.labels,
        template=request.template,
        traceparent=order.traceparent,
    )
