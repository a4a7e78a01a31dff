"""Writes while room is free, against a frontend that parks who did not fit and tries whoever is written to."""

from collections.abc import Sequence
from copy import deepcopy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.restraint import (
    Restraint,
    is_short_of_room,
    without_wake_levels,
    writes_in_time,
)
from fairlead_admitter.decide.steering import LevelWrite, SteeringPlan, WriteCause, steer
from fairlead_admitter.decide.wake_state import FORGIVEN, PASSED_SECONDS, PoolWakes, WakeMemory
from fairlead_admitter.decide.waking import ORDERED_SECONDS, batch_seconds
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.frontend.shipped import KUEUE_PARKING
from fairlead_contracts.messages.state import FlavorQuota, JobState, Phase, QueueState, subject_of
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.levels.plan import Band
from fairlead_testkit.inputs.builders import NOW, a_job, a_queue

GPU = "nvidia.com/gpu"
POOL = "gpu"
ABLE = Capabilities()
BATCH_SECONDS, TRIED_SECONDS = batch_seconds(ABLE), ABLE.try_seconds
CLASS_BANDS = [ClassBand(band=Band(default=0, lowest=1, highest=100_000))]


def a_parking_queue(gpus: int, **changes: object) -> QueueState:
    quotas = [FlavorQuota(flavor="f", nominal={GPU: gpus})]
    return a_queue(strategy=KUEUE_PARKING, quotas=quotas, **changes)


class Parking:
    """A queue in memory, with what is written to it, and a clock of its own."""

    def __init__(self, queue: QueueState, *, runs: int, waits: int) -> None:
        self.queue = queue
        self.now = 1000.0
        self.facts = ClusterFacts("c1")
        self.facts.apply({"queue": queue})
        self.expectations = Expectations(lambda: self.now)
        self.wake_state = WakeMemory(lambda: self.now)
        self.wake_state.learn({POOL: queue.able})
        self.decided = 0
        """Sequence of the state up to which the order knows it."""
        self.seq = 0
        self.jobs: dict[str, JobState] = {}
        for number in range(runs + waits):
            self.put(a_job(f"j{number:02}", uid=f"j{number:02}", demand={GPU: 1}, queue_time=NOW + number))
        for number in range(runs):
            self.start(f"j{number:02}")

    def put(self, job: JobState) -> None:
        """The state shows a job so."""
        self.jobs[job.uid] = msgspec.structs.replace(job, rev=job.rev + 1)
        changes = self.facts.apply({subject_of(job): self.jobs[job.uid]})
        self.wake_state.note({POOL: [self.queue.name]}, changes, self.seq)
        self.seq += 1

    def start(self, uid: str) -> None:
        job = self.jobs[uid]
        self.put(msgspec.structs.replace(job, phase=Phase.RUNNING, charged={"f": job.demand}))

    def end(self, uid: str, *, decided: bool = True) -> None:
        self.put(msgspec.structs.replace(self.jobs[uid], phase=Phase.ENDED, charged={}))
        self.decided = self.seq if decided else self.decided

    def waiting(self) -> list[str]:
        return [uid for uid, job in self.jobs.items() if job.phase is Phase.WAITING]

    def turn(
        self,
        wanted: Sequence[str],
        *,
        always: bool = True,
        beyond: Sequence[str] = (),
        labels: int | None = None,
        much: bool = False,
    ) -> list[LevelWrite]:
        """Levels written in one turn; the state shows them at once. The order goes on `beyond` the window."""
        deeper = [Ranked(rank, None, self.jobs[uid]) for rank, uid in enumerate([*wanted, *beyond])]
        window = [Ranked(rank, None, self.jobs[uid]) for rank, uid in enumerate(wanted)]
        plan = steer(
            window, self.facts, [self.queue.name], self.expectations, without_wake_levels(CLASS_BANDS)
        )
        if self.one_by_one():
            plan = self._restrain(plan, window, deeper, always=always, labels=labels, much=much)
        for write in plan.writes:
            self.put(msgspec.structs.replace(self.jobs[write.job.uid], level=write.level))
        self.wake_state.landed(POOL, plan.writes)
        return plan.writes

    def _restrain(
        self,
        plan: SteeringPlan,
        window: list[Ranked],
        deeper: list[Ranked],
        *,
        always: bool,
        labels: int | None,
        much: bool,
    ) -> SteeringPlan:
        plan, trail = Restraint(self.facts, self.expectations, self.now).restrain(
            self.wake_state.trail(POOL),
            [self.queue],
            plan,
            window,
            known_order=lambda: deeper,
            class_bands=CLASS_BANDS,
            decided=lambda _: self.decided,
            always=always,
            much=much,
            labels=labels,
        )
        self.wake_state.remember(POOL, trail)
        return plan

    def one_by_one(self) -> bool:
        return is_short_of_room(self.wake_state.trail(POOL), [self.queue], self.now)

    def order(self) -> list[str]:
        """Uids in the order in which the frontend would start the jobs."""
        return sorted(self.waiting(), key=lambda uid: (-self.jobs[uid].level, self.jobs[uid].queue_time))


