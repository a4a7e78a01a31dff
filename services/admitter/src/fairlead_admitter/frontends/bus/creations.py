"""Creations that are asked for in the same moment travel together: a request costs as much for twenty as for one.

Those of one scope only: what holds one scope up is no business of the others.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from fairlead_admitter.errors import FrontendDownError
from fairlead_contracts.frontend.verbs import CreateJob, CreateReply

MOST_TOGETHER = 48
LARGEST_TOGETHER = 8 * 1024
"""Bytes of a job that shares a request; a larger one travels alone."""

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
        """By scope, those that go along with who asked first."""

    async def create(self, job: CreateJob) -> CreateReply:
        """The reply to this one.

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
