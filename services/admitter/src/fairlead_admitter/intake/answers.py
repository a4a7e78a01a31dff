"""The consumer that turns a cluster's events into answers to the senders of its jobs.

A durable consumer of the event stream: each event is handled at least once, by whoever leads. Events of jobs that were
not submitted on NATS, and events that nobody waits for, are only acked.

A sender hears each step once: accepted, the first start, the end. A job that its frontend puts back into the queue
and starts again is neither said to be evicted nor to be started again: how it fares on the way is what questions and the
event stream are for. The seconds of its end are those of its last run.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime

from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.replies import ReplyPublisher, Sender, Stage
from fairlead_bus import Delivery, PoisonError
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.base.instants import to_datetime, to_seconds
from fairlead_contracts.messages.events import EVENT, JobEnded, JobEvicted, JobStarted
from fairlead_contracts.messages.submissions import Accepted, Ended, Started


@dataclass(eq=False)
class JobEventHandler:
    """Handles the deliveries of the durable `answers-<cluster>`."""

    replies: ReplyPublisher
    facts: ClusterFacts
    policy: PolicyView
    _: KW_ONLY
    evicted: Callable[[JobEvicted], None]
    """Hears of every job that was stopped and put back."""

    def concerns(self, delivery: Delivery) -> bool:
        """Whether anybody hears of this event: most tell of queued jobs, of levels, or of jobs that nobody submitted on NATS."""
        try:
            event = EVENT.decode(delivery.payload)
        except ContractError:
            return True  # it is put aside with the reason
        told = isinstance(event, JobStarted | JobEnded) and event.submission is not None
        return told or isinstance(event, JobEvicted)

    async def handle(self, delivery: Delivery) -> None:
        """Answer one event.

        Raises:
            PoisonError: the event can't be read.
        """
        try:
            event = EVENT.decode(delivery.payload)
        except ContractError as error:
            raise PoisonError(str(error)) from error
        if isinstance(event, JobEvicted):
            self.evicted(event)
        if event.submission is None or not isinstance(event, JobStarted | JobEnded):
            return
        sender = Sender(event.scope, event.submission)
        async with self.replies.turn(sender):
            if isinstance(event, JobStarted):
                await self._started(sender, event)
            else:
                await self._ended(sender, event)

    async def _started(self, sender: Sender, event: JobStarted) -> None:
        told = await self.replies.told(sender)
        if told >= Stage.STARTED:
            return
        if told is Stage.NOTHING:
            await self._accept_belatedly(sender, event)
        await self._tell_start(sender, event, event.at, event.waited_seconds, mark=event.id)

    async def _ended(self, sender: Sender, event: JobEnded) -> None:
        told = await self.replies.told(sender)
        if told is Stage.ENDED:
            return
        if told is Stage.NOTHING:
            await self._accept_belatedly(sender, event)
        if told < Stage.STARTED:
            await self._start_belatedly(sender, event)
        answer = Ended(
            id=sender.submission,
            tenant=sender.tenant,
            cluster=event.cluster,
            at=event.at,
            job=event.job,
            outcome=event.outcome,
            ran_seconds=event.ran_seconds,
        )
        await self.replies.tell(answer, msg_id=f"ended-{event.id}")

    async def _accept_belatedly(self, sender: Sender, event: JobStarted | JobEnded) -> None:
        """Says that the job was accepted: it exists, and whoever was to say so died before."""
        job = self.facts.job(event.uid)
        answer = Accepted(
            id=sender.submission,
            tenant=sender.tenant,
            cluster=event.cluster,
            at=event.at if job is None else to_datetime(job.submitted),
            job=event.job,
            queue="" if job is None else job.queue,
            job_class="" if job is None else self.policy.granted_class(job),
        )
        await self.replies.tell(answer, msg_id=f"accepted-{event.cluster}-{event.uid}")

    async def _start_belatedly(self, sender: Sender, event: JobEnded) -> None:
        """Says that the job started: the event of its start comes later, or was lost with its consumer."""
        job = self.facts.job(event.uid)
        if job is None or job.began is None:
            return  # cancelled while it waited, or long gone: nothing is made up
        waited = to_seconds(job.began - job.submitted)
        await self._tell_start(
            sender, event, to_datetime(job.began), waited, mark=f"{event.cluster}-{event.uid}"
        )

    async def _tell_start(
        self, sender: Sender, event: JobStarted | JobEnded, at: datetime, waited_seconds: float, *, mark: str
    ) -> None:
        answer = Started(
            id=sender.submission,
            tenant=sender.tenant,
            cluster=event.cluster,
            at=at,
            job=event.job,
            waited_seconds=waited_seconds,
        )
        await self.replies.tell(answer, msg_id=f"started-{mark}")
