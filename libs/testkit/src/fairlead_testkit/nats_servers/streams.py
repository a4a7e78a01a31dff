"""Streams as readers mirror them, as the server tells of them, and as an operator changes them."""

import asyncio
from typing import Any

import msgspec

from fairlead_bus import Bus, Mirror
from fairlead_contracts import subjects
from fairlead_contracts.messages.state import STATE, State, is_stated_at
from fairlead_contracts.topology import STATE as STATE_STREAM
from fairlead_contracts.topology import SUBMIT


def state_mirror(bus: Bus, cluster: str | None = None, wake: asyncio.Event | None = None) -> Mirror[State]:
    """A mirror of what a cluster states, or all do; it does not run yet.

    Args:
        cluster: the cluster; None for all.
        wake: set by each change.
    """
    return Mirror(
        bus,
        stream=STATE_STREAM,
        filter=subjects.state_filter(cluster),
        codec=STATE,
        wake=wake or asyncio.Event(),
        stamp=lambda state: state.stamp,
        belongs=is_stated_at,
    )


async def stream_info(bus: Bus, stream: str, **asked: object) -> dict[str, Any]:
    """The server's answer about a stream, with what else is asked of it: its configuration, and its state."""
    return dict(msgspec.json.decode(await bus.jetstream.call(f"STREAM.INFO.{stream}", asked or None)))


async def change_stream(bus: Bus, stream: str, **changes: object) -> dict[str, Any]:
    """Change a stream's configuration; gives the one that it had."""
    config: dict[str, Any] = (await stream_info(bus, stream))["config"]
    await bus.jetstream.call(f"STREAM.UPDATE.{stream}", {**config, **changes})
    return config


async def submissions_left(bus: Bus) -> int:
    """The number of submissions that nobody has handled yet."""
    return int((await stream_info(bus, SUBMIT))["state"]["messages"])


async def nothing_waits(bus: Bus) -> bool:
    """Whether every submission was handled."""
    return await submissions_left(bus) == 0
