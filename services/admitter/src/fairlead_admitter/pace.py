"""How many jobs of a queue's front are labelled: as many as could start before the admitter reacts again.

A label costs a write, and one that was given too early often another: the order changes while its job waits. So the
window follows what is seen: the starts that fall into one reaction time, with a margin for their coming in bursts.
Behind the window jobs go by the frontend's own order, for the moment that it takes to label them; what a burst takes
out of turn there, counts as its tenants' use, and the next places make up for it.

Measured on the demo's trace in virtual time, 25 to 40 starts a second, three seeds, reactions of 0.03 to 0.12 s: 1.5 to
2.1 writes a start with the worst tenant 3.2 to 3.5 % off, against 2.3 to 3.7 writes and 2.5 to 3.1 % with 32 places
always labelled. The most starts ever seen together, in place of their mean, label nearly all of the 32: one large job
that ends is enough.

Where jobs are woken one by one (see `waking`), labels matter to the frontend's own batch alone, and each label more is a
priority more that this batch tries. There two places and the margin are enough.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable

LEAST = 4
"""Places that are labelled however little starts."""
LEAST_WHERE_WOKEN = 2
"""The same where who is next is woken by a write of its own: the frontend's batch alone reads what stands behind."""
MARGIN = 5.0
"""How many times as many as on the mean may start together."""
STARTS_SECONDS = 10.0
"""How long a start counts."""
REACTIONS_SECONDS = 60.0
"""How long a measured reaction counts."""
UNKNOWN_REACTION_SECONDS = 1.0
"""Until the first reaction was measured."""


def window_size(starts: int, reaction: float, most: int, *, least: int = LEAST) -> int:
    """How many places to label.

    Args:
        least: places that are labelled however little starts.
        starts: jobs of the pool that started within the last `STARTS_SECONDS`.
        reaction: seconds from a start to the levels that follow from it.
        most: what the policy allows (`window`).
    """
    return min(most, least + math.ceil(MARGIN * starts / STARTS_SECONDS * reaction))


class Pace:
    """The starts of each pool, and the time that reactions take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._starts: dict[str, deque[tuple[float, int]]] = {}
        self._reactions: deque[tuple[float, float]] = deque()

    def started(self, pool: str, jobs: int) -> None:
        """So many jobs of the pool were just seen to start."""
        if jobs:
            self._starts.setdefault(pool, deque()).append((self._clock(), jobs))

    def reacted(self, seconds: float) -> None:
        """A level was written so long after what caused it."""
        self._reactions.append((self._clock(), seconds))

    def size(self, pool: str, most: int, *, woken: bool = False) -> int:
        """How many places of each queue of the pool to label now, at most `most`.

        Args:
            pool: which one.
            most: what the policy allows.
            woken: whether its jobs are woken one by one.
        """
        starts = self._starts.get(pool, deque())
        _forget(starts, self._clock() - STARTS_SECONDS)
        _forget(self._reactions, self._clock() - REACTIONS_SECONDS)
        least = LEAST_WHERE_WOKEN if woken else LEAST
        return window_size(sum(jobs for _, jobs in starts), self._reaction(), most, least=least)

    def _reaction(self) -> float:
        """The median: one slow reaction is nothing to plan by."""
        seconds = [seconds for _, seconds in self._reactions]
        return statistics.median(seconds) if seconds else UNKNOWN_REACTION_SECONDS

    def keep(self, pools: Iterable[str]) -> None:
        """Only these pools are there at all."""
        for pool in self._starts.keys() - set(pools):
            del self._starts[pool]


def _forget[T](noted: deque[tuple[float, T]], until: float) -> None:
    while noted and noted[0][0] <= until:
        noted.popleft()
