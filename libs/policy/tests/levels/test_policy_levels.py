"""Levels against brute force over all assignments, and what they cost in the long run."""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise, product

import msgspec
import pytest

from fairlead_policy.levels.bands import class_bands
from fairlead_policy.levels.plan import Band, LabelledJob, LevelPlan, plan_levels
from fairlead_testkit.inputs.cases import cases

BAND = Band(default=0, lowest=1, highest=1_000_000)


def job(uid: str, level: int, queue_time: int, queue: str = "") -> LabelledJob:
    return LabelledJob(uid=uid, level=level, tie=(queue_time, uid), queue=queue)


def frontend_order(jobs: Sequence[LabelledJob]) -> list[str]:
    """The order in which Kueue and Slurm take jobs: the highest level first, then the tie."""
    return [one.uid for one in sorted(jobs, key=lambda one: (-one.level, one.tie))]


def written(jobs: Sequence[LabelledJob], plan: LevelPlan) -> list[LabelledJob]:
    levels = dict(plan.writes)
    return [msgspec.structs.replace(one, level=levels.get(one.uid, one.level)) for one in jobs]


def stands_before(front: LabelledJob, back: LabelledJob) -> bool:
    """Surely: of two queues' jobs of one level and one instant, either may go first."""
    if front.level == back.level and front.tie[0] == back.tie[0] and front.queue != back.queue:
        return False
    return (-front.level, front.tie) < (-back.level, back.tie)


# --- against brute force


def fewest_writes(window: list[LabelledJob], outside: list[LabelledJob], band: Band) -> int | None:
    """Over every assignment of allowed levels; None where none gives the wanted front."""
    allowed = [band.default, *range(max(band.lowest, band.default + 1), band.highest + 1)]
    costs = []
    for levels in product(allowed, repeat=len(window)):
        after = [msgspec.structs.replace(one, level=level) for one, level in zip(window, levels, strict=True)]
        if not all(stands_before(one, other) for one, other in pairwise(after)):
            continue
        cost = sum(one.level != level for one, level in zip(window, levels, strict=True))
        for one in outside:
            lowered = msgspec.structs.replace(one, level=band.default)
            if not stands_before(after[-1], one):
                cost += 1 if stands_before(after[-1], lowered) else 1000
        costs.append(cost)
    return min((cost for cost in costs if cost < 1000), default=None)


def small_case(rng: random.Random) -> tuple[list[LabelledJob], list[LabelledJob], Band]:
    default = rng.choice([0, 0, 0, -1, 2])
    lowest = default + rng.choice([1, 1, 1, 2, 0])
    band = Band(default=default, lowest=lowest, highest=lowest + rng.choice([-1, 0, 1, 2, 2, 3]))
    times = [rng.randrange(5) for _ in range(8)]
    queues = rng.choice([["", ""], ["q1", "q2"], ["q1", "q2", "q3"]])

    def level() -> int:
        return band.default if rng.random() < 0.4 else rng.randrange(default - 1, band.highest + 2)

    window = [
        job(f"w{rng.randrange(100):02d}-{number}", level(), times[number], rng.choice(queues))
        for number in range(rng.randint(1, 4))
    ]
    outside = [
        job(f"o{number}", level(), times[4 + number], rng.choice(queues))
        for number in range(rng.randrange(4))
    ]
    return window, outside, band


def check_case(window: list[LabelledJob], outside: list[LabelledJob], band: Band) -> None:
    plan = plan_levels(window, outside, band)
    fitting = len(window) - plan.dropped
    if plan.dropped:
        assert fewest_writes(window[: fitting + 1], [*window[fitting + 1 :], *outside], band) is None
    if not fitting:
        assert plan.writes == []
        return
    inside, behind = window[:fitting], [*window[fitting:], *outside]
    after = written([*inside, *behind], plan)
    assert frontend_order(after)[:fitting] == [one.uid for one in inside]
    assert all(stands_before(one, other) for one, other in pairwise(after[:fitting]))
    assert all(stands_before(after[fitting - 1], one) for one in after[fitting:])
    assert len(plan.writes) == fewest_writes(inside, behind, band)
    assert len(dict(plan.writes)) == len(plan.writes)
    assert plan.kept == fitting - sum(uid in {one.uid for one in inside} for uid, _ in plan.writes)
    check_no_transient_inversion(inside, behind, plan)


def check_no_transient_inversion(
    inside: list[LabelledJob], behind: list[LabelledJob], plan: LevelPlan
) -> None:
    now = {one.uid: one for one in [*inside, *behind]}
    pairs = [
        (front.uid, back.uid)
        for at, front in enumerate(inside)
        for back in [*inside[at + 1 :], *behind]
        if stands_before(front, back)
    ]
    for uid, level in plan.writes:
        assert now[uid].level != level
        now[uid] = msgspec.structs.replace(now[uid], level=level)
        assert all(stands_before(now[front], now[back]) for front, back in pairs)


