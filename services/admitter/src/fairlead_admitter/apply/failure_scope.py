"""Scope of failed writes: one job's, one scope's, or everybody's.

A frontend that answers may still fail one request, for many reasons: the webhook of a namespace, a right that is
missing there, an admission policy that dislikes one Workload; or Kueue restarts, or an API server that has just started
refuses everybody for some seconds. A single failure does not tell them apart. So the job whose write failed rests, and
the plan is made anew around it at once: that tries the others. The frontend as a whole is left alone only when nothing
is left to try.
"""

from collections.abc import Iterable

from fairlead_admitter.apply.frontend_backoff import FrontendBackoff
from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.observe.job_backoff import JobBackoff
from fairlead_contracts.messages.state import JobState


class FailureScope:
    """Draws the consequences of a plan that was carried out.

    Args:
        backoff: rests of jobs and scopes.
        frontend_backoff: rest of the frontend.
    """

    def __init__(self, backoff: JobBackoff, frontend_backoff: FrontendBackoff) -> None:
        self._backoff = backoff
        self._frontend_backoff = frontend_backoff

    def weigh(self, applied: PlanOutcome, queued: Iterable[JobState]) -> bool:
        """Notes whose writes failed and whose did not.

        Args:
            applied: outcome of the plan.
            queued: jobs that wait or are held, all of them; looked at only where writes failed and none went well.

        Returns:
            Whether to plan anew at once: there was more to write, or it can be written around the jobs that rest now.
        """
        if applied.down:
            self._blame_all(applied)
            return False
        if applied.landed:
            self._frontend_backoff.forget()
        for write, _ in applied.landed:
            self._backoff.succeeded(write.job)
        balked = [write.job for write in applied.balked]
        if not balked:
            return bool(applied.withheld) and not applied.failed
        well = bool(applied.landed or applied.gone)
        if not well and self._backoff.would_leave_none(balked, queued):
            self._blame_all(applied)
            return False
        self._backoff.failed(balked, applied.trouble, retry_after=applied.retry_after)
        if not well and self._backoff.spread:
            # Perhaps the whole frontend fails: people are told so, and scopes that were not tried yet are tried all the
            # same.
            self._frontend_backoff.suspect(applied.trouble, forbidden=applied.forbidden)
        return True

    def _blame_all(self, applied: PlanOutcome) -> None:
        self._frontend_backoff.failed(
            applied.trouble, retry_after=applied.retry_after, forbidden=applied.forbidden
        )
