"""Cancelling a job that was submitted on NATS: what is asked of the frontend, and what its tenant hears.

A cancellation is for what stands before it in the stream. A submission that has to wait is tried again later, or by
another replica, so nobody is told that a job is not known while a submission of that id stands before the cancellation:
the cancellation waits until that one is settled. A job of a submission behind it is left alone by its frontend, which
knows when each came in. Any other that is found is taken away at once: a copy that comes later finds its name taken.
"""

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from fairlead_admitter.errors import FrontendRefusedError
from fairlead_admitter.intake.admission import SubmissionCheck
from fairlead_admitter.intake.creation import Removal, RetryingCreator
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.report.replies import ReplyPublisher, Sender, SubmissionRefusal
from fairlead_bus import Bus, Delivery, NotYetError
from fairlead_bus.connection.jetstream import MSG_ID
from fairlead_contracts import topology
from fairlead_contracts.base.errors import shown
from fairlead_contracts.base.instants import to_seconds
from fairlead_contracts.messages.state import JobState, Outcome, Phase
from fairlead_contracts.messages.submissions import (
    Accepted,
    AnyAnswer,
    Cancellation,
    Cancelling,
    Ended,
    answer_id,
    is_cancellation,
)
from fairlead_runtime.clock import wall_clock

_LATER_SECONDS, _LATER_PART, _LATEST_SECONDS = 1.0, 0.25, 30.0
"""Seconds until a cancellation that waits is tried again, or that part of its age: each try may cost a look into the stream.
Never more than the last: its job runs from the moment that the submission is settled."""
_STATED_SECONDS = 60.0
"""Age of a cancellation at which it waits no longer for frontend and facts to agree."""
_LATE_SECONDS = 5.0
"""Age of a cancellation at which facts are not late any more: a job that they have after its end was told is queued again."""
_MOST_READ = 64
_MOST_BYTES = 64 * 1024
"""The most that one look reads: a tenant with more before its cancellation waits until there is less."""


class CancelVerdict(enum.Enum):
    """The outcome of a cancellation, as its sender is told."""

    CANCELLING = enum.auto()
    """The job is being taken away, or is away and its end is told soon."""
    CANCELLED = enum.auto()
    """The sender was told before that it was cancelled."""
    ENDED = enum.auto()
    UNKNOWN = enum.auto()
    FOREIGN = enum.auto()
    LATER = enum.auto()
    UNSETTLED = enum.auto()
    """Frontend and facts disagree: one of them is late."""


_REASONS = {
    CancelVerdict.UNSETTLED: "names a job that its cluster states, and its frontend does not know; cancel it again later",
    CancelVerdict.ENDED: "names a job that has ended",
    CancelVerdict.FOREIGN: "names a job that was not submitted on NATS under this id: cancel it where it was made",
    CancelVerdict.LATER: "names a job that was submitted again after this cancellation",
    CancelVerdict.UNKNOWN: "is not known: this tenant submitted no such job to this cluster; what was made in the cluster has to be cancelled there",
}


_OF_FOUND = {
    Removal.DONE: CancelVerdict.CANCELLING,
    Removal.FOREIGN: CancelVerdict.FOREIGN,
    Removal.LATER: CancelVerdict.LATER,
}


def verdict(removal: Removal, stated: JobState | None, told: AnyAnswer | None) -> CancelVerdict:
    """The verdict on a cancellation. Pure.

    Args:
        told: the last word on the submission's job.
    """
    if removal is not Removal.GONE:
        return _OF_FOUND[removal]
    if isinstance(told, Ended):
        return CancelVerdict.CANCELLED if told.outcome is Outcome.CANCELLED else CancelVerdict.ENDED
    if isinstance(told, Cancelling):
        return CancelVerdict.CANCELLING
    if stated is not None:
        if stated.phase is not Phase.ENDED:
            return CancelVerdict.UNSETTLED
        return CancelVerdict.CANCELLING if stated.outcome is Outcome.CANCELLED else CancelVerdict.ENDED
    return CancelVerdict.UNKNOWN if told is None else CancelVerdict.CANCELLING


def is_over(stated: JobState | None, told: AnyAnswer | None, *, waits: bool) -> bool:
    """Whether the job of a submission ended before, whatever its frontend still has of it. Pure.

    Ended jobs are stated for minutes, and answers stand for an hour; a live job is stated, or was accepted just now, or its
    submission is not settled yet. So what nobody speaks of any more ended long ago.

    Args:
        told: the last word on it.
        waits: whether a submission of the id is not settled yet.
    """
    if stated is not None:
        return stated.phase is Phase.ENDED
    if isinstance(told, Ended):
        return told.outcome is not Outcome.CANCELLED
    return told is None and not waits


