"""Steering from an order to writes, against a frontend that shows its state late and that others write to as well."""

import random
from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_admitter.apply.barrier import Barrier
from fairlead_admitter.decide.merged_order import MergedHeads, Ranked, take_heads
from fairlead_admitter.decide.steering import GONE, SteeringPlan, steer, take_levels_away
from fairlead_admitter.observe.decision_gate import DecisionOrigin
from fairlead_admitter.observe.expectations import Expectations, WriteConfirmation
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import JobState, Phase, subject_of
from fairlead_policy.levels.class_bands import ClassBand, common_band
from fairlead_policy.levels.plan import Band, LabelledJob, plan_levels
from fairlead_policy.levels.window import WindowSize
from fairlead_testkit.inputs.builders import NOW, a_decision, a_job, a_position, a_queue, a_queue_heads
from fairlead_testkit.oracles.starting_order import in_starting_order

BAND = Band(default=0, lowest=1, highest=1000)
ONE_BAND = [ClassBand(band=BAND)]


class LaggingFrontend:
    """A frontend in memory: its truth, and the facts that lag behind it."""

    def __init__(self, jobs: Sequence[JobState]) -> None:
        self.facts = ClusterFacts("c1")
        self.facts.apply({"queue": a_queue()})
        self.truth = {job.uid: job for job in jobs}
        self.expectations = Expectations()
        self.writes = 0
        self._shown: dict[str, int] = {}
        self.show()

    def show(self) -> None:
        """The state catches up with the truth."""
        changed = [job for job in self.truth.values() if self._shown.get(job.uid) != job.rev]
        self._shown |= {job.uid: job.rev for job in changed}
        changes = self.facts.apply({subject_of(job): job for job in changed})
        for change in changes:
            if change.after is not None and change.after.phase in (Phase.WAITING, Phase.HELD):
                self.expectations.see(change.after, change.before, 0.0)
            elif change.before is not None:
                self.expectations.forget(change.before.uid)

    def set(self, uid: str, **changes: object) -> None:
        """The truth of a job changes."""
        job = self.truth[uid]
        self.truth[uid] = msgspec.structs.replace(job, rev=job.rev + 1, **changes)

    def plan(self, wanted: Sequence[str], size: int = 100, *, reserved: bool = False) -> SteeringPlan:
        positions = [a_position(uid=uid) for uid in wanted]
        window = self.window(positions, size)
        return steer(window, self.facts, ["main"], self.expectations, ONE_BAND, reserved=reserved)

    def window(
        self, positions: Sequence[Position], size: int, waiting: int = 0, most: int = 0
    ) -> list[Ranked]:
        decision = a_decision()
        origins = {position.uid: DecisionOrigin(decision, a_queue_heads()) for position in positions}
        beginning = MergedHeads(list(positions), origins, whole=True)
        return take_heads(
            beginning,
            {"main": waiting or len(positions)},
            self.facts,
            WindowSize(least=size, most=most or size),
        ).jobs

    def apply(self, plan: SteeringPlan, most: int = 10**9) -> None:
        """Carry out the beginning of a plan; replies come, the state doesn't yet."""
        for write in plan.writes[:most]:
            uid = write.job.uid
            self.expectations.send(uid, write.level)
            landed = None
            if self.truth[uid].phase is Phase.WAITING:
                assert self.truth[uid].level != write.level or write.drifted, "written twice"
                self.set(uid, level=write.level)
                rev = self.truth[uid].rev
                landed = WriteConfirmation(mark=str(rev), rev=rev)
                self.writes += 1
            self.expectations.land(self.facts.job(uid) or write.job, write.level, landed, 0.0)

    def order(self) -> list[str]:
        """Uids in the order in which the frontend starts the jobs."""
        return [job.uid for job in in_starting_order(self.truth.values())]


