"""Adherence: how well the admissions of a pool follow its order, and what stands idle meanwhile. A fold without a clock.

A *miss* is an admission that the order would not have made at that instant: it took room that a waiting job before it
should have had. Where both have room beside one another, which of them starts first is no matter. *Idle* is what waiting
jobs would take of the room that is there, integrated over time: resource-seconds in base units.

It only looks, so it says the same of an order that is written and of one that nobody writes. What it counts is a lower
bound where only the heads of the order are known; and a job that fits by quota and is not started for long is held back by
something that quota does not show (taints, nodes of a flavor, checks): it is left out from then on. A job that no flavor
takes or a limit holds back, by the frontend's own word, is left out at once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlead_contracts.messages.state import CohortQuota, JobState, QueueState
from fairlead_policy.levels.free_quota import FreeQuota, HeldQuota, QuotaShape, shape_of

HINDERED_SECONDS = 30.0
"""Seconds after which a job that fits and is not started is hindered: longer than a frontend's own batches, which take
a second, or ten where it has a slow one (in Kueue, SchedulerLongRequeueInterval)."""
_FORGOTTEN_SECONDS = 600.0
"""Seconds after which a hindered job is given another try."""


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """One pool's quota at one instant, and what of it is held."""

    queues: Sequence[QueueState]
    cohorts: Sequence[CohortQuota]
    held: Mapping[str, HeldQuota]
    """Quota that is held, by queue."""
    strict: Collection[str] = ()
    """The queues whose first job keeps the others back where it does not fit."""

    def room(self) -> FreeQuota:
        """The free quota."""
        return FreeQuota(self.queues, self.cohorts, self.held)


class PassedOver(NamedTuple):
    """An admission, and how many jobs it passed over."""

    uid: str
    jobs: int
    """Number of waiting jobs before it that had room; 0 is right, also where it has room beside them all."""


def charges(job: JobState) -> HeldQuota:
    """The quota that a running job holds."""
    return {(flavor, name): amount for flavor, part in job.charged.items() for name, amount in part.items()}


def passed_over(
    order: Sequence[JobState],
    admitted: Sequence[JobState],
    after: Holdings,
    hindered: Collection[str] = (),
) -> list[PassedOver]:
    """The number of jobs that each admission went before.

    Several that were seen at once have no order of their own: they are taken in the order's, which is the kindest.

    Args:
        order: the waiting jobs with those admitted among them, first goes first. Who is not in it stands behind.
        admitted: the admitted jobs, as they run.
        after: the quota, with what these hold.
        hindered: the uids of waiting jobs that something else holds back.
    """
    if not admitted:
        return []
    left = {job.uid: job for job in admitted}
    started_ones = frozenset(left)
    room, filling = after.room(), _RoomFilling(after)
    for job in admitted:
        for free in (room, filling.room):
            free.hold(job.queue, charges(job), sign=-1)
    before: list[JobState] = []
    found: list[PassedOver] = []
    for job in (*order, *sorted(admitted, key=lambda one: one.uid)):
        started = left.pop(job.uid, None)
        if started is not None:
            ahead = 0 if filling.takes(job) else _ahead_of(job, before, room, after.strict)
            found.append(PassedOver(job.uid, ahead))
            room.hold(job.queue, charges(started))
        elif not (job.passed_by or job.uid in hindered or job.uid in started_ones):
            before.append(job)
            filling.takes(job)
        if not left:
            break
    return found


def _ahead_of(job: JobState, before: Sequence[JobState], room: FreeQuota, strict: Collection[str]) -> int:
    """The number of jobs before it in the order that should have gone first."""
    kept_back, ahead = set[str](), 0
    for other in before:
        if other.queue in strict:
            is_first = other.queue not in kept_back
            kept_back.add(other.queue)
            if other.queue == job.queue or not is_first:
                ahead += other.queue == job.queue
                continue
        ahead += room.fits(other)
    return ahead


def would_start(
    order: Sequence[JobState],
    now: Holdings,
    hindered: Collection[str] = (),
    *,
    without: Iterable[JobState] = (),
) -> list[JobState]:
    """The waiting jobs that there is room for together, taken in the order's sequence; as if running ones were not there."""
    filling = _RoomFilling(now)
    for job in without:
        filling.room.hold(job.queue, charges(job), sign=-1)
    return [job for job in order if not (job.passed_by or job.uid in hindered) and filling.takes(job)]


