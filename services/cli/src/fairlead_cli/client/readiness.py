"""Waiting until an instance answers for its pools."""

import asyncio
import time
from collections.abc import Callable

from fairlead_bus import Bus, RetryableBusError
from fairlead_cli.client.connection import ask
from fairlead_cli.errors import CommandError
from fairlead_cli.signals import happens
from fairlead_contracts.messages.questions import TENANTS_REPLY, TenantsQuestion

READY_WITHIN_SECONDS = 120.0
"""Seconds that a start may take: a multiple of its usual few, for a busy machine."""
_PAUSE_SECONDS = 0.1
_TOLD_EVERY_SECONDS = 10.0


async def wait_answering(
    bus: Bus,
    end: asyncio.Event,
    *,
    within: float = READY_WITHIN_SECONDS,
    pause: float = _PAUSE_SECONDS,
    told: Callable[[str], None] = lambda _: None,
) -> str:
    """Return once the scorers answer for at least one pool with no shard silent.

    Args:
        end: gives up early.
        within: gives up after so many seconds.
        pause: between two questions, in seconds.
        told: hears now and then for how long, and for what, is waited.

    Returns:
        What was missing at the end; empty where they answer.
    """
    began = time.monotonic()
    next_word = began + _TOLD_EVERY_SECONDS
    while why := await _why_not(bus):
        now = time.monotonic()
        if now >= began + within or end.is_set():
            return why
        if now >= next_word:
            next_word = now + _TOLD_EVERY_SECONDS
            told(f"not ready after {now - began:.0f} s: {why}")
        await happens(end, within=pause)
    return ""


async def _why_not(bus: Bus) -> str:
    try:
        reply = await ask(bus, "tenants", TenantsQuestion(), TENANTS_REPLY)
    except (CommandError, RetryableBusError) as error:
        return str(error)
    if not reply.pools:
        return "the scorers wait for a cluster: its watcher (of a simulated one, the service `sim`) has told of no pool yet"
    # The scorers divide the shards of a pool among them while they start.
    return "; ".join(
        f"pool {pool.pool}: no scorer answers yet for its shards {', '.join(map(str, pool.silent_shards))}"
        for pool in reply.pools
        if pool.silent_shards
    )
