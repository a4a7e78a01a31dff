"""Bands by class: each class keeps to its own, whatever priority classes jobs name, against brute force."""

import random
from collections.abc import Sequence
from itertools import combinations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.apply.barrier import Barrier
from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.steering import LevelWrite, SteeringPlan, WriteCause, steer, take_levels_away
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.state import JobState, Phase, subject_of
from fairlead_policy.levels.bands import class_bands
from fairlead_policy.levels.class_bands import class_bands_of
from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_testkit.inputs.builders import NOW, a_class, a_job, a_position, a_queue
from fairlead_testkit.oracles.starting_order import in_starting_order, starting_rank

SECOND = 1_000_000
"""Kueue's queue times are whole ones."""

CLASSES = ["urgent", "approved", "normal"]
VALUES = {"urgent": 3000, "approved": 1500}
BANDS = class_bands(CLASSES, VALUES, width=1000)
QUEUE = a_queue(frontend="kueue", bands_by_class=True)
CLASS_BANDS = class_bands_of([QUEUE], BANDS, protect=False)
BASES = [0, 0, 1500, 3000, 700, -50, 9000]
"""Levels of the classes, and of priority classes that are none of the policy's."""


class Kueue:
    """Jobs in one queue, of classes that were granted to them or not."""

    def __init__(self, jobs: Sequence[JobState], classes: dict[str, str]) -> None:
        self.jobs = {job.uid: job for job in jobs}
        self.classes = classes
        self.facts = ClusterFacts("c1")
        self.facts.classify(lambda job: classes[job.uid])
        self.facts.apply({"queue": QUEUE} | {name: a_class(name=name, value=VALUES[name]) for name in VALUES})
        self.facts.apply({subject_of(job): job for job in jobs})

    def plan(self, window: Sequence[str], expectations: Expectations | None = None) -> SteeringPlan:
        ranked = [Ranked(rank, a_position(uid=uid), self.jobs[uid]) for rank, uid in enumerate(window)]
        return steer(ranked, self.facts, ["main"], expectations or Expectations(), CLASS_BANDS)

    def write(self, plan: SteeringPlan) -> None:
        for write in plan.writes:
            job = self.jobs[write.job.uid]
            self.jobs[job.uid] = msgspec.structs.replace(job, level=write.level, rev=job.rev + 1)
        self.facts.apply({subject_of(job): job for job in self.jobs.values()})

    def order(self) -> list[str]:
        return [job.uid for job in in_starting_order(self.jobs.values())]


def some_kueue(dice: random.Random, count: int) -> Kueue:
    jobs, classes = [], {}
    for number in range(count):
        base = dice.choice(BASES)
        level = base + dice.choice([0, 0, 0, 3, 400, 999, -20_000])
        phase = dice.choice([Phase.WAITING] * 5 + [Phase.HELD])
        job = a_job(
            f"j{number:02}", base=base, level=level, phase=phase, queue_time=NOW + dice.randrange(9) * SECOND
        )
        classes[job.uid] = dice.choice(CLASSES)
        jobs.append(job)
    return Kueue(jobs, classes)


def a_wanted_order(dice: random.Random, kueue: Kueue) -> list[str]:
    wanted = kueue.order()
    dice.shuffle(wanted)
    return sorted(wanted, key=lambda uid: CLASSES.index(kueue.classes[uid]))


def fewest(kueue: Kueue, window: Sequence[str], job_class: str) -> int:
    """Writes for one class: those of `plan_levels`, given all of its jobs, and one for each that is sunken.

    A job out of band counts as lowered, and a sunken one as lifted.
    """
    band = BANDS[job_class]

    def sunken(job: JobState) -> bool:
        return job.level < band.default <= job.base

    def labelled(uid: str, *, inside: bool) -> LabelledJob:
        job = kueue.jobs[uid]
        settles = (job.level > band.highest or sunken(job)) and not inside
        return LabelledJob(
            uid=uid, level=band.default if settles else job.level, tie=(job.queue_time, job.uid)
        )

    mine = [uid for uid in kueue.order() if kueue.classes[uid] == job_class]
    outside = [labelled(uid, inside=False) for uid in mine if uid not in window]
    inside = [labelled(uid, inside=True) for uid in window if kueue.classes[uid] == job_class]
    planned = plan_levels(inside, [job for job in outside if job.level >= band.default], band).writes
    return len(planned) + sum(sunken(kueue.jobs[uid]) for uid in mine if uid not in window)


