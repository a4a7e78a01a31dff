"""Reserve mode turn by turn: against a strict frontend in memory, with the levels that the plans write."""

from collections.abc import Sequence

import msgspec
import pytest

from fairlead_admitter.decide.frontend_order import FrontendOrder
from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.reserving import Reservations, ReserveDecision, ReservePlanner
from fairlead_admitter.decide.steering import SteeringPlan, lower_to_class, steer
from fairlead_admitter.observe.expectations import Expectations, WriteConfirmation
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.report.reservation_record import ReservationNews, ReservationRecord
from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.events import Reserving as What
from fairlead_contracts.messages.state import JobState, Phase, State, subject_of
from fairlead_contracts.policyfile.document import PolicyDocument, Reserve
from fairlead_policy.levels.class_bands import ClassBand
from fairlead_policy.levels.plan import Band
from fairlead_policy.reserve.reservation import ReservationState
from fairlead_runtime.metrics import Metrics
from fairlead_testkit.inputs.builders import NOW, a_job, a_pool, a_position, a_queue
from fairlead_testkit.oracles.starting_order import in_starting_order

GPU = "nvidia.com/gpu"
BAND = Band(default=0, lowest=1, highest=1_000_000)
POLICY = PolicyDocument(
    mode="reserve", reserve=Reserve(reaction_seconds=10, grace_seconds=30, rest_seconds=60)
)
POOL = a_pool(capacity={GPU: 8}, reservable=True)


class Play:
    """A strict queue of eight cards, its facts, and the part of the admitter that reserves."""

    def __init__(self, *states: State) -> None:
        self.facts = ClusterFacts("c1")
        self.expectations = Expectations()
        self.writable = True
        self.metrics = Metrics("admitter")
        self.record = ReservationRecord(self.metrics, "c1")
        self.reserving = Reservations(self.record, self.facts.job, lambda: self.writable)
        self.now = NOW
        self._rev = 1
        self._epoch = 1
        self.reserving.lead(1)
        self.see(POOL, a_queue(), *states)

    def see(self, *states: State) -> None:
        self._rev += 1
        self.facts.apply({subject_of(one): msgspec.structs.replace(one, rev=self._rev) for one in states})

    def change(self, uid: str, **changes: object) -> None:
        job = self.facts.job(uid)
        assert job is not None
        self.see(msgspec.structs.replace(job, **changes))

    def turn(self, order: Sequence[str], *, after: float = 0.0, write: bool = True) -> list[ReservationNews]:
        """A turn some seconds later, its writes landed and seen; gives what was told."""
        self.now += round(after * SECOND)
        class_bands = [ClassBand(band=BAND)]
        planner = self.planner()
        line = planner.line("gpu", list(self.facts.queues.values()), POLICY, class_bands)
        if isinstance(line, ReserveDecision):
            self.reserving.remember("gpu", line)
            return self.record.take_news()
        waiting = [job for uid in order if (job := self.facts.job(uid)) and job.phase is Phase.WAITING]
        known = [Ranked(rank, a_position(uid=job.uid), job) for rank, job in enumerate(waiting)]
        window, decided = planner.arrange(line, known, 2, self.now)
        assert planner.arrange(line, known, 2, self.now) == (window, decided)  # deciding changes nothing
        self.reserving.remember("gpu", decided)
        plan = steer(window, self.facts, ["main"], self.expectations, class_bands, reserved=True)
        if write:
            self._carry_out(plan)
        return self.record.take_news()

    def turn_without_order(self, *, after: float) -> list[ReservationNews]:
        """A turn some seconds later in which no order is settled."""
        self.now += round(after * SECOND)
        class_bands = [ClassBand(band=BAND)]
        planner = self.planner()
        line = planner.line("gpu", list(self.facts.queues.values()), POLICY, class_bands)
        assert not isinstance(line, ReserveDecision)
        uids, decided = planner.withdraw(line, self.now)
        self.reserving.remember("gpu", decided)
        self._carry_out(lower_to_class(uids, self.facts, self.expectations, class_bands))
        return self.record.take_news()

    def planner(self) -> ReservePlanner:
        """The planner that decides now."""
        kept = self.reserving.of("gpu")
        return ReservePlanner(self.facts, self.expectations, kept, writable=self.writable)

    def take_over(self) -> None:
        """Another replica than led before leads from now on."""
        self._epoch += 1
        self.reserving.lead(self._epoch)

    def lapse(self) -> None:
        """The lead is in doubt for a while, and goes on."""
        self.reserving.lead(None)
        self.reserving.lead(self._epoch)

    def _carry_out(self, plan: SteeringPlan) -> None:
        for one in plan.writes:
            self.expectations.send(one.job.uid, one.level)
            self.expectations.land(one.job, one.level, WriteConfirmation(mark="m", rev=self._rev + 1), 0.0)
            self.change(one.job.uid, level=one.level)

    @property
    def standing(self) -> ReservationState:
        """The reservations that were decided and hold."""
        kept = self.reserving.of("gpu")
        assert kept is not None
        return kept.standing  # what is told does not name what is taken back

    def line(self) -> list[str]:
        """The waiting jobs as the frontend has them."""
        return [job.uid for job in in_starting_order(self.facts.queued_jobs())]