def uids(writes: Sequence[LevelWrite]) -> list[str]:
    return [write.job.uid for write in writes]


def test_while_nothing_is_free_everything_is_written() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    wanted = parking.waiting()[::-1]
    assert len(parking.turn(wanted)) == 3
    assert parking.order() == wanted


def test_a_budget_of_labels_holds_while_nothing_is_free_and_never_keeps_who_has_room_from_being_woken() -> (
    None
):
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    wanted = parking.waiting()[::-1]
    assert parking.turn(wanted, labels=0) == []
    assert uids(parking.turn(wanted, labels=2)) == wanted[:2], "the first of the order first"
    parking.end("j00")
    assert uids(parking.turn(wanted, labels=0)) == wanted[:1]


def test_after_the_batch_no_more_is_written_than_the_budget_of_labels() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    parking.end("j00")
    wanted = parking.waiting()[::-1]
    while parking.turn(wanted):
        parking.now += TRIED_SECONDS
    parking.now += BATCH_SECONDS
    wanted = wanted[::-1]
    assert parking.turn(wanted, labels=0) == []
    assert len(parking.turn(wanted, labels=1)) == 1


def test_the_budget_of_labels_holds_where_the_batch_has_passed_and_nobody_can_be_woken() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    parking.turn(parking.waiting())
    parking.end("j00")
    parking.now += BATCH_SECONDS / 2
    parking.wake_state.landed(POOL, [], late=FORGIVEN + 1)
    parking.now += BATCH_SECONDS / 2 + 0.001
    wanted = parking.waiting()[::-1]
    assert parking.turn(wanted, labels=0) == []
    assert len(parking.turn(wanted, labels=1)) == 1


@pytest.mark.parametrize(("answer", "tried"), [(0.005, TRIED_SECONDS), (0.05, 10 * 0.05)])
def test_who_is_woken_is_in_hand_for_ten_answers_of_the_frontend(answer: float, tried: float) -> None:
    parking = Parking(a_parking_queue(1), runs=1, waits=2)
    parking.wake_state.landed(POOL, [], took=[answer] * 3)
    parking.end("j00")
    [woken] = parking.turn(["j02", "j01"])
    parking.now += tried - 0.001
    assert parking.turn(["j02", "j01"]) == []
    assert woken.job.uid == "j02"
    parking.now += 0.002
    assert uids(parking.turn(["j02", "j01"])) == ["j01"]
    parking.wake_state.landed(POOL, [], took=[60.0])
    assert parking.wake_state.trail(POOL).copy().tried == BATCH_SECONDS, "the batch tries all in any case"


def test_how_long_tries_and_batches_take_is_the_frontends_to_say() -> None:
    slow = Capabilities(parking_strategy=KUEUE_PARKING, retry_seconds=20.0, try_seconds=2.0, try_answers=3)
    parking = Parking(a_parking_queue(1, capabilities=slow), runs=1, waits=2)
    parking.end("j00")
    assert uids(parking.turn(["j02", "j01"])) == ["j02"]
    parking.now += 1.9
    assert parking.turn(["j02", "j01"]) == []
    parking.now += 0.2
    assert uids(parking.turn(["j02", "j01"])) == ["j01"]
    parking.wake_state.landed(POOL, [], took=[1.0])
    assert parking.wake_state.trail(POOL).tried == 3.0
    parking.wake_state.landed(POOL, [], late=FORGIVEN + 1)
    parking.now += 20.0
    assert parking.wake_state.trail(POOL).is_paused(parking.now)
    parking.now += 1.0
    assert not parking.wake_state.trail(POOL).is_paused(parking.now)


