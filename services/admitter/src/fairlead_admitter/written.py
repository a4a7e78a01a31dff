"""What this admitter wrote and has not seen yet, and who else writes.

The state that shows a level comes later than the reply that confirms it. Until it does, the written level counts:
nothing is written twice. A level that changes without a write of ours is *drift*, and the next pass repairs it. The
same job overwritten again and again is a *fight* with another writer: ended with an alarm, not fought.
"""

import enum
from collections import deque

from fairlead_contracts.state import JobState

FIGHT_ROUNDS = 3
"""A job that somebody else relabelled more often than this within the period is left alone."""
FIGHT_SECONDS = 60.0


class Sighting(enum.StrEnum):
    """What a job's state says about its level."""

    EXPECTED = "expected"
    DRIFT = "drift"
    """Somebody else changed a level that we wrote."""
    FIGHT = "fight"
    """Once too often: from now on the job is left alone."""


class _Trail:
    """Our writes to one job."""

    __slots__ = ("drifts", "fought", "given", "refused_at", "sent", "unseen")

    def __init__(self) -> None:
        self.sent: list[int] = []
        """Levels without a reply: they may have landed."""
        self.unseen: dict[int, int] = {}
        """Levels by the revision that they made, until the state shows that revision."""
        self.given = False
        self.drifts: deque[float] = deque(maxlen=FIGHT_ROUNDS + 1)
        self.fought = False
        self.refused_at = -1

    def explains(self, job: JobState, before: JobState | None) -> bool:
        """Whether the job's level is what our writes, or nobody's, left there."""
        passed = [rev for rev in self.unseen if rev <= job.rev]
        last = self.unseen[max(passed)] if passed else None
        for rev in passed:
            del self.unseen[rev]
        if job.level == last:
            return True
        if job.level in self.sent:
            # What was sent before it has landed earlier or never will.
            del self.sent[: self.sent.index(job.level)]
            return True
        return last is None and (before is None or before.level == job.level)


class Written:
    """The trail of writes, by job."""

    def __init__(self) -> None:
        self._trails: dict[str, _Trail] = {}
        self._fought: set[str] = set()

    def level_of(self, job: JobState) -> int:
        """The level that the job has, or will be seen to have."""
        trail = self._trails.get(job.uid)
        if trail is None or not trail.unseen:
            return job.level
        return trail.unseen[max(trail.unseen)]

    def leaves_alone(self, job: JobState) -> bool:
        """Whether writing to this job is of no use now: it is fought over, or said to wait no more."""
        trail = self._trails.get(job.uid)
        return trail is not None and (trail.fought or trail.refused_at >= job.rev)

    def pending(self) -> list[str]:
        """The uids of jobs with a confirmed write that the state doesn't show yet."""
        return [uid for uid, trail in self._trails.items() if trail.unseen]

    @property
    def fights(self) -> int:
        """How many queued jobs are left alone because somebody else keeps writing to them."""
        return len(self._fought)

    def drifted(self, uid: str) -> bool:
        """Whether somebody else changed the level that we wrote to this job, and we didn't write since."""
        trail = self._trails.get(uid)
        return trail is not None and not trail.given and bool(trail.drifts)

    def send(self, uid: str, level: int) -> None:
        """A write is about to leave."""
        trail = self._trails.setdefault(uid, _Trail())
        if level not in trail.sent:
            trail.sent.append(level)

    def land(self, job: JobState, level: int, rev: int | None) -> None:
        """The frontend confirmed a write.

        Args:
            job: the newest state of the job here. It may already show the write: a reply can come after the state.
            level: what was written.
            rev: the job's revision after the write; None: no such job waits any more.
        """
        trail = self._trails.setdefault(job.uid, _Trail())
        if level in trail.sent:
            trail.sent.remove(level)
        if rev is None:
            trail.refused_at = job.rev
            return
        trail.given = True
        if rev > job.rev:
            trail.unseen[rev] = level

    def see(self, job: JobState, before: JobState | None, now: float) -> Sighting:
        """Take note of the state of a queued job.

        Args:
            job: its state now.
            before: its state before, None where it is new here.
            now: seconds of a monotonic clock.
        """
        trail = self._trails.get(job.uid)
        if trail is None or trail.explains(job, before):
            return Sighting.EXPECTED
        if not trail.given and not trail.drifts:
            return Sighting.EXPECTED
        trail.given = False
        trail.drifts.append(now)
        full = len(trail.drifts) > FIGHT_ROUNDS
        if full and now - trail.drifts[0] <= FIGHT_SECONDS and not trail.fought:
            trail.fought = True
            self._fought.add(job.uid)
            return Sighting.FIGHT
        return Sighting.DRIFT

    def begin_anew(self) -> None:
        """Another replica may have written meanwhile: what stands is taken as it is."""
        self._trails.clear()
        self._fought.clear()

    def forget(self, uid: str) -> None:
        """The job is not queued any more."""
        self._trails.pop(uid, None)
        self._fought.discard(uid)