def waits(uid: str, gpus: int, *, limit: float | None = 60.0, at: int = 0) -> JobState:
    run_limit = None if limit is None else round(limit * SECOND)
    return a_job(uid, uid=uid, demand={GPU: gpus}, queue_time=NOW + at, run_limit=run_limit)


def runs(uid: str, gpus: int, *, ends: float | None = 600.0) -> JobState:
    ends_by = None if ends is None else NOW + round(ends * SECOND)
    return a_job(uid, uid=uid, demand={GPU: gpus}, phase=Phase.RUNNING, started=NOW, ends_by=ends_by)


def a_play() -> tuple[Play, list[str]]:
    """Six of eight cards are taken; a gang of eight came first."""
    play = Play(runs("r", 6), waits("gang", 8), waits("small", 1, at=1), waits("slow", 1, limit=700, at=2))
    order = ["gang", "small", "slow"]
    play.turn(order)
    play.turn(order)
    return play, order


def told(news: Sequence[ReservationNews]) -> list[tuple[What, str]]:
    return [(one.what, one.job.uid) for one in news]


def test_a_start_is_promised_once_the_head_was_in_front_for_a_reaction_time() -> None:
    play, order = a_play()
    assert told(play.turn(order, after=9)) == []
    news = play.turn(order, after=1)
    assert told(news) == [(What.PASSED, "small"), (What.PROMISED, "gang")]
    assert news[1].by == NOW + 630 * SECOND
    assert play.line() == ["small", "gang", "slow"]


def test_while_nothing_can_be_written_nobody_passes() -> None:
    play, order = a_play()
    play.writable = False
    assert told(play.turn(order, after=10)) == [(What.PROMISED, "gang")]
    play.writable = True
    assert told(play.turn(order, after=30)) == [(What.PASSED, "small")]


def test_whoever_comes_comes_behind_the_head() -> None:
    play, _ = a_play()
    gang = play.facts.job("gang")
    assert gang is not None
    assert gang.level > BAND.default
    play.see(waits("older", 1, at=-500))
    assert play.line()[0] == "gang"


def test_a_pass_that_is_not_used_is_taken_back_and_rests() -> None:
    play, order = a_play()
    play.turn(order, after=10)
    assert play.reserving.wake_in(play.now) == pytest.approx(10, abs=0.1)
    assert told(play.turn(order, after=10)) == [(What.WITHDRAWN, "small")]
    assert play.line()[0] == "gang"
    assert told(play.turn(order, after=30)) == []
    assert told(play.turn(order, after=31)) == [(What.PASSED, "small")]


def test_a_pass_whose_job_gets_a_longer_limit_is_taken_back_at_once() -> None:
    play, order = a_play()
    play.turn(order, after=10)
    play.change("small", run_limit=36_000 * SECOND)
    assert told(play.turn(order, after=1)) == [(What.WITHDRAWN, "small")]
    assert play.line()[0] == "gang"


