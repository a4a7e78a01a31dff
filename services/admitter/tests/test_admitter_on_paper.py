"""`order --levels` on a snapshot and the admitter plan the same writes from the same facts."""

import random
from collections.abc import Collection, Iterable
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_admitter.decide.deciding import PoolPlan, decide
from fairlead_admitter.decide.merged_order import Ranked
from fairlead_admitter.decide.planner import Planner
from fairlead_admitter.decide.reserving import Reservations
from fairlead_admitter.decide.steering import SteeringPlan, steer
from fairlead_admitter.decide.turn_clock import TurnClock
from fairlead_admitter.observe.decision_gate import DecisionGate, Holders
from fairlead_admitter.observe.expectations import Expectations
from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_admitter.observe.policy_view import PolicyView
from fairlead_admitter.report.reservation_record import ReservationRecord
from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_contracts.frontend.shipped import KUEUE_BLOCKING, KUEUE_PARKING, SHIPPED, SLURM
from fairlead_contracts.messages.decisions import Basis, Position
from fairlead_contracts.messages.members import Holding, MemberLease
from fairlead_contracts.messages.state import FlavorQuota, JobState, Phase, QueueState, State, subject_of
from fairlead_contracts.policyfile.document import Bands, Grant, PolicyDocument, Reserve, Tenant
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.levels.class_bands import class_bands_by
from fairlead_policy.levels.operators import ControlWord
from fairlead_policy.levels.withholding import judge_withholding
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.levels import PlannedLevels, plan_snapshot_levels, steering_of, window_of
from fairlead_policy.snapshot.ordering import OrderedPool, order_snapshot
from fairlead_policy.snapshot.reserve import PaperReservation, in_reserved_order, reserve_snapshot
from fairlead_runtime.metrics import Metrics
from fairlead_testkit.inputs.builders import (
    NOW,
    a_class,
    a_decision,
    a_job,
    a_pool,
    a_queue,
    a_queue_heads,
)
from fairlead_testkit.oracles.starting_order import in_starting_order

GPU = "nvidia.com/gpu"
CARD = 1000
"""A card in base units."""
SECOND = 1_000_000
POOL = "c1/gpu"
CLASSES = ["urgent", "approved", "normal"]
BASES = [0, 0, 1500, 3000, 700, -50, 9000]
"""Levels of the classes, and of priority classes that are none of the policy's."""
TEAMS = ("team-a", "team-b")
BELOW_ALL = -1000
"""A level that no writer gives."""


class ClusterOnPaper:
    """A cluster's facts, as an admitter and as a snapshot have them.

    Args:
        document: the policy.
        facts: states of the cluster's objects.
    """

    def __init__(self, document: PolicyDocument, facts: Iterable[State]) -> None:
        self.rulebook = Rulebook(document, 1)
        self.states = {subject_of(state): state for state in facts}
        self.facts = ClusterFacts("c1")
        self.facts.classify(lambda job: self.rulebook.class_of(job, self.rulebook.tenant_of(job)).job_class)
        self.facts.apply(self.states)

    def snapshot(self) -> Snapshot:
        """The snapshot as it comes out of a file."""
        return decode_snapshot(encode_snapshot(snapshot_of(self.states, self.rulebook.document, NOW)))

    def admitters_plan(self, positions: list[Position]) -> SteeringPlan:
        """The admitter's plan for the next pass, with this window."""
        queues = list(self.facts.queues.values())
        window = []
        for rank, position in enumerate(positions):
            job = self.facts.job(position.uid)
            assert job is not None
            window.append(Ranked(rank, position, job))
        class_bands = class_bands_by(self.rulebook.document, queues, self.facts.classes)
        names = [queue.name for queue in queues]
        return steer(window, self.facts, names, Expectations(), class_bands)

    def write(self, writes: Iterable[tuple[str, int]]) -> None:
        """The levels stand."""
        for uid, level in writes:
            job = self.facts.job(uid)
            assert job is not None
            changed = msgspec.structs.replace(job, level=level, rev=job.rev + 1)
            self.states[subject_of(job)] = changed
            self.facts.apply({subject_of(job): changed})

    def levels(self) -> dict[str, int]:
        """Levels of the jobs that wait, by uid."""
        return {job.uid: job.level for job in self.facts.queued_jobs()}


