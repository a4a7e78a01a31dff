"""Past answers to submissions, for senders who missed them: a tenant can read no stream itself."""

import contextlib
import math
import time
from collections import deque
from collections.abc import Iterator

import msgspec

from fairlead_bus import Asked, Bus, Rejected, RetryableBusError, Stored
from fairlead_bus.pace import LinePace
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.questions import ANSWER_QUESTION, MOST_ANSWERS, AnswerQuestion, AnswerReply
from fairlead_contracts.topology import ANSWER
from fairlead_scorer.query.question_reading import read_question, refuse, tenant_asked

MOST_BYTES = 256 * 1024
"""Bytes of answers in one reply, without the last of them: a server takes messages of a megabyte."""
_MILLISECONDS_A_SECOND, _MILLISECONDS_AT_ONCE = 1.0, 250
"""Milliseconds that reading all answers of one tenant may take, in the long run and after a rest. To find the first of
a tenant's the server looks at all submissions that were answered, and takes no new answer of anybody meanwhile: with
half a million, 0.1 s, twice for each question."""
TOO_MANY = 429


class PastAnswers:
    """Answers `ask.answer` from the stream of answers.

    Args:
        bus: the connection.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._pace = LinePace(_MILLISECONDS_A_SECOND, _MILLISECONDS_AT_ONCE)

    async def answer(self, asked: Asked) -> bytes:
        """The answers asked for, as far as they are kept."""
        question = read_question(ANSWER_QUESTION, asked)
        tenant = tenant_asked(asked, question.tenant)
        filters = _filters(tenant, question)
        if tenant is None or question.submissions is not None:
            return await self._read(filters, question)
        with self._paced(tenant):
            return await self._read(filters, question)

    async def _read(self, filters: list[str], question: AnswerQuestion) -> bytes:
        try:
            return to_json(await self._told(filters, question))
        except RetryableBusError as error:
            raise Rejected(503, f"the answers cannot be read just now: {error}") from error

    @contextlib.contextmanager
    def _paced(self, tenant: str) -> Iterator[None]:
        """Counts the time of the block as the tenant's."""
        rest = self._pace.rest(tenant)
        if rest:
            text = f"all answers of {tenant} take long to read: ask again in {math.ceil(rest)} s, or name submissions"
            raise Rejected(TOO_MANY, text)
        begun = time.monotonic()
        try:
            yield
        finally:
            taken = 1000 * (time.monotonic() - begun)
            # A server that was away for a moment is nobody's fault.
            self._pace.spend(tenant, min(taken, _MILLISECONDS_AT_ONCE))

    async def _told(self, filters: list[str], question: AnswerQuestion) -> AnswerReply:
        found: list[Stored] = []
        size = 0
        lines = [_FilteredAnswers(self._bus, filtered, question.after) for filtered in filters]
        lines = [line for line in lines if await line.fetch()]
        while lines:
            if len(found) == question.limit or size > MOST_BYTES:
                return _reply(found, question, more=True)
            line = min(lines, key=lambda one: one.pending[0].seq)
            oldest = line.pending.popleft()
            found.append(oldest)
            size += len(oldest.payload)
            if not await line.fetch():
                lines.remove(line)
        return _reply(found, question, more=False)


class _FilteredAnswers:
    """The answers of one filter: the first from the stream's leader, then many at a time, then the leader's again.

    One by one, a question cost the server a hundred calls. But a replica that gives many may lag behind the leader.
    """

    def __init__(self, bus: Bus, filtered: str, after: int) -> None:
        self._bus = bus
        self._filtered = filtered
        self._after = after
        self._has_many = False
        """Whether the last answer came from the leader, so that more may stand behind it."""
        self.pending: deque[Stored] = deque()
        """Answers that were read and not given yet, the oldest first."""

    async def fetch(self) -> bool:
        """Reads on where `pending` is empty; returns whether it holds an answer now."""
        if not self.pending:
            found = await self._several() if self._has_many else []
            self._has_many = not found
            if not found:
                first = await self._bus.jetstream.next_of(ANSWER, self._filtered, self._after + 1)
                found = [] if first is None else [first]
            self.pending.extend(found)
        if self.pending:
            self._after = self.pending[-1].seq
        return bool(self.pending)

    async def _several(self) -> list[Stored]:
        found = await self._bus.jetstream.next_several(
            ANSWER, self._filtered, self._after + 1, MOST_ANSWERS, most_bytes=MOST_BYTES
        )
        return [stored for stored in found if stored.seq > self._after]


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