@given(st.randoms(use_true_random=False), st.integers(1, 14), st.integers(1, 10))
def test_each_class_follows_the_order_in_its_own_band_with_the_fewest_writes(
    dice: random.Random, count: int, size: int
) -> None:
    kueue = some_kueue(dice, count)
    wanted = a_wanted_order(dice, kueue)
    window = wanted[:size]
    plan = kueue.plan(window)
    for job_class in CLASSES:
        mine = [write for write in plan.writes if kueue.classes[write.job.uid] == job_class]
        of_plan = [write for write in mine if write.cause is not WriteCause.OUT_OF_BAND]
        assert len(of_plan) == fewest(kueue, window, job_class)
    out_of_band_jobs = {
        job.uid
        for job in kueue.jobs.values()
        if job.uid not in window and job.level > BANDS[kueue.classes[job.uid]].highest
    }
    assert {
        write.job.uid for write in plan.writes if write.cause is WriteCause.OUT_OF_BAND
    } == out_of_band_jobs
    kueue.write(plan)
    assert kueue.order()[:size] == window
    for uid, job in kueue.jobs.items():
        band = BANDS[kueue.classes[uid]]
        assert job.level <= band.highest
        assert uid not in window or job.level >= band.default
    assert kueue.plan(window).writes == []


@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(1, 8))
def test_no_pair_that_stood_right_is_turned_round_in_whatever_order_the_allowed_writes_land(
    dice: random.Random, count: int, size: int
) -> None:
    kueue = some_kueue(dice, count)
    wanted = a_wanted_order(dice, kueue)
    window = wanted[:size]
    rank = {uid: min(number, size) for number, uid in enumerate(wanted)}
    writes = kueue.plan(window).writes
    now = {uid: kueue.jobs[uid] for uid in wanted}

    def right() -> set[tuple[str, str]]:
        """The pairs that stand as wanted; those outside of the window may stand as they like."""
        return {
            (one, two)
            for one, two in combinations(wanted, 2)
            if rank[one] < rank[two] and starting_rank(now[one]) < starting_rank(now[two])
        }

    stood = right()
    open_ = list(enumerate(writes))
    while open_:
        ready = [
            (number, write)
            for number, write in open_
            if not Barrier(writes[other] for other, _ in open_ if other < number).stops(write)
        ]
        number, write = dice.choice(ready)
        open_.remove((number, write))
        if write.job.uid in now:
            now[write.job.uid] = msgspec.structs.replace(now[write.job.uid], level=write.level)
        after = right()
        assert stood <= after
        stood = after


def test_what_a_pass_looks_at_does_not_grow_with_the_queue() -> None:
    jobs = [a_job(f"j{number}", queue_time=NOW + number * SECOND) for number in range(3000)]
    high = [
        a_job(f"h{number}", base=700, level=700, queue_time=NOW + number * SECOND) for number in range(3000)
    ]
    kueue = Kueue([*jobs, *high], {job.uid: "normal" for job in [*jobs, *high]})
    window = [jobs[5].uid, jobs[3].uid]
    plan = kueue.plan(window)
    # Of 3,000 that stand above the window none is lowered: to go above them takes two writes.
    assert len(plan.writes) == 2
    kueue.write(plan)
    assert kueue.order()[:2] == window


def test_where_the_order_is_first_come_nothing_is_written() -> None:
    jobs = [a_job(f"j{number}", base=base, level=base) for number, base in enumerate([3000, 1500, 0, 0])]
    classes = dict(zip([job.uid for job in jobs], ["urgent", "approved", "normal", "normal"], strict=True))
    kueue = Kueue(jobs, classes)
    assert kueue.plan(kueue.order()).writes == []


