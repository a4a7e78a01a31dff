"""Waiting until an instance answers for its pools."""

import asyncio
import contextlib
import time

from fairlead_bus import Bus, RetryableBusError
from fairlead_cli.client.connection import ask
from fairlead_cli.errors import CommandError
from fairlead_contracts.messages.questions import TENANTS_REPLY, TenantsQuestion

READY_WITHIN_SECONDS = 30.0
_PAUSE_SECONDS = 0.1


async def wait_answering(bus: Bus, end: asyncio.Event) -> bool:
    """Return once the scorers answer for at least one pool with no shard silent.

    Args:
        bus: the connection.
        end: gives up early.

    Returns:
        Whether they do.
    """
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while time.monotonic() < deadline and not end.is_set():
        if await _answers(bus):
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE_SECONDS):
                await end.wait()
    return False


async def _answers(bus: Bus) -> bool:
    try:
        reply = await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)
    except (CommandError, RetryableBusError):
        return False
    return bool(reply.pools) and not any(pool.silent_shards for pool in reply.pools)