class LeadingAdmitter:
    """The planner of an admitter, in whose only pool one scorer decided an order.

    Levels are only decided here (`dry_run`): that asks for no leave, of which paper knows nothing.

    Args:
        cluster: what it steers.
        pool: the pool in order, of one queue.
    """

    def __init__(self, cluster: ClusterOnPaper, pool: OrderedPool) -> None:
        self.facts, self.policy, self.gate = cluster.facts, PolicyView(), DecisionGate()
        self.policy.rulebook = cluster.rulebook
        [queue] = self.facts.queues
        parts = [
            [position for position in pool.positions if (position.uid in pool.apart) == apart]
            for apart in (False, True)
        ]
        heads = [
            a_queue_heads(
                cluster="c1",
                queue=queue,
                waiting=len(positions),
                positions=positions[: cluster.rulebook.document.window],
                flavorless=apart or msgspec.UNSET,
            )
            for positions, apart in zip(parts, (False, True), strict=True)
            if positions
        ]
        basis = Basis(policy=1, capacity=self.facts.pools["gpu"].capacity)
        self.gate.accept(a_decision(pool=POOL, owner="s", epoch=1, basis=basis, queue_heads=heads))
        self._now = 0.0
        self._clock = TurnClock(lambda: self._now, lambda: NOW + round(self._now * SECOND))
        self._planner = Planner(
            self,
            Expectations(self._clock.monotonic),
            reserving=Reservations(
                ReservationRecord(Metrics("admitter"), "c1"), self.facts.job, writable=lambda: True
            ),
            clock=self._clock,
            cpu_wait=lambda: 0.0,
            tick=1.0,
            dry_run=True,
        )
        self._planner.lead(1)

    def holders(self) -> Holders:
        """Holders: one scorer holds all."""
        holdings = [Holding(pool=POOL, shards=[0], current=True)]
        return Holders([MemberLease(role="scorer", replica="s", renewed=NOW, holdings=holdings)])

    def plan_to_write(self) -> PoolPlan:
        """Its plan now, were it to be carried out."""
        view = self._planner.view(POOL, frozenset(self.facts.queues))
        return decide(msgspec.structs.replace(view, dry_run=False))

    def turn(self, *, after: float = 0.0) -> PoolPlan:
        """Its plan so many seconds later."""
        self._now += after
        self._clock.look()
        plan = decide(self._planner.view(POOL, frozenset(self.facts.queues)))
        self._planner.remember(POOL, plan.after)
        return plan


def reserved_on_paper(snapshot: Snapshot) -> tuple[PlannedLevels, PaperReservation]:
    """The levels on paper and the promise, as `fairlead order --levels` plans them."""
    [pool] = order_snapshot(snapshot)
    found = reserve_snapshot(snapshot, pool)
    assert found is not None
    plan = plan_snapshot_levels(
        in_reserved_order(pool, found),
        snapshot.jobs,
        snapshot.policy.window,
        steering_of(snapshot, pool.name),
        reservation=found,
    )
    return plan, found


def on_paper(snapshot: Snapshot) -> tuple[PlannedLevels, list[Position]]:
    """The plan, and the positions of its window."""
    [pool] = order_snapshot(snapshot)
    size = snapshot.policy.window
    jobs = {job.uid: job for job in snapshot.jobs}
    heads = {job.uid for job in window_of([jobs[one.uid] for one in pool.positions], size, pool.apart)}
    plan = plan_snapshot_levels(pool, snapshot.jobs, size, steering_of(snapshot, pool.name))
    return plan, [position for position in pool.positions if position.uid in heads]


def in_pairs(plan: SteeringPlan) -> list[tuple[str, int]]:
    return [(write.job.uid, write.level) for write in plan.writes]