@pytest.mark.parametrize(
    "tried", [1500, pytest.param(60_000, marks=(pytest.mark.deep, pytest.mark.timeout(1200)))]
)
def test_no_assignment_of_levels_takes_fewer_writes(tried: int) -> None:
    rng = random.Random(11)
    for _ in range(tried):
        check_case(*small_case(rng))


def test_the_band_can_cost_a_write_more_than_the_longest_subsequence() -> None:
    newer, older = job("A", 0, 2), job("B", 2, 1)
    plan = plan_levels([newer, older], [], Band(default=0, lowest=1, highest=2))
    assert len(plan.writes) == 2
    assert plan.kept == 0


# --- classes kept apart by bands


def check_classes(rng: random.Random) -> None:
    """Each class in a band of its own, planned by itself: as few writes as over all assignments to all classes."""
    classes = ["urgent", "approved", "normal"][: rng.randint(2, 3)]
    bands = class_bands(classes, {}, width=rng.choice([2, 3]))
    standing: dict[str, list[LabelledJob]] = {}
    for name in classes:
        band = bands[name]
        standing[name] = [
            job(
                f"{name}-{rng.randrange(100):02d}-{number}",
                rng.randint(band.default, band.highest),
                rng.randrange(4),
            )
            for number in range(rng.randint(0, 3))
        ]
    plans = {name: plan_levels(jobs, [], bands[name]) for name, jobs in standing.items()}
    if any(plan.dropped for plan in plans.values()):
        return
    wanted = [one.uid for jobs in standing.values() for one in jobs]
    after = [one for name, jobs in standing.items() for one in written(jobs, plans[name])]
    assert frontend_order(after) == wanted
    fewest = sum(fewest_writes(jobs, [], bands[name]) or 0 for name, jobs in standing.items() if jobs)
    assert sum(len(plan.writes) for plan in plans.values()) == fewest == fewest_over_all(standing, bands)


def fewest_over_all(standing: dict[str, list[LabelledJob]], bands: dict[str, Band]) -> int:
    """Over every assignment to all jobs of the queue at once, each within its class's band."""
    jobs = [one for of_class in standing.values() for one in of_class]
    choices = [
        range(bands[name].default, bands[name].highest + 1)
        for name, of_class in standing.items()
        for _ in of_class
    ]
    return min(
        sum(one.level != level for one, level in zip(jobs, levels, strict=True))
        for levels in product(*choices)
        if all(
            (-level, one.tie) < (-below, other.tie)
            for (one, level), (other, below) in pairwise(zip(jobs, levels, strict=True))
        )
    )


def test_no_assignment_over_all_classes_takes_fewer_writes() -> None:
    rng = random.Random(21)
    for _ in range(cases()):
        check_classes(rng)


# --- what is not written


def test_where_the_order_is_already_right_nothing_is_written() -> None:
    jobs = [job(f"u{number:03d}", 0, number) for number in range(300)]
    assert plan_levels(jobs[:100], jobs[100:101], BAND) == LevelPlan(writes=[], kept=100)
    assert plan_levels(jobs, [], BAND).writes == []
    assert plan_levels([], jobs, BAND) == LevelPlan(writes=[], kept=0)


def test_equal_instants_fall_back_to_the_uid_as_the_frontend_does() -> None:
    jobs = [job(uid, 0, 7) for uid in "abcd"]
    assert plan_levels(jobs[:2], jobs[2:], BAND).writes == []
    assert len(plan_levels([jobs[1], jobs[0]], jobs[2:], BAND).writes) == 1


def test_jobs_of_one_second_in_two_queues_take_a_level_each_way() -> None:
    for uids in ("ab", "ba"):
        jobs = [job(uid, 0, 7, f"queue-{uid}") for uid in uids]
        assert [uid for uid, _ in plan_levels(jobs, [], BAND).writes] == [uids[0]]
        assert len(plan_levels(jobs[:1], jobs[1:], BAND).writes) == 1
    later = [job("a", 0, 7, "q1"), job("b", 0, 8, "q2")]
    assert plan_levels(later, [], BAND).writes == []


def test_one_job_to_the_front_of_a_queue_in_order_is_one_write() -> None:
    jobs = [job(f"u{number:03d}", 0, number) for number in range(100)]
    plan = plan_levels([jobs[60], *jobs[:60]], [*jobs[61:]], BAND)
    assert [uid for uid, _ in plan.writes] == ["u060"]


