"""The planner decides from what it is told alone: a log of that, played again, gives the same plans byte for byte."""

import random
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_admitter.decide.deciding import PoolPlan, decide
from fairlead_admitter.decide.label_budget import SAVED_SECONDS, SHARE
from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.decide.pace import LATE_SECONDS, MANY_STARTS
from fairlead_admitter.decide.planner import Planner
from fairlead_admitter.decide.reserving import Reservations
from fairlead_admitter.decide.turn_clock import TurnClock
from fairlead_admitter.decide.wake_state import OUTPACED_SECONDS, PASSED_SECONDS
from fairlead_admitter.decide.waking import batch_seconds
from fairlead_admitter.observe.decision_gate import DecisionGate, Holders
from fairlead_admitter.observe.expectations import Expectations, WriteConfirmation
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.observe.watch import Observation
from fairlead_admitter.report.reservation_record import ReservationRecord
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.frontend.shipped import KUEUE, KUEUE_PARKING
from fairlead_contracts.messages.decisions import DECISION, Basis, Decision, QueueHeads
from fairlead_contracts.messages.members import Holding, MemberLease
from fairlead_contracts.messages.state import (
    STATE,
    FlavorQuota,
    JobState,
    Phase,
    QueueState,
    State,
    encode_state,
    subject_of,
)
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_runtime.metrics import Metrics
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_pool, a_position, a_queue
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.processes.fresh_interpreter import printed_under_other_seeds

POOL = "c1/gpu"
SECOND = 1_000_000
WINDOW = 6
HELD_PART = 0.4
"""Part of the waiting jobs that are held before they start."""
QUEUE = a_queue(
    strategy=KUEUE_PARKING,
    quotas=[FlavorQuota(flavor="a", nominal={"nvidia.com/gpu": 8000})],
    capabilities=Capabilities(needs_leave=False, parking_strategy=KUEUE_PARKING),
)
BATCH_SECONDS = batch_seconds(QUEUE.able)
SLOW = msgspec.structs.replace(QUEUE.able, starts_a_second=2)
OLDER = msgspec.structs.replace(QUEUE.able, parking_strategy=None)


class TurnInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of one turn, as it travels."""

    seconds: float
    wall: int
    states: list[bytes]
    decision: bytes
    landed: bool
    """Whether its writes are carried out."""
    answer: float = 0.0
    """Seconds that each of them takes."""
    news: bool = True
    """Whether it happened just now."""


LOGS = msgspec.msgpack.Decoder(list[tuple[str, list[TurnInput]]])
"""Logs, each with the mode of its policy."""


class Replica:
    """A planner, and what it looks at."""

    def __init__(self, mode: str) -> None:
        self.facts = ClusterFacts("c1")
        self.gate = DecisionGate()
        self.policy = PolicyView()
        self.policy.rulebook = Rulebook(a_document(shards=1, window=WINDOW, mode=mode), 1)
        self.facts.classify(self.policy.granted_class)
        self._now = (0.0, NOW)
        self._clock = TurnClock(lambda: self._now[0], lambda: self._now[1])
        self.expectations = Expectations(self._clock.monotonic)
        record = ReservationRecord(Metrics("admitter"), "c1")
        reserving = Reservations(record, self.facts.job, writable=lambda: True)
        self.cpu_wait = 0.0
        self._planner = Planner(
            self,
            self.expectations,
            reserving=reserving,
            clock=self._clock,
            cpu_wait=lambda: self.cpu_wait,
            tick=1.0,
        )
        self._seq = 0

    def holders(self) -> Holders:
        """Holders: one scorer holds all."""
        holdings = [Holding(pool=POOL, shards=[0], current=True)]
        return Holders([MemberLease(role="scorer", replica="s", renewed=NOW, holdings=holdings)])

    def come_late(self, writes: int) -> None:
        """Has so many writes of one plan come to jobs that waited no more."""
        self._planner.applied(POOL, PlanOutcome(gone=writes))

    def rest(self) -> float:
        """Seconds of rest before the next turn."""
        return self._planner.pace.late_by()

    def outpaced(self) -> dict[str, list[str]]:
        """The queues that start jobs faster than levels reach them."""
        return self._planner.outpaced()

    def labels_left(self) -> int | None:
        """How many labels all pools together may write now to jobs without room."""
        return self._planner._labels.most(self._planner.pace.starts())

    def turn(self, told: TurnInput) -> PoolPlan:
        """Plays one turn of the loop, by its input."""
        states = [STATE.decode(state) for state in told.states]
        jobs = self.facts.apply({subject_of(state): state for state in states})
        for change in jobs:
            if change.after is not None and change.after.phase is Phase.WAITING:
                self.expectations.see(change.after, change.before, told.seconds)
            elif change.before is not None:
                self.expectations.forget(change.before.uid)
        before, self._seq = self._seq, self._seq + len(states)
        self.gate.accept(DECISION.decode(told.decision))
        self._now = (told.seconds, told.wall)
        self._clock.look()
        seen = Observation(
            jobs=jobs, judged=[], news=told.news, state_seq=self._seq, before_seq=before, at=told.seconds
        )
        self._planner.note(seen, {POOL: frozenset({"main"})})
        plan = decide(self._planner.view(POOL, frozenset({"main"})))
        again = decide(self._planner.view(POOL, frozenset({"main"})))
        same = told_of(again) == told_of(plan) and remembered(again) == remembered(plan)
        assert same, "deciding changed what the view shows"
        self._planner.remember(POOL, plan.after)
        if told.landed:
            applied = PlanOutcome(took=[told.answer for _ in plan.steering.writes])
            for write in plan.steering.writes:
                self.expectations.send(write.job.uid, write.level)
                landed = WriteConfirmation(mark="m", rev=write.job.rev + 1)
                self.expectations.land(write.job, write.level, landed, told.seconds)
                applied.landed.append((write, landed))
            self._planner.applied(POOL, applied)
        return plan


def told_of(plan: PoolPlan) -> bytes:
    """A plan as bytes."""
    steering = plan.steering
    writes = [
        (one.job.uid, one.before, one.level, one.rank, one.cause, one.because) for one in steering.writes
    ]
    said = (writes, steering.kept, steering.window, steering.left_alone, plan.settled, plan.withholding)
    return msgspec.json.encode((said, plan.doubt, plan.standing, plan.sweeps))


def remembered(plan: PoolPlan) -> object:
    """The part of a plan that is to be remembered, to be compared."""
    after = plan.after
    return after.lever, after.reserving, after.settled, after.trail and vars(after.trail)


class ReplicaDay:
    """Jobs come, start, end, get levels: what a replica is told of a day, and what it decides."""

    def __init__(self, dice: random.Random, mode: str) -> None:
        self._dice = dice
        self._replica = Replica(mode)
        self._jobs: dict[str, JobState] = {}
        self._seconds, self._turn, self._seq = 0.0, 0, 0

    def turns(self, count: int) -> Iterator[tuple[TurnInput, bytes]]:
        """Turns, each with its input and its output."""
        states: list[State] = [a_pool(reservable=True), QUEUE]
        for _ in range(count):
            self._turn += 1
            self._seconds += self._dice.choice([0.01, 0.2, 1.1, 12.0])
            states += [self._live() for _ in range(self._dice.randint(0, 4))]
            told = TurnInput(
                seconds=self._seconds,
                wall=NOW + round(self._seconds * SECOND),
                states=[encode_state(state) for state in states],
                decision=to_packed(self.decision(len(states))),
                landed=self._dice.random() < 0.8,
                answer=self._dice.choice([0.005, 0.1]),
            )
            plan = self._replica.turn(told)
            yield told, told_of(plan)
            states = [self._levelled(w.job.uid, w.level) for w in plan.steering.writes] if told.landed else []

    def _live(self) -> JobState:
        found = self._dice.choice([None, *self._jobs.values()])
        if found is None or found.phase is Phase.ENDED:
            number = len(self._jobs)
            queued = NOW + number % 3 * SECOND
            job = a_job(
                f"j{number:03}", gpu=self._dice.choice([1, 2, 6]), queue_time=queued, run_limit=60 * SECOND
            )
            return self.stated(job)
        charged = {"a": found.demand}
        if found.phase is Phase.HELD:
            return self.stated(found, phase=Phase.WAITING)
        if found.phase is Phase.WAITING and self._dice.random() < HELD_PART:
            return self.stated(found, phase=Phase.HELD)
        if found.phase is Phase.WAITING:
            return self.stated(found, phase=Phase.RUNNING, started=NOW, charged=charged)
        return self.stated(found, phase=Phase.ENDED)

    def _levelled(self, uid: str, level: int) -> JobState:
        return self.stated(self._jobs[uid], level=level)

    def stated(self, job: JobState, **changes: object) -> JobState:
        job = self._jobs[job.uid] = msgspec.structs.replace(job, rev=job.rev + 1, **changes)
        return job

    def decision(self, new: int, wanted: Sequence[JobState] = (), *, apart: bool = True) -> Decision:
        """A decision on these jobs in this order, or on all that wait in any; flavorless ones apart, as of this release."""
        self._seq += new
        waiting = [*wanted] or [job for job in self._jobs.values() if job.phase is Phase.WAITING]
        if not wanted:
            self._dice.shuffle(waiting)
        positions = [
            a_position(uid=job.uid, scope=job.scope, id=job.id, use=number * 1000)
            for number, job in enumerate(waiting)
        ]
        stuck = {job.uid for job in waiting if apart and job.flavorless}
        by_heads = {
            among: [one for one in positions if (one.uid in stuck) == among] for among in (False, True)
        }
        gate = [
            QueueHeads(
                cluster="c1",
                queue="main",
                waiting=len(found),
                positions=found[:WINDOW],
                flavorless=among or msgspec.UNSET,
            )
            for among, found in by_heads.items()
            if found
        ]
        basis = Basis(policy=1, capacity=a_pool().capacity)
        return Decision(
            pool=POOL,
            shard=0,
            owner="s",
            epoch=1,
            turn=self._turn,
            at=NOW,
            basis=basis,
            revision={"c1": self._seq},
            queue_heads=gate,
        )


@settings(max_examples=cases(0.5))
@given(st.randoms(use_true_random=False), st.integers(1, 25), st.sampled_from(["advise", "reserve"]))
def test_a_log_of_what_went_in_gives_the_same_plans_again(dice: random.Random, count: int, mode: str) -> None:
    log = list(ReplicaDay(dice, mode).turns(count))
    kept = msgspec.msgpack.encode([turn for turn, _ in log])
    again = Replica(mode)
    turns = msgspec.msgpack.decode(kept, type=list[TurnInput])
    assert [told_of(again.turn(turn)) for turn in turns] == [plan for _, plan in log]


def digest(logs: bytes) -> str:
    """Digest of all that is planned where these logs are played."""
    found = sha256()
    for mode, turns in LOGS.decode(logs):
        replica = Replica(mode)
        for turn in turns:
            found.update(told_of(replica.turn(turn)))
    return found.hexdigest()


@pytest.mark.integration
def test_logs_give_the_same_plans_in_another_process(tmp_path: Path) -> None:
    logs = [
        (mode, [turn for turn, _ in ReplicaDay(random.Random(seed), mode).turns(40)])
        for seed in range(4)
        for mode in ("advise", "reserve")
    ]
    (tmp_path / "logs").write_bytes(kept := msgspec.msgpack.encode(logs))
    assert printed_under_other_seeds(__file__, tmp_path / "logs") == [digest(kept)] * 2


def test_the_machines_own_clock_has_no_say() -> None:
    logs = [
        (mode, list(ReplicaDay(random.Random(seed), mode).turns(24)))
        for seed in range(4)
        for mode in ("advise", "reserve")
    ]
    replicas = [Replica(mode) for mode, _ in logs]
    for number in range(24):
        if number % 8 == 7:
            time.sleep(BATCH_SECONDS)  # nothing happens meanwhile, by the log
        for replica, (_, log) in zip(replicas, logs, strict=True):
            told, plan = log[number]
            assert told_of(replica.turn(told)) == plan


def test_the_logs_that_are_played_have_writes_of_several_causes_in_them() -> None:
    """A log in which nothing is decided would give the same every time."""
    plans = [
        plan for mode in ("advise", "reserve") for _, plan in ReplicaDay(random.Random(0), mode).turns(25)
    ]
    causes = {write[4] for plan in plans for write in msgspec.json.decode(plan)[0][0]}
    assert causes >= {"front", "left", "wake"}


@pytest.mark.parametrize("stuck", [0, 2])
def test_while_all_levels_come_too_late_nothing_is_written_until_starts_end(stuck: int) -> None:
    replica, life = Replica("advise"), ReplicaDay(random.Random(0), "advise")
    large = life.stated(a_job("large", gpu=8))
    small = [life.stated(a_job(f"small-{number}", gpu=1, queue_time=NOW - number)) for number in range(6)]
    started = life.stated(large, phase=Phase.RUNNING, started=NOW, charged={"a": large.demand})
    before = [life.stated(a_job(f"stuck-{number}", flavorless=True)) for number in range(stuck)]

    def writes(seconds: float, *states: State) -> list[str]:
        told = TurnInput(
            seconds=seconds,
            wall=NOW,
            states=[encode_state(state) for state in states],
            decision=to_packed(life.decision(len(states), [*before, *small[::2]])),
            landed=False,
        )
        return [write.job.id for write in replica.turn(told).steering.writes]

    writes(0.9, a_pool(), QUEUE, large, *before, *small)
    assert len(writes(1.0, started)) > 1
    replica.come_late(2)
    assert len(writes(1.0)) > 1, "who is parked may still be labelled in time"
    replica.come_late(2)
    assert writes(0.9 + PASSED_SECONDS) == []
    other = life.stated(small[1], phase=Phase.RUNNING, started=NOW, charged={"a": small[1].demand})
    assert writes(1.0 + PASSED_SECONDS, other) == ["small-0"], "it is first, and another one started"
    assert len(writes(1.1 + PASSED_SECONDS + BATCH_SECONDS)) > 1


ANSWER = 0.2


class SlowFrontend:
    """A pool in which so many jobs start at once, beside a frontend that takes a fifth of a second for a write."""

    def __init__(self, queue: QueueState, starts: int = MANY_STARTS) -> None:
        self.replica, self.life = Replica("advise"), ReplicaDay(random.Random(0), "advise")
        self.waiting = [self.life.stated(a_job(f"w-{n}", gpu=1, queue_time=NOW - n)) for n in range(6)]
        started = [self.life.stated(a_job(f"r-{n}", gpu=1)) for n in range(starts)]
        self.turn(0.0, a_pool(), queue, *started, landed=False)
        self.running = [self.life.stated(one, phase=Phase.RUNNING, started=NOW) for one in started]

    def turn(self, seconds: float, *states: State, landed: bool = True, news: bool = True) -> int:
        """Number of levels that are written in a turn, in which every other one that waits is wanted."""
        told = TurnInput(
            seconds=seconds,
            wall=NOW,
            states=[encode_state(state) for state in states],
            decision=to_packed(self.life.decision(len(states), self.waiting[::2])),
            landed=landed,
            answer=ANSWER,
            news=news,
        )
        return len(self.replica.turn(told).steering.writes)

    def start_all(self, charged: int) -> list[JobState]:
        """Starts the jobs, each of which then holds so much of the quota."""
        holds = {"a": {"nvidia.com/gpu": charged}}
        return [self.life.stated(one, charged=holds) for one in self.running]


@pytest.mark.parametrize("queue", [QUEUE, a_queue(strategy=KUEUE_PARKING)], ids=["woken", "room unknown"])
def test_labels_to_jobs_without_room_take_a_bounded_part_of_a_slow_frontends_time(queue: QueueState) -> None:
    slow = SlowFrontend(queue)
    assert slow.turn(1.0, *slow.start_all(800), *slow.waiting, landed=False) == 2, "nobody answered yet"
    assert slow.turn(1.0) == 2
    levelled = [slow.life.stated(one, level=0) for one in slow.waiting]  # somebody took them away
    assert slow.turn(1.01, *levelled) == 0
    paid = 1.0 + (2 * ANSWER - SAVED_SECONDS) / SHARE
    assert slow.turn(paid - 0.01) == 0
    assert slow.turn(paid + 0.01) == 1
    for seconds in (12.0, 12.1, 12.2, 12.3):
        levelled = [slow.life.stated(one, level=0) for one in levelled]
        assert slow.turn(seconds, *levelled) > 0, "they started long ago"


def test_levels_to_jobs_with_room_are_not_counted() -> None:
    slow = SlowFrontend(QUEUE)
    woken = slow.turn(1.0, *slow.start_all(400), *slow.waiting)
    assert woken == 3
    full = [slow.life.stated(one, charged={"a": {"nvidia.com/gpu": 800}}) for one in slow.running]
    others = [slow.life.stated(one, level=0) for one in slow.waiting]
    assert slow.turn(1.2, *full, *others) == 1, "as many as were saved up"


def test_labels_are_not_counted_where_a_queue_is_short_of_time_and_not_of_room() -> None:
    fast = SlowFrontend(QUEUE, starts=10 * QUEUE.able.starts_a_second + 1)
    levelled = fast.waiting
    assert fast.turn(1.0, *fast.start_all(1), *levelled) == 2
    for seconds in (1.01, 1.02, 1.03):
        levelled = [fast.life.stated(one, level=0) for one in levelled]
        assert fast.turn(seconds, *levelled) == 2
    assert fast.replica.labels_left() == 1, "nor do other pools pay for them: as many as were saved up"


@pytest.mark.parametrize(
    ("queue", "more", "news", "outpaced"),
    [
        (QUEUE, 1, True, True),
        (QUEUE, 0, True, False),
        (QUEUE, 1, False, False),
        (a_queue(), 1, True, False),
        (msgspec.structs.replace(QUEUE, frontend="kueue", capabilities=OLDER), 1, True, True),
        (a_queue(capabilities=OLDER), 1, True, False),
        (msgspec.structs.replace(QUEUE, capabilities=SLOW), 1, True, True),
        (msgspec.structs.replace(QUEUE, capabilities=SLOW), 0, True, False),
    ],
    ids=[
        "fast",
        "quick enough",
        "started long ago",
        "of a frontend that parks nothing",
        "as an older release states it",
        "of a frontend that parks nothing, as an older release states it",
        "fast for a slow frontend",
        "quick enough for a slow frontend",
    ],
)
def test_a_queue_that_starts_jobs_faster_than_levels_reach_them_is_said_to(
    queue: QueueState, more: int, *, news: bool, outpaced: bool
) -> None:
    fast = SlowFrontend(queue, starts=10 * queue.able.starts_a_second + more)
    assert fast.replica.outpaced() == {}
    fast.turn(1.0, *fast.start_all(1), news=news)
    said = {POOL: ["main"]} if outpaced else {}
    assert fast.replica.outpaced() == said
    fast.turn(0.9 + OUTPACED_SECONDS)
    assert fast.replica.outpaced() == said, "it shall not flap"
    fast.turn(1.0 + OUTPACED_SECONDS)
    assert fast.replica.outpaced() == {}


@pytest.mark.parametrize("strategy", [KUEUE_PARKING, ""])
@pytest.mark.parametrize("apart", [True, False])
def test_jobs_that_no_flavor_takes_keep_those_behind_them_from_no_level_however_many_they_are(
    strategy: str, *, apart: bool
) -> None:
    replica, life = Replica("advise"), ReplicaDay(random.Random(0), "advise")
    stuck = [life.stated(a_job(f"stuck-{n}", gpu=1, flavorless=True)) for n in range(2 * WINDOW)]
    others = [life.stated(a_job(f"w-{n}", gpu=1, queue_time=NOW - n)) for n in range(2 * WINDOW)]
    queue = a_queue(strategy=strategy, quotas=[FlavorQuota(flavor="a", nominal={"nvidia.com/gpu": 0})])
    told = TurnInput(
        seconds=1.0,
        wall=NOW,
        states=[encode_state(state) for state in (a_pool(), queue, *stuck, *others)],
        decision=to_packed(life.decision(2 + 4 * WINDOW, [*stuck, *others], apart=apart)),
        landed=True,
    )
    written = [write.job.id for write in replica.turn(told).steering.writes]
    if apart:
        assert written, "they stand in no order"
        assert set(written) <= {job.id for job in others[:WINDOW]}
    else:
        assert written == [], "of an earlier release's decision nobody knows who stands behind them"


def test_without_leave_turns_rest_where_many_start_on_a_machine_without_cpu_to_spare() -> None:
    slow = SlowFrontend(a_queue(frontend="kueue"))
    slow.replica.cpu_wait = 1.0
    assert slow.replica.rest() == 0.0, "few start"
    assert slow.turn(1.0, *slow.start_all(400), *slow.waiting) == 0, "nothing may be written"
    assert slow.replica.rest() == LATE_SECONDS
    able = msgspec.structs.replace(KUEUE, retry_seconds=0.2)
    assert slow.turn(1.1, a_queue(frontend="kueue", capabilities=able, rev=2)) == 0
    assert slow.replica.rest() == 0.1, "half of its own batch, as it states it now"
    slow.replica.cpu_wait = 0.0
    assert slow.replica.rest() == 0.0
    steered = SlowFrontend(QUEUE)
    steered.replica.cpu_wait = 1.0
    steered.turn(1.0, *steered.start_all(400), *steered.waiting, landed=False)
    assert steered.replica.rest() == 0.0, "its answers will tell"


if __name__ == "__main__":
    print(digest(Path(sys.argv[1]).read_bytes()))  # noqa: T201 # read by the test
