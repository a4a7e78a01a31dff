"""The pace of each of many lines: a rate of its own in the long run, and a burst after a rest."""

import time
from collections import OrderedDict
from collections.abc import Callable


class LinePace:
    """Lets each line spend at a rate of its own.

    Args:
        a_second: rate of each line in the long run.
        burst: number that a line may spend at once after a rest.
        clock: monotonic seconds.
    """

    def __init__(self, a_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._each = 1 / a_second
        self._ahead = (burst - 1) / a_second
        self._clock = clock
        self._paid_until: OrderedDict[str, float] = OrderedDict()
        """Monotonic second at which a line has made up for all that it spent, by line; the one that spent last at the
        end."""

    def spend(self, line: str, amount: float = 1.0) -> None:
        """Counts one more of this line, or another amount."""
        now = self._clock()
        self._paid_until[line] = max(now, self._paid_until.get(line, now)) + amount * self._each
        self._paid_until.move_to_end(line)
        while next(iter(self._paid_until.values())) <= now:
            self._paid_until.popitem(last=False)

    def rest(self, line: str) -> float:
        """Seconds until one more of this line is within its rate; 0 where it is now."""
        until = self._paid_until.get(line)
        return 0.0 if until is None else max(0.0, until - self._ahead - self._clock())
