"""The pause of the whole frontend after writes that failed, and what people are told of it.

Failures of a single job or scope are the business of `job_backoff`.
"""

from collections.abc import Callable

from fairlead_admitter.observe.job_backoff import FIRST_SECONDS, LONGEST_SECONDS
from fairlead_runtime.waiting import pause_after

_FORBIDDEN_FOR_GOOD = 4
"""Failures in a row, some four seconds, after which a server that has just started does not explain a missing right."""
_MOST_COUNTED = 16
"""Failures in a row that are counted at most."""


class FrontendBackoff:
    """Counts failures in a row. One success ends them.

    Args:
        clock: monotonic seconds.
        stale_after: seconds of failures in a row after which they are a reason not to be ready.
    """

    def __init__(self, clock: Callable[[], float], stale_after: float) -> None:
        self._clock = clock
        self._stale_after = stale_after
        self._failures = 0
        self._since = 0.0
        self._until = 0.0
        self._why = ""
        self._forbidden = False

    @property
    def seconds_left(self) -> float:
        """Seconds for which nothing is to be written; 0 where a write may be tried."""
        return max(0.0, self._until - self._clock())

    def failed(self, why: str, *, retry_after: float = 0.0, forbidden: bool = False) -> None:
        """Notes that the frontend did not answer, or lets us write nothing."""
        now = self._clock()
        if not self._failures:
            self._since = now
        # An API server that has just started refuses everybody for a moment; a right that stays away is not soon back.
        for_good = forbidden and self._failures >= _FORBIDDEN_FOR_GOOD
        failures = _MOST_COUNTED if for_good else self._failures
        pause = pause_after(failures, first=FIRST_SECONDS, longest=LONGEST_SECONDS)
        self._until = now + max(retry_after, pause)
        self._failures = min(self._failures + 1, _MOST_COUNTED)
        self._why, self._forbidden = why, forbidden

    def suspect(self, why: str, *, forbidden: bool = False) -> None:
        """Notes a failure that may be the whole frontend's: people are told of it, and no pause follows."""
        if not self._failures:
            self._since, self._failures = self._clock(), 1
        self._why, self._forbidden = why, forbidden

    def forget(self) -> None:
        """Forgets what failed: the frontend obeyed, or nothing is to be written by us."""
        self._failures, self._until, self._why, self._forbidden = 0, 0.0, "", False

    def trouble(self) -> str | None:
        """The trouble that a person has to see to; None while there is none, or it may pass by itself."""
        if not self._failures or not (self._forbidden or self._clock() - self._since > self._stale_after):
            return None
        return f"levels can't be written: {self._why}"
