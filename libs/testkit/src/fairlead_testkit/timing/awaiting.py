"""Waiting in tests: for an event where there is one, and by short polls where another process has to get there.

This is the only place where tests poll. A fixed sleep is never right: too short on a busy machine, too long elsewhere.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, overload

POLL_SECONDS = 0.02
_SHARE = 6
"""Pause after a question, as a multiple of the time that it took, up to the longest pause: asking (a list of a
thousand Jobs, a command of Slurm's) takes the processors from whoever is to get there."""
_LONGEST_PAUSE = 0.25
_PART = 40
"""The longer a wait has lasted, the rarer the questions: each pause may be longer by such a part of it."""


class NeverHappenedError(AssertionError):
    """The condition did not come true in time; carries what it said last."""


@overload
async def eventually[T](
    condition: Callable[[], Awaitable[T | None]],
    timeout: float = ...,  # noqa: ASYNC109 # as below
    *,
    on: asyncio.Event | None = ...,
    what: str = ...,
) -> T: ...
@overload
async def eventually[T](
    condition: Callable[[], T | None],
    timeout: float = ...,  # noqa: ASYNC109 # as below
    *,
    on: asyncio.Event | None = ...,
    what: str = ...,
) -> T: ...
async def eventually[T](
    condition: Callable[[], Awaitable[T | None]] | Callable[[], T | None],
    timeout: float = 45.0,  # noqa: ASYNC109 # a missed deadline is this function's own, worded failure
    *,
    on: asyncio.Event | None = None,
    what: str = "",
) -> T:
    """Wait until the condition gives something true, and return that.

    Args:
        condition: asked again and again; may be a coroutine function.
        timeout: seconds; give generous ones, they are only spent on failure.
        on: set whenever something may have changed: then the condition is asked after each set instead of by polling.

    Raises:
        NeverHappenedError: the time is over.
    """
    began = time.monotonic()
    deadline = began + timeout
    while True:
        if on is not None:
            on.clear()
        asked = time.monotonic()
        found = condition()
        value = await found if inspect.isawaitable(found) else found
        if value:
            return value
        now = time.monotonic()
        left = deadline - now
        if left <= 0:
            raise NeverHappenedError(
                f"not within {timeout} s: {what or condition}; the last value was {value!r}"
            )
        await _pause(on, left, pause_after(now - asked, now - began))


async def next_second() -> None:
    """Wait until what is made now is younger than what was made before: Kubernetes and Slurm count whole seconds."""
    last = int(time.time())
    await eventually(lambda: int(time.time()) > last, 5, what="another second has begun")


async def _pause(on: asyncio.Event | None, left: float, pause: float) -> None:
    if on is None:
        await asyncio.sleep(min(pause, left))
        return
    try:
        async with asyncio.timeout(left):
            await on.wait()
    except TimeoutError:
        return


def pause_after(cost: float, waited: float) -> float:
    """Seconds to wait before the next question: `cost` is the time that one takes, `waited` the wait so far."""
    return max(POLL_SECONDS, cost, min(_SHARE * cost + waited / _PART, _LONGEST_PAUSE))


class NeededProcess(Protocol):
    """A process that has to live while something is waited for."""

    name: str

    @property
    def log_end(self) -> str:
        """The end of what it wrote."""

    def check_alive(self) -> None:
        """Raise an error unless it runs."""


def until[T](condition: Callable[[], T | None], seconds: float, what: str, *needed: NeededProcess) -> T:
    """Wait like `eventually`, where there is no event loop.

    Args:
        seconds: longest wait.
        needed: processes that have to live meanwhile: an error of theirs ends the wait.

    Raises:
        NeverHappenedError: the time is over.
    """
    began = time.monotonic()
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        for process in needed:
            process.check_alive()
        now = time.monotonic()
        if now > began + seconds:
            logs = "".join(f"\n--- {process.name}\n{process.log_end}" for process in needed)
            raise NeverHappenedError(f"not within {seconds:g} s: {what}; the last value was {value!r}{logs}")
        time.sleep(pause_after(now - asked, now - began))
