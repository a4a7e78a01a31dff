"""Promises against a frontend in which everything takes time: facts are seen late, levels land late, the writer dies.

The model is the plainest one of a strict queue: by (level, time, uid), the first that does not fit stops all behind it.
Whatever a promise could break by is put in on purpose once, so that the test is seen able to fail.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_policy.reserve.easy import recalled, reserve
from fairlead_policy.reserve.reservation import Reservation, ReservationState, ReserveInputs, Timing, Waiting
from fairlead_policy.reserve.shadow import CapacityHold
from fairlead_testkit.inputs.cases import cases

GPU = "gpu"
BAND = Band(default=0, lowest=1, highest=1_000_000)
OLDEST = (-(10**9), "")
"""Tie of a job that might come at any moment: all that is labelled stands above it."""
HORIZON = 160
SHORT = 48
"""Horizon of worlds with few jobs, a promise or two each: there, too, promises break, only more seldom."""
QUIET = 900
"""Instant at which whatever was promised is long due."""
ENDLESS = 10**6

type Deciding = Callable[[ReserveInputs, ReservationState], Reservation]


@dataclass
class ModelJob:
    """One job of the model."""

    uid: str
    arrives: int
    demand: int
    limit: int | None
    lasts: int
    """Time that it really runs, the grace that it is given included."""
    key: float
    """Position in the policy's order."""
    tie: tuple[int, str]
    level: int = 0
    started: int | None = None

    @property
    def ends(self) -> int:
        assert self.started is not None
        return self.started + self.lasts


