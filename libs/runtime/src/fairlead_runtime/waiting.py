"""The waits of event loops: for the next wake, with a longest wait.

An `asyncio.Event` is the only thing that is waited for; what changed is read elsewhere. The event is always cleared
before the caller looks, so that a change during its work wakes it again and none is missed.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence

_ENDLESS = 32
"""Failures in a row after which none of them makes a pause any longer."""


def pause_after(row: int, *, first: float, longest: float) -> float:
    """Seconds to wait after a failure that so many others in a row came before: each time twice as long, with jitter.

    Args:
        row: failures before this one.
        first: seconds at most after the first one.
        longest: seconds at most.
    """
    # Several who failed in one instant shall not all come back in one.
    return min(first * 2.0 ** min(row, _ENDLESS), longest) * random.uniform(0.5, 1.0)  # noqa: S311 # no secret


async def wake_or_timeout(wake: asyncio.Event, seconds: float | None) -> bool:
    """Wait until `wake` is set, at most `seconds` (None for ever), and clear it.

    Returns:
        Whether it was set; False after the whole time without it.
    """
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return False
    wake.clear()
    return True


def until_next(period: float, now: float) -> float:
    """Seconds until the next instant that is a multiple of the period; 0 without a period.

    Who rests until the same instants as others looks at the same changes as they do, in one go.

    Args:
        now: seconds of any clock; one that others share, where they shall meet.
    """
    return period - now % period if period > 0 else 0.0


class CpuTokenBucket:
    """CPU time that a process saves up while little happens.

    As long as some is left, its loop looks at each change at once. Where changes follow each other faster than it comes
    back, a loop rests, and looks at several together: what each costs by itself is spent once for all of them.

    Args:
        rest: seconds at most for which a loop rests.
        share: the part of a core at which it comes back.
        burst: seconds of CPU that can be saved up.
        clock: monotonic seconds.
        spent: gives the seconds of CPU that the process used.
    """

    def __init__(
        self,
        rest: float,
        *,
        share: float = 0.06,
        burst: float = 0.1,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        self._share = share
        self._burst = burst
        self._deepest = -rest * share
        self._clock = clock
        self._spent = spent
        self._left = burst
        self._known = clock(), spent()

    def due(self) -> float:
        """Seconds to rest now."""
        (then, before), self._known = self._known, (self._clock(), self._spent())
        now, spent = self._known
        left = self._left + (now - then) * self._share - (spent - before)
        self._left = min(max(left, self._deepest), self._burst)
        return max(0.0, -self._left / self._share)


class Pacing:
    """Rests between the passes of a loop, so that what comes in quick succession is looked at together.

    The first pass after a quiet time begins at once. While one wake follows the other, a pass begins so many times the
    CPU time of the one before after its end, within bounds: however much comes in, the loop takes a bounded part of a core.

    Args:
        least: seconds from the end of a pass to the beginning of the next.
        most: seconds, likewise.
        times: the CPU time of the last pass.
        rests: give seconds for which a pass should rest now, for other reasons; the longest counts.
        spent: gives the seconds of CPU that the process used.
    """

    def __init__(
        self,
        *,
        least: float = 0.0,
        most: float = 0.005,
        times: float = 2.0,
        rests: Sequence[Callable[[], float]] = (),
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        self._least = least
        self._most = most
        self._times = times
        self._rests = rests
        self._spent = spent
        self._began: float | None = None

    async def wake_or_timeout(self, wake: asyncio.Event, seconds: float | None) -> bool:
        """Waits as `fairlead_runtime.waiting.wake_or_timeout`, then rests; called once at the end of each pass."""
        rested = time.monotonic() + self._due()
        woken = await wake_or_timeout(wake, seconds)
        if (left := rested - time.monotonic()) > 0:
            await asyncio.sleep(left)
            woken = woken or wake.is_set()
            wake.clear()
        self._began = self._spent()
        return woken

    def _due(self) -> float:
        if self._began is None:
            return 0.0
        rest = max(self._least, min(self._most, self._times * (self._spent() - self._began)))
        return max(rest, *(due() for due in self._rests)) if self._rests else rest
