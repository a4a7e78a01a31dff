"""Whose trouble it is that writes failed: one job's, one scope's, or everybody's.

What answers, and fails at one request, may do so for many reasons: the webhook of a namespace, a right that is missing
there, an admission policy that dislikes one Workload; or Kueue restarts, or an API server that has just started
refuses everybody for some seconds. A single failure does not tell them apart. So what failed rests by itself, and the
plan is made anew around it at once: that tries the others. The frontend as a whole is left alone only when nothing is
left to try.
"""

from collections.abc import Iterable

from fairlead_admitter.apply.frontend_backoff import Setbacks
from fairlead_admitter.decide.outcome import Applied
from fairlead_admitter.observe.job_backoff import Rests
from fairlead_contracts.messages.state import JobState


class Aftermath:
    """Draws the consequences of a plan that was carried out.

    Args:
        rests: of jobs and scopes.
        setbacks: of the frontend.
    """

    def __init__(self, rests: Rests, setbacks: Setbacks) -> None:
        self._rests = rests
        self._setbacks = setbacks

    def weigh(self, applied: Applied, queued: Iterable[JobState]) -> bool:
        """Note who fails and who does not.

        Args:
            applied: what became of the plan.
            queued: all jobs that wait or are held; looked at only where writes failed and none went well.

        Returns:
            Whether to plan anew at once: there was more to write, or it can be written around what rests now.
        """
        if applied.down:
            self._blame_all(applied)
            return False
        if applied.landed:
            self._setbacks.forget()
        for write, _ in applied.landed:
            self._rests.succeeded(write.job)
        balked = [write.job for write in applied.balked]
        if not balked:
            return bool(applied.withheld) and not applied.failed
        well = bool(applied.landed or applied.gone)
        if not well and self._rests.would_leave_none(balked, queued):
            self._blame_all(applied)
            return False
        self._rests.failed(balked, applied.trouble, retry_after=applied.retry_after)
        if not well and self._rests.spread:
            # Perhaps everybody's trouble: that is said. Who was not tried yet is tried all the same.
            self._setbacks.suspect(applied.trouble, forbidden=applied.forbidden)
        return True

    def _blame_all(self, applied: Applied) -> None:
        self._setbacks.failed(applied.trouble, retry_after=applied.retry_after, forbidden=applied.forbidden)
