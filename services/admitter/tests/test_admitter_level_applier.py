"""Carrying plans out, patience with pools, and operators' words: each by itself."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from fairlead_admitter.apply.barrier import Barrier
from fairlead_admitter.apply.level_applier import DryRunApplier, LevelApplier, WriteResult
from fairlead_admitter.decide.pace import Arrivals
from fairlead_admitter.decide.steering import GONE, LevelWrite, WriteCause
from fairlead_admitter.errors import (
    AdmitterError,
    FrontendBalkedError,
    FrontendDownError,
    FrontendRefusedError,
)
from fairlead_admitter.observe.decision_gate import Doubt, UnsettledPool
from fairlead_admitter.observe.expectations import Expectations, WriteConfirmation
from fairlead_admitter.observe.job_backoff import FIRST_SECONDS, LONGEST_SECONDS, JobBackoff
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.staleness import Staleness
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_runtime.metrics import Metrics
from fairlead_testkit.inputs.builders import a_control, a_job, a_queue
from fairlead_testkit.timing.in_hand import ManualClock


def a_write(
    *, job: JobState, before: int, level: int, rank: int = GONE, cause: WriteCause = WriteCause.HEADS
) -> LevelWrite:
    tie = (job.queue_time, job.uid)
    return LevelWrite(job=job, before=before, level=level, rank=rank, position=None, tie=tie, cause=cause)


def writes(count: int) -> list[LevelWrite]:
    return [a_write(job=a_job(f"j{number}"), before=0, level=count - number) for number in range(count)]


class HeldFrontend:
    """Answers each write when told to."""

    def __init__(self, *, keeps_order: bool = True) -> None:
        self.keeps_order = keeps_order
        self.begun: list[str] = []
        self.go = asyncio.Event()
        self.batches: list[int] = []
        self.trouble: dict[str, AdmitterError] = {}
        self.most = 0
        self._now = 0

    async def write(self, batch: Sequence[LevelWrite]) -> Sequence[WriteResult]:
        assert all(write.level for write in batch)
        self.begun += [write.job.id for write in batch]
        self.batches.append(len(batch))
        self._now += 1
        self.most = max(self.most, self._now)
        await self.go.wait()
        self._now -= 1
        return [self._result(write.job) for write in batch]

    def _result(self, job: JobState) -> WriteResult:
        if job.id in self.trouble:
            return self.trouble[job.id]
        return None if job.id == "j2" else WriteConfirmation(mark="m", rev=job.rev + 1)


def application(
    frontend: HeldFrontend, expectations: Expectations, at_once: int = 100, batch: int = 1
) -> LevelApplier:
    queue = a_queue(capabilities=Capabilities(batch=batch))
    return LevelApplier(
        frontend,
        expectations,
        lambda _: None,
        queues=lambda: {queue.name: queue},
        in_flight=4,
        at_once=at_once,
        longest=9.0,
    )


async def test_writes_leave_in_order_and_only_so_many_at_once() -> None:
    frontend, expectations = HeldFrontend(), Expectations()
    frontend.go.set()
    plan = writes(20)
    applied = await application(frontend, expectations).carry_out("p", plan, lambda: True)
    assert frontend.begun == [f"j{number}" for number in range(20)]
    assert frontend.most <= 4
    assert len(applied.landed) == 19
    assert (applied.gone, applied.failed, applied.withheld) == (1, 0, 0)
    assert expectations.leaves_alone(a_job("j2"))
    assert expectations.level_of(a_job("j0")) == 20


@pytest.mark.parametrize(
    ("cause", "late"),
    [(WriteCause.HEADS, 1), (WriteCause.STARTED, 0), (WriteCause.PROTECT, 0), (WriteCause.CHECKED, 0)],
)
async def test_a_level_of_what_ran_and_has_ended_is_not_late(cause: WriteCause, late: int) -> None:
    frontend = HeldFrontend()
    frontend.go.set()
    plan = [a_write(job=a_job(name), before=9, level=5, cause=cause) for name in ("j1", "j2")]
    applied = await application(frontend, Expectations()).carry_out("p", plan, lambda: True)
    assert ([write.job.id for write, _ in applied.landed], applied.gone) == (["j1"], late)


async def test_a_frontend_gets_as_many_in_a_request_as_its_queue_says_it_takes() -> None:
    frontend, expectations = HeldFrontend(), Expectations()
    frontend.go.set()
    frontend.trouble = {"j7": FrontendRefusedError("no such level"), "j19": FrontendDownError("away")}
    applied = await application(frontend, expectations, batch=8).carry_out("p", writes(20), lambda: True)
    # Behind j7 stood j8 and j9, and they may not pass it.
    assert frontend.begun == [f"j{number}" for number in range(20) if number not in (8, 9)]
    assert frontend.batches == [8, 6, 4]
    assert [write.job.id for write in applied.missed] == ["j7", "j8", "j9", "j19"]
    assert (len(applied.landed), applied.gone, applied.failed, applied.withheld) == (15, 1, 2, 0)
    assert expectations.leaves_alone(a_job("j7"))


async def test_between_two_batches_the_right_to_write_is_asked_for_again() -> None:
    frontend = HeldFrontend()
    frontend.go.set()
    asked = iter([True, False])
    applied = await application(frontend, Expectations(), batch=8).carry_out(
        "p", writes(20), lambda: next(asked)
    )
    assert (frontend.batches, applied.withheld) == ([8], 12)


async def test_losing_the_right_to_write_stops_between_two_writes() -> None:
    frontend, expectations = HeldFrontend(), Expectations()
    frontend.go.set()
    asked = iter([True, True, False])
    applied = await application(frontend, expectations).carry_out("p", writes(5), lambda: next(asked))
    assert frontend.begun == ["j0", "j1"]
    assert applied.withheld == 3


@pytest.mark.parametrize(
    ("trouble", "left_alone"), [(FrontendDownError("down"), False), (FrontendRefusedError("no"), True)]
)
async def test_after_a_failure_nothing_more_is_sent(trouble: AdmitterError, *, left_alone: bool) -> None:
    frontend, expectations = HeldFrontend(), Expectations()
    frontend.go.set()
    frontend.trouble["j0"] = trouble
    applied = await application(frontend, expectations).carry_out("p", writes(50), lambda: True)
    assert applied.failed == 1
    assert applied.trouble == str(trouble)
    assert len(frontend.begun) <= 5
    assert expectations.leaves_alone(a_job("j0")) is left_alone


def of_scopes(*scopes: str) -> list[LevelWrite]:
    """Raises of one job each, front first."""
    return [
        a_write(
            job=a_job(f"{scope}{number}", uid=f"{number}", scope=scope),
            before=0,
            level=len(scopes) - number,
            rank=number,
        )
        for number, scope in enumerate(scopes)
    ]


@pytest.mark.parametrize("keeps_order", [True, False])
async def test_a_write_that_balks_holds_back_only_what_would_pass_it(*, keeps_order: bool) -> None:
    frontend, expectations = HeldFrontend(keeps_order=keeps_order), Expectations()
    frontend.go.set()
    frontend.trouble["x1"] = FrontendBalkedError("a webhook of x")
    plan = of_scopes("a", "x", "b")
    lowered = a_write(job=a_job("c"), before=9, level=1)
    applied = await application(frontend, expectations).carry_out("p", [*plan, lowered], lambda: True)
    assert [write.job.id for write in applied.balked] == ["x1"]
    if not keeps_order:  # else it was on its way before anybody knew
        assert [write.job.id for write, _ in applied.landed] == ["a0", "c"]
        assert [write.job.id for write in applied.missed] == ["x1", "b2"]
    assert (applied.failed, applied.withheld, applied.down) == (1, 0, False)


async def test_of_a_scope_that_fails_again_and_again_a_pass_tries_no_more() -> None:
    frontend, expectations = HeldFrontend(keeps_order=False), Expectations()
    frontend.go.set()
    bad = [a_write(job=a_job(f"x{number}", scope="x"), before=9, level=1) for number in range(20)]
    frontend.trouble = {write.job.id: FrontendBalkedError("a webhook of x") for write in bad}
    good = a_write(job=a_job("good"), before=0, level=1)
    applied = await application(frontend, expectations).carry_out("p", [*bad, good], lambda: True)
    assert [write.job.id for write, _ in applied.landed] == ["good"]
    assert len(frontend.begun) <= 2 + 4 + 1


def test_a_job_rests_by_itself_and_its_scope_once_two_of_its_jobs_fail() -> None:
    clock = ManualClock()
    backoff = JobBackoff(clock)
    one, two, three, other = (a_job(name, scope="x") for name in ("1", "2", "3", "4"))
    elsewhere = a_job("5", scope="y")
    backoff.failed([one], "no")
    assert backoff.include(one)
    assert not backoff.include(two)
    backoff.failed([two], "no")
    assert backoff.include(three)
    assert not backoff.include(elsewhere)
    assert backoff.told() == "x: 2 jobs, no"
    clock.now += FIRST_SECONDS
    assert not any(map(backoff.include, (one, two, three)))
    for _ in range(10):
        backoff.failed([one, two], "no")
    clock.now += LONGEST_SECONDS / 4
    assert backoff.include(three)
    backoff.succeeded(three)
    assert backoff.include(one)
    assert not backoff.include(other)
    backoff.forget(one.uid)
    backoff.forget(two.uid)
    assert (len(backoff), backoff.told()) == (0, None)


def a_lift(name: str, level: int = 1000) -> LevelWrite:
    job = a_job(name, phase=Phase.RUNNING, level=10)
    return a_write(job=job, before=10, level=level, cause=WriteCause.PROTECT)


async def test_a_lift_that_is_refused_keeps_nothing_from_those_that_wait() -> None:
    frontend, expectations = HeldFrontend(), Expectations()
    frontend.go.set()
    frontend.trouble["runs"] = FrontendRefusedError("no")
    lift = a_lift("runs")
    applied = await application(frontend, expectations).carry_out("p", [lift, *writes(9)], lambda: True)
    assert (applied.failed, applied.withheld) == (0, 0)
    assert (applied.refused_lifts, applied.trouble) == ([lift], "no")
    assert len(frontend.begun) == 10


def test_a_raise_waits_for_the_lift_of_what_it_could_stop() -> None:
    lift = a_lift("runs")

    def to(before: int, level: int) -> LevelWrite:
        return a_write(job=a_job("w"), before=before, level=level)

    barrier = Barrier([lift])
    assert barrier.stops(to(0, 10))
    assert not barrier.stops(to(0, 9))
    assert not barrier.stops(to(20, 15))
    assert not barrier.stops(a_lift("other"))
    assert not Barrier([to(0, 999)]).stops(lift)


def test_who_is_woken_waits_for_the_lift_even_where_its_level_sinks() -> None:
    def woken(level: int) -> LevelWrite:
        return a_write(job=a_job("w"), before=20, level=level, rank=0, cause=WriteCause.WAKE)

    barrier = Barrier([a_lift("runs")])
    assert barrier.stops(woken(15))
    assert not barrier.stops(woken(9))


def turns_round(write: LevelWrite, earlier: LevelWrite) -> bool:
    """Whether the pair stands, for a moment, as it stands neither before both writes nor after them.

    By the definition: the later one alone takes effect, and then passes the earlier one that still stands where it was.
    """
    if WriteCause.PROTECT in (write.cause, earlier.cause):
        stopping = write.level >= earlier.before and (
            write.level > write.before or write.cause is WriteCause.WAKE
        )
        return write.cause is not WriteCause.PROTECT and stopping

    def stand(one: LevelWrite, level: int) -> tuple[int, object]:
        return -level, one.tie

    rises = write.level > write.before
    if rises is not (earlier.level > earlier.before):
        return False
    stays, was, becomes = (
        stand(earlier, earlier.before),
        stand(write, write.before),
        stand(write, write.level),
    )
    return becomes < stays < was if rises else was < stays < becomes


LEVELS = st.integers(0, 6)


@st.composite
def some_writes(draw: st.DrawFn) -> list[LevelWrite]:
    causes = st.sampled_from([WriteCause.HEADS, WriteCause.HEADS, WriteCause.WAKE, WriteCause.PROTECT])
    return [
        a_write(job=a_job(f"j{number}"), before=draw(LEVELS), level=draw(LEVELS), cause=draw(causes))
        for number in draw(st.permutations(range(draw(st.integers(1, 9)))))
    ]


@given(some_writes())
def test_a_barrier_stops_what_would_turn_a_pair_round_and_nothing_else(plan: list[LevelWrite]) -> None:
    *missed, write = plan
    assert Barrier(missed).stops(write) is any(turns_round(write, earlier) for earlier in missed)


async def test_a_long_plan_is_carried_out_in_part() -> None:
    frontend = HeldFrontend()
    frontend.go.set()
    applied = await application(frontend, Expectations(), at_once=3).carry_out("p", writes(10), lambda: True)
    assert len(frontend.begun) == 3
    assert applied.withheld == 7


async def test_a_dry_run_says_each_thing_once() -> None:
    told: list[str] = []
    dry_run = DryRunApplier(lambda pool, write: told.append(f"{pool} {write.job.id} {write.level}"))
    await dry_run.carry_out("p", writes(2), lambda: True)
    await dry_run.carry_out("p", writes(2), lambda: True)
    await dry_run.carry_out("q", writes(1), lambda: False)
    assert told == ["p j0 2", "p j1 1"]


def a_staleness(metrics: Metrics, now: Callable[[], float]) -> Staleness:
    return Staleness(metrics, "c1", 10.0, now)


def test_a_pool_that_stays_unsettled_is_said_to_be_stale_once() -> None:
    metrics, clock = Metrics("admitter"), ManualClock()
    with capture_logs() as logs:
        kept = a_staleness(metrics, clock)
        for clock.now in (0.0, 9.0, 11.0, 12.0):
            kept.lack("p", UnsettledPool(doubt=Doubt.OWNER_GONE, shard=3))
        kept.lack("just now", UnsettledPool(doubt=Doubt.OWNER_GONE))
        assert kept.stale() == "p: owner-gone (shard 3) for 12 s"
        assert kept.by_pool() == {"p": "owner-gone (shard 3) for 12 s"}
        assert [shown(metrics, name, "p") for name in ("unsettled", "stale")] == [1, 1]
        kept.satisfy("p")
    assert kept.stale() is None
    assert [shown(metrics, name, "p") for name in ("unsettled", "stale")] == [0, 0]
    said = [(one["event"].partition(":")[0], one.get("doubt"), one.get("seconds")) for one in logs]
    assert said == [
        ("pool unsettled", "owner-gone", None),
        ("pool stale", "owner-gone", 11),
        ("pool unsettled", "owner-gone", None),
        ("pool settled", None, None),
    ]
    assert logs[-1]["after_seconds"] == 12


def test_a_pool_that_needs_no_order_is_not_complained_about() -> None:
    metrics = Metrics("admitter")
    kept = a_staleness(metrics, lambda: 0.0)
    for pool in ("p", "q"):
        kept.lack(pool, UnsettledPool(doubt=Doubt.MISSING))
    kept.excuse("p")
    kept.keep([])
    with capture_logs() as logs:
        kept.satisfy("q")
    assert logs == [], "it was forgotten with its pool"
    assert [shown(metrics, "unsettled", pool) for pool in ("p", "q")] == [0, 0]


def shown(metrics: Metrics, name: str, pool: str) -> float | None:
    return metrics.registry.get_sample_value(f"fairlead_admitter_pool_{name}", {"pool": pool})


def word(pool: str | None) -> str:
    return subjects.kv_subject(topology.POLICY, subjects.control_key(pool))


@pytest.mark.parametrize(
    ("one", "all_", "mode"),
    [
        (None, None, Mode.ACTIVE),
        (Mode.PAUSED, None, Mode.PAUSED),
        (Mode.ACTIVE, Mode.PAUSED, Mode.PAUSED),
        (Mode.PAUSED, Mode.RELEASED, Mode.RELEASED),
        (Mode.RELEASED, Mode.ACTIVE, Mode.RELEASED),
    ],
)
def test_the_strictest_word_holds(one: Mode | None, all_: Mode | None, mode: Mode) -> None:
    view = PolicyView()
    for pool, said in (("c1/gpu", one), (None, all_)):
        if said is not None:
            view.words.hear(word(pool), to_json(a_control(mode=said)))
    assert view.words.control("c1/gpu").mode is mode


def test_a_word_that_cannot_be_read_pauses_until_it_is_taken_back() -> None:
    view = PolicyView()
    view.words.hear(word(None), b"stop!")
    assert view.words.control("c1/gpu").mode is Mode.PAUSED
    assert word(None) in view.words.unreadable
    view.words.hear(word(None), None)
    assert view.words.control("c1/gpu").mode is Mode.ACTIVE
    assert not view.words.unreadable


def test_only_a_decision_that_knew_something_new_is_measured() -> None:
    arrivals = Arrivals()
    arrivals.note(10, 0.0)
    arrivals.note(20, 0.0)
    assert arrivals.measure(5) is None
    assert arrivals.measure(15) is not None
    assert arrivals.measure(15) is None
    assert arrivals.measure(25) is not None
    assert arrivals.measure(30) is None