def some_jobs(count: int, *, seed: int = 0) -> list[JobState]:
    dice = random.Random(seed)
    times = [NOW + dice.randrange(1000) for _ in range(count)]
    return [a_job(f"j{number:05}", queue_time=time) for number, time in enumerate(times)]


def test_where_the_frontends_own_order_is_wanted_nothing_is_written() -> None:
    cluster = LaggingFrontend(some_jobs(30))
    plan = cluster.plan(cluster.order())
    assert plan.writes == []
    assert plan.kept == 30


def test_written_levels_that_the_state_does_not_show_yet_are_not_written_again() -> None:
    cluster = LaggingFrontend(some_jobs(30))
    wanted = cluster.order()[::-1]
    first = cluster.plan(wanted, 10)
    assert 0 < len(first.writes) <= 10
    cluster.apply(first)
    assert cluster.plan(wanted, 10).writes == []
    cluster.show()
    assert cluster.plan(wanted, 10).writes == []
    assert cluster.order()[:10] == wanted[:10]


def test_held_jobs_lose_their_levels_in_the_same_order_in_every_process() -> None:
    cluster = LaggingFrontend(some_jobs(40))
    held = cluster.order()[5:]
    for uid in held:
        cluster.set(uid, phase=Phase.HELD, level=7)
    cluster.show()
    plan = cluster.plan(cluster.order(), reserved=True)
    lowered = [write.job.uid for write in plan.writes if write.job.uid in held]
    assert lowered == sorted(held), "sets have another order in each process"


def test_what_another_writer_did_is_repaired() -> None:
    cluster = LaggingFrontend(some_jobs(10))
    wanted = cluster.order()[::-1]
    cluster.apply(cluster.plan(wanted))
    cluster.show()
    cluster.set(wanted[0], level=0)
    cluster.show()
    plan = cluster.plan(wanted)
    assert [(write.job.uid, write.drifted) for write in plan.writes] == [(wanted[0], True)]
    cluster.apply(plan)
    assert cluster.order() == wanted


def test_a_fought_job_is_left_alone_and_the_others_are_still_ordered() -> None:
    cluster = LaggingFrontend(some_jobs(6))
    wanted = cluster.order()[::-1]
    for _ in range(5):
        cluster.apply(cluster.plan(wanted))
        cluster.show()
        cluster.set(wanted[0], level=0)
        cluster.show()
    plan = cluster.plan(wanted)
    assert plan.writes == []
    assert plan.left_alone == 1
    assert cluster.expectations.fought == {wanted[0]}
    assert [uid for uid in cluster.order() if uid != wanted[0]] == wanted[1:]


def test_jobs_that_no_flavor_takes_fill_no_window_and_get_no_levels() -> None:
    cluster = LaggingFrontend(some_jobs(8))
    wanted = cluster.order()[::-1]
    for uid in wanted[:4]:
        cluster.set(uid, flavorless=True)
    cluster.show()
    positions = [a_position(uid=uid) for uid in wanted]
    assert [ranked.job.uid for ranked in cluster.window(positions, 2, waiting=9, most=9)] == wanted[:6]
    cluster.apply(cluster.plan(wanted))
    assert {cluster.truth[uid].level for uid in wanted[:4]} == {0}
    assert [uid for uid in cluster.order() if uid in wanted[4:]] == wanted[4:]
    cluster.show()
    cluster.set(wanted[0], flavorless=msgspec.UNSET)
    cluster.show()
    cluster.apply(cluster.plan(wanted))
    assert cluster.order()[0] == wanted[0], "it is in line again"


def test_jobs_that_wait_for_a_limit_fill_no_window_and_have_their_levels() -> None:
    """Their frontend says whether the limit still holds when it comes to them, so they stand where their turn is."""
    cluster = LaggingFrontend(some_jobs(8))
    wanted = cluster.order()[::-1]
    for uid in wanted[:4]:
        cluster.set(uid, limited=True)
    cluster.show()
    positions = [a_position(uid=uid) for uid in wanted]
    assert [ranked.job.uid for ranked in cluster.window(positions, 2, waiting=9, most=9)] == wanted[:6]
    cluster.apply(cluster.plan(wanted))
    assert cluster.order() == wanted


