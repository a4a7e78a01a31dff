"""Steering of one cluster: the fewest writes that make it follow a pool's merged order.

The plan is made from what stands now and is thrown away afterwards: whatever was not written, or was undone by
somebody, is in the next plan again (level-triggered). It is `plan_class_bands` of policy, given what is queued here.

Where a frontend keeps classes apart by bands, the window falls into *class bands*, one for each class (see `class_bands` in
policy). A job that names a priority class which nobody granted to it is *out of band* in its own.
"""

import enum
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice

import msgspec

from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts, QueuedJobs
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_policy.levels.class_band_plan import plan_class_bands
from fairlead_policy.levels.class_bands import ClassBand, LevelChange
from fairlead_policy.levels.plan import LabelledJob, plan_levels
from fairlead_policy.levels.ties import Tie, TiedJob, TieIndex, tied_within

GONE = -1
"""The rank of a job that is not in the window: its level is taken back."""
_planned = lru_cache(maxsize=256)(plan_levels)
"""The fewest writes; remembered, as a turn of which nothing is new asks for the same again."""
_OUT_OF_BAND_JOBS = 1_000
"""Jobs out of band that one plan lowers: more than a pass writes."""


class WriteCause(enum.StrEnum):
    """The cause for which a level is written."""

    HEADS = "front"
    """The job is in the window."""
    LEFT = "left"
    """The job is not in the window any more, and would stand in front of some that are."""
    OUT_OF_BAND = "out-of-band"
    """The job stands above its class."""
    RELEASE = "release"
    """No level is to be left: an operator said so, or it could stop a running job."""
    PROTECT = "protect"
    """The job runs, and nothing that waits shall stop it."""
    STARTED = "started"
    """The job runs, and its level would have another one stopped in its place."""
    CHECKED = "checked"
    """The job has its quota and waits for its checks: where they give that back, its level would have it take it again."""
    WAKE = "wake"
    """Room is free and it is next: another level has the frontend try it at once."""


class LevelWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A level to write, and its reasons."""

    job: JobState
    before: int
    level: int
    rank: int
    """Rank among the pool's merged heads, from 0; GONE for a job outside of the window."""
    position: Position | None
    tie: Tie
    """The rank of the job among those of its level, as the frontend has them in line."""
    cause: WriteCause = WriteCause.HEADS
    drifted: bool = False
    """Whether it repairs what another writer did."""

    @property
    def of_running(self) -> bool:
        """Whether it is for a job that runs, and is in no line any more."""
        return self.cause in (WriteCause.PROTECT, WriteCause.STARTED, WriteCause.CHECKED)

    @property
    def because(self) -> str:
        """The reason in words, for the event log."""
        if self.position is None or self.cause is WriteCause.WAKE:
            return _BECAUSE[self.cause]
        position = self.position
        tag = "without bound" if position.unbounded else f"{position.tag:.6g}"
        return (
            f"position {self.rank}: class {position.job_class}, tag {tag} by {position.dominant or 'nothing'}"
        )


_BECAUSE = {
    WriteCause.HEADS: "at the front",
    WriteCause.LEFT: "not at the front any more: back to the default level",
    WriteCause.OUT_OF_BAND: "stands above its class: its priority class was not granted to it",
    WriteCause.RELEASE: "levels are taken away here: back to the level that it has when nobody steers",
    WriteCause.PROTECT: "it runs: nothing that waits in its class may stop it",
    WriteCause.STARTED: "it runs: what is reclaimed here shall not be taken from others for its level",
    WriteCause.CHECKED: "it waits for its checks: if they give its quota back, others go first",
    WriteCause.WAKE: "room is free and it is next: a new level makes the queue try it at once",
}


class SteeringPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The writes for one pool, in an order that is safe at every step."""

    writes: list[LevelWrite]
    kept: int = 0
    window: int = 0
    left_alone: int = 0
    """Jobs of the window that are not written to: fought over, just gone, or such that no flavor takes."""
    while_full: frozenset[str] = frozenset()
    """Queues in which nothing may come free while this is written: whoever is written to then would take it."""


def steer(
    window: Sequence[Ranked],
    facts: ClusterFacts,
    queues: Iterable[str],
    expectations: Expectations,
    class_bands: Sequence[ClassBand],
    *,
    newcomers: Collection[str] = (),
    reserved: bool = False,
) -> SteeringPlan:
    """The writes that make the cluster follow the window.

    Args:
        window: the jobs to label, in the wanted order.
        class_bands: the bands, highest first; each job of the queues belongs to one.
        newcomers: uids of jobs that no decision has ordered yet: nothing is lifted over these, nor are they lowered.
        reserved: whether starts are promised among the window.
    """
    names = list(queues)
    queued = _Queued(facts, names, expectations, window, newcomers=newcomers)
    able = [facts.queues[name].able for name in names]
    plan = plan_class_bands(class_bands, queued, able, reserved=reserved, plan=_planned)
    return SteeringPlan(
        writes=[queued.write(change) for change in plan.changes],
        kept=plan.kept,
        window=len(queued.followed),
        left_alone=len(window) - len(queued.followed),
    )


def lower_to_class(
    uids: Iterable[str], facts: ClusterFacts, expectations: Expectations, class_bands: Sequence[ClassBand]
) -> SteeringPlan:
    """The writes that lower a few queued jobs to their class's default level, whatever the order is: their positions are theirs no more."""
    writes = []
    for uid in uids:
        job, job_class = facts.job(uid), facts.job_class(uid)
        floor = next((part.band.default for part in class_bands if part.takes(job_class)), None)
        if job is None or job_class is None or floor is None or expectations.leaves_alone(job):
            continue
        if expectations.level_of(job) > floor:
            writes.append(_write_back(job, floor, WriteCause.LEFT, facts, expectations))
    return SteeringPlan(writes=writes)


