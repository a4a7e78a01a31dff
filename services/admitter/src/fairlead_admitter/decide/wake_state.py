"""Wake state: each pool's free room and who was woken, as the admitter remembers them. `restraint` decides by it."""

import copy
import statistics
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from fairlead_admitter.decide.steering import LevelWrite
from fairlead_admitter.decide.waking import ORDERED_SECONDS, batch_seconds
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.state import JobState, Phase, QueueState
from fairlead_policy.snapshot.stated_jobs import JobChange

COUNTED_SECONDS = 10.0
"""Seconds for which a start counts."""
OUTPACED_SECONDS = 30.0
"""Seconds for which a queue that started more is said to start jobs faster than levels reach them: it shall not flap."""
FORGIVEN = 1
"""Late writes in a row that are forgiven; the next one begins a pause."""
LONGEST_PAUSE = 8
"""The longest pause, in batches. Each is twice as long as the one before while the writes in between come too late, too."""
PASSED_SECONDS = 0.3
"""Seconds for which a job is first in the order while others start, after which no pause keeps its level from it."""
_LONG_AGO = float("-inf")
_UNSTATED = Capabilities()


class PoolWakes:
    """A pool's trail: when something came free, who was woken, and what became of that."""

    def __init__(self, able: Capabilities = _UNSTATED) -> None:
        self.able = able
        self.freed: deque[float] = deque()
        """Monotonic seconds at which something came free; of those before the last batch, only the newest."""
        self.woken: dict[str, float] = {}
        """Monotonic second at which a job was woken last, by uid."""
        self.refused: set[str] = set()
        """The uids of woken jobs that were seen to be tried since, and did not start."""
        self.ended: dict[str, tuple[JobState, int, float]] = {}
        """Jobs that ended lately, by uid, each with the state sequence known before, and when it ended."""
        self.used: dict[int, float] = {}
        """Levels that were written or left lately, and when."""
        self.started: dict[str, deque[float]] = {}
        """Monotonic seconds at which jobs started, by queue."""
        self.fast: dict[str, float] = {}
        """Instants, by queue, at which it last started so many jobs that it is short of the frontend's time."""
        self.queues: Sequence[QueueState] = ()
        self.due: float | None = None
        """Monotonic second at which to look again although nothing happens; None for none."""
        self.late_in_a_row = 0
        """Writes in a row to jobs that waited no more when they arrived."""
        self.pauses = 0
        """Pauses in a row: whatever was written between two of them came too late, too."""
        self.pause_until = _LONG_AGO
        """Monotonic second before which nobody is woken."""
        self.started_at = _LONG_AGO
        """Monotonic second at which a job started last."""
        self.tried = able.try_seconds
        """Seconds after which a woken job was surely tried."""
        self.head = ""
        """The uid of the first job in the order."""
        self.head_since = _LONG_AGO

    def copy(self) -> "PoolWakes":
        """A copy, which a decision may change."""
        other = copy.copy(self)
        other.freed, other.refused, other.fast = self.freed.copy(), self.refused.copy(), self.fast.copy()
        other.woken, other.ended, other.used = self.woken.copy(), self.ended.copy(), self.used.copy()
        other.started = {queue: starts.copy() for queue, starts in self.started.items()}
        return other

    def learn(self, able: Capabilities) -> None:
        """Takes in what its frontend states, where that is something else than before."""
        if self.able != able:
            self.able, self.tried = able, able.try_seconds

    @property
    def batch(self) -> float:
        """Seconds after something came free in which the frontend's own batch has surely passed."""
        return batch_seconds(self.able)

    def led_by(self, head: str, now: float) -> "PoolWakes":
        """The trail, or a copy where another job than before is first in the order now."""
        if self.head == head:
            return self
        other = self.copy()
        other.head, other.head_since = head, now
        return other

    def passed_over(self) -> str:
        """The uid of the first job in the order, where others started while it was first; else empty.

        That levels come too late says that those who are next start before they are reached. It says nothing of a job that
        does not start, such as an urgent one that came after them.
        """
        return self.head if self.started_at - self.head_since >= PASSED_SECONDS else ""

    def start(self, queue: str, now: float) -> None:
        """Notes that a job of the queue started."""
        starts = self.started.setdefault(queue, deque())
        while starts and starts[0] <= now - COUNTED_SECONDS:
            starts.popleft()
        starts.append(now)
        self.started_at = now
        if self.starts_fast(queue, now):
            self.fast[queue] = now

    def starts_fast(self, queue: str, now: float) -> bool:
        """Whether the queue starts so many jobs that it is short of the frontend's time, not of room."""
        starts = self.started.get(queue, ())
        most = max(0, int(self.able.starts_a_second * COUNTED_SECONDS))
        return len(starts) > most and starts[-most - 1] > now - COUNTED_SECONDS

    def outpaced(self, now: float) -> list[str]:
        """The queues that start jobs faster than levels reach them, or did a moment ago."""
        return sorted(queue for queue, at in self.fast.items() if now - at < OUTPACED_SECONDS)

    def end(self, job: JobState, before_seq: int, now: float) -> None:
        """Notes that the job gave something back, as it stood up to a sequence of the state stream."""
        # Forgotten here, too: a pool in which nobody is woken, and who stands by, make no use of it.
        while self.ended:
            uid, (_, _, at) = next(iter(self.ended.items()))
            if now - at < ORDERED_SECONDS:
                break
            del self.ended[uid]
        self.ended.pop(job.uid, None)  # the newest stands last
        self.ended[job.uid] = (job, before_seq, now)
        self.free(now)

    def take_in(self, queues: Sequence[QueueState], now: float) -> None:
        """Takes in the pool's queues as they are stated now: where they changed, there may be more quota than before."""
        if list(self.queues) != list(queues):
            self.queues = queues
            self.free(now)

    def forget_ordered(self, decided: Callable[[JobState], int], now: float) -> None:
        """Forgets the ends that the order knows of by now, and those that are too old to wait for it.

        Args:
            decided: the state-stream sequence that the order of a job's tenant was made from.
            now: monotonic seconds.
        """
        self.ended = {
            uid: (job, seq, at)
            for uid, (job, seq, at) in self.ended.items()
            if now - at < ORDERED_SECONDS and decided(job) <= seq
        }

    def free(self, now: float) -> None:
        """Forgets who was tried: they may fit now. A wake-up that is under way is not repeated."""
        self.freed.append(now)
        while len(self.freed) > 1 and self.freed[1] <= now - self.batch:
            self.freed.popleft()
        self.woken = {uid: at for uid, at in self.woken.items() if now - at < self.batch}
        self.refused &= self.woken.keys()
        batch = max((at for at in self.freed if at <= now - self.batch), default=_LONG_AGO)
        self.used = {level: at for level, at in self.used.items() if at >= batch}

    def come_late(self, writes: int, now: float) -> None:
        """Counts writes in a row that came too late.

        Where the frontend, or we, are so slow that it starts jobs before they can be woken, each wake-up costs it a
        request and makes it slower still. So the next one is left to its batch. At first no longer: who comes to free room
        starts unwoken, too, and when the room is gone, wake-ups count again. Where what is written after the pause comes too
        late again, the next pause is longer, and no level is written at all in it: see `most_writes`.
        """
        self.late_in_a_row += writes
        if self.late_in_a_row > FORGIVEN:
            self.pause_until = now + self.batch * min(2**self.pauses, LONGEST_PAUSE)
            self.pauses += 1

    def come_in_time(self) -> None:
        """Notes that a write came to a job that waited."""
        self.late_in_a_row = self.pauses = 0

    def is_paused(self, now: float) -> bool:
        """Whether nobody is woken now, but who is passed over."""
        return now < self.pause_until and (self.pauses <= 1 or self._levels_come_too_late(now))

    def may_wake(self, uid: str, now: float) -> bool:
        """Whether the job may be woken now: a pause is none for one that is passed over."""
        return not self.is_paused(now) or uid == self.passed_over()

    def most_writes(self, now: float) -> int | None:
        """Number of levels that may be written now; None for any number.

        While all come too late they do nothing but cost the frontend a request each, of which it is short. So one is
        written after each pause, to see whether it comes in time. Once no job has started for a batch, levels count again.
        """
        if self.pauses <= 1 or not self._levels_come_too_late(now):
            return None
        return 0 if now < self.pause_until else 1

    def _levels_come_too_late(self, now: float) -> bool:
        return now - self.started_at < self.batch

    def wake(self, uid: str, now: float) -> None:
        """Notes that the job is woken, or may be tried from now on."""
        self.woken[uid] = now
        self.refused.discard(uid)
        self.due = now + self.tried