@pytest.mark.parametrize(("stated", "one_by_one"), [(3, True), (2, False)])
def test_how_many_starts_a_second_leave_no_time_to_wake_is_the_frontends_to_say(
    stated: int, *, one_by_one: bool
) -> None:
    able = Capabilities(parking_strategy=KUEUE_PARKING, starts_a_second=stated)
    parking = Parking(a_parking_queue(40, capabilities=able), runs=0, waits=25)
    for uid in parking.waiting()[:21]:
        parking.start(uid)
    assert parking.one_by_one() is one_by_one


@pytest.mark.parametrize(
    "odd", [{"starts_a_second": -1}, {"tries_at_once": 0}, {"retry_seconds": -9.0}, {"try_seconds": -1.0}]
)
def test_what_no_frontend_can_mean_counts_as_the_least_that_one_can(odd: dict[str, float]) -> None:
    able = msgspec.convert({"parking_strategy": KUEUE_PARKING, **odd}, Capabilities)
    parking = Parking(a_parking_queue(2, capabilities=able), runs=2, waits=3)
    parking.end("j00")
    assert uids(parking.turn(["j03", "j02", "j04"])) == ["j03"]
    parking.start("j03")
    assert parking.one_by_one() is ("starts_a_second" not in odd)


def test_when_room_comes_only_the_next_is_written_and_the_rest_when_it_started() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    parking.turn(parking.waiting())
    parking.end("j00")
    wanted = ["j03", "j05", "j04", "j02"]
    assert uids(parking.turn(wanted)) == ["j03"]
    assert parking.turn(wanted) == []
    parking.start("j03")
    assert uids(parking.turn(wanted[1:])) != []
    assert parking.order() == wanted[1:]


def test_when_room_comes_for_several_all_of_them_are_woken_and_nobody_else() -> None:
    parking = Parking(a_parking_queue(4), runs=4, waits=5)
    parking.turn(parking.waiting())
    for uid in ("j00", "j01", "j02"):
        parking.end(uid)
    wanted = ["j08", "j04", "j07", "j05", "j06"]
    writes = parking.turn(wanted[:2], beyond=wanted[2:])
    assert uids(writes) == wanted[:2], "those of the window first"
    assert parking.order()[:2] == wanted[:2]
    assert uids(parking.turn(wanted[:2], beyond=wanted[2:])) == wanted[2:3], (
        "and who is behind it, while they start"
    )
    assert parking.turn(wanted[:2], beyond=wanted[2:]) == []
    levels = [parking.jobs[uid].level for uid in wanted[:3]]
    assert len({*levels}) == len(levels), "a level at which one was refused would wake nobody"
    for uid in wanted[:3]:
        parking.start(uid)
    assert parking.order() == wanted[3:]


def test_who_is_woken_beside_another_waits_for_it_where_there_is_room_for_one_alone() -> None:
    parking = Parking(a_parking_queue(4), runs=4, waits=2)
    parking.put(a_job("wide", uid="wide", demand={GPU: 2}, queue_time=NOW))
    parking.turn(parking.waiting())
    for uid in ("j00", "j01"):
        parking.end(uid)
    wanted = ["j04", "wide", "j05"]
    assert uids(parking.turn(wanted)) == ["j04"], "should it be refused, the wide one is next"
    parking.wake_state.trail(POOL).refused.add("j04")
    assert uids(parking.turn(wanted)) == ["wide"]


def test_who_is_woken_holds_its_room_although_the_order_puts_it_behind_the_window_since() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    parking.end("j00")
    assert uids(parking.turn(["j05"])) == ["j05"]
    assert not parking.turn(["j04"], beyond=["j05"]), "a second job for one room"
    parking.now += TRIED_SECONDS
    assert uids(parking.turn(["j04"], beyond=["j05"])) == ["j04"]
    parking.end("j01")
    assert uids(parking.turn(["j03"], beyond=["j04", "j05"])) == ["j03"], "room for one more"


def test_who_is_said_not_to_fit_is_followed_by_the_next_at_once() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    parking.turn(parking.waiting())
    parking.end("j00")
    wanted = ["j03", "j05", "j04", "j02"]
    assert uids(parking.turn(wanted)) == ["j03"]
    assert parking.turn(wanted) == []
    parking.put(msgspec.structs.replace(parking.jobs["j03"], said="no flavor has room"))
    assert uids(parking.turn(wanted)) == ["j05"]


