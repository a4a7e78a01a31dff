"""Levels of a window as a plan leaves them: the same as by going through all jobs for each of them, in less time."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.steering import GONE, LevelWrite, SteeringPlan, WriteCause
from fairlead_admitter.decide.waking import planning_band, untried_level
from fairlead_admitter.decide.window_levels import NeighbourLevels, WindowLevels, at_untried_levels
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.state import JobState, State, subject_of
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.levels.plan import Band
from fairlead_testkit.inputs.builders import a_job, a_queue

BAND = Band(default=0, lowest=1, highest=1000)
QUEUES = ("main", "other")
CLASSES = ("urgent", "normal")
HIGHEST = 310
"""The highest level that is looked at here, above every band."""


def test_neighbours_are_those_of_the_arrangement_that_shall_be() -> None:
    levels = NeighbourLevels([("a", 900), ("b", 500), ("c", 700), ("d", 300)])
    assert levels.around("c", BAND) == (300, 500)
    assert levels.around("a", BAND) == (700, 1001)
    assert levels.around("d", BAND) == (0, 500)
    levels.put("b", 800)
    assert levels.around("d", BAND) == (0, 700)
    assert levels.around("a", BAND) == (800, 1001)


class PlanToMove:
    """A pool's facts, a window of it, and a plan of writes to jobs in it and outside."""

    def __init__(self, dice: random.Random, count: int) -> None:
        self.facts = ClusterFacts("c1")
        self.facts.classify(lambda job: job.requested_class or CLASSES[-1])
        self.expectations = Expectations()
        self.class_bands = some_class_bands(dice)
        wanted = [self._wanted_level(dice, count, number) for number in range(count)]
        jobs = [self._some_job(dice, number, level) for number, level in enumerate(wanted)]
        states: list[State] = [*(a_queue(name=name) for name in QUEUES), *jobs]
        self.facts.apply({subject_of(state): state for state in states})
        for job in jobs:
            if dice.random() < 0.1:
                self.expectations.send(job.uid, dice.randrange(HIGHEST))
        inside = [job for job in jobs if dice.random() < 0.8]
        self.window = [Ranked(rank, None, job) for rank, job in enumerate(inside)]
        causes = [WriteCause.HEADS] * 4 + [WriteCause.LEFT, WriteCause.OUT_OF_BAND]
        writes = [
            a_write(job, level, dice.choice(causes))
            for job, level in zip(jobs, wanted, strict=True)
            if dice.random() < 0.7
        ]
        dice.shuffle(writes)
        self.plan = SteeringPlan(writes=writes)
        self.used = {level: 0.0 for level in range(HIGHEST) if dice.random() < 0.5}

    @staticmethod
    def _wanted_level(dice: random.Random, count: int, number: int) -> int:
        """Mostly a level that falls along the order."""
        return dice.randrange(HIGHEST) if dice.random() < 0.05 else 2 + 250 * (count - number) // count

    @staticmethod
    def _some_job(dice: random.Random, number: int, wanted: int) -> JobState:
        uid = f"j{number:02}"
        return a_job(
            uid,
            uid=uid,
            queue=dice.choice(QUEUES),
            requested_class=dice.choice(CLASSES),
            level=dice.choice(
                [0, wanted, wanted, dice.randrange(HIGHEST)] if dice.random() < 0.2 else [wanted]
            ),
        )

    def moved(self) -> list[LevelWrite]:
        """The writes once nobody is tried at a level at which another may have been refused."""
        levels = WindowLevels(self.facts, self.expectations, self.window, self.class_bands, self.used)
        return at_untried_levels(self.plan, levels).writes

    def moved_one_by_one(self) -> list[LevelWrite]:
        """The same, where each job is looked for among all others."""
        planned = {write.job.uid: write for write in self.plan.writes}
        inside = {one.job.uid for one in self.window}
        given_levels = set[int]()
        for write in self.plan.writes:
            uid = write.job.uid
            if uid not in inside or write.cause is not WriteCause.HEADS:
                continue
            job_class = self.facts.job_class(uid)
            class_band = next(part for part in self.class_bands if part.takes(job_class))
            band = planning_band(class_band.band)
            refused = self._refused_at(write.job.queue, given_levels)
            if write.level > band.default and refused(write.level):
                arranged = self._arranged(planned, class_band)
                outside = self._outside(write.job.queue, planned, inside, class_band)
                behind, before = neighbours(uid, arranged, band, outside)
                level = untried_level(write.level, behind=behind, before=before, refused=refused)
                planned[uid] = msgspec.structs.replace(write, level=level)
            given_levels.add(planned[uid].level)
        return list(planned.values())

    def _arranged(self, planned: Mapping[str, LevelWrite], class_band: ClassBand) -> list[tuple[str, int]]:
        inside = [one.job for one in self.window if class_band.takes(self.facts.job_class(one.job.uid))]
        return [(job.uid, self._level(planned, job)) for job in inside]

    def _outside(
        self,
        queue: str,
        planned: Mapping[str, LevelWrite],
        inside: Collection[str],
        class_band: ClassBand,
    ) -> list[int]:
        jobs = [self.facts.job(uid) for uid in self.facts.moved(queue) if uid not in inside]
        return [
            self._level(planned, job)
            for job in jobs
            if job is not None and class_band.takes(self.facts.job_class(job.uid))
        ]

    def _level(self, planned: Mapping[str, LevelWrite], job: JobState) -> int:
        return planned[job.uid].level if job.uid in planned else self.expectations.level_of(job)

    def _refused_at(self, queue: str, given_levels: Collection[int]) -> Callable[[int], bool]:
        waiting = (queued.waiting for queued in self.facts.queued(queue).values())
        tried = {*self.used, *given_levels, *(level for levels in waiting for level in levels)}
        return tried.__contains__


def some_class_bands(dice: random.Random) -> list[ClassBand]:
    """A band for all classes, or one for each."""
    highest = dice.choice([60, 300, 1000])
    if dice.random() < 0.5:
        return [ClassBand(band=Band(default=0, lowest=1, highest=highest))]
    return [
        ClassBand(job_class=name, band=Band(default=base, lowest=base + 1, highest=base + highest))
        for name, base in zip(CLASSES, (100, 0), strict=True)
    ]


def a_write(job: JobState, level: int, cause: WriteCause = WriteCause.HEADS) -> LevelWrite:
    return LevelWrite(
        job=job, before=job.level, level=level, rank=GONE, position=None, tie=(0, job.uid), cause=cause
    )


def neighbours(
    uid: str, arranged: Sequence[tuple[str, int]], band: Band, others: Collection[int]
) -> tuple[int, int]:
    """The highest level behind a job and the lowest before it, found among all."""
    at = next(number for number, (other, _) in enumerate(arranged) if other == uid)
    behind = [level for _, level in arranged[at + 1 :]]
    before = [level for _, level in arranged[:at]]
    return max([band.default, *behind, *others]), min(before, default=band.highest + 1)


@given(st.randoms(use_true_random=False), st.integers(0, 40))
def test_levels_are_moved_as_if_each_job_were_looked_for_among_all_others(
    dice: random.Random, count: int
) -> None:
    pool = PlanToMove(dice, count)
    assert pool.moved() == pool.moved_one_by_one()


def test_pools_in_which_levels_are_moved_are_among_those_that_are_looked_at() -> None:
    """A property of plans that nothing moves would hold whatever is done."""
    pools = [PlanToMove(random.Random(seed), 30) for seed in range(20)]
    assert sum(pool.moved() != pool.plan.writes for pool in pools) > len(pools) // 2