@dataclass(eq=False)
class Canceller:
    """Carries cancellations out."""

    bus: Bus
    facts: ClusterFacts
    admission: SubmissionCheck
    creator: RetryingCreator
    replies: ReplyPublisher

    async def carry_out(self, delivery: Delivery, wanted: Cancellation) -> SubmissionRefusal | None:
        """Has the job taken away, and tells its sender, whose turn it is; else the refusal, which is not told yet.

        Raises:
            NotYetError: the frontend does not answer now, or an earlier submission of this id is not settled, or the end of its
                job was told and is not stated.
        """
        sender = _sender(wanted)
        stated, told, waits = self.facts.submitted(*sender), await self.replies.standing(sender), False
        if stated is None and told is None:
            waits = await self._stands_behind_its_submission(delivery, wanted)
            told = await self.replies.standing(sender)  # another replica may have settled it meanwhile
        _check_facts(delivery, stated, told)
        try:
            # What has ended stands in Kubernetes still, and is not ours to delete.
            over = is_over(stated, told, waits=waits)
            removal = Removal.GONE if over else await self.creator.cancel(wanted, delivery.at)
        except FrontendRefusedError as error:
            return self.admission.refused_by_frontend(wanted, error)
        match verdict(removal, self.facts.submitted(*sender), told):
            case CancelVerdict.CANCELLING:
                answer = Cancelling(
                    id=wanted.id,
                    tenant=wanted.tenant,
                    cluster=self.facts.cluster,
                    at=datetime.now(UTC),
                    repeated=True if isinstance(told, Cancelling) else msgspec.UNSET,
                )
                await self._tell(delivery, answer)
                kept = removal is Removal.DONE and self.creator.keeps_names
                # Who heard of a start was stated: an event tells the end, however late it comes.
                if stated is None and not kept and not await self.replies.told_of_a_start(sender):
                    await self._tell_end(delivery, wanted, told)
            case CancelVerdict.CANCELLED if told is not None:
                await self._tell(delivery, msgspec.structs.replace(told, repeated=True))
            case CancelVerdict.UNSETTLED if _age(delivery) < _STATED_SECONDS:
                raise NotYetError("the job is gone, and its end is not stated yet", seconds=_LATER_SECONDS)
            case found:
                if waits:
                    seconds = min(max(_LATER_SECONDS, _LATER_PART * _age(delivery)), _LATEST_SECONDS)
                    raise NotYetError("a submission of its id is not settled yet", seconds=seconds)
                return self._refusal(wanted, found)
        return None

    async def _tell_end(self, delivery: Delivery, wanted: Cancellation, told: AnyAnswer | None) -> None:
        """Tells the end of a job that nobody stated: it is gone from Kubernetes, and no difference of statements tells."""
        end = Ended(
            id=wanted.id,
            tenant=wanted.tenant,
            cluster=self.facts.cluster,
            at=datetime.now(UTC),
            job=told.job if isinstance(told, Accepted) else wanted.id.lower(),
            outcome=Outcome.CANCELLED,
            ran_seconds=0.0,
        )
        await self.replies.tell(end, msg_id=f"ended-{self.facts.cluster}-{delivery.stream_seq}")

    async def _tell(self, delivery: Delivery, answer: AnyAnswer) -> None:
        await self.replies.tell(answer, msg_id=f"cancelled-{self.facts.cluster}-{delivery.stream_seq}")

    async def _stands_behind_its_submission(self, delivery: Delivery, wanted: Cancellation) -> bool:
        """Whether a submission of this id stands before the cancellation in the stream, as far as can be told."""
        read = await self.bus.jetstream.next_several(
            topology.SUBMIT, delivery.subject, 1, _MOST_READ, most_bytes=_MOST_BYTES
        )
        before = [one for one in read if one.seq < delivery.stream_seq]
        if before and len(before) == len(read):
            return True  # more than one look reads
        return any(
            answer_id(one.payload, one.headers.get(MSG_ID), one.seq) == wanted.id
            and not is_cancellation(one.payload)
            for one in before
        )

    def _refusal(self, wanted: Cancellation, found: CancelVerdict) -> SubmissionRefusal:
        named = self.facts.named(*_sender(wanted))
        foreign = named is not None and named.submission is None
        kind = CancelVerdict.FOREIGN if found is CancelVerdict.UNKNOWN and foreign else found
        return SubmissionRefusal(
            sender=_sender(wanted), field="id", value=shown(wanted.id), reason=_REASONS[kind], label="cancel"
        )


def _check_facts(delivery: Delivery, stated: JobState | None, told: AnyAnswer | None) -> None:
    """Raises NotYetError where the facts may be late: the event of an end is told before its statement is looked at.

    Meanwhile the frontend would take away what has ended.
    """
    lives = stated is not None and stated.phase is not Phase.ENDED
    if lives and isinstance(told, Ended) and _age(delivery) < _LATE_SECONDS:
        raise NotYetError("the job's end was told, and is not stated yet", seconds=_LATER_SECONDS)


def _age(delivery: Delivery) -> float:
    return to_seconds(wall_clock() - delivery.at)


def _sender(wanted: Cancellation) -> Sender:
    return Sender(wanted.tenant, wanted.id)
