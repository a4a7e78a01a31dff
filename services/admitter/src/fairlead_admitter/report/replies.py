"""Replies to senders of submissions, in order: accepted, started, ended, whoever finds out first.

Two consumers write answers: the intake, and the one that turns events into answers. A job can start before its acceptance
was published, and after a crash the event of its start can be delivered before the submission is. So each submission
has one lock here, and an answer that would come too early first brings the ones before it. A message that has to be
tried again keeps those of its sender behind it waiting, so many at most that they are soon through. What was heard last
is remembered, and read back from the answer stream where this process doesn't know.
"""

import asyncio
import enum
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import NamedTuple

import msgspec

from fairlead_bus import Bus, NotYetError, RetryableBusError
from fairlead_bus.connection.jetstream import MSG_ID, Stored
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.messages.submissions import (
    ANSWER,
    Accepted,
    AnyAnswer,
    Cancelling,
    Ended,
    RefusalReason,
    Refused,
    Started,
)
from fairlead_runtime.waiting import pause_after

_MOST_READ = 64
REMEMBERED = 16_384
"""Jobs whose last word is remembered; forgetting one costs a look into the stream."""
_IN_ORDER_SECONDS = 1.0
MOST_IN_ORDER = 16
"""Messages of a sender that keep their order while they wait; more go by themselves. Where many are handed back to the stream,
each may stay there for a minute, and those behind it would take all places of those that wait, for days."""
GONE_SECONDS = 600.0
"""Seconds without a turn after which a message waits no more: it is tried more often, unless somebody took it out of the stream."""
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 1.0


class Sender(NamedTuple):
    """The sender, who hears the answers."""

    tenant: str
    submission: str


class SubmissionRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """The refusal of a submission: the field, what was found there, the reason, and the counter's label."""

    sender: Sender
    field: str
    value: str
    reason: str
    label: RefusalReason


class Stage(enum.IntEnum):
    """The last stage of a submission that its sender has been told."""

    NOTHING = 0
    ACCEPTED = 1
    STARTED = 2
    CANCELLING = 3
    """The end is all that is told from here on."""
    ENDED = 4


_STAGES: dict[type, Stage] = {
    Accepted: Stage.ACCEPTED,
    Started: Stage.STARTED,
    Cancelling: Stage.CANCELLING,
    Ended: Stage.ENDED,
}


def stage_of(answer: AnyAnswer | None) -> Stage:
    """The stage that this answer tells. A refusal tells nothing of the job that exists under the id."""
    return _STAGES.get(type(answer), Stage.NOTHING)


class _Turns(msgspec.Struct):
    """The lock under which one sender is answered, by one task at a time."""

    lock: asyncio.Lock
    users: int = 0
    """Number of tasks that hold the lock or wait for it."""


class _Turn(AbstractAsyncContextManager[None]):
    """A turn to answer one sender. A generator in its place costs each submission twice as much."""

    def __init__(
        self,
        all_turns: dict[Sender, _Turns],
        sender: Sender,
        waiting: dict[Sender, dict[int, float]],
        seq: int,
    ) -> None:
        self._all = all_turns
        self._sender = sender
        self._waiting = waiting
        self._seq = seq

    async def __aenter__(self) -> None:
        turns = self._all.get(self._sender)
        if turns is None:
            turns = self._all[self._sender] = _Turns(asyncio.Lock())
        turns.users += 1
        try:
            await turns.lock.acquire()
        except BaseException:
            self._leave(turns)
            raise
        if self._sender in self._waiting and self._is_behind(self._waiting[self._sender]):
            before = NotYetError("an earlier message under its id is not settled", seconds=_IN_ORDER_SECONDS)
            await self.__aexit__(type(before))
            raise before

    async def __aexit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        if self._seq and kind is not None and issubclass(kind, NotYetError | RetryableBusError):
            waiting = self._waiting.setdefault(self._sender, {})
            if self._keeps_order(waiting):
                waiting[self._seq] = time.monotonic()
        elif self._sender in self._waiting:
            self._waiting[self._sender].pop(self._seq, None)
            if not self._waiting[self._sender]:
                del self._waiting[self._sender]
        turns = self._all[self._sender]
        turns.lock.release()
        self._leave(turns)

    def _is_behind(self, waiting: dict[int, float]) -> bool:
        for gone in [seq for seq, tried in waiting.items() if tried < time.monotonic() - GONE_SECONDS]:
            del waiting[gone]
        return self._keeps_order(waiting) and min(waiting, default=self._seq) < self._seq

    def _keeps_order(self, waiting: dict[int, float]) -> bool:
        return self._seq in waiting or len(waiting) < MOST_IN_ORDER

    def _leave(self, turns: _Turns) -> None:
        turns.users -= 1
        if not turns.users:
            del self._all[self._sender]


