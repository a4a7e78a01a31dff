"""From a pool's merged order to the fewest writes that make one cluster follow it.

The plan is made from what stands now and is thrown away afterwards: whatever was not written, or was undone by
somebody, is in the next plan again (level-triggered). The arithmetic is that of `plan_levels` in policy.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead_admitter.facts import ClusterFacts
from fairlead_admitter.merging import Beginning
from fairlead_admitter.written import Written
from fairlead_contracts.decisions import Place
from fairlead_contracts.state import JobState, Phase, QueueState
from fairlead_policy import Band, LabelledJob, plan_levels

GONE = -1
"""The rank of a job that is not in the window: its level is taken back."""


class LevelWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One level to write, and why."""

    job: JobState
    before: int
    level: int
    rank: int
    """Place in the pool's merged front, from 0; GONE for a job outside of the window."""
    place: Place | None
    drifted: bool = False
    """Whether it repairs what another writer did."""

    @property
    def because(self) -> str:
        """The reason in words, for the event log."""
        if self.place is None:
            return "not at the front any more: back to the default level"
        place = self.place
        tag = "without bound" if place.unbounded else f"{place.tag:.6g}"
        return f"place {self.rank}: class {place.urgency}, tag {tag} by {place.dominant or 'nothing'}"


class Ranked(msgspec.Struct, frozen=True):
    """A place of the merged front whose job waits in this cluster."""

    rank: int
    place: Place
    job: JobState


class SteeringPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to write for one pool, in an order that is safe at every step."""

    writes: list[LevelWrite]
    kept: int = 0
    window: int = 0
    left_alone: int = 0
    """Jobs of the window that are not written to: fought over, or just gone."""


def common_band(queues: Iterable[QueueState]) -> Band | None:
    """The band in which every queue of a pool takes levels; None where there is none, or the defaults differ."""
    known = list(queues)
    defaults = {queue.default_level for queue in known}
    lowest = max((queue.lowest_level for queue in known), default=0)
    highest = min((queue.highest_level for queue in known), default=0)
    if len(defaults) != 1 or lowest > highest:
        return None
    return Band(default=defaults.pop(), lowest=lowest, highest=highest)


class Window(msgspec.Struct, frozen=True):
    """The jobs to label, in the wanted order."""

    ranked: list[Ranked]
    closed: bool
    """Whether it ends by its own rule, and not where the places given to it end."""


def take_window(beginning: Beginning, waiting: Mapping[str, int], facts: ClusterFacts, size: int) -> Window:
    """The places that are labelled: the front of the pool, as far as it is known without gaps.

    A shard publishes the first `size` places of each queue. Behind a queue's `size`-th place others of the same queue
    may be missing, and they stand unlabelled, behind everything labelled. So the window ends with the place that
    fills the first queue which has more waiting: no job is labelled in front of one that the order puts before it.

    Args:
        beginning: of the pool's merged front, of all clusters.
        waiting: how many wait in each of this cluster's queues, as the decisions say.
        facts: of this cluster.
        size: how many places of a queue make its front (the policy's `window`).
    """
    ranked: list[Ranked] = []
    taken: set[str] = set()
    seen = dict.fromkeys(waiting, 0)
    for rank, place in enumerate(beginning.places):
        origin = beginning.origins[place.uid]
        if origin.cluster != facts.cluster:
            continue
        job = facts.job(place.uid)
        # A job whose tenant changed is in two shards' fronts until the old one's owner has decided, too.
        if job is not None and job.phase is Phase.WAITING and job.uid not in taken:
            taken.add(job.uid)
            ranked.append(Ranked(rank, place, job))
        seen[origin.queue] += 1
        if seen[origin.queue] == size and waiting[origin.queue] > size:
            return Window(ranked, closed=True)
    return Window(ranked, closed=beginning.whole)


def steer(
    window: Sequence[Ranked], facts: ClusterFacts, queues: Iterable[str], written: Written, band: Band
) -> SteeringPlan:
    """The writes that make the cluster follow the window.

    Args:
        window: the jobs to label, in the wanted order.
        facts: of this cluster.
        queues: the pool's queues in this cluster.
        written: what was written and isn't seen yet.
        band: the levels that may be given.
    """
    followed = [ranked for ranked in window if not written.leaves_alone(ranked.job)]
    inside = {ranked.job.uid: ranked for ranked in window}
    outside = _outside(facts, queues, written, inside, band.default)
    plan = plan_levels([_labelled(ranked.job, written) for ranked in followed], list(outside.values()), band)
    return SteeringPlan(
        writes=[_write(uid, level, inside, facts, written) for uid, level in plan.writes],
        kept=plan.kept,
        window=len(followed),
        left_alone=len(window) - len(followed),
    )


def take_back(
    facts: ClusterFacts, queues: Iterable[str], written: Written, defaults: Mapping[str, int]
) -> SteeringPlan:
    """The writes that take every level of these queues away again, held jobs' too.

    The level that stands lowest goes first: a job that lost its level never stands behind one that keeps a lower one
    and shall stand behind it.
    """
    writes = [
        LevelWrite(
            job=job,
            before=written.level_of(job),
            level=defaults[queue],
            rank=GONE,
            place=None,
            drifted=written.drifted(job.uid),
        )
        for queue in queues
        for job in _maybe_labelled(facts, queue, written)
        if written.level_of(job) != defaults[queue] and not written.leaves_alone(job)
    ]
    writes.sort(key=lambda write: (write.before, -write.job.queue_time, write.job.uid))
    return SteeringPlan(writes=writes)


def _maybe_labelled(facts: ClusterFacts, queue: str, written: Written) -> list[JobState]:
    """Queued jobs of the queue that carry a level, or will be seen to carry one, or lose one."""
    jobs = dict(facts.queued(queue).labelled)
    for uid in written.pending():
        job = facts.job(uid)
        if job is not None and job.queue == queue and job.phase in (Phase.WAITING, Phase.HELD):
            jobs[uid] = job
    return list(jobs.values())


def _outside(
    facts: ClusterFacts,
    queues: Iterable[str],
    written: Written,
    inside: Mapping[str, Ranked],
    default: int,
) -> dict[str, LabelledJob]:
    """What the plan must know of the jobs that are not in the window: the labelled, and the first of the others.

    A labelled job that is left alone is not named: it can't be moved, so nothing is planned around it.
    """
    outside: dict[str, LabelledJob] = {}
    pending = {
        job.uid: job for uid in written.pending() if (job := facts.job(uid)) and job.phase is Phase.WAITING
    }
    covered = inside.keys() | pending.keys()
    for queue in queues:
        queued = facts.queued(queue)
        for job in queued.labelled.values():
            if job.uid not in inside and job.phase is Phase.WAITING and not written.leaves_alone(job):
                outside[job.uid] = _labelled(job, written)
        first = queued.unlabelled.first_outside(covered)
        if first is not None:
            outside[first[1]] = LabelledJob(uid=first[1], level=default, tie=first)
    known = set(queues)
    for uid, job in pending.items():
        if uid not in inside and job.queue in known and not written.leaves_alone(job):
            outside[uid] = _labelled(job, written)
    return outside


def _labelled(job: JobState, written: Written) -> LabelledJob:
    return LabelledJob(uid=job.uid, level=written.level_of(job), tie=(job.queue_time, job.uid))


def _write(
    uid: str, level: int, inside: Mapping[str, Ranked], facts: ClusterFacts, written: Written
) -> LevelWrite:
    ranked = inside.get(uid)
    job = ranked.job if ranked is not None else facts.job(uid)
    assert job is not None  # noqa: S101 # plan_levels names only jobs that it was given
    return LevelWrite(
        job=job,
        before=written.level_of(job),
        level=level,
        rank=GONE if ranked is None else ranked.rank,
        place=None if ranked is None else ranked.place,
        drifted=written.drifted(uid),
    )
