"""Reserve mode on paper: who of a snapshot heads its line, when it starts at the latest, and who may pass.

The frontend is taken to have the order in place already, and the jobs before the head to have started: what is shown is
what a running Fairlead promises a moment later.
"""

from collections.abc import Collection, Sequence
from itertools import takewhile

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob, SnapshotRunning
from fairlead_policy.levels.window import Candidate, WindowSize, take_window
from fairlead_policy.reserve.easy import reserve, reserves, timing_of
from fairlead_policy.reserve.reservation import (
    HeadInPlace,
    NoReservation,
    ReservationState,
    ReserveInputs,
    Timing,
    Waiting,
)
from fairlead_policy.reserve.shadow import CapacityHold, Shadow, fits
from fairlead_policy.snapshot.card_shares import with_card_shares
from fairlead_policy.snapshot.ordering import OrderedPool


class PaperReservation(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of reserve mode on a pool of a snapshot. All are uids."""

    why_not: str = ""
    """Reason for which no start can be promised in the pool, in words; the rest is empty then."""
    head: str | None = None
    """The first job that does not fit; None where all of them do."""
    shadow: Micros | None = None
    """Latest start of the head; None where that cannot be said."""
    why_none: NoReservation | None = None
    """Reason for which the latest start cannot be said; else None."""
    endless: tuple[str, ...] = ()
    """Ids of the runs without a known end, or beyond it, that are in its way."""
    starting: tuple[str, ...] = ()
    """Jobs that fit, in order before the head."""
    passing: tuple[str, ...] = ()
    """Jobs that go before the head: they end before its start, or it fits beside them."""
    behind: tuple[str, ...] = ()
    """Jobs of higher classes before the head that never start as things are: it is promised nothing for them."""
    aside: tuple[str, ...] = ()
    """Jobs that ask for more than the pool has: they stand last in their class."""
    stopping: tuple[str, ...] = ()
    """Jobs of `aside` that jobs of lower classes wait behind: none of these ever starts."""
    unplaceable: tuple[str, ...] = ()
    """Jobs that the pool has enough for and that no node ever holds: they stand last in their class, too."""

    @property
    def last(self) -> tuple[str, ...]:
        """The jobs that never start as things are: none of them heads the line."""
        return (*self.unplaceable, *self.aside)


def reserve_snapshot(
    snapshot: Snapshot, pool: OrderedPool, never: Collection[str] = ()
) -> PaperReservation | None:
    """The reservation of a pool; None where the policy wants none.

    Args:
        snapshot: the facts of what runs and waits.
        pool: one of its pools, in order.
        never: the uids of jobs that can never run as things are; no start is promised to them.

    Raises:
        DocumentError: as `order_snapshot`.
    """
    if not reserves(snapshot.policy, pool.name):
        return None
    # The pool's capacity is in shares of cards where nodes register them; so must be what jobs ask for and runs hold.
    snapshot = with_card_shares(snapshot)
    jobs = {job.uid: job for job in snapshot.jobs if job.pool == pool.name}
    queues = {(job.cluster, job.frontend, job.queue) for job in jobs.values()}
    if len(queues) > 1:
        return PaperReservation(
            why_not=f"its jobs wait in {len(queues)} queues: reserve mode needs one that is alone"
        )
    strict, capacity = pool.rules.strict, pool.rules.capacity
    waiting = [_waiting(jobs[position.uid], strict=strict) for position in pool.positions]
    unplaceable = {one.uid: one for one in waiting if one.uid in never and fits(one.demand, capacity)}
    timing = timing_of(snapshot.policy)
    scene = ReserveInputs(
        now=snapshot.now,
        timing=timing,
        capacity=capacity,
        running=[_run(job, timing) for job in snapshot.running if job.pool == pool.name],
        order=[one for one in waiting if one.uid not in unplaceable],
        ahead=lambda _: frozenset(),
    )
    return _reserved(scene, waiting, tuple(unplaceable), snapshot.policy.window, pool.apart)


def _reserved(
    scene: ReserveInputs,
    waiting: Sequence[Waiting],
    unplaceable: tuple[str, ...],
    window: int,
    apart: Collection[str],
) -> PaperReservation:
    """The reservation of all waiting jobs; the scene holds those that may ever start."""
    first = reserve(scene, ReservationState())
    aside, lowest = frozenset(first.aside), waiting[-1].job_class if waiting else ""
    told = PaperReservation(
        starting=first.starting,
        aside=first.aside,
        unplaceable=unplaceable,
        stopping=tuple(one.uid for one in waiting if one.uid in aside and one.job_class != lowest),
    )
    if first.head is None:
        return told
    head, never = first.head, frozenset(told.last)
    told = msgspec.structs.replace(told, head=head.uid)
    before = takewhile(lambda one: one.uid != head.uid, waiting)
    behind = tuple(one.uid for one in before if one.uid in never and one.job_class != head.job_class)
    if behind:
        # The frontend keeps classes apart: whatever levels are written, it comes to these first.
        return msgspec.structs.replace(told, behind=behind, why_none=NoReservation.NOT_IN_PLACE)
    return _with_promise(told, head, scene, window, apart)


def in_reserved_order(pool: OrderedPool, found: PaperReservation | None) -> OrderedPool:
    """The pool with its positions as the reservation wants them."""
    if found is None or found.why_not:
        return pool
    first = [*found.starting, *found.passing, *([] if found.head is None else [found.head])]
    positions = {position.uid: position for position in pool.positions}
    named = {*first, *found.last}
    rest = [uid for uid in positions if uid not in named]
    ordered = [positions[uid] for uid in (*first, *rest, *found.last)]
    if pool.rules.strict:
        # Levels are written within a class: no job stands behind those of a lower one.
        turn = {
            job_class: at
            for at, job_class in enumerate(dict.fromkeys(one.job_class for one in pool.positions))
        }
        ordered.sort(key=lambda position: turn[position.job_class])
    return msgspec.structs.replace(pool, positions=ordered)


def _with_promise(
    told: PaperReservation, head: Waiting, scene: ReserveInputs, window: int, apart: Collection[str]
) -> PaperReservation:
    """The reservation with the head's start and those that pass it, once all before it have started."""
    started = set(told.starting)
    begun = [
        CapacityHold(uid=one.uid, demand=one.demand, ends=scene.timing.latest_end(scene.now, one.limit))
        for one in scene.order
        if one.uid in started
    ]
    # A running Fairlead knows no more of the queue.
    left = [Candidate("", one, apart=one.uid in apart) for one in scene.order if one.uid not in started]
    known = take_window(left, {"": sum(not one.apart for one in left)}, WindowSize.whole(window)).jobs
    if head not in known:
        return PaperReservation(
            why_not=f"the first {window} jobs of its queue, as many as `window` says, ask for more than it has"
        )
    found = reserve(
        msgspec.structs.replace(scene, running=[*scene.running, *begun], order=known),
        ReservationState(in_place=HeadInPlace(head.uid, scene.now - scene.timing.reaction)),
    )
    shadow = found.shadow or Shadow(at=None)
    return msgspec.structs.replace(
        told,
        shadow=shadow.at,
        why_none=found.why_none,
        endless=(*shadow.endless, *shadow.overdue),
        passing=tuple(one.uid for one in found.given),
    )


def _run(job: SnapshotRunning, timing: Timing) -> CapacityHold:
    return CapacityHold(
        uid=job.id, demand=job.demand, ends=None if job.ends is None else job.ends + timing.grace
    )


def _waiting(job: SnapshotJob, *, strict: bool) -> Waiting:
    job_class = job.job_class if strict else ""
    return Waiting(uid=job.uid, demand=job.demand, job_class=job_class, limit=job.runtime_limit)
