"""Failed writes: whether one job rests, its scope, or the whole frontend, and what people are told of it.

A frontend that answers may still fail one request, for many reasons: the webhook of a namespace, a right that is
missing there, an admission policy that dislikes one Workload; or Kueue restarts, or an API server that has just started
refuses everybody for some seconds. A single failure does not tell them apart. So the job whose write failed rests, and
the plan is made anew around it at once: that tries the others. The frontend as a whole is left alone only when nothing
is left to try.
"""

from collections.abc import Callable, Iterable

from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.observe.job_backoff import FIRST_SECONDS, LONGEST_SECONDS, JobBackoff
from fairlead_contracts.messages.state import JobState
from fairlead_runtime.waiting import pause_after

_FORBIDDEN_FOR_GOOD = 4
"""Failures in a row, some four seconds, after which a server that has just started does not explain a missing right."""


class FrontendBackoff:
    """The pause of the whole frontend. Counts failures in a row; one success ends them.

    Args:
        clock: monotonic seconds.
        stale_after: seconds of failures in a row after which they are a reason not to be ready.
    """

    def __init__(self, clock: Callable[[], float], stale_after: float) -> None:
        self._clock = clock
        self._stale_after = stale_after
        self._since = 0.0
        self.forget()

    def forget(self) -> None:
        """Forgets what failed: the frontend obeyed, or nothing is to be written by us."""
        self._failures, self._until, self._why, self._forbidden = 0, 0.0, "", False

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
        first = LONGEST_SECONDS if for_good else FIRST_SECONDS
        self._until = now + max(
            retry_after, pause_after(self._failures, first=first, longest=LONGEST_SECONDS)
        )
        self._failures += 1
        self._why, self._forbidden = why, forbidden

    def suspect(self, why: str, *, forbidden: bool = False) -> None:
        """Notes a failure that may be the whole frontend's: people are told of it, and no pause follows."""
        if not self._failures:
            self._since, self._failures = self._clock(), 1
        self._why, self._forbidden = why, forbidden

    def trouble(self) -> str | None:
        """The trouble that a person has to see to; None while there is none, or it may pass by itself."""
        if not self._failures or not (self._forbidden or self._clock() - self._since > self._stale_after):
            return None
        return f"levels can't be written: {self._why}"


def weigh(
    applied: PlanOutcome, queued: Iterable[JobState], *, backoff: JobBackoff, frontend: FrontendBackoff
) -> bool:
    """Notes whose writes failed and whose did not, once a plan was carried out.

    Args:
        queued: jobs that wait or are held, all of them; looked at only where writes failed and none went well.

    Returns:
        Whether to plan anew at once: there was more to write, or it can be written around the jobs that rest now.
    """
    if applied.landed and not applied.down:
        frontend.forget()
        for write, _ in applied.landed:
            backoff.succeeded(write.job)
    balked = [write.job for write in applied.balked]
    well = bool(applied.landed or applied.gone)
    if applied.down or (balked and not well and backoff.would_leave_none(balked, queued)):
        frontend.failed(applied.trouble, retry_after=applied.retry_after, forbidden=applied.forbidden)
        return False
    if not balked:
        return bool(applied.withheld) and not applied.failed
    backoff.failed(balked, applied.trouble, retry_after=applied.retry_after)
    if not well and backoff.spread:
        # Perhaps the whole frontend fails: people are told so, and scopes that were not tried yet are tried all the same.
        frontend.suspect(applied.trouble, forbidden=applied.forbidden)
    return True
