"""Counts of admissions and of idle room: which orders count, and what cannot be judged."""

from dataclasses import dataclass, field

import msgspec
import pytest

from fairlead_admitter.decide.merged_order import MergedOrder
from fairlead_admitter.decide.waking import batch_seconds
from fairlead_admitter.observe.decision_gate import DecisionGate, Holders, PoolHeads
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.observe.watch import Observation
from fairlead_admitter.report.adherence import (
    REACTION_SECONDS,
    RECENT_SECONDS,
    AdherenceRecord,
    AdherenceWatch,
)
from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.messages.members import FollowedOrder, LeaderLease, OutOfTurn
from fairlead_contracts.messages.state import FlavorQuota, JobState, Phase, QueueState, subject_of
from fairlead_contracts.policyfile.document import PolicyDocument, Pool, Tenant
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_runtime.metrics import Metrics
from fairlead_testkit.inputs.builders import (
    NOW,
    a_decision,
    a_holding,
    a_job,
    a_member,
    a_position,
    a_queue,
    a_queue_heads,
)

GPU = "nvidia.com/gpu"
POOL = "c1/gpu"
QUEUE = a_queue(strategy="BestEffortFIFO", quotas=[FlavorQuota(flavor="f", nominal={GPU: 2})])
TAKEOVER_SECONDS = batch_seconds(QUEUE.able)


def a_rulebook(**changes: object) -> Rulebook:
    document = PolicyDocument(tenants=[Tenant(name="team-a")], shards=1, **changes)  # type: ignore[arg-type] # passed on
    return Rulebook(document, 1)


@dataclass
class Pictured:
    """A pool in memory."""

    facts: ClusterFacts = field(default_factory=lambda: ClusterFacts("c1"))
    gate: DecisionGate = field(default_factory=DecisionGate)
    policy: PolicyView = field(default_factory=PolicyView)
    owners: int = 1
    now: float = 1000.0
    turn: int = 0
    queue: QueueState = QUEUE

    def __post_init__(self) -> None:
        self.policy.rulebook = a_rulebook()
        self.facts.apply({"queue": self.queue})
        self.registry = Metrics("admitter")
        self.adherence = AdherenceWatch(
            self, AdherenceRecord(self.registry), merge=self.merge, clock=self.wall
        )
        self.look()

    def holders(self) -> Holders:
        held = [a_holding(pool=POOL, shards=[0], current=True)]
        return Holders([a_member(replica="scorer-1", holdings=held)][: self.owners])

    def merge(self, pool: str, heads: PoolHeads, rulebook: Rulebook) -> MergedOrder:
        return MergedOrder(heads, rulebook.pool_rules(pool, heads.basis.capacity), NOW, 8)

    def order(self, *names: str) -> None:
        self.turn += 1
        positions = [
            a_position(uid=name, id=name, use=number, own_rank=number) for number, name in enumerate(names)
        ]
        gate = [a_queue_heads(queue="main", positions=positions, waiting=len(positions))]
        self.gate.accept(a_decision(owner="scorer-1", shard=0, epoch=1, turn=self.turn, queue_heads=gate))

    def look(self, *jobs: JobState, after: float = 0.0) -> None:
        self.now += after
        changes = [change for job in jobs for change in self.facts.apply({subject_of(job): job})]
        seen = Observation(jobs=changes, judged=[], news=True, state_seq=0, before_seq=0, at=self.now)
        self.adherence.observe(seen, {POOL: frozenset(["main"])})

    def stand_by(self, *jobs: JobState, after: float, leader: LeaderLease | None) -> None:
        """Does as `look`, for a replica that does not lead."""
        self.now += after
        changes = [change for job in jobs for change in self.facts.apply({subject_of(job): job})]
        seen = Observation(jobs=changes, judged=[], news=True, state_seq=0, before_seq=0, at=self.now)
        self.adherence.stand_by(seen, {POOL: frozenset(["main"])}, leader)

    def overlook(self, *jobs: JobState, after: float) -> None:
        """Does as `look`, while not everything is known."""
        self.now += after
        changes = [change for job in jobs for change in self.facts.apply({subject_of(job): job})]
        seen = Observation(jobs=changes, judged=[], news=True, state_seq=0, before_seq=0, at=self.now)
        self.adherence.overlook(seen, {POOL: frozenset(["main"])})

    def wall(self) -> int:
        """Microseconds since the Unix epoch."""
        return NOW + round((self.now - 1000.0) * SECOND)

    def lease(self) -> LeaderLease:
        """The lease of another replica, renewed just now."""
        return LeaderLease(role="admitter", cluster="c1", replica="other", epoch=1, renewed=self.wall())

    def apart(self) -> tuple[int, int]:
        """Admissions of newcomers, and around takeovers."""
        [found] = self.adherence.stated()
        return found.newcomers, found.takeovers

    def counted(self) -> tuple[int, int, float]:
        """Admissions, those of them out of order, GPU-seconds."""
        [found] = self.adherence.stated()
        return found.admissions, found.missed, found.idle.get(GPU, 0.0)


