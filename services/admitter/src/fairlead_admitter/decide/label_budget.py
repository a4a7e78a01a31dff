"""The budget of labels: how much of a frontend's time may go into trying jobs that have no room.

A frontend that parks tries a job whose level changed. Where it does not fit, the frontend may note the reason before it
goes on, and admit nobody, in no queue, until that is written. So a label on a job without room costs as much of its time as
a write takes. With CPU to spare nothing is lost by that.

While many jobs start, labels therefore take a bounded share of the time. Where few start, the frontend has nothing else
to do.

Kueue is one that does so (`requeueAndUpdate`, pkg/scheduler): it waits for the API server, which takes 5 ms with CPU to
spare, and 0.1 s under Kueue's own load on two cores. Without a budget, labels had 183 jobs tried in vain there in place of
40, and for 14 of 34 seconds nobody was admitted.
"""

import statistics
import time
from collections.abc import Callable, Sequence

from fairlead_admitter.decide.pace import MANY_STARTS

SHARE = 0.1
"""Part of each second that may go into trials in vain."""
SAVED_SECONDS = 0.25
"""Seconds that are saved up at most: 50 labels at once where the frontend answers in 5 ms, two where in 0.1 s."""
OWED_SECONDS = -1.0
"""Seconds that are owed at most, below zero: one very slow answer does not keep levels away for longer than ten
seconds."""


class LabelBudget:
    """Seconds of the frontend's that labels may take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = SAVED_SECONDS
        self._known = clock()
        self._each = 0.0
        """Seconds that a label takes: the median answer of the last plan."""

    def spend(self, labels: int, took: Sequence[float]) -> None:
        """Charges labels that were written to jobs without room.

        Args:
            took: seconds until the frontend answered, by request.
        """
        if took:
            self._each = statistics.median(took)
        self._save()
        self._left = max(OWED_SECONDS, self._left - labels * self._each)

    def most(self, starts: int) -> int | None:
        """Number of labels that may be written now to jobs without room; None for any number.

        Args:
            starts: number of jobs that started within the last `pace.STARTS_SECONDS`, in all pools.
        """
        self._save()
        if starts < MANY_STARTS or not self._each:
            return None
        return max(1, int(self._left / self._each)) if self._left > 0 else 0

    def _save(self) -> None:
        now = self._clock()
        self._left = min(SAVED_SECONDS, self._left + SHARE * (now - self._known))
        self._known = now