@pytest.mark.parametrize(("base", "level", "lifted"), [(0, -3000, True), (1500, -5, True), (-50, -50, False)])
def test_a_level_that_holds_a_job_below_its_class_for_no_reason_any_more_is_taken_back(
    base: int, level: int, lifted: bool
) -> None:
    """Who named a class without a grant, and took it back, would stand behind all that come while nobody steers."""
    jobs = [a_job(f"j{number}", queue_time=NOW + number * SECOND) for number in range(3)]
    sunken = a_job("old", base=base, level=level, queue_time=NOW - SECOND)
    kueue = Kueue([*jobs, sunken], {job.uid: "normal" for job in [*jobs, sunken]})
    window = [jobs[1].uid, jobs[0].uid]
    kueue.write(kueue.plan(window))
    assert kueue.jobs[sunken.uid].level == (0 if lifted else level)
    assert kueue.order()[:2] == window, "it is older than they are, and gets their default level"
    assert kueue.plan(window).writes == []


def test_a_release_goes_back_to_what_each_job_has_by_itself() -> None:
    jobs = [a_job("a", base=1500, level=0), a_job("b", base=700, level=701), a_job("c", level=0)]
    kueue = Kueue(jobs, {job.uid: "normal" for job in jobs})
    plan = take_levels_away(kueue.facts, ["main"], Expectations())
    assert {write.job.id: write.level for write in plan.writes} == {"a": 1500, "b": 700}


def test_what_is_written_first_is_what_stands_or_will_stand_highest() -> None:
    jobs = [
        a_job("u1", base=3000, level=3000, queue_time=NOW),
        a_job("u2", base=3000, level=3000, queue_time=NOW + 1 * SECOND),
        a_job("taken", base=3000, level=3000, queue_time=NOW + 9 * SECOND),
        a_job("n1", queue_time=NOW + 3 * SECOND),
        a_job("n2", queue_time=NOW + 4 * SECOND),
    ]
    classes = {"u1": "urgent", "u2": "urgent", "taken": "normal", "n1": "normal", "n2": "normal"}
    kueue = Kueue(jobs, {f"team-a/{name}": job_class for name, job_class in classes.items()})
    plan = kueue.plan([f"team-a/{name}" for name in ("u2", "u1", "n2", "n1")])
    assert [write.job.id for write in plan.writes] == ["u2", "taken", "n2"]


def test_queues_with_and_without_bands_have_no_band_in_common() -> None:
    assert class_bands_of([QUEUE, a_queue(name="other")], BANDS, protect=False) == []
    assert class_bands_of([], BANDS, protect=False) == []
    (one,) = class_bands_of([a_queue()], BANDS, protect=False)
    assert one.band == Band(default=0, lowest=1, highest=1_000_000)
    assert one.takes("urgent")
    assert not one.out_of_band(10**9)


def test_the_top_of_a_band_is_kept_for_what_runs() -> None:
    kept = class_bands_of([QUEUE], BANDS, protect=True)
    assert [(part.band.highest, part.ceiling) for part in kept] == [(3999, 4000), (2499, 2500), (999, 1000)]


@pytest.mark.parametrize(
    ("write", "earlier", "follows"),
    [
        ((0, 5), (0, 9), True),  # would pass one that is not raised yet
        ((7, 8), (0, 9), False),  # stands before it anyway, and wrongly
        ((0, 5), (6, 9), False),  # can't pass it
        ((9, 1), (5, 0), True),  # would fall behind one that is not lowered yet
        ((9, 6), (5, 0), False),  # stays before it
        ((9, 1), (0, 9), False),  # one up, one down: in any order
    ],
)
def test_which_writes_wait_for_which(write: tuple[int, int], earlier: tuple[int, int], follows: bool) -> None:
    def moved(name: str, levels: tuple[int, int]) -> LevelWrite:
        job = a_job(name, queue_time=NOW + (name == "later"))
        tie = (job.queue_time, job.uid)
        return LevelWrite(job=job, before=levels[0], level=levels[1], rank=0, position=None, tie=tie)

    assert Barrier([moved("earlier", earlier)]).stops(moved("later", write)) is follows


def test_classes_that_are_not_strict_have_one_band_for_all() -> None:
    queue = a_queue(bands_by_class=True)
    bands = class_bands(["urgent", "normal"], {"urgent": 10_000}, width=1_000)
    (one,) = class_bands_of([queue], bands, protect=False, strict=False)
    assert one.job_class is None
    assert one.band == Band(default=0, lowest=1, highest=11_000)
    assert one.ceiling == 11_000
    assert [class_band.job_class for class_band in class_bands_of([queue], bands, protect=False)] == [
        "urgent",
        "normal",
    ]
