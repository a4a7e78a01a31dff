"""CPU wait of this process, as Linux counts it: of the time for which it could run, the part in which it had no CPU."""

import time
from collections.abc import Callable
from pathlib import Path

_SCHEDSTAT = Path("/proc/self/schedstat")
"""Nanoseconds on a CPU, nanoseconds runnable without one, and slices (Linux,
Documentation/scheduler/sched-stats.rst)."""


def run_and_wait() -> tuple[int, int]:
    """Nanoseconds that this process ran and that it waited to run; zeros where the system does not count them."""
    try:
        ran, waited, _ = _SCHEDSTAT.read_text().split()
    except (OSError, ValueError):
        return 0, 0
    return int(ran), int(waited)


class CpuWait:
    """Measures the wait over the last seconds.

    Args:
        seconds: the length of each measurement.
        clock: monotonic seconds.
        counted: gives the system's counts, see `run_and_wait`.
    """

    def __init__(
        self,
        seconds: float = 1.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        counted: Callable[[], tuple[int, int]] = run_and_wait,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._counted = counted
        self._began, self._before = clock(), counted()
        self._part = 0.0

    def part(self) -> float:
        """The part of the time at the last measurement: 0 where it ran whenever it wanted to, near 1 where it hardly ran."""
        now = self._clock()
        if now - self._began >= self._seconds:
            counted = self._counted()
            ran, waited = counted[0] - self._before[0], counted[1] - self._before[1]
            self._part = waited / (ran + waited) if ran + waited else 0.0
            self._began, self._before = now, counted
        return self._part
