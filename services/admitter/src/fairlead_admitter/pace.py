"""How many jobs of a queue's front are labelled: as many as could start before the admitter reacts again.

A label costs a write, and one that was given too early often another: the order changes while its job waits. So the
window follows what is seen: the most starts that fell into one reaction time, with a margin. Behind the window jobs
go by the frontend's own order, for the moment that it takes to label them.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable

LEAST = 4
"""Places that are labelled however little starts."""
MARGIN = 2.0
MEMORY_SECONDS = 60.0
"""How long starts and reactions count."""
UNKNOWN_REACTION_SECONDS = 1.0
"""Until the first reaction was measured."""


def window_size(starts: Iterable[float], reaction: float, most: int) -> int:
    """How many places to label.

    Args:
        starts: instants in seconds, ascending: one for each job that started.
        reaction: seconds from a start to the levels that follow from it.
        most: what the policy allows (`window`).
    """
    together = 0
    recent: deque[float] = deque()
    for start in starts:
        recent.append(start)
        while recent[0] <= start - reaction:
            recent.popleft()
        together = max(together, len(recent))
    return min(most, LEAST + math.ceil(MARGIN * together))


class Pace:
    """The starts of each pool, and the time that reactions take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._starts: dict[str, deque[float]] = {}
        self._reactions: deque[tuple[float, float]] = deque()

    def started(self, pool: str, jobs: int) -> None:
        """So many jobs of the pool were just seen to start."""
        starts = self._starts.setdefault(pool, deque())
        starts.extend([self._clock()] * jobs)

    def reacted(self, seconds: float) -> None:
        """A level was written so long after what caused it."""
        self._reactions.append((self._clock(), seconds))

    def size(self, pool: str, most: int) -> int:
        """How many places of each queue of the pool to label now, at most `most`."""
        since = self._clock() - MEMORY_SECONDS
        starts = self._starts.setdefault(pool, deque())
        while starts and starts[0] <= since:
            starts.popleft()
        while self._reactions and self._reactions[0][0] <= since:
            self._reactions.popleft()
        reaction = max((seconds for _, seconds in self._reactions), default=UNKNOWN_REACTION_SECONDS)
        return window_size(starts, reaction, most)

    def keep(self, pools: Iterable[str]) -> None:
        """Only these pools are there at all."""
        for pool in self._starts.keys() - set(pools):
            del self._starts[pool]