def test_jobs_that_no_flavor_takes_have_nobody_lifted_over_them_and_keep_no_level_above_their_class() -> None:
    cluster = LaggingFrontend(some_jobs(4))
    wanted = cluster.order()[1:] + cluster.order()[:1]
    cluster.set(wanted[-1], flavorless=True)
    cluster.show()
    assert cluster.plan([wanted[-1], *wanted[:-1]]).writes == []
    assert cluster.plan(wanted[:-1]).writes == [], "nor where they are too many to be known"
    ceiling = [ClassBand(band=BAND, ceiling=BAND.highest)]
    cluster.set(wanted[-1], level=BAND.highest + 1)
    cluster.show()
    window = cluster.window([a_position(uid=wanted[-1])], 100)
    writes = steer(window, cluster.facts, ["main"], cluster.expectations, ceiling).writes
    assert [(write.job.uid, write.level) for write in writes] == [(wanted[-1], BAND.default)]


def test_a_position_whose_job_waits_no_more_is_skipped() -> None:
    cluster = LaggingFrontend(some_jobs(5))
    wanted = cluster.order()[::-1]
    cluster.set(wanted[0], phase=Phase.RUNNING)
    cluster.set(wanted[1], phase=Phase.HELD)
    cluster.show()
    window = cluster.window([a_position(uid=uid) for uid in [*wanted, "unknown"]], 100)
    assert [ranked.job.uid for ranked in window] == wanted[2:]
    assert window[0].rank == 2


def test_a_job_that_two_shards_put_in_line_is_ranked_once_at_its_first_position() -> None:
    cluster = LaggingFrontend(some_jobs(5))
    order = cluster.order()
    plan = cluster.plan([order[4], *order[:4], order[4]])
    assert [(write.job.uid, write.rank) for write in plan.writes] == [(order[4], 0)]


def test_a_write_to_a_job_that_just_started_is_not_repeated() -> None:
    cluster = LaggingFrontend(some_jobs(5))
    wanted = cluster.order()[::-1]
    cluster.set(wanted[0], phase=Phase.RUNNING)
    cluster.apply(cluster.plan(wanted))
    assert cluster.plan(wanted).writes == []


def test_a_job_that_left_the_window_goes_back_to_the_default() -> None:
    cluster = LaggingFrontend(some_jobs(6))
    wanted = cluster.order()[::-1]
    cluster.apply(cluster.plan(wanted, 3))
    cluster.show()
    moved = [*wanted[1:], wanted[0]]
    plan = cluster.plan(moved, 3)
    back = [write for write in plan.writes if write.rank == GONE]
    assert [(write.job.uid, write.level) for write in back] == [(wanted[0], 0)]
    assert "default" in back[0].because
    cluster.apply(plan)
    assert cluster.order()[:3] == moved[:3]


def test_the_window_ends_where_positions_of_a_queue_may_be_missing() -> None:
    facts = ClusterFacts("c1")
    jobs = [a_job(f"{queue}{number}", queue=queue) for number in range(4) for queue in ("p", "q")]
    facts.apply({subject_of(job): job for job in jobs})
    decision = a_decision()
    positions = [a_position(uid=job.uid) for job in jobs]
    origins = {job.uid: DecisionOrigin(decision, a_queue_heads(queue=job.queue)) for job in jobs}
    origins["elsewhere"] = DecisionOrigin(decision, a_queue_heads(cluster="c2", queue="r"))
    merged = [a_position(uid="elsewhere"), *positions]

    def taken(waiting: dict[str, int]) -> list[str]:
        window = take_heads(
            MergedHeads(merged, origins, whole=True), waiting, facts, WindowSize(least=2, most=2)
        )
        return [ranked.job.id for ranked in window.jobs]

    # p has more than its two positions: its third one may belong before q's second.
    assert taken({"p": 3, "q": 2}) == ["p0", "q0", "p1"]
    assert taken({"p": 2, "q": 3}) == ["p0", "q0", "p1", "q1"]
    assert taken({"p": 2, "q": 2}) == [job.id for job in jobs]


