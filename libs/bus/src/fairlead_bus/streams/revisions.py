"""Revisions that only grow, over restarts as well, without a file."""

from collections.abc import Callable

from fairlead_contracts.base.instants import Micros


class Revisions:
    """Numbers made of the clock; where the clock stands still or goes back, counted on.

    Readers compare a writer's epoch first, so a successor whose clock is behind is believed all the same.
    """

    def __init__(self, clock: Callable[[], Micros]) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> int:
        """The next revision, above all that were given."""
        self._last = max(self._last + 1, self._clock())
        return self._last