def within(writes: Iterable[tuple[str, int]], uids: Collection[str]) -> list[tuple[str, int]]:
    return [write for write in writes if write[0] in uids]


def some_document(dice: random.Random) -> PolicyDocument:
    modes: list[Literal["strict", "additive", "multiplicative"]] = ["strict", "additive", "multiplicative"]
    mode = dice.choice(modes)
    ranks = enumerate(CLASSES if mode == "additive" else reversed(CLASSES))
    weights = {} if mode == "strict" else {name: 1.0 + number for number, name in ranks}
    return PolicyDocument(
        classes=CLASSES,
        class_mode=mode,
        class_weights=weights,
        window=dice.randint(1, 6),
        bands=Bands(width=dice.choice([1000, 4000])),
        preemption="protect" if dice.random() < 0.3 else "never",
        tenants=[Tenant(name=name) for name in TEAMS],
        grants=[
            Grant(tenant="team-a", classes=["urgent", "approved"]),
            Grant(tenant="team-b", classes=["urgent"]),
        ],
    )


def some_queues(dice: random.Random) -> list[QueueState]:
    banded = dice.random() < 0.7
    lowest = dice.choice([1, 1, 5])
    frontend = dice.choice(["kueue", "kueue", "kueue", "slurm", "sim", "another"])
    rules = dice.choice([*TieRule])
    stated = Capabilities(ties=rules, orders_across_queues=dice.random() < 0.5)
    unstated = None if frontend in SHIPPED else stated
    return [
        a_queue(
            name=name,
            frontend=frontend,
            capabilities=dice.choice([unstated, stated]),
            bands_by_class=banded,
            default_level=0 if banded else dice.choice([0, 0, 0, 4]),
            lowest_level=lowest,
            highest_level=dice.choice([1000, 1_000_000]),
        )
        for name in ("main", "other")[: dice.randint(1, 2)]
    ]


def some_job(dice: random.Random, number: int, queues: list[QueueState]) -> JobState:
    return a_job(
        f"j{number:02}",
        scope=dice.choice(TEAMS),
        queue=dice.choice(queues).name,
        requested_class=dice.choice([None, "urgent", "approved"]),
        gpu=dice.choice([1, 2, 3, 4, 999]),
        flavorless=dice.choice([*[msgspec.UNSET] * 5, True]),
        limited=dice.choice([*[msgspec.UNSET] * 5, True]),
        base=(base := dice.choice(BASES)),
        level=base + dice.choice([0, 0, 0, 3, 400, 999]),
        queue_time=NOW + dice.randrange(9) * SECOND,  # Kueue's are whole ones
        submitted=NOW - dice.randrange(10**9),
    )


def some_cluster(dice: random.Random, count: int) -> ClusterOnPaper:
    queues = some_queues(dice)
    values = dice.choice([{}, {"urgent": 3000, "approved": 1500}, {"approved": 2000, "other": 5}])
    known = [a_class(name=name, value=value) for name, value in values.items()]
    jobs = [some_job(dice, number, queues) for number in range(count)]
    return ClusterOnPaper(some_document(dice), [a_pool(), *queues, *known, *jobs])


@given(st.randoms(use_true_random=False), st.integers(0, 14))
def test_the_levels_on_paper_are_those_that_the_admitter_comes_to(dice: random.Random, count: int) -> None:
    cluster = some_cluster(dice, count)
    paper, window = on_paper(cluster.snapshot())
    passes = []
    while (plan := cluster.admitters_plan(window)).writes:
        passes.append(in_pairs(plan))
        cluster.write(passes[-1])
        assert len(passes) < 2 * count + 2
    # A pass lowers no more of one level than it looks at, paper all of them: the rest comes with the next passes.
    if len(passes) == 1:
        assert sorted(paper.writes) == sorted(passes[0])
        if len(cluster.facts.queues) == 1:
            # Behind the window nobody has a position: there any order of lowering is safe.
            inside = {position.uid for position in window}
            assert within(paper.writes, inside) == within(passes[0], inside)
    assert paper.levels == cluster.levels()
    again, _ = on_paper(cluster.snapshot())
    assert again.writes == []


