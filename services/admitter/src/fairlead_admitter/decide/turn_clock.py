"""The clock of a turn: time as a value, so that what is decided follows from what went in."""

import time
from collections.abc import Callable

from fairlead_contracts.base.instants import Micros
from fairlead_runtime.clock import wall_clock


class TurnClock:
    """Stands still until it is told to look at the time again.

    Args:
        seconds: monotonic.
        instant: time of the wall clock.
    """

    def __init__(
        self, seconds: Callable[[], float] = time.monotonic, instant: Callable[[], Micros] = wall_clock
    ) -> None:
        self._seconds = seconds
        self._instant = instant
        self.look()

    def look(self) -> None:
        """Sets the instant of the turn to now."""
        self._monotonic, self._wall = self._seconds(), self._instant()

    def monotonic(self) -> float:
        """Monotonic seconds at the last look."""
        return self._monotonic

    def wall(self) -> Micros:
        """The instant of the last look."""
        return self._wall