def test_release_takes_every_level_back_without_turning_a_pair_round() -> None:
    cluster = LaggingFrontend(some_jobs(8))
    wanted = cluster.order()[::-1]
    cluster.apply(cluster.plan(wanted))
    cluster.show()
    cluster.set(wanted[3], phase=Phase.HELD)
    cluster.show()
    plan = take_levels_away(cluster.facts, ["main"], cluster.expectations)
    assert {write.job.uid for write in plan.writes} >= {wanted[0], wanted[3]}
    befores = [write.before for write in plan.writes]
    assert befores == sorted(befores)
    at_once = take_levels_away(cluster.facts, ["main"], cluster.expectations, at_once=True)
    assert at_once.writes == plan.writes[::-1]
    assert not any(
        Barrier(at_once.writes[:number]).stops(write) for number, write in enumerate(at_once.writes)
    )
    for write in plan.writes:
        cluster.set(write.job.uid, level=write.level)
    cluster.show()
    assert take_levels_away(cluster.facts, ["main"], cluster.expectations).writes == []
    assert all(job.level == 0 for job in cluster.truth.values())


def test_a_pools_band_is_what_its_queues_have_in_common() -> None:
    one = a_queue(lowest_level=1, highest_level=50)
    two = a_queue(name="two", lowest_level=10, highest_level=90)
    assert common_band([one, two]) == Band(default=0, lowest=10, highest=50)
    assert common_band([one, a_queue(name="three", default_level=5)]) is None
    assert common_band([one, a_queue(name="four", lowest_level=60)]) is None
    assert common_band([]) is None


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 14), st.integers(1, 8))
def test_the_frontend_follows_every_order_however_late_its_state_is(
    dice: random.Random, count: int, size: int
) -> None:
    cluster = LaggingFrontend(some_jobs(count, seed=dice.randrange(99)))
    wanted = list(cluster.truth)
    for _ in range(12):
        dice.shuffle(wanted)
        waiting = [uid for uid in wanted if cluster.truth[uid].phase is Phase.WAITING]
        cluster.apply(cluster.plan(wanted, size), most=dice.choice([1, 3, 100]))
        if dice.random() < 0.2 and len(waiting) > 1:
            cluster.set(waiting[0], phase=Phase.RUNNING)
        if dice.random() < 0.6:
            cluster.show()
    cluster.show()
    waiting = [uid for uid in wanted if cluster.truth[uid].phase is Phase.WAITING]
    plan = cluster.plan(waiting, size)
    cluster.apply(plan)
    assert cluster.order()[:size] == waiting[:size]
    assert cluster.plan(waiting, size).writes == []


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(1, 6))
def test_what_is_kept_of_the_outside_is_all_that_the_plan_needs(
    dice: random.Random, count: int, size: int
) -> None:
    jobs = [
        msgspec.structs.replace(job, level=dice.choice([0, 0, 3, 7, 500]))
        for job in some_jobs(count, seed=dice.randrange(99))
    ]
    cluster = LaggingFrontend(jobs)
    wanted = list(cluster.truth)
    dice.shuffle(wanted)

    def named(uid: str) -> LabelledJob:
        job = cluster.truth[uid]
        return LabelledJob(uid=uid, level=job.level, tie=(job.queue_time, job.uid))

    from_scratch = plan_levels(
        [named(uid) for uid in wanted[:size]], [named(uid) for uid in wanted[size:]], BAND
    )
    plan = cluster.plan(wanted, size)
    assert [(write.job.uid, write.level) for write in plan.writes] == from_scratch.writes
    assert plan.kept == from_scratch.kept