class _RoomFilling:
    """Fills free room by an order, job by job."""

    def __init__(self, now: Holdings) -> None:
        self.room = now.room()
        self._strict = now.strict
        self._kept_back = set[str]()
        self._too_large = set[QuotaShape]()

    def takes(self, job: JobState) -> bool:
        """Whether the next job of the order starts beside those before it; if so, it holds its room."""
        shape = shape_of(job)
        if job.queue in self._kept_back:
            return False
        if shape not in self._too_large and self.room.take(job):
            return True
        # Room only shrinks on the way: who asks for the same need not be asked again.
        self._too_large.add(shape)
        if job.queue in self._strict:
            self._kept_back.add(job.queue)
        return False


class PoolInstant(msgspec.Struct, frozen=True, kw_only=True):
    """A pool as it is known at one instant."""

    at: float
    """Seconds of a monotonic clock."""
    orders: Sequence[Sequence[JobState]]
    """The orders by which somebody may have acted, the newest last; each of waiting jobs and those admitted."""
    admitted: Sequence[JobState] = ()
    """The jobs that were seen to start since the look before, and can be judged."""
    newcomers: Sequence[JobState] = ()
    """Admitted jobs that had come just before: no order that anybody could follow has them."""
    holdings: Holdings
    """The quota, with what the admitted jobs hold."""


class AdherenceFold:
    """The fold over looks at one pool.

    Attributes:
        judged: number of admissions.
        missed: number of those that went before a job that fitted.
        barged: number of newcomers that took room which waiting jobs would have had; they are not judged.
        idle: what stood idle, by resource, base units times seconds.
    """

    def __init__(self) -> None:
        self.judged = 0
        self.missed = 0
        self.barged = 0
        self.idle: dict[str, float] = {}
        self._rate: dict[str, int] = {}
        self._since: float | None = None
        self._fits_since: dict[str, float] = {}
        self._hindered: dict[str, float] = {}
        self._passed_by = 0

    @property
    def stands_idle(self) -> bool:
        """Whether something stood idle at the last look: then time alone adds to it."""
        return bool(self._rate)

    @property
    def hindered(self) -> int:
        """The number of jobs that fit by quota and are held back by something else."""
        return len(self._hindered) + self._passed_by

    def lose_sight(self) -> None:
        """Stops counting until the next look: nobody knows what happens meanwhile."""
        self._since = None
        self._fits_since.clear()

    def look(self, look: PoolInstant) -> list[PassedOver]:
        """Takes one look in; returns its admissions, each judged by the kindest of the orders."""
        self._pass_time(look.at)
        verdicts = [
            dict(passed_over(order, look.admitted, look.holdings, self._hindered)) for order in look.orders
        ]
        found = [
            PassedOver(job.uid, min(verdict[job.uid] for verdict in verdicts))
            for job in look.admitted
            if verdicts
        ]
        self.judged += len(found)
        self.missed += sum(one.jobs > 0 for one in found)
        self._count_room(look)
        return found

    def _pass_time(self, at: float) -> None:
        if self._since is not None:
            for name, amount in self._rate.items():
                self.idle[name] = self.idle.get(name, 0.0) + amount * (at - self._since)
        self._since = at

    def _count_room(self, look: PoolInstant) -> None:
        """Counts the room that newcomers took from who waits, and what stands idle from this look on."""
        started = {job.uid for job in (*look.admitted, *look.newcomers)}
        order = [job for job in look.orders[-1] if job.uid not in started] if look.orders else []
        self._hindered = {
            uid: since for uid, since in self._hindered.items() if look.at - since < _FORGOTTEN_SECONDS
        }
        self._passed_by = sum(job.passed_by and job.uid not in self._hindered for job in order)
        fitting = would_start(order, look.holdings, self._hindered)
        if look.newcomers:
            before = would_start(order, look.holdings, self._hindered, without=look.newcomers)
            # One waiting job for one newcomer at the most.
            self.barged += min(len(look.newcomers), max(0, len(before) - len(fitting)))
        self._count_idle(look.at, fitting)

    def _count_idle(self, at: float, fitting: Sequence[JobState]) -> None:
        self._fits_since = {job.uid: self._fits_since.get(job.uid, at) for job in fitting}
        rate: dict[str, int] = {}
        for job in fitting:
            if at - self._fits_since[job.uid] >= HINDERED_SECONDS:
                self._hindered[job.uid] = at
                continue
            for name, amount in job.demand.items():
                rate[name] = rate.get(name, 0) + amount
        self._rate = rate
