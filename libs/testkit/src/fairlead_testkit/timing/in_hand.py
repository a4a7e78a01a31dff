"""Time that a test has in hand: a clock that it moves, steps done at once, no look for garbage, tasks beside a block."""

import asyncio
import contextlib
import gc
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any


@contextlib.contextmanager
def no_garbage_collected() -> Iterator[None]:
    """Collects garbage before the block and not within it.

    A look through all that pytest and a hundred thousand answers are made of takes 0.1 s and more. Whatever was on its way in
    that time would be told as late, and with forty samples a second some such looks are the slowest per cent of them.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def all_steps(steps: Iterator[None]) -> None:
    """Do all steps of some work."""
    deque(steps, maxlen=0)


class ManualClock:
    """A clock of seconds; the test sets `now`, which it shows first, too."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The seconds that it shows."""
        return self.now


@contextlib.asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Runs them beside the block, and cancels them at its end. Where one of them fails, so does the block, at once."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in coroutines]
        yield
        for task in tasks:
            task.cancel()