@dataclass
class SlowWriterModel:
    """A strict queue, and a writer beside it that is slow.

    Args:
        rng: of everything.
        reaction: how old facts may be, and how long a turn with its writes may take twice.
        believed: what the writer takes for its reaction and the grace.
        sealed: whether what is labelled stands above whatever may come.
        decide: the decision under test.
        thief: whether another queue takes of the same quota.
    """

    rng: random.Random
    reaction: int
    believed: Timing
    jobs: list[ModelJob]
    capacity: int
    dies: int = ENDLESS
    forgets: tuple[int, ...] = ()
    sealed: bool = True
    decide: Deciding = reserve
    misfit: frozenset[str] = frozenset()
    """Jobs that fit for us and not for the frontend: to it a third of the capacity is of no use to them."""
    thief: bool = False
    window: int = ENDLESS
    """Positions of the order that are known."""
    horizon: int = HORIZON
    """Instant up to which the world is looked at, if no promise is open."""
    now: int = 0
    stolen: int = 0
    seen: int = 0
    """The instant of the newest facts."""
    promised: dict[str, int] = field(default_factory=dict)
    passed: int = 0
    landings: list[tuple[int, str, int]] = field(default_factory=list)
    standing: ReservationState = field(default_factory=ReservationState)
    turn_at: int = 0
    history: list[list[ModelJob]] = field(default_factory=list)

    def run(self) -> list[str]:
        """Run it; gives the uids of jobs that started later than promised."""
        while self.now < QUIET and (self.now < self.horizon or self._somebody_waits()):
            self._land()
            self._start()
            self._steal()
            if self.now >= self.turn_at and self.now < self.dies:
                if self.now in self.forgets:
                    self.standing = ReservationState()
                self._turn()
            self.now += 1
        started = {job.uid: ENDLESS if job.started is None else job.started for job in self.jobs}
        kept = self.promised.keys() - self.misfit  # what the frontend thinks of those we cannot know
        return [uid for uid in kept if started[uid] > self.promised[uid]]

    def _somebody_waits(self) -> bool:
        return any(job.started is None and job.uid in self.promised for job in self.jobs)

    def _waiting(self) -> list[ModelJob]:
        here = [job for job in self.jobs if job.arrives <= self.now and job.started is None]
        return sorted(here, key=lambda job: (-job.level, job.tie))

    def _runs(self, at: int) -> list[ModelJob]:
        return [job for job in self.jobs if job.started is not None and job.started <= at < job.ends]

    def _free(self) -> int:
        return self.capacity - self.stolen - sum(job.demand for job in self._runs(self.now))

    def _start(self) -> None:
        for job in self._waiting():
            unusable = self.capacity // 3 if job.uid in self.misfit else 0
            if job.demand > self._free() - unusable:
                return
            job.started = self.now

    def _steal(self) -> None:
        if self.thief and not self.stolen and self.now > 20 and self._free() > 0:
            self.stolen = self._free()

    # --- the writer

    def _turn(self) -> None:
        # Facts are late, but who saw something once sees nothing older afterwards: state carries revisions.
        seen = self.seen = max(self.seen, self.now - self.rng.randint(0, self.reaction))
        waiting = [
            job for job in self.jobs if job.arrives <= seen and (job.started is None or job.started > seen)
        ]
        ordered = sorted(waiting, key=lambda job: (job.key, job.uid))
        stands = [job.uid for job in sorted(waiting, key=_stands) if job.level]
        scene = self._scene(seen, ordered, stands)
        if not self.standing.promise and not self.standing.passes:
            self.standing = ReservationState(
                resting=self.standing.resting,
                in_place=self.standing.in_place,
                recalled=self.standing.recalled or recalled(scene, stands),
            )
        here = {job.uid for job in waiting}
        before = self.standing
        promise = before.promise if before.promise is not None and before.promise.uid in here else None
        passes = {uid: one for uid, one in before.passes.items() if uid in here}
        found = self.decide(
            scene,
            ReservationState(
                promise=before.promise if promise is None else promise,
                passes=passes,
                resting=before.resting,
                in_place=before.in_place,
                recalled=before.recalled,
            ),
        )
        self.standing = found.standing
        self.passed += len(found.given)
        if found.promise is not None:
            uid, shadow = found.promise.uid, found.promise.shadow
            self.promised[uid] = min(shadow, self.promised.get(uid, shadow))
        self._write(found.order, waiting)

    def _known(self, ordered: Sequence[ModelJob], stands: Sequence[str]) -> list[ModelJob]:
        """The heads of the order, and behind it who keeps a position: where nothing is remembered, all that is labelled."""
        standing = self.standing
        promised = "" if standing.promise is None else standing.promise.uid
        keeping = (
            stands if standing == ReservationState() else {*standing.passes, promised, standing.recalled}
        )
        return [*ordered[: self.window], *(job for job in ordered[self.window :] if job.uid in keeping)]

    def _scene(self, seen: int, ordered: Sequence[ModelJob], stands: Sequence[str]) -> ReserveInputs:
        grace = self.believed.grace
        running = [
            CapacityHold(
                uid=job.uid,
                demand={GPU: job.demand},
                ends=None if job.limit is None else job.started + job.limit + grace,
            )
            for job in self._runs(seen)
            if job.started is not None
        ]
        return ReserveInputs(
            now=self.now,
            timing=self.believed,
            capacity={GPU: self.capacity},
            running=running,
            order=[
                Waiting(uid=job.uid, demand={GPU: job.demand}, limit=job.limit)
                for job in self._known(ordered, stands)
            ],
            ahead=lambda uid: self._ahead(uid, ordered),
        )

    def _ahead(self, uid: str, waiting: Sequence[ModelJob]) -> frozenset[str] | None:
        head = next(job for job in waiting if job.uid == uid)
        if self.sealed and not head.level:
            return None
        return frozenset(job.uid for job in waiting if _stands(job) < _stands(head))

    def _write(self, order: Sequence[str], waiting: Sequence[ModelJob]) -> None:
        jobs = {job.uid: job for job in waiting}
        window = [_labelled(jobs[uid]) for uid in order]
        outside = [_labelled(job) for job in waiting if job.uid not in order]
        if self.sealed:
            outside.append(LabelledJob(uid="", level=0, tie=OLDEST))
        plan = plan_levels(window, outside, BAND)
        times = sorted(self.now + self.rng.randint(0, self.reaction // 2) for _ in plan.writes)
        self.landings = [(at, uid, level) for at, (uid, level) in zip(times, plan.writes, strict=True)]
        self.turn_at = max([self.now + 1, *(at + 1 for at in times)])
        self._land()

    def _land(self) -> None:
        """One that dies may have sent what lands afterwards: the heads of its plan."""
        due = [landing for landing in self.landings if landing[0] <= self.now]
        self.landings = [landing for landing in self.landings if landing[0] > self.now]
        for at, uid, level in due:
            if at > self.dies and self.rng.random() < 0.5:
                self.landings = []
                return
            job = next((job for job in self.jobs if job.uid == uid), None)
            if job is not None:
                job.level = level
            self._start()


def _stands(job: ModelJob) -> tuple[int, tuple[int, str]]:
    return -job.level, job.tie


def _labelled(job: ModelJob) -> LabelledJob:
    return LabelledJob(uid=job.uid, level=job.level, tie=job.tie)


def jobs_of(
    rng: random.Random, *, grace: int, capacity: int, horizon: int = HORIZON, endless: float = 0.05
) -> list[ModelJob]:
    """A stream of small jobs with large ones in it; some old ones come back into the queue."""
    jobs = []
    for number in range(rng.randint(horizon // 16, 3 * horizon // 8)):
        large = rng.random() < 0.15
        limit = rng.choice([3, 5, 8, 13, 20, 40])
        over = rng.randint(0, grace) if rng.random() < 0.3 else 0
        lasts = limit + over if rng.random() < 0.6 else rng.randint(1, limit)
        unlimited = rng.random() < endless
        arrives = rng.randint(0, horizon // 2)
        at = arrives if rng.random() < 0.9 else arrives - rng.randint(0, 100)
        uid = f"{'large' if large else 'small'}-{number}"
        jobs.append(
            ModelJob(
                uid=uid,
                arrives=arrives,
                demand=rng.randint(capacity // 2, capacity)
                if large
                else rng.randint(1, max(1, capacity // 4)),
                limit=None if unlimited else limit,
                lasts=lasts,
                key=arrives + rng.random() * 60 - 30 * large,
                tie=(at, uid),
            )
        )
    return jobs


def world_of(seed: int, reaction: int, horizon: int = HORIZON, **more: object) -> SlowWriterModel:
    """A random world."""
    rng = random.Random(seed)
    grace = rng.choice([0, 2, 5])
    capacity = rng.randint(2, 16)
    fields: dict[str, object] = {
        "believed": Timing(reaction=reaction, grace=grace, rest=20),
        "jobs": jobs_of(rng, grace=grace, capacity=capacity, horizon=horizon),
        "horizon": horizon,
    }
    return SlowWriterModel(rng=rng, reaction=reaction, capacity=capacity, **(fields | more))  # type: ignore[arg-type] # passed on


@settings(max_examples=cases())
@given(st.integers(0, 2**32), st.sampled_from([0, 1, 2, 4, 8]))
def test_no_promise_is_broken_however_slow_the_writer_is(seed: int, reaction: int) -> None:
    assert world_of(seed, reaction, SHORT).run() == []


@settings(max_examples=cases())
@given(st.integers(0, 2**32), st.sampled_from([0, 1, 2, 4, 8]), st.integers(0, SHORT // 2))
def test_no_promise_is_broken_whenever_the_writer_dies(seed: int, reaction: int, dies: int) -> None:
    assert world_of(seed, reaction, SHORT, dies=dies).run() == []


@settings(max_examples=cases())
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 4]), st.lists(st.integers(0, SHORT), max_size=10))
def test_what_a_predecessor_promised_is_kept_by_who_takes_over(
    seed: int, reaction: int, forgets: list[int]
) -> None:
    assert world_of(seed, reaction, SHORT, forgets=tuple(forgets)).run() == []


@settings(max_examples=cases())
@given(st.integers(0, 2**32), st.integers(1, 4), st.lists(st.integers(0, SHORT), max_size=10))
def test_what_was_promised_is_kept_where_only_the_heads_of_the_order_are_known(
    seed: int, window: int, forgets: list[int]
) -> None:
    assert world_of(seed, 1, SHORT, window=window, forgets=tuple(forgets)).run() == []


@pytest.mark.deep
def test_no_promise_is_broken_in_thousands_of_worlds() -> None:
    """Slow writers, mortal ones, forgetful ones and such that see little of the order, together."""
    for seed in range(5_000):
        rng = random.Random(-seed)
        dies = rng.choice([ENDLESS, rng.randint(0, HORIZON)])
        forgets = tuple(rng.sample(range(HORIZON), rng.choice([0, 0, 5])))
        window = rng.choice([ENDLESS, 1, 3, 10])
        world = world_of(seed, rng.choice([0, 1, 2, 4, 8]), dies=dies, forgets=forgets, window=window)
        assert world.run() == [], seed


# --- what a promise breaks by, once each on purpose


def without_counting(scene: ReserveInputs, before: ReservationState) -> Reservation:
    """Passes that are not taken yet hold nothing: a second decision gives the same free unit again."""
    order = [
        msgspec.structs.replace(one, demand={}) if one.uid in before.passes else one for one in scene.order
    ]
    return reserve(msgspec.structs.replace(scene, order=order), before)


def never_taking_back(scene: ReserveInputs, before: ReservationState) -> Reservation:
    """Passes stay valid until they are used: what does not fit for the frontend stands before the head for ever."""
    later = {uid: msgspec.structs.replace(one, begins=ENDLESS) for uid, one in before.passes.items()}
    return reserve(scene, msgspec.structs.replace(before, passes=later))


def not_looking(scene: ReserveInputs, before: ReservationState) -> Reservation:
    """A promise is made without looking who stands before the head: a pass of the head before it does."""
    blind = msgspec.structs.replace(scene, ahead=lambda _: frozenset())
    long_ago = None if before.in_place is None else before.in_place._replace(since=-ENDLESS)
    return reserve(blind, msgspec.structs.replace(before, passes={}, in_place=long_ago))


def as_if_at_once(reaction: int, grace: int) -> Timing:
    """The timing that somebody believes who thinks that writes take no time."""
    del reaction
    return Timing(reaction=0, grace=grace, rest=20)


def as_if_killed_at_once(reaction: int, grace: int) -> Timing:
    """The timing that somebody believes who thinks that a run is over at its limit."""
    del grace
    return Timing(reaction=reaction, grace=0, rest=20)


def worlds(count: int, reaction: int, **more: object) -> Iterator[SlowWriterModel]:
    return (world_of(seed, reaction, HORIZON, **more) for seed in range(count))


def broken(found: Iterable[SlowWriterModel]) -> bool:
    """Whether a promise is broken in any world: the first such one is enough."""
    return any(world.run() for world in found)


def test_jobs_pass_and_promises_are_made() -> None:
    found = list(worlds(30, 1))
    assert not broken(found)
    assert sum(len(world.promised) for world in found) > 60
    assert sum(world.passed for world in found) > 100


@pytest.mark.parametrize(("variant", "reaction", "seed"), [(never_taking_back, 4, 21), (not_looking, 8, 8)])
def test_each_care_that_is_left_out_breaks_a_promise(variant: Deciding, reaction: int, seed: int) -> None:
    misfit = frozenset(f"small-{number}" for number in range(0, 60, 3))
    assert not broken(worlds(25, reaction, misfit=misfit))
    assert world_of(seed, reaction, misfit=misfit, decide=variant).run()


def two_units(seed: int, decide: Deciding) -> SlowWriterModel:
    """One unit is held until 20; the head wants both; each small job may hold the other one until shortly before 20."""

    def job(uid: str, at: int, demand: int, lasts: int) -> ModelJob:
        return ModelJob(uid=uid, arrives=at, demand=demand, limit=lasts, lasts=lasts, key=at, tie=(at, uid))

    jobs = [job("runs", 0, 1, 20), job("head", 1, 2, 5), job("one", 2, 1, 10), job("two", 3, 1, 10)]
    timing = Timing(reaction=2, grace=0, rest=20)
    return SlowWriterModel(
        rng=random.Random(seed),
        reaction=2,
        believed=timing,
        jobs=jobs,
        capacity=2,
        dies=5 + seed % 4,
        decide=decide,
    )


def test_a_unit_that_is_given_twice_breaks_a_promise_when_nobody_can_take_it_back() -> None:
    assert not broken(two_units(seed, reserve) for seed in range(60))
    assert broken(two_units(seed, without_counting) for seed in range(60))


@pytest.mark.parametrize("believed", [as_if_at_once, as_if_killed_at_once])
def test_time_that_is_not_reckoned_with_breaks_a_promise(believed: Callable[[int, int], Timing]) -> None:
    found = list(worlds(40, 8))
    for world in found:
        world.believed = believed(8, world.believed.grace)
    assert broken(found)


def test_arrivals_above_a_head_at_the_default_level_break_a_promise() -> None:
    assert broken(worlds(25, 2, sealed=False))


def test_a_second_queue_on_the_same_quota_breaks_a_promise() -> None:
    """Promises break, so a pool is reserved only where nobody else can take its quota."""
    assert broken(worlds(6, 2, thief=True))