def take_levels_away(
    facts: ClusterFacts, queues: Iterable[str], expectations: Expectations, *, at_once: bool = False
) -> SteeringPlan:
    """The writes that take every level of these queues away again, held jobs' too.

    The level that stands lowest goes first: a job that lost its level never stands behind one that keeps a lower one
    and shall stand behind it. That makes each write wait for the one before it.

    Args:
        at_once: the levels could stop running jobs: the highest one, which the frontend tries next, goes first, and no
            write waits for another. What runs keeps its level, which only protects it.
    """
    moved = [
        job
        for queue in queues
        for job in _maybe_moved(facts, queue, expectations)
        if expectations.level_of(job) != facts.unsteered(job)
    ]
    writes = [
        _write_back(job, facts.unsteered(job), WriteCause.RELEASE, facts, expectations)
        for job in moved
        if not expectations.leaves_alone(job)
    ]
    writes.sort(key=lambda write: write.tie, reverse=True)
    writes.sort(key=lambda write: write.before)
    if at_once:
        writes.reverse()
    return SteeringPlan(writes=writes, left_alone=len(moved) - len(writes))


def _write_back(
    job: JobState, level: int, cause: WriteCause, facts: ClusterFacts, expectations: Expectations
) -> LevelWrite:
    """The write of a level to a job whose position does not matter."""
    return LevelWrite(
        job=job,
        before=expectations.level_of(job),
        level=level,
        rank=GONE,
        position=None,
        tie=facts.tie(job),
        cause=cause,
        drifted=expectations.drifted(job.uid),
    )


def _maybe_moved(facts: ClusterFacts, queue: str, expectations: Expectations) -> Iterator[JobState]:
    """Queued jobs of the queue that carry a level, or will be seen to carry one, or lose one; by uid."""
    # A set has another order in each process.
    for uid in sorted({*facts.moved(queue), *expectations.pending()}):
        job = facts.job(uid)
        if job is not None and job.queue == queue and job.phase in (Phase.WAITING, Phase.HELD):
            yield job