def test_whose_level_would_do_is_given_another_and_stays_first() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    wanted = ["j03", "j05", "j04", "j02"]
    parking.turn(wanted)
    before = parking.jobs["j03"].level
    parking.end("j00")
    [write] = parking.turn(wanted)
    assert (write.job.uid, write.cause) == ("j03", WriteCause.WAKE)
    assert write.level != before
    assert parking.order() == wanted


def test_the_policy_may_say_that_nothing_is_written_only_to_wake() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    wanted = ["j03", "j05", "j04", "j02"]
    parking.turn(wanted)
    parking.end("j00")
    assert parking.turn(wanted, always=False) == []
    # The next one's level must change: that is written, and nothing else of the plan.
    assert uids(parking.turn(["j02", "j03", "j05", "j04"], always=False)) == ["j02"]


def test_after_the_batch_everything_is_written_whoever_has_room() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=2)
    parking.turn(parking.waiting())
    parking.end("j00")
    wanted = ["j03", "j02"]
    assert uids(parking.turn(wanted)) == ["j03"]
    parking.now += TRIED_SECONDS
    assert uids(parking.turn(wanted)) == ["j02"]
    parking.now += TRIED_SECONDS
    newcomer = a_job("j09", uid="j09", demand={GPU: 5}, queue_time=NOW + 9)
    parking.put(newcomer)
    assert parking.turn(["j09", *wanted]) == []
    assert parking.wake_state.wake_in() == pytest.approx(BATCH_SECONDS - 2 * TRIED_SECONDS)
    parking.now += BATCH_SECONDS
    assert "j09" in uids(parking.turn(["j09", *wanted]))


def test_asking_when_something_is_due_changes_nothing_and_a_turn_takes_it_up() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=2)
    parking.turn(parking.waiting())
    parking.end("j00")
    parking.turn(parking.waiting())
    for seconds in (TRIED_SECONDS, 0.0):
        assert [parking.wake_state.wake_in() for _ in range(2)] == pytest.approx([seconds] * 2)
        parking.wake_state.take_up_due()
        parking.now += TRIED_SECONDS + 0.001
    assert parking.wake_state.wake_in() is None


def test_the_order_that_follows_from_an_end_is_waited_for_but_not_long() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=2)
    parking.turn(parking.waiting())
    parking.end("j00", decided=False)
    assert parking.turn(parking.waiting()) == []
    parking.now += ORDERED_SECONDS
    assert uids(parking.turn(parking.waiting())) == ["j02"]


def test_no_level_is_used_twice_before_the_batch_has_passed() -> None:
    parking = Parking(a_parking_queue(8), runs=8, waits=12)
    levels = [write.level for write in parking.turn(parking.waiting())]
    for number in range(8):
        parking.end(f"j{number:02}")
        [write] = parking.turn(parking.waiting())
        levels += [write.level, write.before]
        parking.start(write.job.uid)
        parking.now += 0.05
    woken = [level for level in levels if level]
    assert len(set(woken)) == len(woken)


@given(st.lists(st.permutations(["j02", "j03", "j04", "j05"]), min_size=2, max_size=8))
def test_who_is_labelled_is_tried_at_once_and_never_first_by_a_batch(orders: list[list[str]]) -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    refused = {0}
    for wanted in orders:
        for write in parking.turn(wanted[:2]):
            assert write.level not in refused - {0}
            refused |= {write.level, write.before}
        assert parking.order()[:2] == wanted[:2]


@pytest.mark.parametrize("changes", [{"strategy": "StrictFIFO"}, {"quotas": []}], ids=["blocks", "unknown"])
def test_where_heads_never_park_or_room_is_unknown_all_is_written_as_ever(changes: dict[str, object]) -> None:
    parking = Parking(msgspec.structs.replace(a_parking_queue(2), **changes), runs=2, waits=4)
    parking.end("j00")
    assert len(parking.turn(parking.waiting()[::-1])) == 3


def test_what_ended_and_started_is_forgotten_although_nobody_is_ever_woken() -> None:
    """Replicas that stand by have it so, and pools whose frontend needs no waking."""
    pool = Parking(a_parking_queue(1), runs=1, waits=400)
    for number in range(400):
        pool.now += 1.0
        pool.end(f"j{number:02}")
        pool.start(f"j{number + 1:02}")
    [trail] = pool.wake_state._pools.values()
    assert len(trail.ended) + sum(map(len, trail.started.values())) < 20


