"""Protection: under `preemption: protect`, what runs stands at the top of its band.

A level may both queue and preempt. Where a queue preempts by it, a waiting job that is lifted to the front could stop a
running one of its own class; so what was admitted is lifted too, above everything that waits. Between the admission and
the lift there is a moment in which it is not protected.
"""

import time
from collections.abc import Callable, Collection, Iterable

from fairlead_admitter.decide.steering import GONE, LevelWrite, WriteCause
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.snapshot.stated_jobs import JobChange

REFUSED_SECONDS = 300.0
"""Seconds for which a lift that was refused is not tried again. Until then its job runs unprotected."""


class Protection:
    """The running jobs that were not lifted yet, or fell again.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unlifted: dict[str, JobState] = {}
        """Running jobs that were not lifted, by uid; in queues that need no protection too."""
        self._refused_at: dict[str, float] = {}
        """Monotonic second of the last refusal of a lift, by uid, of jobs that run."""

    def note(self, changes: Iterable[JobChange]) -> None:
        """Takes in jobs that started, changed their level while they run, or run no more.

        A running job falls too: a frontend may set a level back when it restarts (Kueue sets a priority back to its
        class's), and a release takes every level back.
        """
        for change in changes:
            before, after = change.before, change.after
            if after is not None and after.phase is Phase.RUNNING:
                ran = before is not None and before.phase is Phase.RUNNING
                if not ran or after.uid in self._unlifted or (before and before.level != after.level):
                    self._unlifted[after.uid] = after
            elif before is not None:
                self._unlifted.pop(before.uid, None)
                self._refused_at.pop(before.uid, None)

    def begin_anew(self, facts: ClusterFacts) -> None:
        """Looks at all that runs: whoever led before may have left some out."""
        self._unlifted = {job.uid: job for job in facts.running_jobs()}
        self._refused_at.clear()

    def lifted(self, uids: Iterable[str]) -> None:
        """Forgets jobs that were lifted to the top, or run no more."""
        for uid in uids:
            self._unlifted.pop(uid, None)
            self._refused_at.pop(uid, None)

    def stand(self, uids: Iterable[str]) -> None:
        """Sets the jobs that stand at the top."""
        for uid in uids:
            self._unlifted.pop(uid, None)

    def refused(self, uids: Iterable[str]) -> None:
        """Notes jobs that the frontend will not lift: they are asked for again, but rarely."""
        self._refused_at |= dict.fromkeys(uids, self._clock())

    def lifts(
        self, queues: Collection[str], class_bands: Iterable[ClassBand], class_of: Callable[[JobState], str]
    ) -> tuple[list[LevelWrite], list[str]]:
        """The writes that protect what runs in these queues, and the uids of those that stand at the top already.

        Args:
            queues: names of queues in which a level could stop a running job.
            class_bands: the bands of the classes.
            class_of: the class that a job has.
        """
        tops = {class_band.job_class: class_band.ceiling for class_band in class_bands}
        now = self._clock()
        resting = {uid for uid, at in self._refused_at.items() if now - at < REFUSED_SECONDS}
        writes: list[LevelWrite] = []
        lifted: list[str] = []
        for job in self._unlifted.values():
            top = tops.get(class_of(job)) if job.queue in queues else None
            if top is not None and job.level >= top:
                lifted.append(job.uid)
            elif top is not None and job.uid not in resting:
                writes.append(_lift(job, top))
        return writes, lifted


def _lift(job: JobState, top: int) -> LevelWrite:
    in_no_line = (job.queue_time, job.uid)  # it runs
    return LevelWrite(
        job=job,
        before=job.level,
        level=top,
        rank=GONE,
        position=None,
        tie=in_no_line,
        cause=WriteCause.PROTECT,
    )