class _Queued:
    """The jobs queued in this cluster, from the index of its facts; see `FrontendQueue`."""

    def __init__(
        self,
        facts: ClusterFacts,
        queues: list[str],
        expectations: Expectations,
        window: Sequence[Ranked],
        *,
        newcomers: Collection[str],
    ) -> None:
        self._facts = facts
        self._queues = queues
        self._expectations = expectations
        # A level would have the frontend try in vain whom no flavor takes.
        tried = [ranked for ranked in window if not ranked.job.flavorless]
        self.followed = [ranked for ranked in tried if not expectations.leaves_alone(ranked.job)]
        self._inside = {ranked.job.uid: ranked for ranked in tried}
        self._tied = {name: tied_within(queue.able, name) for name, queue in facts.queues.items()}
        self._by_class: dict[str, list[tuple[str, QueuedJobs]]] = {}
        for queue in queues:
            for job_class, queued in facts.queued(queue).items():
                self._by_class.setdefault(job_class, []).append((self._tied.get(queue, ""), queued))
        names = frozenset(queues)
        self._pending = {
            uid: job
            for uid in expectations.pending()
            if (job := facts.job(uid)) and job.phase is Phase.WAITING and job.queue in names
        }
        """Waiting jobs of the queues whose newest level the state doesn't show yet."""
        self._covered = self._inside.keys() | self._pending.keys()
        self._uncounted = self._covered | {ranked.job.uid for ranked in window} | set(newcomers)
        """Uids of jobs that no plan has to care for beside those that it names."""

    # As the plan asks

    def window(self, class_band: ClassBand) -> Iterator[LabelledJob]:
        """The class band's jobs in the window, in the wanted order, at the levels that they have or will be seen to have."""
        inside = (one.job for one in self.followed if self._belongs(one.job.uid, class_band))
        return map(self._labelled, inside)

    def outside(self, class_band: ClassBand, most: int) -> Iterator[LabelledJob]:
        """The queue's other waiting jobs that can be moved. A labelled one that is left alone can't, so nothing is planned around it."""
        band = class_band.band
        for tied, queued in self._of(class_band):
            for level, ties in queued.waiting.items():
                if level == band.default:  # the first one speaks for all
                    firsts = islice(self._uncovered(ties), 1)
                elif level > band.default:
                    movable = (job for job in self._uncovered(ties) if not self._left_alone(job[1]))
                    firsts = islice(movable, most)
                else:
                    continue  # stands behind the class band anyway
                for tie, uid in firsts:
                    yield LabelledJob(uid=uid, level=level, tie=tie, queue=tied)
        yield from map(self._labelled, self._pending_outside(class_band))
        for uid in self.sunken(class_band):
            yield msgspec.structs.replace(self._labelled(self._job(uid)), level=band.default)

    def out_of_band_jobs(self, class_band: ClassBand) -> Iterator[str]:
        """The uids of the first few jobs outside that stand above everything that the class band may have."""
        return islice(self._all_out_of_band(class_band), _OUT_OF_BAND_JOBS)

    def lifted_held(self, class_band: ClassBand) -> Iterator[str]:
        """The uids of held jobs that stand above the class band's default level, within the band."""
        for job in self._held():
            level = self._expectations.level_of(job)
            lifted = level > class_band.band.default and not class_band.out_of_band(level)
            if lifted and self._belongs(job.uid, class_band) and not self._expectations.leaves_alone(job):
                yield job.uid

    def sunken(self, class_band: ClassBand) -> Iterator[str]:
        """The uids of waiting jobs outside that a level of old holds below their class, which they have by themselves now.

        One that named a class which nobody granted to it, say, and is of everybody's by its author's own word since.
        """
        floor = class_band.band.default
        lower = any(level < floor for _, queued in self._of(class_band) for level in queued.waiting)
        if class_band.ceiling is None or not lower:
            return
        jobs = (self._job(uid) for queue in self._queues for uid in self._facts.moved(queue))
        sunken = (job for job in jobs if job.level < floor <= self._facts.unsteered(job))
        for uid in sorted(job.uid for job in sunken if job.phase is Phase.WAITING):
            if uid not in self._covered and self._belongs(uid, class_band) and not self._left_alone(uid):
                yield uid

    def level_of(self, uid: str) -> int:
        """The level that a queued job has, or will be seen to have."""
        return self._expectations.level_of(self._job(uid))

    def write(self, change: LevelChange) -> LevelWrite:
        """The write of a level to a job that is in the window, or outside of it."""
        ranked = self._inside.get(change.uid)
        outside = WriteCause.OUT_OF_BAND if change.out_of_band else WriteCause.LEFT
        job = self._job(change.uid)
        return LevelWrite(
            job=job,
            before=change.before,
            level=change.level,
            rank=GONE if ranked is None else ranked.rank,
            position=None if ranked is None else ranked.position,
            tie=self._facts.tie(job),
            cause=outside if ranked is None else WriteCause.HEADS,
            drifted=self._expectations.drifted(change.uid),
        )

    # How

    def _job(self, uid: str) -> JobState:
        ranked = self._inside.get(uid)
        job = ranked.job if ranked is not None else self._facts.job(uid)
        assert job is not None  # noqa: S101 # plans name only jobs that they were given
        return job

    def _of(self, class_band: ClassBand) -> list[tuple[str, QueuedJobs]]:
        """The class band's jobs in each queue and class, with what they are tied within."""
        return [
            queued
            for job_class, parts in self._by_class.items()
            if class_band.takes(job_class)
            for queued in parts
        ]

    def _belongs(self, uid: str, class_band: ClassBand) -> bool:
        return class_band.takes(self._facts.job_class(uid))

    def _labelled(self, job: JobState) -> LabelledJob:
        """The job as it stands, or will be seen to stand."""
        return LabelledJob(
            uid=job.uid,
            level=self._expectations.level_of(job),
            tie=self._facts.tie(job),
            queue=self._tied.get(job.queue, ""),
        )

    def _all_out_of_band(self, class_band: ClassBand) -> Iterator[str]:
        if class_band.ceiling is None:
            return
        known = chain.from_iterable(queued.above(class_band.ceiling) for _, queued in self._of(class_band))
        yield from (uid for uid in known if uid not in self._covered and not self._left_alone(uid))
        for job in self._pending_outside(class_band):
            if class_band.out_of_band(self._expectations.level_of(job)):
                yield job.uid

    def _held(self) -> Iterator[JobState]:
        """The held jobs that carry a level, or may."""
        for queue in self._queues:
            for job in _maybe_moved(self._facts, queue, self._expectations):
                if job.phase is Phase.HELD:
                    yield job

    def _pending_outside(self, class_band: ClassBand) -> Iterator[JobState]:
        for uid, job in self._pending.items():
            if uid not in self._inside and self._belongs(uid, class_band) and not self._left_alone(uid):
                yield job

    def _uncovered(self, ties: TieIndex) -> Iterator[TiedJob]:
        """Jobs that something has to be planned for; not whom no flavor takes, however many there are."""
        return (
            job
            for job in ties.in_order()
            if job[1] not in self._uncounted and not self._job(job[1]).flavorless
        )

    def _left_alone(self, uid: str) -> bool:
        job = self._facts.job(uid)
        return job is None or self._expectations.leaves_alone(job)