def test_a_kueue_with_priority_classes_gets_levels_above_their_values() -> None:
    document = PolicyDocument(
        classes=["urgent", "normal"],
        tenants=[Tenant(name="team-a")],
        grants=[Grant(tenant="team-a", classes=["urgent"])],
        bands=Bands(width=10_000),
    )
    jobs = [
        a_job(
            "u-late",
            requested_class="urgent",
            base=50_000,
            level=50_000,
            submitted=NOW - 9,
            queue_time=NOW + SECOND,
        ),
        a_job(
            "u-soon", requested_class="urgent", base=50_000, level=50_000, submitted=NOW - 5, queue_time=NOW
        ),
        a_job("n-late", submitted=NOW - 9, queue_time=NOW + SECOND),
        a_job("n-soon", submitted=NOW - 5, queue_time=NOW),
        a_job("taken", base=70_000, level=70_000, submitted=NOW, queue_time=NOW + 2 * SECOND),
    ]
    queue = a_queue(frontend="kueue", bands_by_class=True)
    cluster = ClusterOnPaper(document, [a_pool(), queue, a_class(value=50_000), *jobs])
    paper, window = on_paper(cluster.snapshot())
    assert paper.writes == in_pairs(cluster.admitters_plan(window))
    levels = {uid.removeprefix("team-a/"): level for uid, level in paper.writes}
    assert levels.keys() == {"u-late", "n-late", "taken"}
    assert 50_000 < levels["u-late"] <= 60_000
    assert 0 < levels["n-late"] <= 10_000
    assert levels["taken"] == 0, "it stood above its class, which is everybody's"


@given(st.randoms(use_true_random=False))
def test_paper_withholds_what_the_admitter_withholds_for_preemption_and_bands(dice: random.Random) -> None:
    settings = ["withinClusterQueue", "reclaimWithinCohort", "borrowWithinCohort"]
    values = {"urgent": dice.choice([3000, 9000]), "approved": dice.choice([1500, 5000])}
    document = msgspec.structs.replace(
        some_document(dice), preemption=dice.choice(["never", "never", "protect", "accept"])
    )
    queues = [
        msgspec.structs.replace(
            queue,
            preemption={
                name: dice.choice(["Never", "Never", "Any", "LowerPriority"])
                for name in dice.sample(settings, dice.randint(0, 3))
            },
        )
        for queue in some_queues(dice)
    ]
    known = [a_class(name=name, value=value) for name, value in values.items()]
    cluster = ClusterOnPaper(document, [a_pool(), *queues, *known, some_job(dice, 0, queues)])
    paper, _ = on_paper(cluster.snapshot())
    # A dry run asks for no leave, which paper knows nothing of.
    live = judge_withholding(
        document, queues, None, control=ControlWord(), values=cluster.facts.classes, dry_run=True
    ).why
    if not class_bands_by(document, queues, cluster.facts.classes):
        assert paper.withheld
        return
    assert paper.withheld == ({("", queues[0].frontend): live} if live else {})


def test_a_slurm_that_sorts_equals_by_its_own_factors_has_a_level_for_each_position_on_paper_too() -> None:
    """The bridge states it so where a priority weight is not 0: the queue's name alone would say that the order is FIFO."""
    by_chance = msgspec.structs.replace(SLURM, ties=TieRule.CHANCE)
    jobs = [a_job(f"{at}", submitted=NOW - 9 + at, queue_time=NOW + at * SECOND) for at in range(3)]
    queue = a_queue(frontend="slurm", capabilities=by_chance)
    cluster = ClusterOnPaper(PolicyDocument(tenants=[Tenant(name="team-a")]), [a_pool(), queue, *jobs])
    paper, window = on_paper(cluster.snapshot())
    assert paper.writes == in_pairs(cluster.admitters_plan(window))
    levels = [level for _, level in paper.writes]
    assert levels == sorted(set(levels), reverse=True)
    assert [uid for uid, _ in paper.writes] == [job.uid for job in jobs]


