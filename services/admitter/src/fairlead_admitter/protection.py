"""Protection: under `preemption: protect`, what runs stands at the top of its band.

One integer both queues and preempts in Kueue. Where a queue preempts, a waiting job that is lifted to the front could
stop a running one of its own class; so what was admitted is lifted too, above everything that waits. Between the
admission and the lift there is a moment in which it is not protected.
"""

from collections.abc import Callable, Collection, Iterable

from fairlead_admitter.facts import ClusterFacts, JobChange
from fairlead_admitter.segments import Segment
from fairlead_admitter.steering import GONE, Cause, LevelWrite
from fairlead_contracts.state import JobState, Phase


class Protection:
    """The running jobs that were not lifted yet."""

    def __init__(self) -> None:
        self._unlifted: dict[str, JobState] = {}
        """By uid; in queues that need no protection too."""

    def note(self, changes: Iterable[JobChange]) -> None:
        """Jobs started, or run no more."""
        for change in changes:
            before, after = change.before, change.after
            if after is not None and after.phase is Phase.RUNNING:
                if before is None or before.phase is not Phase.RUNNING:
                    self._unlifted[after.uid] = after
            elif before is not None:
                self._unlifted.pop(before.uid, None)

    def begin_anew(self, facts: ClusterFacts) -> None:
        """Whoever led before may have left some out: all that runs is looked at."""
        self._unlifted = {job.uid: job for job in facts.running_jobs()}

    def lifted(self, uids: Iterable[str]) -> None:
        """These stand at the top, or run no more."""
        for uid in uids:
            self._unlifted.pop(uid, None)

    def lifts(
        self, queues: Collection[str], segments: Iterable[Segment], class_of: Callable[[JobState], str]
    ) -> list[LevelWrite]:
        """The writes that protect what runs in these queues.

        Args:
            queues: those in which a level could stop a running job.
            segments: one for each class.
            class_of: the class that a job has.
        """
        tops = {segment.urgency: segment.ceiling for segment in segments}
        writes: list[LevelWrite] = []
        for job in list(self._unlifted.values()):
            top = tops.get(class_of(job)) if job.queue in queues else None
            if top is not None and job.level >= top:
                del self._unlifted[job.uid]
            elif top is not None:
                writes.append(_lift(job, top))
        return writes


def _lift(job: JobState, top: int) -> LevelWrite:
    return LevelWrite(job=job, before=job.level, level=top, rank=GONE, place=None, cause=Cause.PROTECT)
