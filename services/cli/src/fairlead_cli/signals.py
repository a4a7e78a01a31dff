"""Signals that ask a command to end."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def ending_on_signals() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C, SIGTERM and a closed terminal set."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, end.set)
    try:
        yield end
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