class WakeMemory:
    """The memory of each pool's trail."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pools: dict[str, PoolWakes] = {}
        self._able: Mapping[str, Capabilities] = {}

    def trail(self, pool: str) -> PoolWakes:
        """The pool's trail, to be read and not changed."""
        return self._pools.setdefault(pool, PoolWakes(self._able.get(pool, _UNSTATED)))

    def remember(self, pool: str, trail: PoolWakes) -> None:
        """Keeps the pool's trail."""
        self._pools[pool] = trail

    # --- what happened

    def take_up_due(self) -> None:
        """Forgets what is due by now: the turn that begins finds what follows."""
        now = self._clock()
        for trail in self._pools.values():
            if trail.due is not None and trail.due <= now:
                trail.due = None

    def learn(self, able: Mapping[str, Capabilities]) -> None:
        """Takes in what the frontend of each pool states."""
        self._able = able
        for pool, trail in self._pools.items():
            trail.learn(able.get(pool, trail.able))

    def keep(self, pools: Collection[str]) -> None:
        """Forgets all pools but these."""
        for pool in self._pools.keys() - set(pools):
            del self._pools[pool]

    def begin_anew(self) -> None:
        """Forgets everything: another replica may have written meanwhile."""
        self._pools.clear()

    def note(
        self, pools: Mapping[str, Collection[str]], changes: Iterable[JobChange], before_seq: int
    ) -> None:
        """Takes in jobs that ended or started, or were tried and put aside again.

        Args:
            pools: the queues of each.
            changes: the jobs' changes at one look.
            before_seq: sequence of the state stream up to which everything was seen before this look.
        """
        now = self._clock()
        pool_of = {queue: pool for pool, queues in pools.items() for queue in queues}
        for change in changes:
            job = change.after or change.before
            pool = pool_of.get(job.queue) if job is not None else None
            if job is None or pool is None:
                continue
            trail = self.trail(pool)
            if change.before is not None and _gave_back(change.before, change.after):
                trail.end(change.before, before_seq, now)
            elif change.admitted:
                trail.start(job.queue, now)
            elif change.before is not None and change.before.said != job.said and job.uid in trail.woken:
                trail.refused.add(job.uid)  # the frontend just said why it does not fit

    def landed(
        self, pool: str, writes: Iterable[LevelWrite], *, late: int = 0, took: Sequence[float] = ()
    ) -> None:
        """Takes in what was written: those levels are used up now, as are those that the jobs had before.

        Args:
            writes: writes that came in time.
            late: number of others, which came to jobs that waited no more.
            took: seconds until the frontend answered, by request.
        """
        now, trail = self._clock(), self.trail(pool)
        if took:
            able = trail.able
            trail.tried = max(able.try_seconds, min(trail.batch, able.try_answers * statistics.median(took)))
        if late:
            trail.come_late(late, now)
        for write in writes:
            trail.come_in_time()
            if write.job.uid in trail.woken:
                trail.wake(write.job.uid, now)  # that it may be tried: from now on
            trail.used[write.level] = trail.used[write.before] = now

    def outpaced(self) -> dict[str, list[str]]:
        """The queues that start jobs faster than levels reach them, by pool."""
        now = self._clock()
        return {pool: trail.outpaced(now) for pool, trail in self._pools.items()}

    def wake_in(self) -> float | None:
        """Seconds until something is due although nothing happens; None where nothing is."""
        due = [trail.due for trail in self._pools.values() if trail.due is not None]
        return max(0.0, min(due) - self._clock()) if due else None


def _gave_back(before: JobState, after: JobState | None) -> bool:
    """Whether a job holds less quota than it did."""
    if before.phase is not Phase.RUNNING:
        return False
    return after is None or after.phase is not Phase.RUNNING or after.charged != before.charged
