"""Expectations: levels that this admitter wrote and has not seen yet, and who else writes.

The state that shows a level comes later than the reply that confirms it. Until it does, the written level counts:
nothing is written twice. A level that changes without a write of ours is *drift*, and the next pass repairs it. The
same job overwritten again and again is a *fight* with another writer: ended with an alarm, not fought. The job is left
alone until it waits no more, another replica leads, an operator says a word on its pool, or what stands is our own level,
and the other has written nothing since: that of a write which was on its way when the fight ended, or a boost of ours beside
a priority of theirs.

How a write is found again in the state depends on the frontend. Where its reply names the revision that the state
will show, that revision tells. Where it can't (an API server counts by itself, and the state's revisions are the
watcher's), the level tells: a state that shows the written level has seen the write. Then a level that is
overwritten before anybody saw it is never shown, so belief in a confirmed write ends after `DOUBT_SECONDS`: the level
is written again, and the frontend says whether it still stood.
"""

import enum
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from fairlead_admitter.observe.foreign_levels import ForeignLevels
from fairlead_admitter.observe.job_backoff import JobBackoff
from fairlead_contracts.frontend.marks import LEVEL_WRITER
from fairlead_contracts.messages.members import LeaderLease
from fairlead_contracts.messages.state import JobState, Phase

FIGHT_ROUNDS = 3
"""A job that somebody else relabelled more often than this within the period is left alone."""
FIGHT_SECONDS = 60.0
DOUBT_SECONDS = 10.0
"""Seconds for which a confirmed level is believed in that the state doesn't show; far above the usual way through the
watcher (some tenths of a second). A doubt costs one read of the frontend; four doubts in a minute that prove right are
a fight."""


class WriteConfirmation(msgspec.Struct, frozen=True, kw_only=True):
    """A frontend's confirmation of one write."""

    mark: str
    """Mark that tells this write from all others to the job."""
    rev: int | None = None
    """The revision of the job's state that shows it; None where the frontend can't know it."""
    stood: bool = False
    """Whether the level stood there already, as written before: nobody touched it since."""


class LevelVerdict(enum.StrEnum):
    """The verdict on a job's level as its state shows it, compared with what was written."""

    EXPECTED = "expected"
    DRIFT = "drift"
    """A level that we wrote was changed by somebody else."""
    FIGHT = "fight"
    """A level was changed once too often: from now on the job is left alone."""


class _Unseen(msgspec.Struct, frozen=True):
    """A confirmed write that the state doesn't show yet."""

    level: int
    rev: int | None
    at: float


@dataclass(slots=True, eq=False)
class _Trail:
    """The trail of our writes to one job."""

    sent: list[int] = field(default_factory=list)
    """Levels without a reply: they may have landed."""
    unknown: list[int] = field(default_factory=list)
    """Levels without a reply of which no later reply says whether they landed."""
    unseen: list[_Unseen] = field(default_factory=list)
    """Confirmed writes that the state doesn't show yet, in the order of their landing."""
    last: int | None = None
    """The level that was confirmed last."""
    given: bool = False
    blind: bool = False
    """Whether no revision shows our writes."""
    doubted: bool = False
    """Whether the last level was confirmed and not seen for so long that somebody may have overwritten it."""
    drifts: deque[float] = field(default_factory=lambda: deque(maxlen=FIGHT_ROUNDS + 1))
    refused_at: int = -1

    def explains(self, job: JobState, before: JobState | None) -> bool:
        """Whether the job's level is what our writes, or nobody's, left there."""
        passed = [unseen for unseen in self.unseen if unseen.rev is not None and unseen.rev <= job.rev]
        if passed:
            del self.unseen[: len(passed)]
            if job.level == passed[-1].level:
                return True
        elif before is None or before.level == job.level:
            return True
        return self._recognises(job.level)

    def stands(self, job: JobState, now: float) -> bool:
        """Whether we wrote the job's level last, and nobody has changed it for `FIGHT_SECONDS`."""
        ours = job.levelled_by == LEVEL_WRITER if job.levelled_by else job.level == self.last
        return ours and now - self.drifts[-1] > FIGHT_SECONDS

    def _recognises(self, level: int) -> bool:
        """Whether the level is one of ours that only now comes to light."""
        if level in self.sent:
            # What was sent before it has landed earlier or never will.
            del self.sent[: self.sent.index(level)]
            return True
        shown = [unseen.level for unseen in self.unseen if unseen.rev is None]
        if level in shown:
            del self.unseen[: shown.index(level) + 1]
            return True
        if self.blind:
            self.unseen.clear()
        return self.blind and level == self.last