def test_jobs_of_one_second_in_two_queues_of_kueue_are_kept_apart_by_a_level() -> None:
    """Kueue leaves it to chance which of two ClusterQueues' heads of one second and one priority goes first."""
    document = PolicyDocument(tenants=[Tenant(name="team-a")])
    for frontend, levels in (("kueue", 1), ("sim", 0)):
        queues = [a_queue(name=name, frontend=frontend) for name in ("main", "other")]
        jobs = [
            a_job("a", queue="main", submitted=NOW - 9, queue_time=NOW),
            a_job("b", queue="other", submitted=NOW - 5, queue_time=NOW),
        ]
        cluster = ClusterOnPaper(document, [a_pool(), *queues, *jobs])
        paper, window = on_paper(cluster.snapshot())
        assert [position.uid for position in window] == [job.uid for job in jobs]
        assert [uid for uid, _ in paper.writes] == [job.uid for job in jobs][:levels]
        assert paper.writes == in_pairs(cluster.admitters_plan(window))


def some_reserved_cluster(dice: random.Random, count: int, *, running: int) -> ClusterOnPaper:
    """A strict pool of eight cards, so many of which run until in an hour; nothing waits that fits beside them."""
    window = dice.choice([max(1, count), dice.randint(1, 6)])
    document = msgspec.structs.replace(
        some_document(dice),
        mode="reserve",
        reserve=Reserve(reaction_seconds=10, grace_seconds=30),
        window=window,
        shards=1,
    )
    queue = some_queues(dice)[0]
    # As on paper, all of the policy's window is labelled.
    able = msgspec.structs.replace(queue.able, labelled_ahead=count)
    queue = msgspec.structs.replace(queue, capabilities=able)
    stated: list[State] = [a_pool(capacity={GPU: 8 * CARD}, reservable=True), queue]
    values = dice.choice([{}, {"urgent": 3000, "approved": 1500}])
    known = [a_class(name=name, value=value) for name, value in values.items()]
    holds = a_job(
        "holds",
        queue=queue.name,
        demand={GPU: running * CARD},
        phase=Phase.RUNNING,
        started=NOW,
        ends_by=NOW + 3600 * SECOND,
    )
    least = 9 - running
    jobs = [
        msgspec.structs.replace(
            some_job(dice, number, [queue]),
            demand={GPU: dice.choice([least, least, 8, 9]) * CARD},
            # No frontend passes jobs of a strict queue by.
            flavorless=msgspec.UNSET,
            limited=msgspec.UNSET,
        )
        for number in range(count)
    ]
    return ClusterOnPaper(document, [*stated, *known, holds, *jobs])


@given(st.randoms(use_true_random=False), st.integers(0, 10))
def test_the_levels_of_a_reserved_pool_on_paper_are_those_that_the_admitter_decides(
    dice: random.Random, count: int
) -> None:
    cluster = some_reserved_cluster(dice, count, running=dice.randint(1, 8))
    stood = cluster.levels()
    cluster.write((uid, BELOW_ALL) for uid in stood)
    [pool] = order_snapshot(cluster.snapshot())
    admitter = LeadingAdmitter(cluster, pool)
    admitter.turn()  # it remembers from here on that nobody was promised a start
    cluster.write(stood.items())
    paper, found = reserved_on_paper(cluster.snapshot())
    assert not found.why_not
    assert not found.passing, "who passes is decided later"
    passes = []
    while (plan := admitter.turn()).steering.writes:
        passes.append(in_pairs(plan.steering))
        cluster.write(passes[-1])
        assert len(passes) < 2 * count + 2
    if plan.withholding.why:
        assert paper.withheld
        return
    if len(passes) == 1:
        assert sorted(paper.writes) == sorted(passes[0])
    assert paper.levels == cluster.levels()
    again, _ = reserved_on_paper(cluster.snapshot())
    assert again.writes == []