def waiting(name: str, rev: int = 1) -> JobState:
    return a_job(name, uid=name, rev=rev, demand={GPU: 1})


def running(name: str) -> JobState:
    return msgspec.structs.replace(waiting(name, 2), phase=Phase.RUNNING, charged={"f": {GPU: 1}})


def ended(name: str) -> JobState:
    return msgspec.structs.replace(waiting(name, 3), phase=Phase.ENDED)


def a_full_pool(queue: QueueState = QUEUE) -> Pictured:
    """A pool with two jobs that run and four that wait, all of them known for long."""
    pool = Pictured(queue=queue)
    pool.look(*(waiting(name) for name in "abcdxy"))
    pool.order(*"xyabcd")
    pool.look(after=1.0)
    pool.look(running("x"), running("y"))
    pool.order(*"abcd")
    pool.look(after=1.0)
    return pool


@pytest.mark.parametrize(
    ("strategy", "stated", "missed"),
    [
        ("BestEffortFIFO", None, 0),
        ("StrictFIFO", None, 1),
        ("fifo", Capabilities(blocking_strategy="fifo"), 1),
        ("StrictFIFO", Capabilities(blocking_strategy="fifo"), 0),
    ],
)
def test_who_passes_a_head_that_does_not_fit_is_out_of_order_where_the_frontend_says_that_heads_block(
    strategy: str, stated: Capabilities | None, missed: int
) -> None:
    pool = Pictured(queue=msgspec.structs.replace(QUEUE, strategy=strategy, capabilities=stated))
    pool.look(a_job("wide", uid="wide", demand={GPU: 8}), waiting("b"))
    pool.order("wide", "b")
    pool.look(after=1.0)
    pool.look(running("b"))
    assert pool.counted()[:2] == (1, missed)


def test_an_admission_is_judged_and_what_stood_free_until_then_is_counted() -> None:
    pool = a_full_pool()
    begun = pool.counted()
    assert begun[:2] == (2, 0)
    pool.look(ended("x"), after=5.0)
    pool.look(running("b"), after=1.5)
    assert pool.counted() == (3, 1, begun[2] + 1.5)
    pool.look(after=100.0)
    assert pool.counted() == (3, 1, begun[2] + 1.5)


def test_an_order_that_nobody_can_have_followed_yet_is_no_fault() -> None:
    pool = a_full_pool()
    pool.look(ended("x"), after=5.0)
    pool.order(*"bacd")
    pool.look(after=0.5)
    pool.look(running("a"), after=REACTION_SECONDS / 2)
    assert pool.counted()[:2] == (3, 0)

    pool = a_full_pool()
    pool.look(ended("x"), after=5.0)
    pool.order(*"bacd")
    pool.look(after=0.5)
    pool.look(running("a"), after=REACTION_SECONDS * 2)
    assert pool.counted()[:2] == (3, 1)


def test_who_came_just_before_is_not_judged() -> None:
    pool = a_full_pool()
    pool.look(ended("x"), after=5.0)
    pool.look(running("new"), after=0.1)
    assert pool.counted()[:2] == (2, 0)
    pool.look(ended("new"), waiting("later"), after=5.0)
    pool.look(running("later"), after=REACTION_SECONDS / 2)
    assert pool.counted()[:2] == (2, 0)
    assert pool.apart() == (2, 0)
    pool.look(ended("later"), waiting("deep"), after=5.0)
    pool.look(running("deep"), after=REACTION_SECONDS * 2)  # it stands behind all that the order shows
    assert pool.counted()[:2] == (3, 1)


