"""Hearing the messages of a stream while something else goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fairlead_bus import Bus, Follower
from fairlead_contracts.base.codec import Codec
from fairlead_contracts.base.errors import ContractError


@asynccontextmanager
async def hearing[T](
    bus: Bus,
    *,
    stream: str,
    filter: str,  # noqa: A002 - the word of NATS
    codec: Codec[T],
    take: Callable[[T], None],
) -> AsyncIterator[None]:
    """Calls `take` with every message from the beginning of the block to its end, in order, over reconnects.

    A message that this release cannot read is left out: it comes from a newer one, and there is no one here to tell.
    """
    follower = Follower(bus, stream=stream, filter=filter)

    async def follow() -> None:
        async for message in follower:
            try:
                found = codec.decode(message.payload)
            except ContractError:
                continue
            take(found)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(follow(), name=f"hearing {filter}")
        await follower.ready.wait()
        yield
        task.cancel()