def a_reserved_cluster(*jobs: JobState, running: int) -> ClusterOnPaper:
    document = PolicyDocument(
        tenants=[Tenant(name="team-a")],
        mode="reserve",
        reserve=Reserve(reaction_seconds=10, grace_seconds=30),
        shards=1,
    )
    until = NOW + 3600 * SECOND
    holds = a_job("holds", demand={GPU: running * CARD}, phase=Phase.RUNNING, started=NOW, ends_by=until)
    return ClusterOnPaper(
        document, [a_pool(capacity={GPU: 8 * CARD}, reservable=True), a_queue(), holds, *jobs]
    )


def test_the_first_jobs_of_a_reserved_pool_get_a_level_although_they_stand_right_by_their_age() -> None:
    """Whoever comes next shall come behind them, whatever its queue time says."""
    jobs = [
        a_job(f"{at}", demand={GPU: 4 * CARD}, submitted=NOW - 9 + at, queue_time=NOW + at * SECOND)
        for at in range(2)
    ]
    cluster = a_reserved_cluster(*jobs, running=8)
    [pool] = order_snapshot(cluster.snapshot())
    paper, _ = reserved_on_paper(cluster.snapshot())
    assert [uid for uid, _ in paper.writes] == [job.uid for job in jobs]
    assert paper.writes == in_pairs(LeadingAdmitter(cluster, pool).turn().steering)


def test_who_passes_on_paper_stands_where_the_admitter_puts_it_a_reaction_later() -> None:
    gang = a_job("gang", demand={GPU: 8 * CARD}, submitted=NOW - 9, queue_time=NOW)
    waits = a_job("waits", demand={GPU: 2 * CARD}, submitted=NOW - 8, queue_time=NOW + SECOND)
    small = a_job(
        "small", demand={GPU: 2 * CARD}, submitted=NOW - 7, queue_time=NOW + 2 * SECOND, run_limit=60 * SECOND
    )
    large = a_job("large", demand={GPU: 9 * CARD}, submitted=NOW - 6, queue_time=NOW + 3 * SECOND)
    cluster = a_reserved_cluster(gang, waits, small, large, running=6)
    [pool] = order_snapshot(cluster.snapshot())
    paper, found = reserved_on_paper(cluster.snapshot())
    assert (found.head, found.passing, found.aside) == (gang.uid, (small.uid,), (large.uid,))
    admitter = LeadingAdmitter(cluster, pool)
    for after in (0, 0.1, 10):
        cluster.write(in_pairs(admitter.turn(after=after).steering))
    order = [small.uid, gang.uid, waits.uid, large.uid]
    assert [job.uid for job in in_starting_order(cluster.facts.queued_jobs())] == order
    assert sorted(paper.levels, key=lambda uid: (-paper.levels[uid], order.index(uid))) == order
    assert paper.levels[large.uid] == cluster.levels()[large.uid] == 0, "it gets no level"


@pytest.mark.parametrize(("strategy", "labelled"), [(KUEUE_PARKING, 1), (KUEUE_BLOCKING, 6)])
def test_beside_one_large_job_many_are_labelled_only_where_nobody_is_woken(
    strategy: str, labelled: int
) -> None:
    """Each level makes the frontend's batch longer, and what comes free amid it goes to whoever is tried next."""
    queue = a_queue(strategy=strategy, quotas=[FlavorQuota(flavor="f", nominal={GPU: 14 * CARD})])
    runs = [
        a_job(f"r{at}", demand={GPU: cards * CARD}, phase=Phase.RUNNING, started=NOW)
        for at, cards in enumerate([10, 1, 1, 1, 1])
    ]
    waits = [
        a_job(f"w{at}", demand={GPU: CARD}, submitted=NOW - at, queue_time=NOW + at * SECOND)
        for at in range(9)
    ]
    document = PolicyDocument(tenants=[Tenant(name="team-a")], window=6, shards=1)
    cluster = ClusterOnPaper(document, [a_pool(capacity={GPU: 14 * CARD}), queue, *runs, *waits])
    [pool] = order_snapshot(cluster.snapshot())
    assert len(LeadingAdmitter(cluster, pool).plan_to_write().steering.writes) == labelled
