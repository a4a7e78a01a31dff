"""The queued jobs of one class in one queue, by the level that they have.

Jobs share few levels: the default, those of the labelled heads, and the values of priority classes. So a pass looks
at the first jobs of each level and never at all jobs.
"""

from collections.abc import Iterator

from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.levels.ties import Tie, TieIndex


class QueuedJobs:
    """The waiting jobs of a class in a queue, in the frontend's own order within each level; and the held ones."""

    def __init__(self) -> None:
        self.waiting: dict[int, TieIndex] = {}
        """Waiting jobs by level."""
        self.held: dict[int, set[str]] = {}
        """Uids of held jobs by level."""

    def put(self, job: JobState, tie: Tie) -> None:
        """Adds a job that stands in the queue now."""
        if job.phase is Phase.WAITING:
            self.waiting.setdefault(job.level, TieIndex()).put(job.uid, tie)
        else:
            self.held.setdefault(job.level, set()).add(job.uid)

    def take(self, job: JobState) -> None:
        """Takes out a job, as it was put, that does not stand in the queue any more."""
        if job.phase is Phase.WAITING:
            ties = self.waiting[job.level]
            ties.discard(job.uid)
            if not ties:
                del self.waiting[job.level]
        else:
            uids = self.held[job.level]
            uids.discard(job.uid)
            if not uids:
                del self.held[job.level]

    def above(self, level: int) -> Iterator[str]:
        """The uids of all that stand above this level, held ones too; the highest first, then in the frontend's order."""
        for at in sorted({*self.waiting, *self.held}, reverse=True):
            if at <= level:
                return
            if at in self.waiting:
                yield from (uid for _, uid in self.waiting[at].in_order())
            yield from sorted(self.held.get(at, ()))
