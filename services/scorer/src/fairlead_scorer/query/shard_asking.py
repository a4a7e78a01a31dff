"""Asking the owners of a pool's shards, within a bounded time; those who stay silent are named."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from fairlead_bus import RemoteError, RetryableBusError
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.messages.questions import SHARD_REPLY, ShardQuestion, ShardReply
from fairlead_contracts.subjects import QuestionKind
from fairlead_policy.explain.shard_explanation import ShardQuery
from fairlead_scorer.decide.shard_ownership import ShardName
from fairlead_scorer.query import shard_answers
from fairlead_scorer.state.pool import ScoredPool

_AGAIN_SECONDS = 0.05
"""Seconds between two tries: a shard that changes hands has no owner for a few of them."""


class Requester(Protocol):
    """Asks over the bus and gets one reply."""

    async def request(self, subject: str, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109 # the bus's own
        """Asks a subject; returns the reply."""


class ShardReplies(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of one pool's shards."""

    replies: list[ShardReply]
    silent: list[int]


class ShardAsker:
    """Asks the owners of shards.

    Args:
        bus: the connection to the owners of others' shards.
        owns: whether a shard is ours: its answer comes from this process.
        timeout: seconds for all of a question's shards, which are asked side by side.
    """

    def __init__(self, bus: Requester, owns: Callable[[ShardName], bool], *, timeout: float) -> None:
        self._bus = bus
        self._owns = owns
        self._timeout = timeout

    async def ask(
        self, pool: ScoredPool, kind: QuestionKind, question: ShardQuestion, shards: list[int] | None = None
    ) -> ShardReplies:
        """Asks the owners of these shards, or of all, one question."""
        asked = list(range(pool.shards)) if shards is None else shards
        async with asyncio.TaskGroup() as group:
            tasks = {
                shard: group.create_task(self._ask_owner(pool, shard, kind, question)) for shard in asked
            }
        replies = {shard: task.result() for shard, task in tasks.items()}
        return ShardReplies(
            replies=[reply for reply in replies.values() if reply is not None],
            silent=[shard for shard, reply in replies.items() if reply is None],
        )

    async def explain[T](self, pool: ScoredPool, query: ShardQuery[T]) -> tuple[T, list[int]]:
        """Asks the owners for an explanation; returns it with the shards that were silent when all were asked."""
        silent: set[int] = set()
        try:
            asked = next(query)
            while True:
                tenant = asked.shard_of
                part = await self.ask(
                    pool, "explain", asked.question, None if tenant is None else [pool.shard_of(tenant)]
                )
                if tenant is None:
                    silent.update(part.silent)
                asked = query.send(part.replies)
        except StopIteration as over:
            outcome: T = over.value
            return outcome, sorted(silent)

    async def _ask_owner(
        self, pool: ScoredPool, shard: int, kind: QuestionKind, question: ShardQuestion
    ) -> ShardReply | None:
        if self._owns(ShardName(pool.name, shard)):
            return shard_answers.answer(pool, shard, kind, question)
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    reply = await self._try(pool, shard, kind, question)
                    if reply is not None:
                        return reply
                    await asyncio.sleep(_AGAIN_SECONDS)
        except TimeoutError:
            return None

    async def _try(
        self, pool: ScoredPool, shard: int, kind: QuestionKind, question: ShardQuestion
    ) -> ShardReply | None:
        """Tries once; None where the shard has no owner now, or one that scores by another policy or capacity."""
        subject = subjects.shard_question(pool.name, shard, kind)
        try:
            payload = await self._bus.request(subject, to_packed(question), timeout=self._timeout)
            reply = SHARD_REPLY.decode(payload)
        except (RetryableBusError, RemoteError, ContractError):
            return None
        comparable = (reply.policy, reply.capacity) == (pool.policy, pool.shape.capacity)
        return reply if comparable else None
