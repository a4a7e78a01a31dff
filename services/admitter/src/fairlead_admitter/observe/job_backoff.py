"""Backoff of jobs and scopes: those whose writes failed, while others' went well, are left alone for a while.

A webhook that fails for one namespace, or a right that is missing there, is no reason to keep levels from all others.
So only the job whose write failed rests, and its whole scope once two of its jobs failed and none went well since. The
order of the rest is planned around what rests, as around a job that somebody else fights over.
"""

from collections.abc import Callable, Iterable

import msgspec

from fairlead_contracts.messages.state import JobState
from fairlead_runtime.waiting import pause_after

FIRST_SECONDS = 0.25
LONGEST_SECONDS = 30.0
"""The first and the longest pause, also of the whole frontend."""
_FAILED_JOBS_OF_A_SCOPE = 2
"""Number of jobs of a scope that must fail before the whole scope rests."""


class _Backoff(msgspec.Struct):
    failures: int = 0
    """Failures in a row."""
    until: float = 0.0
    why: str = ""

    def prolong(self, now: float, why: str, retry_after: float) -> None:
        pause = pause_after(self.failures, first=FIRST_SECONDS, longest=LONGEST_SECONDS)
        self.until = now + max(retry_after, pause)
        self.failures += 1
        self.why = why


class JobBackoff:
    """The jobs that rest, and for how long.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._jobs: dict[str, _Backoff] = {}
        """Rests of jobs whose last write failed, by uid; also when the rest is over."""
        self._scopes: dict[str, _Backoff] = {}
        self._failing: dict[str, set[str]] = {}
        """Uids of jobs whose last write failed, by scope."""
        self._newly_failing: set[str] = set()
        """The scopes among these that began to fail since a write landed anywhere."""

    def include(self, job: JobState) -> bool:
        """Whether the job is to be left alone now."""
        if not self._jobs and not self._scopes:
            return False
        now = self._clock()
        backoff = (self._jobs.get(job.uid), self._scopes.get(job.scope))
        return any(rest is not None and rest.until > now for rest in backoff)

    def failed(self, jobs: Iterable[JobState], why: str, *, retry_after: float = 0.0) -> None:
        """Lets these jobs rest: writes to them failed in one pass, for reasons of their own."""
        now = self._clock()
        scopes = set[str]()
        for job in jobs:
            self._jobs.setdefault(job.uid, _Backoff()).prolong(now, why, retry_after)
            if job.scope not in self._failing:
                self._newly_failing.add(job.scope)
            self._failing.setdefault(job.scope, set()).add(job.uid)
            scopes.add(job.scope)
        for scope in scopes:
            if len(self._failing[scope]) >= _FAILED_JOBS_OF_A_SCOPE:
                self._scopes.setdefault(scope, _Backoff()).prolong(now, why, retry_after)

    def would_leave_none(self, jobs: Iterable[JobState], queued: Iterable[JobState]) -> bool:
        """Whether no queued job would be left to try if these failed, too: each one fails, or its scope does."""
        failing = {scope: set(uids) for scope, uids in self._failing.items()}
        for job in jobs:
            failing.setdefault(job.scope, set()).add(job.uid)
        return all(
            job.uid in failing.get(job.scope, ())
            or len(failing.get(job.scope, ())) >= _FAILED_JOBS_OF_A_SCOPE
            for job in queued
        )

    @property
    def spread(self) -> bool:
        """Whether several scopes began to fail since a write landed anywhere."""
        return len(self._newly_failing) > 1

    def succeeded(self, job: JobState) -> None:
        """Notes that a write to the job landed: other failures in its scope are each job's own."""
        if self._jobs.pop(job.uid, None) is not None:
            self._failing[job.scope].discard(job.uid)
            if not self._failing[job.scope]:
                del self._failing[job.scope]
        self._scopes.pop(job.scope, None)
        self._newly_failing.clear()

    def forget(self, uid: str) -> None:
        """Forgets a job that is not written to any more."""
        if self._jobs.pop(uid, None) is None:
            return
        for scope, uids in list(self._failing.items()):
            uids.discard(uid)
            if not uids:
                del self._failing[scope]
                self._scopes.pop(scope, None)
                self._newly_failing.discard(scope)

    def clear(self) -> None:
        """Lets every job and scope be written to again."""
        self._jobs.clear()
        self._scopes.clear()
        self._failing.clear()
        self._newly_failing.clear()

    def __len__(self) -> int:
        """The number of jobs whose last write failed."""
        return len(self._jobs)

    def told(self) -> str | None:
        """The places where writes fail and why, for people; None where they don't."""
        said = [
            f"{scope}: {len(uids)} jobs, {next(self._jobs[uid].why for uid in uids)}"
            for scope, uids in sorted(self._failing.items())
            if uids
        ]
        return "; ".join(said) or None
