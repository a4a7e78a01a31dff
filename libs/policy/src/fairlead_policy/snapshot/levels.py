"""The levels that the order of a snapshot takes: what admitters would write from the same facts.

Each frontend of each cluster is steered by itself, by the segments that its queues and the policy give; the same ones
as an admitter's. On paper everything is written at once: what an admitter leaves to its next passes is in the plan.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from fairlead_contracts.frontend.capabilities import shipped_capabilities
from fairlead_contracts.messages.state import QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob, SnapshotQueue
from fairlead_policy.levels.class_bands import Changes, Segment, in_safe_order, segments_by
from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_policy.levels.ties import Tie, tie_of, tied_within
from fairlead_policy.levels.withholding import why_crossed, why_preempting
from fairlead_policy.rules.jobs import Queue
from fairlead_policy.snapshot.ordering import OrderedPool

_PLAIN_QUEUE = QueueState(cluster="", epoch=0, rev=0, name="", pool="", frontend="")
PLAIN_BAND = Band(
    default=_PLAIN_QUEUE.default_level, lowest=_PLAIN_QUEUE.lowest_level, highest=_PLAIN_QUEUE.highest_level
)
"""The levels that a queue takes of which nothing else is said."""

type Steered = tuple[str, str]
"""(cluster, frontend): one that follows levels by itself."""


class Steering(msgspec.Struct, frozen=True, kw_only=True):
    """Which levels one frontend takes."""

    segments: Sequence[Segment]
    """The highest first."""
    why_none: str = ""
    """Why no level is written there, in words."""


_PLAIN = Steering(segments=[Segment(band=PLAIN_BAND)])


class PlannedLevels(msgspec.Struct, frozen=True, kw_only=True):
    """What makes the frontends of one pool follow its order."""

    levels: dict[str, int]
    """Of each waiting job, by uid, once all is written."""
    writes: list[tuple[str, int]]
    """(uid, level), in a safe order."""
    dropped: int = 0
    """How many jobs of windows' ends there is no level for."""
    withheld: dict[Steered, str] = {}
    """Frontends that get no level, and why, in words."""


class _Change(msgspec.Struct, frozen=True):
    """One level to write."""

    uid: str
    before: int
    level: int


def steering_of(snapshot: Snapshot, pool: str) -> dict[Steered, Steering]:
    """By cluster and frontend, the levels that the pool's queues take, as far as the snapshot states queues."""
    queues: dict[Steered, list[SnapshotQueue]] = {}
    for queue in snapshot.queues:
        if queue.pool == pool:
            queues.setdefault((queue.cluster, queue.frontend), []).append(queue)
    values: dict[str, dict[str, int]] = {}
    for found in snapshot.class_values:
        values.setdefault(found.cluster, {})[found.urgency] = found.value
    return {
        steered: _steering(snapshot.policy, stated, values.get(steered[0], {}))
        for steered, stated in sorted(queues.items())
    }


def _steering(
    document: PolicyDocument, queues: Collection[SnapshotQueue], values: Mapping[str, int]
) -> Steering:
    if preempting := why_preempting(document, queues):
        return Steering(segments=[], why_none=preempting)
    if any(queue.bands_by_class for queue in queues) and (crossed := why_crossed(document, values)):
        return Steering(segments=[], why_none=crossed)
    segments = segments_by(document, queues, values)
    return Steering(segments=segments, why_none="" if segments else "its queues have no band in common")


def plan_snapshot_levels(
    pool: OrderedPool,
    jobs: Iterable[SnapshotJob],
    window: int,
    steering: Mapping[Steered, Steering] | None = None,
    never: Collection[str] = (),
) -> PlannedLevels:
    """The fewest writes after which the frontends of the pool follow its order.

    Args:
        pool: in order.
        jobs: that wait; those of other pools are passed over.
        window: how many jobs of each queue's front are labelled.
        steering: the levels that each frontend takes; plain ones where it is not in there.
        never: uids of jobs that can never run. They take no place in the window and stand behind it.
    """
    waiting = {job.uid: job for job in jobs if job.pool == pool.name}
    steered: dict[Steered, list[SnapshotJob]] = {}
    for place in pool.places:
        job = waiting[place.uid]
        steered.setdefault((job.cluster, job.frontend), []).append(job)
    levels = {job.uid: job.level for job in waiting.values()}
    known = steering or {}
    writes: list[tuple[str, int]] = []
    withheld: dict[Steered, str] = {}
    dropped = 0
    for where, ordered in sorted(steered.items()):
        how = known.get(where, _PLAIN)
        if how.why_none:
            withheld[where] = how.why_none
            continue
        able = [job for job in ordered if job.uid not in never] if never else ordered
        front = window_of(able, window)
        behind = able[front:] + [job for job in ordered if job.uid in never] if never else able[front:]
        parts = [_Part(segment, able[:front], behind, levels) for segment in how.segments]
        writes += [(change.uid, change.level) for change in in_safe_order([part.changes for part in parts])]
        dropped += sum(part.dropped for part in parts)
    return PlannedLevels(levels=levels | dict(writes), writes=writes, dropped=dropped, withheld=withheld)


class _Part:
    """The plan of one segment."""

    def __init__(
        self,
        segment: Segment,
        front: Iterable[SnapshotJob],
        behind: Iterable[SnapshotJob],
        levels: Mapping[str, int],
    ) -> None:
        window = [_labelled(job, job.level) for job in front if segment.takes(job.urgency)]
        outside = [job for job in behind if segment.takes(job.urgency)]
        plan = plan_levels(
            window, [_labelled(job, segment.settled(job.level)) for job in outside], segment.band
        )
        trespassers = sorted((job for job in outside if segment.trespassed(job.level)), key=_stands)
        self.dropped = plan.dropped
        self.changes = Changes(
            [_Change(uid, levels[uid], level) for uid, level in plan.writes],
            [_Change(job.uid, job.level, segment.band.default) for job in trespassers],
        )


def window_of(ordered: Iterable[SnapshotJob], size: int) -> int:
    """How many of these jobs are labelled: up to the one that fills the first queue which has more waiting.

    What waits behind it in that queue stands unlabelled, behind everything labelled: no job is labelled in front of
    one that the order puts before it.
    """
    jobs = list(ordered)
    left: dict[Queue, int] = {}
    for job in jobs:
        left[_queue(job)] = left.get(_queue(job), 0) + 1
    seen = dict.fromkeys(left, 0)
    for number, job in enumerate(jobs, start=1):
        queue = _queue(job)
        seen[queue] += 1
        if seen[queue] == size and left[queue] > size:
            return number
    return len(jobs)


def _queue(job: SnapshotJob) -> Queue:
    return job.cluster or job.frontend, job.queue


def _labelled(job: SnapshotJob, level: int) -> LabelledJob:
    return LabelledJob(
        uid=job.uid,
        level=level,
        tie=_tie(job),
        queue=tied_within(shipped_capabilities(job.frontend), job.queue),
    )


def _stands(job: SnapshotJob) -> tuple[int, Tie]:
    """Where the frontend has it: the highest level first, then by its tie."""
    return -job.level, _tie(job)


def _tie(job: SnapshotJob) -> Tie:
    return tie_of(shipped_capabilities(job.frontend).ties, job.queue_time, name=job.id, uid=job.uid)
