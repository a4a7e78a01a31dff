"""Streams as the server tells of them, and as an operator changes them."""

from typing import Any

import msgspec

from fairlead_bus import Bus
from fairlead_contracts.topology import SUBMIT


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
