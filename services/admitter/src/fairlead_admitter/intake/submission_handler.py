"""The consumer that takes submissions in: read, check, create, answer, ack, in this order.

A delivery is acked when its job stands in the frontend and its sender's answer is stored. A crash at any point
before brings it back; creating twice is creating once, by the job's name, so each submission becomes one job. Nothing
is refused for the admitter's own ignorance: as long as cluster or policy are not known, or the frontend is down,
deliveries are held. What is wrong with a submission never changes by retrying, so a refused one is acked too.
"""

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime

import msgspec
import structlog

from fairlead_admitter.errors import FrontendRefusedError
from fairlead_admitter.intake.admission import SubmissionCheck
from fairlead_admitter.intake.cancelling import Canceller
from fairlead_admitter.intake.creation import CreatedJob, Creation, JobOrder, RetryingCreator
from fairlead_admitter.intake.limits import IntakeLimits
from fairlead_admitter.report.job_traces import JobTraces
from fairlead_admitter.report.replies import ReplyPublisher, Sender, SubmissionRefusal
from fairlead_bus import Delivery, PoisonError
from fairlead_contracts import subjects
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.job_traces import TraceContext
from fairlead_contracts.messages.submissions import (
    Accepted,
    Cancellation,
    Refused,
    Submission,
    says_cancelled,
    unheeded,
)
from fairlead_runtime.tracing import within


@dataclass(eq=False)
class SubmissionHandler:
    """Handles the deliveries of the durable `submit-<cluster>`."""

    cluster: str
    admission: SubmissionCheck
    limits: IntakeLimits
    creator: RetryingCreator
    replies: ReplyPublisher
    _: KW_ONLY
    canceller: Canceller
    known: Callable[[], Awaitable[None]]
    """Returns once cluster and policy are known completely."""
    taken: Callable[[str], None]
    """Hears of each outcome, for the counters: "accepted", "repeated", or the reason of a refusal."""
    traces: JobTraces

    def __post_init__(self) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger().bind(cluster=self.cluster)

    async def handle(self, delivery: Delivery) -> None:
        """Take one submission in, cancel a job, or refuse to. Returns when it may be acked.

        Raises:
            NotYetError: the frontend does not answer for its tenant now.
            PoisonError: the subject names a tenant so long that its sender cannot be answered.
        """
        await self.known()
        ruled = self.admission.rule(delivery)
        sender = ruled.sender if isinstance(ruled, SubmissionRefusal) else Sender(ruled.tenant, ruled.id)
        try:
            subjects.answer(*sender)
        except FieldError as error:
            raise PoisonError(f"its sender cannot be answered: {error}") from error
        if isinstance(ruled, Cancellation):
            async with self.replies.turn(sender, delivery.stream_seq):
                await self._cancel(delivery, ruled)
            return
        caller = self.traces.caller(delivery, ruled)
        if isinstance(ruled, SubmissionRefusal):
            async with self.replies.turn(sender, delivery.stream_seq):
                await self._refuse(delivery, ruled)
            return
        root = self.traces.submitted(ruled, delivery.at, caller)
        with within(root):
            await self._take(delivery, ruled, root, caller)

    async def _cancel(self, delivery: Delivery, wanted: Cancellation) -> None:
        refusal = await self.canceller.carry_out(delivery, wanted)
        if refusal is None:
            self.taken("cancelled")
        else:
            await self._refuse(delivery, refusal)

    async def _take(
        self, delivery: Delivery, ruled: Submission, root: TraceContext | None, caller: TraceContext | None
    ) -> None:
        order = JobOrder(
            submission=ruled,
            submitted=delivery.at,
            job_class=self.admission.granted_class(ruled),
            traceparent=None if root is None else root.traceparent,
        )
        sender = Sender(ruled.tenant, ruled.id)
        # Before the job is there: no start may be told with an earlier instant than its acceptance.
        at = datetime.now(UTC)
        # The turn is held from before the creation: the job may start before its acceptance is published.
        async with self.replies.turn(sender, delivery.stream_seq):
            objection = self.limits.objection(ruled.tenant, delivery)
            if objection is not None and not await self._is_known(sender):
                await self._refuse(delivery, self.admission.refused_for_now(ruled, objection))
                return
            try:
                created = await self._create(order, sender)
            except FrontendRefusedError as error:
                await self._refuse(delivery, self.admission.refused_by_frontend(ruled, error))
            else:
                if created.outcome in (Creation.CREATED, Creation.EXISTS):
                    self.traces.taken(ruled, delivery.at, root, caller)
                await self._answer(delivery, sender, order, created, at)

    async def _create(self, order: JobOrder, sender: Sender) -> CreatedJob:
        """Creates the job, unless it was cancelled: a copy that comes later must not bring it back."""
        if not self.creator.keeps_names and says_cancelled(await self.replies.standing(sender)):
            return CreatedJob(outcome=Creation.EXISTS)
        return await self.creator.create(order)

    async def _is_known(self, sender: Sender) -> bool:
        """Whether the sender was told of a job under this id: a repeat adds no job, so no limit holds it back."""
        return await self.replies.standing(sender) is not None

    async def _answer(
        self, delivery: Delivery, sender: Sender, order: JobOrder, created: CreatedJob, at: datetime
    ) -> None:
        match created.outcome:
            case Creation.CREATED:
                await self._accept(delivery, order, created, at)
            case Creation.EXISTS:
                await self._repeat(delivery, sender, order, created, at)
            case Creation.CONFLICT | Creation.NO_QUEUE as outcome:
                await self._refuse(delivery, self.admission.refused_creation(order.submission, outcome))

    async def _accept(self, delivery: Delivery, order: JobOrder, created: CreatedJob, at: datetime) -> None:
        answer = Accepted(
            id=order.id,
            tenant=order.scope,
            cluster=self.cluster,
            at=at,
            job=created.job or order.id,
            queue=created.queue,
            job_class=order.job_class,
            warnings=unheeded(delivery.payload),
        )
        await self.replies.tell(answer, msg_id=f"accepted-{self.cluster}-{delivery.stream_seq}")
        self.taken("accepted")

    async def _repeat(
        self, delivery: Delivery, sender: Sender, order: JobOrder, created: CreatedJob, at: datetime
    ) -> None:
        """Answers for a job that was made before, by an unacked delivery or by another copy of the submission.

        Its sender hears where the job stands, and that this is known already: not "accepted" again after "ended".
        """
        standing = await self.replies.standing(sender)
        if standing is None:
            await self._accept(delivery, order, created, at)
            return
        self.taken("repeated")
        told = f"accepted-{self.cluster}-{delivery.stream_seq}"
        if delivery.deliveries == 1 or not await self.replies.was_told(sender, told):
            again = msgspec.structs.replace(standing, repeated=True)
            await self.replies.tell(again, msg_id=told)

    async def _refuse(self, delivery: Delivery, refusal: SubmissionRefusal) -> None:
        answer = Refused(
            id=refusal.sender.submission,
            tenant=refusal.sender.tenant,
            cluster=self.cluster,
            at=datetime.now(UTC),
            field=refusal.field,
            value=refusal.value,
            reason=refusal.reason,
        )
        await self.replies.tell(answer, msg_id=f"refused-{self.cluster}-{delivery.stream_seq}")
        self.traces.refused(refusal, self.traces.caller(delivery, refusal))
        if refusal.label == "tenant":  # an operator's business; all else is the sender's, who is told
            self._log.warning("submission refused", tenant=answer.tenant, id=answer.id, why=answer.reason)
        self.taken(refusal.label)