def test_a_pass_is_taken_back_in_time_without_an_order() -> None:
    play, order = a_play()
    play.turn(order, after=10)
    assert play.turn_without_order(after=9) == []
    assert play.line()[0] == "small"
    assert play.reserving.wake_in(play.now) == pytest.approx(1, abs=0.1)
    assert told(play.turn_without_order(after=1)) == [(What.WITHDRAWN, "small")]
    assert play.line() == ["gang", "slow", "small"]
    assert play.standing.promise is not None
    assert told(play.turn(order, after=1)) == []


def test_passes_for_a_head_that_started_are_taken_back_without_an_order() -> None:
    play, order = a_play()
    play.turn(order, after=10)
    play.change("r", phase=Phase.ENDED)
    play.change("gang", phase=Phase.RUNNING, started=play.now)
    assert set(told(play.turn_without_order(after=1))) == {(What.KEPT, "gang"), (What.WITHDRAWN, "small")}
    assert play.line() == ["slow", "small"]


def test_a_pass_of_a_held_job_is_taken_back_and_counts_until_its_level_is() -> None:
    play, order = a_play()
    play.turn(order, after=10)
    play.change("small", phase=Phase.HELD)
    assert told(play.turn(order, after=1, write=False)) == [(What.WITHDRAWN, "small")]
    for _ in range(4):  # beyond the time at which it could have begun: nothing took its level yet
        assert play.turn(order, after=10, write=False) == []
    assert "small" in play.standing.passes
    play.turn(order, after=1)
    play.change("small", phase=Phase.WAITING)
    assert play.line()[0] == "gang"
    play.turn(order, after=1)
    assert play.standing.passes == {}


def test_what_is_held_in_front_of_the_head_keeps_it_from_a_promise() -> None:
    """The held job comes back to the position that its level gives it."""
    play, order = a_play()
    play.see(msgspec.structs.replace(waits("stale", 1), phase=Phase.HELD, level=900_000))
    for _ in range(3):
        assert play.turn(order, after=10, write=False) == []
    assert [play.turn(order, after=0), play.turn(order, after=5)] == [[], []]
    stale = play.facts.job("stale")
    assert stale is not None
    assert stale.level == BAND.default
    assert (What.PROMISED, "gang") in told(play.turn(order, after=10))


def test_a_pass_that_is_used_is_told_and_counts_as_running() -> None:
    play, order = a_play()
    play.see(waits("next", 2, at=3))
    order.append("next")
    play.turn(order, after=10)
    play.change("small", phase=Phase.RUNNING, started=play.now, ends_by=play.now + 60 * SECOND)
    assert told(play.turn(order)) == [(What.TAKEN, "small")]
    assert play.line()[0] == "gang"


def test_the_promise_is_told_to_be_kept_or_broken() -> None:
    for after, what in ((0, What.KEPT), (700, What.BROKEN)):
        play, order = a_play()
        play.turn(order, after=10)
        play.change("r", phase=Phase.ENDED)
        play.change("gang", phase=Phase.RUNNING, started=play.now + after * SECOND)
        assert (what, "gang") in told(play.turn(order))


def test_who_takes_over_finds_the_head_by_its_level() -> None:
    play, order = a_play()
    play.turn(order, after=10)
    play.see(waits("rival", 8, at=4))
    play.take_over()
    order = ["rival", *order]
    play.turn(order)
    play.turn(order)
    news = play.turn(order, after=40)
    assert (What.PROMISED, "gang") in told(news)
    assert all(one.by is None or one.by <= NOW + 630 * SECOND for one in news if one.what is What.PROMISED)


