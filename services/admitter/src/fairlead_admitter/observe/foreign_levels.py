"""Levels that somebody else gave to queued jobs: they are written over, and their authors shall hear of it."""

import math

from fairlead_contracts.frontend.marks import LEVEL_WRITER
from fairlead_contracts.messages.state import JobState

UNSURE_SECONDS = 30.0
"""Seconds after the lead began in which a level that nobody here wrote may be the former leader's, where the frontend
does not say whose it is: longer than its writes last."""


class ForeignLevels:
    """Levels of other writers, found on jobs that are queued still."""

    def __init__(self) -> None:
        self.found: dict[str, JobState] = {}
        """Each such job as it was then, by uid: its level may be written over since, and its base another one."""
        self._sure_from = math.inf

    def begin_anew(self, now: float) -> None:
        """Begins anew with the lead: who wrote what stands is not known."""
        self.found.clear()
        self._sure_from = now + UNSURE_SECONDS

    def note(self, job: JobState, now: float) -> None:
        """Notes that a queued job has a level that we did not write; its own one, perhaps."""
        if job.levelled_by == LEVEL_WRITER:
            return
        if job.levelled_by or now >= self._sure_from:
            self.found[job.uid] = job

    def forget(self, uid: str) -> None:
        """Forgets a job that is not queued any more."""
        self.found.pop(uid, None)