def test_jobs_that_go_by_their_tie_share_a_level() -> None:
    old = [job(f"old{number}", 0, number) for number in range(5)]
    new = [job(f"new{number}", 0, 10 + number) for number in range(5)]
    plan = plan_levels([*new, *old], [], BAND)
    assert [uid for uid, _ in plan.writes] == [one.uid for one in new]
    assert len({level for _, level in plan.writes}) == 1


def test_a_labelled_job_that_left_the_window_goes_down_to_the_default() -> None:
    stale, front = job("stale", 500, 9), job("front", 400, 1)
    others = [job(f"u{number}", 300 - number, 1) for number in range(5)]
    assert plan_levels([front, *others], [stale], BAND).writes == [("stale", 0)]


def test_many_stale_labels_below_a_few_raised_jobs_stay() -> None:
    stale = [job(f"s{number:02d}", 100 + number, 1) for number in range(50)]
    plan = plan_levels([job("a", 0, 5), job("b", 0, 6)], stale, BAND)
    assert {uid for uid, _ in plan.writes} == {"a", "b"}


def test_a_window_that_the_band_is_too_narrow_for_is_shortened_and_says_so() -> None:
    jobs = [job(f"u{number}", 0, 10 - number) for number in range(10)]
    plan = plan_levels(jobs, [], Band(default=0, lowest=1, highest=3))
    # Levels 3, 2 and 1 alone: the seven behind have older ties than the third and stand at the default.
    assert (plan.dropped, len(plan.writes)) == (7, 3)
    assert frontend_order(written(jobs, plan))[:3] == ["u0", "u1", "u2"]
    assert plan_levels(jobs, [], Band(default=0, lowest=1, highest=0)).dropped == 10


def test_levels_outside_of_the_band_are_brought_back_into_it() -> None:
    jobs = [job("a", 5_000_000, 1), job("b", 4_000_000, 2), job("c", 10, 3)]
    plan = plan_levels(jobs, [], BAND)
    assert {uid for uid, _ in plan.writes} == {"a", "b"}
    assert all(BAND.lowest <= level <= BAND.highest for _, level in plan.writes)


# --- in the long run


class Queue:
    """A queue that changes by one job at a time and is steered after each change."""

    def __init__(self, rng: random.Random, length: int, window: int, *, mixed: bool) -> None:
        self.rng = rng
        self.window = window
        times = list(range(length))
        if mixed:
            rng.shuffle(times)
        self.wanted = [job(f"i{number:04d}", 0, time) for number, time in enumerate(times)]
        self.arrived = 0

    def steer(self) -> int:
        inside, outside = self.wanted[: self.window], self.wanted[self.window :]
        plan = plan_levels(inside, outside, BAND)
        self.wanted = written(self.wanted, plan)
        assert plan.dropped == 0
        assert frontend_order(self.wanted)[: len(inside)] == [one.uid for one in inside]
        return len(plan.writes)

    def arrive(self, at: int) -> None:
        self.arrived += 1
        self.wanted.insert(at, job(f"n{self.arrived:05d}", 0, 1_000_000 + self.arrived))

    def start_first(self) -> None:
        self.wanted.pop(0)


def writes_per_insertion(queue: Queue, place: Callable[[Queue], int], steps: int, *, starting: bool) -> float:
    queue.steer()
    writes = 0
    for _ in range(steps):
        queue.arrive(place(queue))
        if starting:
            queue.start_first()
        writes += queue.steer()
    return writes / steps


def anywhere(queue: Queue) -> int:
    return queue.rng.randrange(queue.window)


def in_the_last_third(queue: Queue) -> int:
    return queue.rng.randrange(2 * queue.window // 3, queue.window)


def near_the_front(queue: Queue) -> int:
    return queue.rng.randrange(queue.window // 10)


@pytest.mark.parametrize(
    ("place", "starting", "most"),
    [
        (anywhere, True, 2.0),
        (anywhere, False, 2.0),
        (in_the_last_third, True, 3.0),
        (near_the_front, False, 3.0),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_an_insertion_costs_about_one_write(
    place: Callable[[Queue], int], starting: bool, most: float
) -> None:
    queue = Queue(random.Random(3), 100, 75, mixed=True)
    assert writes_per_insertion(queue, place, 400, starting=starting) <= most


def test_a_queue_in_submit_order_stays_unwritten_however_long_it_runs() -> None:
    queue = Queue(random.Random(4), 100, 75, mixed=False)
    assert writes_per_insertion(queue, lambda one: len(one.wanted), 200, starting=True) == 0


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_an_insertion_stays_cheap_over_thousands() -> None:
    for place in (anywhere, in_the_last_third):
        queue = Queue(random.Random(5), 200, 150, mixed=True)
        assert writes_per_insertion(queue, place, 6000, starting=True) <= 3.5
