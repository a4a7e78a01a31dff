"""How long the frontend is left alone after writes that failed, and what is said of it.

What concerns one job or one scope alone is none of this: see `job_backoff`.
"""

from collections.abc import Callable

from fairlead_admitter.observe.job_backoff import FIRST_SECONDS, LONGEST_SECONDS
from fairlead_runtime.waiting import pause_after

_FORBIDDEN_FOR_GOOD = 4
"""After so many failures in a row, some four seconds, a missing right is not a server's start any more."""
_ROW = 16
"""More failures in a row are not counted."""


class FrontendBackoff:
    """Counts failures in a row. One success ends them.

    Args:
        clock: monotonic seconds.
        stale_after: after so many seconds of failures in a row it is a reason not to be ready.
    """

    def __init__(self, clock: Callable[[], float], stale_after: float) -> None:
        self._clock = clock
        self._stale_after = stale_after
        self._row = 0
        self._since = 0.0
        self._until = 0.0
        self._why = ""
        self._forbidden = False

    @property
    def seconds_left(self) -> float:
        """The time for which nothing is to be written; 0 where writing may be tried."""
        return max(0.0, self._until - self._clock())

    def failed(self, why: str, *, retry_after: float = 0.0, forbidden: bool = False) -> None:
        """The frontend did not answer, or lets us write nothing."""
        now = self._clock()
        if not self._row:
            self._since = now
        # An API server that has just started refuses everybody for a moment; a right that stays away is not soon back.
        for_good = forbidden and self._row >= _FORBIDDEN_FOR_GOOD
        self._until = now + max(retry_after, _pause(_ROW if for_good else self._row))
        self._row = min(self._row + 1, _ROW)
        self._why, self._forbidden = why, forbidden

    def suspect(self, why: str, *, forbidden: bool = False) -> None:
        """Notes what may be everybody's trouble. It is told like one; who was not tried yet may be tried at once."""
        if not self._row:
            self._since, self._row = self._clock(), 1
        self._why, self._forbidden = why, forbidden

    def forget(self) -> None:
        """Forgets what failed: the frontend obeyed, or nothing is to be written by us."""
        self._row, self._until, self._why, self._forbidden = 0, 0.0, "", False

    def trouble(self) -> str | None:
        """The trouble that a person has to see to; None while there is none, or it may pass by itself."""
        if not self._row or not (self._forbidden or self._clock() - self._since > self._stale_after):
            return None
        return f"levels can't be written: {self._why}"


def _pause(row: int) -> float:
    return pause_after(row, first=FIRST_SECONDS, longest=LONGEST_SECONDS)
