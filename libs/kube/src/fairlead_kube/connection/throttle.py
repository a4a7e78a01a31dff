"""A token bucket for our writes."""

import asyncio
import time
from collections.abc import Callable


class Throttle:
    """A token bucket: `burst` at once and `qps` a second in the long run; whoever waits is served in order of arrival."""

    def __init__(self, qps: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(
                f"a throttle needs qps above 0 and burst of at least 1 (found {qps} and {burst})"
            )
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._at = clock()
        self._turn = asyncio.Lock()
        self.granted = 0
        """Number of calls let through."""
        self.waited = 0
        """Number of those calls that had to wait."""
        self.waited_seconds = 0.0

    async def acquire(self) -> None:
        """Wait until one more call may be made. A waiter that is cancelled takes nothing."""
        async with self._turn:
            self._refill()
            if self._tokens < 1:
                pause = (1 - self._tokens) / self._qps
                await asyncio.sleep(pause)
                self.waited += 1
                self.waited_seconds += pause
                self._refill()
            # A sleep may end a clock tick early: the debt of that tick is carried, not lost.
            self._tokens -= 1
            self.granted += 1

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
        self._at = now
