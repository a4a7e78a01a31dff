"""Signals that ask a command to end, and the wait for an event."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def ending_on_signals() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C, SIGTERM and a closed terminal set; under `nohup` a closed terminal does not."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in asked if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, end.set)
    try:
        yield end
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def happens(event: asyncio.Event, *, within: float) -> bool:
    """Whether the event is set within so many seconds; returns as soon as it is."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()