def test_where_too_many_start_nobody_is_woken() -> None:
    starts = ABLE.starts_a_second * 10 + 1
    parking = Parking(a_parking_queue(starts), runs=starts, waits=3)
    assert not parking.one_by_one()
    parking.now += 60
    assert parking.one_by_one()


def test_who_cannot_be_woken_in_time_is_left_to_the_batch_until_a_write_comes_in_time() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    wanted = ["j03", "j04", "j02", "j05"]
    parking.turn(parking.waiting())
    parking.wake_state.landed(POOL, [], late=FORGIVEN)
    parking.end("j00")
    [woken] = parking.turn(wanted)
    assert woken.job.uid == "j03"
    parking.start("j03")
    parking.wake_state.landed(POOL, [], late=FORGIVEN + 1)
    parking.end("j01")
    assert parking.turn(wanted[1:]) == []
    parking.now += BATCH_SECONDS
    parking.start("j04")
    parking.end("j03")
    assert uids(parking.turn(wanted[2:])) == ["j02"]
    parking.wake_state.landed(POOL, [], late=FORGIVEN)
    parking.start("j02")
    parking.end("j02")
    assert uids(parking.turn(["j05"])) == ["j05"]


def test_what_a_decision_changes_in_its_copy_is_not_remembered_before_it_is_kept() -> None:
    trail, now = PoolWakes(), 1000.0
    trail.start("q", now)
    known, other = deepcopy(vars(trail)), trail.copy()
    other.refused.add("tried")
    other.used[7] = other.fast["q"] = now
    other.start("q", now)
    other.wake("a", now)
    other.end(a_job(phase=Phase.RUNNING), 1, now)
    assert vars(trail) == known


def test_while_all_levels_come_too_late_one_is_written_after_each_longer_pause() -> None:
    trail = PoolWakes()
    trail.start("q", 0.0)
    trail.come_late(FORGIVEN + 1, 0.0)
    assert trail.is_paused(0.0)
    assert trail.most_writes(0.0) is None, "who is parked may still be labelled in time"
    now = BATCH_SECONDS
    for times in (2, 4, 8, 8):
        trail.start("q", now)
        trail.come_late(1, now)
        assert trail.is_paused(now)
        assert trail.most_writes(now) == 0
        end = now + times * BATCH_SECONDS
        trail.start("q", end - 0.01)
        assert trail.most_writes(end - 0.01) == 0
        assert trail.most_writes(end) == 1, "to see whether it comes in time"
        assert not trail.is_paused(end)
        now = end
    trail.come_in_time()
    assert trail.most_writes(now) is None
    assert not trail.is_paused(now)


def test_the_first_of_the_order_is_passed_over_where_others_start_while_it_is_first() -> None:
    trail = PoolWakes()
    trail.start("q", 0.0)
    trail = trail.led_by("a", 10.0)
    trail.start("q", 10.0 + PASSED_SECONDS - 0.01)
    assert trail.passed_over() == ""
    trail = trail.led_by("a", 10.0 + PASSED_SECONDS)
    trail.start("q", 10.0 + PASSED_SECONDS)
    assert trail.copy().passed_over() == "a"
    assert trail.led_by("b", 10.0 + PASSED_SECONDS).passed_over() == ""
    assert trail.led_by("", 11.0).passed_over() == "", "nobody waits"


def test_a_pause_keeps_no_level_from_the_first_of_the_order_that_is_passed_over() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    wanted = ["j03", "j04", "j02", "j05"]
    parking.turn(parking.waiting())
    parking.wake_state.landed(POOL, [], late=FORGIVEN + 1)
    parking.end("j00")
    for first_since, written in ((parking.now, []), (parking.now - 2 * PASSED_SECONDS, ["j03"])):
        trail = parking.wake_state.trail(POOL).led_by("", first_since)
        parking.wake_state.remember(POOL, trail.led_by("j03", first_since))
        assert uids(parking.turn(wanted)) == written