class ReplyPublisher:
    """Publishes answers, one submission after its own order, different ones side by side.

    Args:
        published: hears of each.
    """

    def __init__(self, bus: Bus, cluster: str, published: Callable[[AnyAnswer], None]) -> None:
        self._bus = bus
        self._cluster = cluster
        self._published = published
        self._told: OrderedDict[Sender, AnyAnswer | None] = OrderedDict()
        """The last word on each sender's job, as far as is remembered; None where there is none."""
        self._turns: dict[Sender, _Turns] = {}
        self._waiting: dict[Sender, dict[int, float]] = {}
        """Monotonic second at which each message was tried that is to be tried again, by sender and stream sequence."""
        self.trouble: str | None = None
        """The reason for which answers can't be published or read back just now; None where they can."""

    def begin_anew(self) -> None:
        """Forgets how far senders were told: another replica may have answered meanwhile."""
        self._told.clear()
        self._waiting.clear()

    def turn(self, sender: Sender, seq: int = 0) -> AbstractAsyncContextManager[None]:
        """The sender's turn: while the block lasts nobody else answers it. Turns are given in the order asked for.

        Args:
            seq: stream sequence of the sender's message that is to be answered; 0 where it is none.

        Raises:
            NotYetError: on entering: an earlier message of the sender raised that, and has had no turn since.
        """
        return _Turn(self._turns, sender, self._waiting, seq)

    async def told(self, sender: Sender) -> Stage:
        """The stage that the sender has been told; asks the stream where this process doesn't remember."""
        return stage_of(self._told[sender] if sender in self._told else await self.standing(sender))

    async def standing(self, sender: Sender) -> AnyAnswer | None:
        """The last word in the stream on the sender's job in this cluster; None where there is none, or none that this release reads.

        What was refused since, or said by another cluster, is not about that job: the word before counts, of the first
        `_MOST_READ` answers under the id.
        """
        subject = subjects.answer(*sender)
        stored = await self._call_until_answered(lambda: self._bus.last(topology.ANSWER, subject))
        found = self._about_a_job(stored)
        if stored is not None and found is None:
            known = sender in self._told
            found = self._told[sender] if known else await self._word_before(sender)
        self._remember(sender, found)
        return found

    async def was_told(self, sender: Sender, msg_id: str) -> bool:
        """Whether one of the first `_MOST_READ` answers to the sender went out under this id."""
        async for one in self._first_answers(
            sender
        ):  # mostly it is the first, and each is a call to the server
            if one.headers.get(MSG_ID) == msg_id:
                return True
        return False

    async def told_of_a_start(self, sender: Sender) -> bool:
        """Whether one of the first `_MOST_READ` answers to the sender says that the job started."""
        return any(isinstance(word, Started) for word in await self._first_words(sender))

    async def _word_before(self, sender: Sender) -> AnyAnswer | None:
        words = await self._first_words(sender)
        return next((word for word in reversed(words) if word is not None), None)

    async def _first_words(self, sender: Sender) -> list[AnyAnswer | None]:
        return [self._about_a_job(one) async for one in self._first_answers(sender)]

    async def _first_answers(self, sender: Sender) -> AsyncIterator[Stored]:
        subject, seq = subjects.answer(*sender), 0
        for _ in range(_MOST_READ):
            call = partial(self._bus.jetstream.next_of, topology.ANSWER, subject, seq + 1)
            stored = await self._call_until_answered(call)
            if stored is None:
                return
            yield stored
            seq = stored.seq

    def _about_a_job(self, stored: Stored | None) -> AnyAnswer | None:
        try:
            answer = None if stored is None else ANSWER.decode(stored.payload)
        except ContractError:
            return None
        is_it = answer is not None and not isinstance(answer, Refused) and answer.cluster == self._cluster
        return answer if is_it else None

    async def tell(self, answer: AnyAnswer, *, msg_id: str) -> None:
        """Publish the answer. Returns when it is stored."""
        sender = Sender(answer.tenant, answer.id)
        subject, payload = subjects.answer(*sender), to_json(answer)
        await self._call_until_answered(lambda: self._bus.publish(subject, payload, msg_id=msg_id))
        self._published(answer)
        if stage_of(answer) >= max(Stage.ACCEPTED, stage_of(self._told.get(sender))):
            self._remember(sender, answer)

    def _remember(self, sender: Sender, word: AnyAnswer | None) -> None:
        self._told[sender] = word
        self._told.move_to_end(sender)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)

    async def _call_until_answered[T](self, call: Callable[[], Awaitable[T]]) -> T:
        """Calls until NATS answers: an outage is no reason to give a delivery back, so the turn is kept meanwhile."""
        row = 0
        try:
            while True:
                try:
                    return await call()
                except RetryableBusError as error:
                    self.trouble = f"answers wait for NATS: {error}"
                    await asyncio.sleep(pause_after(row, first=_FIRST_WAIT, longest=_LONGEST_WAIT))
                    row += 1
        finally:
            self.trouble = None  # also where the lead ended meanwhile: a standby waits for no answer