def test_a_newcomer_that_is_tried_at_once_is_no_miss_although_the_order_has_others_before_it() -> None:
    pool = a_full_pool()
    pool.look(ended("x"), waiting("new"), after=5.0)
    pool.order("a", "b", "c", "d", "new")
    pool.look(after=0.05)
    pool.look(running("new"), after=0.05)
    assert (pool.counted()[:2], pool.apart()) == ((2, 0), (1, 0))


def start_of(pool: Pictured, name: str, *, waited: bool) -> None:
    """Of a pool with one free unit: this job takes it, and gives it back; it has waited long, or comes in that moment."""
    if waited:
        pool.look(waiting(name), after=0.3)
    pool.look(running(name), after=0.3)
    pool.look(ended(name), after=0.1)


@pytest.mark.parametrize("waited", [True, False])
def test_many_starts_of_one_minute_that_pass_who_is_first_are_told_newcomers_among_them(
    *, waited: bool
) -> None:
    pool = a_full_pool()
    pool.look(ended("x"), after=1.0)
    for number in range(2):
        start_of(pool, f"n{number}", waited=waited)
    assert pool.adherence.out_of_turn(pool.now) == {}, "two tell nothing"
    barged = 0
    for number in range(2, 5):
        start_of(pool, f"n{number}", waited=waited)
        barged = 0 if waited else number + 1
        # Two more started before, in turn; of as many as the newcomers one is seen to start with the next.
        found = OutOfTurn(starts=number + 3, passed=number + 1 - barged, newcomers=barged, many=number == 4)
        assert pool.adherence.out_of_turn(pool.now) == {POOL: found}
    told = f'newcomers_out_of_order_total{{pool="{POOL}"}} {float(barged)}'
    assert told.encode() in pool.registry.expose()[0]
    assert pool.adherence.out_of_turn(pool.now + RECENT_SECONDS) == {}


def test_a_few_starts_out_of_turn_among_many_are_told_as_few() -> None:
    pool = a_full_pool()
    pool.look(ended("x"), after=1.0)
    for number in range(5):
        start_of(pool, f"n{number}", waited=True)
    for number in range(70):  # once many, until they are fewer than one in ten
        told = OutOfTurn(starts=7 + number, passed=5, many=number < 44)
        assert pool.adherence.out_of_turn(pool.now) == {POOL: told}
        pool.order(f"t{number}", *"abcd")
        start_of(pool, f"t{number}", waited=True)


def test_what_is_admitted_while_nobody_leads_and_just_after_is_counted_apart() -> None:
    pool = a_full_pool()
    pool.adherence.begin_anew(pool.now, leads=False)
    pool.stand_by(after=1.0, leader=pool.lease())
    dead = pool.lease()
    pool.stand_by(ended("x"), running("d"), after=1.0, leader=dead)
    pool.stand_by(after=2.1, leader=None)  # it expired
    pool.stand_by(ended("d"), running("c"), after=0.5, leader=None)
    pool.adherence.begin_anew(pool.now, leads=True)
    pool.look(after=0.1)
    assert (pool.counted()[:2], pool.apart()) == ((0, 0), (0, 2))
    pool.look(ended("c"), running("b"), after=TAKEOVER_SECONDS / 2)
    assert pool.apart() == (0, 3)
    pool.look(ended("b"), running("a"), after=TAKEOVER_SECONDS)
    assert (pool.counted()[:2], pool.apart()) == ((1, 0), (0, 3))


def test_a_lead_that_was_given_back_was_led_until_then() -> None:
    pool = a_full_pool()
    pool.adherence.begin_anew(pool.now, leads=False)
    pool.stand_by(after=1.0, leader=pool.lease())
    lease = pool.lease()
    pool.stand_by(ended("x"), running("d"), after=0.5, leader=lease)
    pool.stand_by(after=0.1, leader=None)
    pool.adherence.begin_anew(pool.now, leads=True)
    pool.look(after=0.1)
    assert pool.apart() == (0, 0)


