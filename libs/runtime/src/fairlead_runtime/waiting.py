"""How event loops wait: for the next wake with a longest wait, and for a burst of wakes to settle.

An `asyncio.Event` is the only thing that is waited for; what changed is read elsewhere. The event is always cleared
before the caller looks, so that a change during its work wakes it again and none is missed.
"""

import asyncio
import time
from collections.abc import Callable


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


class Coalescer:
    """Lets a burst of wakes become one: waits until they pause for `idle`, but never longer than `longest`.

    After Karpenter's batcher: an idle window and a longest window, measured on a monotonic clock that is an argument.

    Args:
        wake: set by whoever has something new.
        idle: seconds without a further wake after which the burst is over.
        longest: seconds from the burst's first wake after which it is over in any case.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        wake: asyncio.Event,
        *,
        idle: float,
        longest: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wake = wake
        self._idle = idle
        self._longest = longest
        self._clock = clock

    async def wait(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 # an ordinary outcome, not a failure
        """Wait for a burst and for its end.

        Args:
            timeout: seconds to wait for the burst's first wake; None for ever.

        Returns:
            Whether there was a wake; False after `timeout` without one.
        """
        if not await wake_or_timeout(self._wake, timeout):
            return False
        end = self._clock() + self._longest
        while (left := end - self._clock()) > 0:
            if not await wake_or_timeout(self._wake, min(self._idle, left)):
                break
        return True