@pytest.mark.parametrize("seen_first", [False, True])
def test_who_takes_over_finds_a_head_that_the_known_order_does_not_reach(*, seen_first: bool) -> None:
    play, order = a_play()
    play.turn(order, after=10)
    play.change("small", phase=Phase.RUNNING, started=play.now, ends_by=play.now + 60 * SECOND)
    if seen_first:
        play.take_over()
        play.turn(order, after=1)
    newcomers = [f"n{number}" for number in range(32)]
    play.see(*[waits(uid, 1, limit=3600, at=10) for uid in newcomers])
    if not seen_first:
        play.turn(newcomers, after=1)
        play.take_over()
    news = [told for _ in range(8) for told in play.turn(newcomers, after=5)]
    assert play.line()[0] == "gang"
    assert told(news) == [(What.PROMISED, "gang")]
    assert (news[0].by or 0) <= NOW + 630 * SECOND


def test_after_a_takeover_nobody_is_pinned_who_had_no_promise() -> None:
    play = Play(runs("r", 6, ends=None), waits("big", 4), waits("mid", 1, at=5))
    play.turn(["big", "mid"])
    play.turn(["big", "mid"], after=1)
    play.take_over()
    play.turn(["big", "mid"], after=1)
    play.see(waits("fair", 2, at=9))
    for _ in range(3):
        play.turn(["fair", "big", "mid"], after=10)
    assert play.line()[0] == "fair"


def test_without_limits_nothing_is_promised_and_it_is_said() -> None:
    play = Play(runs("r", 6, ends=None), waits("gang", 8), waits("small", 1, at=1))
    for _ in range(3):
        assert play.turn(["gang", "small"], after=10) == []
    assert "without a limit" in (play.record.told() or "")
    [stated] = play.record.stated()
    assert stated.in_its_way == ["r"], "whoever explains the head names the run"
    assert play.line()[0] == "gang"


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([a_pool(capacity={GPU: 8}, reservable=False, reservable_why="it fills gaps")], "it fills gaps"),
        ([a_pool(capacity={GPU: 8}, reservable=False)], "queue main is not known to keep a place"),
        ([a_queue(name="second")], "2 queues"),
        ([a_queue(active=False)], "starts nothing"),
    ],
)
def test_where_nothing_can_be_promised_it_is_said_and_advised(states: list[State], words: str) -> None:
    play, order = a_play()
    play.turn(order, after=10)
    play.see(*states)
    assert play.turn(order) == []
    assert words in (play.record.told() or "")
    assert [one.why_not != "" for one in play.record.stated()] == [True]


def test_a_lead_that_was_in_doubt_keeps_its_promise_and_takes_its_passes_back() -> None:
    play, order = a_play()
    assert (What.PASSED, "small") in told(play.turn(order, after=10))
    play.lapse()
    assert told(play.turn_without_order(after=1)) == []
    assert told(play.turn_without_order(after=30)) == [(What.WITHDRAWN, "small")]
    assert play.line()[0] == "gang"
    assert play.record.stated()[0].shadow == NOW + 630 * SECOND


def test_what_was_decided_is_forgotten_where_another_has_led_meanwhile() -> None:
    play, order = a_play()
    play.turn(order, after=10)
    play.reserving.lead(None)
    play.take_over()
    assert told(play.turn_without_order(after=30)) == []
    assert play.record.stated() == []


def test_a_standby_says_nothing_of_what_it_decided_while_it_led() -> None:
    play, order = a_play()
    play.turn(order, after=10)
    play.see(a_pool(capacity={GPU: 8}, reservable=False, reservable_why="it fills gaps"))
    play.turn(order)
    play.reserving.lead(None)
    assert (play.record.told(), play.record.stated()) == (None, [])
    held_back = play.metrics.registry.get_sample_value("fairlead_admitter_reserve_held_back", {"pool": "gpu"})
    assert held_back == 0


def test_a_write_without_a_reply_may_have_landed() -> None:
    play, _ = a_play()
    bands = {"": BAND}
    frontend = FrontendOrder(play.facts, play.expectations)
    assert frontend.ahead("gang", bands) == frozenset()
    play.expectations.send("slow", 900_000)
    assert frontend.ahead("gang", bands) == frozenset({"slow"})
    play.expectations.send("gang", 0)
    assert frontend.ahead("gang", bands) is None