def test_who_starts_before_the_frontends_own_batch_has_passed_is_not_judged_after_a_takeover() -> None:
    slow = Capabilities(retry_seconds=20.0)
    pool = a_full_pool(msgspec.structs.replace(QUEUE, capabilities=slow))
    pool.adherence.begin_anew(pool.now, leads=False)
    pool.stand_by(after=1.0, leader=pool.lease())
    pool.adherence.begin_anew(pool.now, leads=True)
    pool.look(after=0.1)
    pool.look(ended("x"), running("b"), after=20.0)
    assert pool.apart() == (0, 1)
    pool.look(ended("b"), running("a"), after=0.5)
    assert (pool.counted()[:2], pool.apart()) == ((1, 0), (0, 1))


def test_who_leads_first_of_all_took_nothing_over() -> None:
    pool = a_full_pool()
    pool.adherence.begin_anew(pool.now, leads=False)
    pool.stand_by(after=1.0, leader=None)
    pool.adherence.begin_anew(pool.now, leads=True)
    pool.look(after=0.01)
    pool.look(ended("x"), running("a"), after=0.01)
    assert (pool.counted()[:2], pool.apart()) == ((1, 0), (0, 0))


def test_without_an_order_nothing_is_judged() -> None:
    pool = a_full_pool()
    pool.owners = 0
    pool.look(ended("x"), after=5.0)
    pool.look(running("b"), after=1.0)
    assert pool.counted()[:2] == (2, 0)
    [found] = pool.adherence.stated()
    assert found.unordered == 1


def test_what_is_admitted_while_something_is_not_known_is_counted_apart() -> None:
    pool = a_full_pool()
    pool.overlook(ended("x"), running("b"), after=0.5)
    [found] = pool.adherence.stated()
    assert (found.unseen, found.unordered) == (1, 0)
    before = pool.counted()
    pool.look(after=100.0)
    assert pool.counted() == before  # nothing of the time between is counted as idle
    pool.look(ended("b"), running("a"), after=0.01)
    assert pool.counted()[0] == before[0] + 1
    assert b'why="unknown"} 1.0' in pool.registry.expose()[0]


def test_what_is_admitted_before_everything_was_known_once_is_told_too() -> None:
    pool = a_full_pool()
    pool.adherence.begin_anew(pool.now, leads=True)
    pool.overlook(ended("x"), running("b"), after=0.5)
    assert pool.adherence.stated() == []
    pool.look(after=0.1)
    [found] = pool.adherence.stated()
    assert found.unseen == 1


def test_what_was_not_seen_is_not_counted() -> None:
    pool = a_full_pool()
    _, _, before = pool.counted()
    pool.look(ended("x"), after=5.0)
    pool.adherence.lose_sight()
    pool.look(after=1000.0)
    assert pool.counted()[2] == before
    pool.adherence.begin_anew(pool.now, leads=True)
    assert pool.adherence.stated() == []


def test_more_quota_is_room_although_no_job_changed() -> None:
    pool = a_full_pool()
    _, _, before = pool.counted()
    more = msgspec.structs.replace(QUEUE, rev=2, quotas=[FlavorQuota(flavor="f", nominal={GPU: 3})])
    pool.facts.apply({"queue": more})
    pool.look(after=1.0)
    pool.look(after=2.0)
    assert pool.counted()[2] == before + 2.0


def test_reserve_mode_and_queues_that_state_no_quota_are_not_measured() -> None:
    pool = a_full_pool()
    pool.policy.rulebook = a_rulebook(pools=[Pool(name=POOL, members=["c1/gpu"], mode="reserve")])
    pool.look(after=1.0)
    assert pool.adherence.stated() == []
    pool.policy.rulebook = a_rulebook()
    pool.look(after=1.0)
    assert pool.adherence.stated() == [FollowedOrder(pool=POOL, since=pool.wall())]
    pool.facts.apply({"queue": msgspec.structs.replace(QUEUE, rev=2, quotas=[])})
    pool.look(after=1.0)
    assert pool.adherence.stated() == []