def _may_be_unknown(job: JobState, before: JobState | None) -> bool:
    """Whether a held job is stated by another writer of facts than before: who begins may only know that a level may stand."""
    return job.phase is Phase.HELD and before is not None and before.epoch != job.epoch


class Expectations:
    """The trail of writes, by job."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.backoff = JobBackoff(clock)
        self.foreign = ForeignLevels()
        self._clock = clock
        self._trails: dict[str, _Trail] = {}
        self._fought: set[str] = set()
        self._contested: dict[str, float] = {}
        """Instants at which somebody else changed a level of ours last, by uid of jobs that are still written to."""
        self._rivalries: deque[float] = deque(maxlen=FIGHT_ROUNDS)
        """Instants at which another Fairlead put a level of its own in place of ours last."""
        self._rival_until = 0.0
        """Instant until which the leader before is believed that it has a rival."""
        self._blind: deque[tuple[float, str]] = deque()
        """Landings that no revision will show, in the order of time."""

    def level_of(self, job: JobState) -> int:
        """The level that the job has, or will be seen to have."""
        trail = self._trails.get(job.uid)
        return job.level if trail is None or not trail.unseen else trail.unseen[-1].level

    def levels_of(self, job: JobState) -> tuple[int, ...]:
        """The levels that the job may have: the one that it has as far as is known, and what was sent unconfirmed."""
        trail = self._trails.get(job.uid)
        return (self.level_of(job), *(trail.unknown if trail is not None else ()))

    def unknown(self) -> list[str]:
        """The uids of jobs with a write of which nobody knows whether it has landed."""
        return [uid for uid, trail in self._trails.items() if trail.unknown]

    def leaves_alone(self, job: JobState) -> bool:
        """Whether writing to this job is of no use now: it is fought over, waits no more, or rests."""
        if self.backoff.include(job):
            return True
        trail = self._trails.get(job.uid)
        return trail is not None and (job.uid in self._fought or trail.refused_at >= job.rev)

    def pending(self) -> list[str]:
        """The uids of jobs with a confirmed write that the state doesn't show yet."""
        return [uid for uid, trail in self._trails.items() if trail.unseen]

    @property
    def fought(self) -> frozenset[str]:
        """The uids of queued jobs that are left alone, as somebody else keeps writing to them."""
        return frozenset(self._fought)

    def contested(self, now: float) -> list[str]:
        """The uids of queued jobs whose levels somebody else changed a moment ago, and that are written again."""
        self._contested = {uid: at for uid, at in self._contested.items() if now - at < DOUBT_SECONDS}
        return list(self._contested)

    def has_rival(self, now: float) -> bool:
        """Whether another Fairlead writes levels here, too. One such write may be that of a leader before, on its way still."""
        told = len(self._rivalries) == FIGHT_ROUNDS and now - self._rivalries[0] <= FIGHT_SECONDS
        return told or now < self._rival_until

    def stand_by(self, leader: LeaderLease | None, now: float) -> None:
        """Note whether the replica that leads has a rival: who takes over from it needs a minute to find out by itself."""
        if leader is not None:
            self._rival_until = now + FIGHT_SECONDS if leader.rival else 0.0

    def drifted(self, uid: str) -> bool:
        """Whether somebody else changed the level that we wrote to this job, and we didn't write since."""
        trail = self._trails.get(uid)
        return trail is not None and not trail.given and bool(trail.drifts)

    def send(self, uid: str, level: int) -> None:
        """Notes that a write is about to leave."""
        trail = self._trails.setdefault(uid, _Trail())
        trail.unknown.append(level)
        if level not in trail.sent:
            trail.sent.append(level)

    def land(self, job: JobState, level: int, landed: WriteConfirmation | None, now: float) -> LevelVerdict:
        """Notes that the frontend confirmed a write.

        Args:
            job: the newest state of the job here. It may already show the write: a reply can come after the state.
            landed: the confirmation; None: no such job waits any more.
            now: seconds of a monotonic clock.

        Returns:
            DRIFT or FIGHT where this repaired what somebody had overwritten unseen.
        """
        trail = self._trails.setdefault(job.uid, _Trail())
        trail.unknown.clear()
        if level in trail.sent:
            trail.sent.remove(level)
        if landed is None:
            trail.refused_at = job.rev
            return LevelVerdict.EXPECTED
        overwritten = trail.doubted and trail.last == level and not landed.stood
        trail.given, trail.doubted, trail.last, trail.blind = True, False, level, landed.rev is None
        if landed.rev is None and (trail.unseen or level != job.level):
            trail.unseen.append(_Unseen(level, None, now))
            self._blind.append((now, job.uid))
        elif landed.rev is not None and landed.rev > job.rev:
            trail.unseen.append(_Unseen(level, landed.rev, now))
        return self._overwritten(job.uid, trail, now) if overwritten else LevelVerdict.EXPECTED

    def see(self, job: JobState, before: JobState | None, now: float) -> LevelVerdict:
        """Take note of the state of a queued job.

        Args:
            before: the job's state before, None where it is new here.
            now: seconds of a monotonic clock.
        """
        trail = self._trails.get(job.uid)
        if trail is None:
            if before is None or before.level != job.level:
                self.foreign.note(job, now)
            return LevelVerdict.EXPECTED
        if trail.explains(job, before) or _may_be_unknown(job, before):
            return LevelVerdict.EXPECTED
        self.foreign.note(job, now)
        if not trail.given and not trail.drifts:
            return LevelVerdict.EXPECTED
        trail.given = False
        # Of another base the level is another one, whoever wrote it; of one that nobody reads, it is the base.
        if job.levelled_by == LEVEL_WRITER and before is not None and before.base == job.base != job.level:
            self._rivalries.append(now)
        return self._overwritten(job.uid, trail, now)

    def doubt(self, now: float) -> None:
        """Believe no longer in levels that were confirmed long ago and are still not seen."""
        while self._blind and self._blind[0][0] <= now - DOUBT_SECONDS:
            at, uid = self._blind.popleft()
            trail = self._trails.get(uid)
            if trail is not None and any(unseen.rev is None and unseen.at <= at for unseen in trail.unseen):
                trail.unseen = [unseen for unseen in trail.unseen if unseen.rev is not None or unseen.at > at]
                trail.doubted = not trail.unseen

    def begin_anew(self) -> None:
        """Forgets all writes: another replica may have written meanwhile, and what stands is taken as it is."""
        self.backoff.clear()
        self.foreign.begin_anew(self._clock())
        self._trails.clear()
        self._fought.clear()
        self._contested.clear()
        self._rivalries.clear()
        self._blind.clear()

    def end_fights(self, uids: Iterable[str]) -> None:
        """Ends the fights over these jobs: they are written to again, and rounds are counted anew."""
        for uid in self._fought.intersection(uids):
            self._fought.discard(uid)
            self._trails[uid].drifts.clear()

    def end_given_up(self, job_of: Callable[[str], JobState | None], now: float) -> None:
        """Ends the fights that the other writer gave up: what stands has been our own level for `FIGHT_SECONDS`."""
        jobs = [job for job in map(job_of, self._fought) if job is not None]
        self.end_fights([job.uid for job in jobs if self._trails[job.uid].stands(job, now)])

    def forget(self, uid: str) -> None:
        """Forgets a job that is not queued any more."""
        self.backoff.forget(uid)
        self.foreign.forget(uid)
        self._trails.pop(uid, None)
        self._fought.discard(uid)
        self._contested.pop(uid, None)

    def _overwritten(self, uid: str, trail: _Trail, now: float) -> LevelVerdict:
        trail.drifts.append(now)
        if uid in self._fought:
            return LevelVerdict.DRIFT
        if len(trail.drifts) > FIGHT_ROUNDS and now - trail.drifts[0] <= FIGHT_SECONDS:
            self._fought.add(uid)
            self._contested.pop(uid, None)
            return LevelVerdict.FIGHT
        self._contested[uid] = now
        return LevelVerdict.DRIFT