def test_a_job_above_its_class_is_taken_back_however_late_levels_come() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=4)
    wanted = [Ranked(rank, None, parking.jobs[uid]) for rank, uid in enumerate(parking.waiting()[::-1])]
    plan = steer(wanted, parking.facts, [parking.queue.name], parking.expectations, CLASS_BANDS)
    *before, last = plan.writes
    assert len(before) > 1
    writes = [*before, msgspec.structs.replace(last, cause=WriteCause.OUT_OF_BAND)]
    assert writes_in_time(writes, None) == writes
    assert writes_in_time(writes, 0) == writes[-1:]
    assert writes_in_time(writes, 1) == [writes[0], writes[-1]]
    assert writes_in_time(writes, 0, writes[1].job.uid) == [writes[1], writes[-1]]


def test_levels_count_again_as_soon_as_no_job_has_started_for_a_batch() -> None:
    trail = PoolWakes()
    trail.start("q", 0.0)
    trail.come_late(FORGIVEN + 1, 0.0)
    trail.come_late(1, 0.0)
    assert trail.most_writes(BATCH_SECONDS - 0.01) == 0
    assert trail.most_writes(BATCH_SECONDS) is None
    assert not trail.is_paused(BATCH_SECONDS)
    assert trail.copy().most_writes(BATCH_SECONDS - 0.01) == 0


def test_a_gang_that_does_not_fit_is_passed_by() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=2)
    parking.put(a_job("gang", uid="gang", demand={GPU: 2}, queue_time=NOW))
    parking.turn(["gang", "j02", "j03"])
    parking.end("j00")
    assert uids(parking.turn(["gang", "j02", "j03"])) == ["j02"]


def test_who_finds_no_flavor_is_neither_woken_nor_keeps_the_next_waiting() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=7)
    for uid in ("j02", "j03", "j04", "j05"):
        parking.put(msgspec.structs.replace(parking.jobs[uid], flavorless=True))
    wanted = parking.waiting()
    parking.turn(wanted)
    for uid in ("j00", "j01"):
        parking.end(uid)
    assert uids(parking.turn(wanted)) == ["j06", "j07"]
    for uid in ("j06", "j07"):
        parking.start(uid)
    parking.end("j06")
    parking.put(msgspec.structs.replace(parking.jobs["j03"], flavorless=msgspec.UNSET))
    assert uids(parking.turn([uid for uid in wanted if uid in parking.waiting()])) == ["j03"], (
        "the frontend says something else of it"
    )


def test_where_nobody_of_the_window_fits_the_first_beyond_it_is_woken_and_stays_behind_the_window() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=2)
    for name in ("gang-a", "gang-b"):
        parking.put(a_job(name, uid=name, demand={GPU: 2}, queue_time=NOW + 60))
    gangs = ["gang-b", "gang-a"]
    parking.turn(gangs, beyond=["j03", "j02"])
    parking.end("j00")
    assert uids(parking.turn(gangs, beyond=["j03", "j02"])) == ["j03"]
    assert parking.order() == [*gangs, "j03", "j02"]


def test_where_much_is_free_all_that_have_room_in_the_whole_order_are_woken_the_frontends_last_first() -> (
    None
):
    """Each at a level of its own: what is refused at one would keep others at it from being tried."""
    parking = Parking(a_parking_queue(12), runs=0, waits=20)
    parking.put(a_job("large", uid="large", demand={GPU: 12}, queue_time=NOW - 1))
    parking.start("large")
    by_age = parking.waiting()
    wanted = [*by_age[:8], *by_age[:10:-1], *by_age[8:11]]
    parking.end("large")
    writes = parking.turn(wanted[:2], beyond=wanted[2:], much=True)
    assert uids(writes) == sorted(wanted[:12], reverse=True)
    assert len({write.level for write in writes}) == 12
    parking.now += BATCH_SECONDS
    assert parking.turn(wanted[:2], beyond=wanted[2:], much=True) == [], (
        "they hold their room while it is slow"
    )


def test_nobody_is_woken_at_a_level_at_which_another_stands() -> None:
    parking = Parking(a_parking_queue(2), runs=2, waits=2)
    parking.put(msgspec.structs.replace(parking.jobs["j02"], level=5000))
    parking.end("j00")
    [write] = parking.turn(["j02"])
    parking = Parking(a_parking_queue(2), runs=2, waits=2)
    parking.put(msgspec.structs.replace(parking.jobs["j02"], level=5000))
    parking.put(
        msgspec.structs.replace(parking.jobs["j03"], level=write.level)
    )  # by another replica, beyond the window
    parking.end("j00")
    [again] = parking.turn(["j02"])
    assert again.level != write.level
