"""Protection: the levels of what runs, where a frontend may stop it for what waits.

Where a queue preempts by level, a waiting job that is lifted to the front could stop a running one of its own class, in its
own queue or in one that borrowed. Under `preemption: protect` what was admitted is lifted too, above everything that waits.
Between the admission and the lift there is a moment in which it is not protected.

Where a queue takes back what others borrowed whatever the levels are, the levels of what runs say from whom: those whose
turn came early would lose their room to whoever started later. There a job that started gives its level up, and stands
where its class alone puts it: whom the frontend stops is then its own choice. Where many jobs start, it does so once it has
run for some seconds.

Elsewhere a job gives its level up while checks keep it from starting. They may put it back, and the frontend queues it again
before anybody can write to it: the level by which it was the first would have it take the room that it gave back.
"""

import time
from collections.abc import Callable, Collection, Iterable

from fairlead_admitter.decide.pace import MANY_STARTS
from fairlead_admitter.decide.steering import GONE, LevelWrite, WriteCause
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_contracts.frontend.marks import GANG_FIT
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.snapshot.stated_jobs import JobChange

REFUSED_SECONDS = 300.0
"""Seconds for which a write that was refused is not tried again. Until then its job keeps its level."""

STARTED_SECONDS = 10.0
"""Seconds for which a job that has started keeps its level where it is to give it up and many start: one that ends sooner
costs no write."""

_CAUSES = (WriteCause.PROTECT, WriteCause.STARTED, WriteCause.CHECKED)


def top_level(job: JobState, class_band: ClassBand) -> int:
    """The top of a running job's class band, where no waiting job of the class is above it; a higher level stays."""
    return job.level if class_band.ceiling is None else max(job.level, class_band.ceiling)


def own_level(job: JobState, class_band: ClassBand) -> int:
    """The level that a running job has by its class alone: its own, where that is in its class's band."""
    return max(class_band.settled(job.base), class_band.band.default)


def settled_by(wall: Micros, starts: int) -> Micros | None:
    """The instant by which a job must have started to give its level up; None where it does so at once: where few start.

    Args:
        starts: number of the pool's jobs that started within the last `pace.STARTS_SECONDS`.
    """
    return None if starts < MANY_STARTS else wall - from_seconds(STARTED_SECONDS)


class Protection:
    """Running jobs whose level is not known to be the wanted one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unsettled: dict[tuple[WriteCause, str], dict[str, JobState]] = {}
        """Running jobs by uid, by why they would be written to and by queue; in queues where nothing stops them too."""
        self._refused_at: dict[str, float] = {}
        """Monotonic second of the last refusal of a write, by uid, of jobs that run."""

    def note(self, changes: Iterable[JobChange]) -> None:
        """Takes in jobs that started, changed their level while they run, or run no more.

        A running job's level changes, too: a frontend may set it back when it restarts (Kueue sets a priority back to its
        class's), and a release takes every level back.
        """
        for change in changes:
            before, after = change.before, change.after
            runs = after if after is not None and after.phase is Phase.RUNNING else None
            ran = before if before is not None and before.phase is Phase.RUNNING else None
            for cause in _CAUSES:
                was_unsettled = ran is not None and self._forget(cause, ran)
                if runs is not None and (ran is None or was_unsettled or ran.level != runs.level):
                    self._add(cause, runs)
            if before is not None and runs is None:
                self._refused_at.pop(before.uid, None)

    def begin_anew(self, facts: ClusterFacts) -> None:
        """Looks at all that runs: whoever led before may have left some out."""
        self._unsettled = {}
        for job in facts.running_jobs():
            for cause in _CAUSES:
                self._add(cause, job)
        self._refused_at.clear()

    def written(self, writes: Iterable[LevelWrite]) -> None:
        """Forgets jobs that were written to."""
        for write in writes:
            self._forget(write.cause, write.job)
            self._refused_at.pop(write.job.uid, None)

    def stand(self, cause: WriteCause, jobs: Iterable[JobState]) -> None:
        """Sets the jobs that stand where they shall."""
        for job in jobs:
            self._forget(cause, job)

    def refused(self, uids: Iterable[str]) -> None:
        """Notes jobs that the frontend will not write: they are asked for again, but rarely."""
        self._refused_at |= dict.fromkeys(uids, self._clock())

    def due(
        self,
        queues: Collection[str],
        class_bands: Collection[ClassBand],
        class_of: Callable[[JobState], str],
        target: Callable[[JobState, ClassBand], int],
        cause: WriteCause,
        *,
        started_by: Micros | None = None,
    ) -> tuple[list[LevelWrite], list[JobState]]:
        """The writes that give running jobs of these queues the wanted level, and the jobs that have it already.

        Args:
            queues: names of queues in which running jobs may be stopped.
            target: the level that a running job shall have.
            started_by: the instant by which a job must have started to be written to; None where all are.
        """
        now = self._clock()
        resting = {uid for uid, at in self._refused_at.items() if now - at < REFUSED_SECONDS}
        writes: list[LevelWrite] = []
        settled: list[JobState] = []
        for job in (job for queue in queues for job in self._unsettled.get((cause, queue), {}).values()):
            class_band = next((one for one in class_bands if one.takes(class_of(job))), None)
            level = job.level if class_band is None else target(job, class_band)
            if job.level == level:
                settled.append(job)
            elif job.uid not in resting and (started_by is None or (job.started or 0) <= started_by):
                writes.append(_write(job, level, cause))
        return writes, settled

    def _add(self, cause: WriteCause, job: JobState) -> None:
        # Whom our own check puts back the frontend keeps out of its queue.
        if cause is WriteCause.CHECKED and (not job.unchecked or job.open_checks == [GANG_FIT]):
            return
        self._unsettled.setdefault((cause, job.queue), {})[job.uid] = job

    def _forget(self, cause: WriteCause, job: JobState) -> bool:
        """Forgets the job, and tells whether it was known."""
        return self._unsettled.get((cause, job.queue), {}).pop(job.uid, None) is not None


def _write(job: JobState, level: int, cause: WriteCause) -> LevelWrite:
    in_no_line = (job.queue_time, job.uid)  # it runs
    return LevelWrite(
        job=job, before=job.level, level=level, rank=GONE, position=None, tie=in_no_line, cause=cause
    )
