"""What senders of submissions were told already, for those who missed it: a tenant can read no stream itself."""

from typing import NamedTuple

import msgspec

from fairlead_bus import Asked, Bus, Rejected, RetryableBusError, Stored
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.questions import ANSWER_QUESTION, AnswerQuestion, AnswerReply
from fairlead_contracts.topology import ANSWER
from fairlead_scorer.query.questions import read_question, refuse, tenant_asked

MOST_BYTES = 256 * 1024
"""Of answers in one reply, the last of them not counted: a server takes messages of a megabyte."""


class PastAnswers:
    """Answers `ask.answer` from the stream of answers.

    Args:
        bus: the connection.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def answer(self, asked: Asked) -> bytes:
        """The answers asked for, as far as they are kept."""
        question = read_question(ANSWER_QUESTION, asked)
        filters = _filters(tenant_asked(asked, question.tenant), question)
        try:
            return to_json(await self._told(filters, question))
        except RetryableBusError as error:
            raise Rejected(503, f"the answers cannot be read just now: {error}") from error

    async def _told(self, filters: list[str], question: AnswerQuestion) -> AnswerReply:
        found: list[Stored] = []
        size = 0
        heads = [head for filtered in filters if (head := await self._next(filtered, question.after))]
        while heads:
            if len(found) == question.limit or size > MOST_BYTES:
                return _reply(found, question, more=True)
            oldest = min(heads, key=lambda head: head.stored.seq)
            heads.remove(oldest)
            found.append(oldest.stored)
            size += len(oldest.stored.payload)
            if following := await self._next(oldest.filtered, oldest.stored.seq):
                heads.append(following)
        return _reply(found, question, more=False)

    async def _next(self, filtered: str, after: int) -> "_Head | None":
        stored = await self._bus.jetstream.next_of(ANSWER, filtered, after + 1)
        return None if stored is None else _Head(filtered, stored)


class _Head(NamedTuple):
    """The oldest answer of a filter that is not told yet."""

    filtered: str
    stored: Stored


def _filters(tenant: str | None, question: AnswerQuestion) -> list[str]:
    if question.submissions is None:
        return [subjects.answer_filter(tenant)]
    if tenant is None:
        refuse("tenant", "", "must name one tenant: each tenant's submissions are asked about by themselves")
    try:
        return [subjects.answer(tenant, submission) for submission in question.submissions]
    except FieldError as error:
        refuse("submissions", error.value, error.reason)


def _reply(found: list[Stored], question: AnswerQuestion, *, more: bool) -> AnswerReply:
    after = found[-1].seq if found else question.after
    return AnswerReply(answers=[msgspec.Raw(told.payload) for told in found], after=after, more=more)
