"""Jobs weigh what HAMi gives them, where their clusters register cards: step by step, from scratch and on paper alike."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.frontend.cards import (
    CARD_CORES,
    CARD_MEMORY,
    CARD_MEMORY_PERCENT,
    USE_MODEL,
    VGPUS,
    CardState,
)
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.state import (
    JobShape,
    JobState,
    NodeState,
    Phase,
    PoolState,
    State,
    subject_of,
)
from fairlead_contracts.policyfile.document import Hierarchy, PolicyDocument, Pool, Tenant
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.explain.reasons import terms_in_words
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.ordering import order_snapshot
from fairlead_scorer.query.fitting import misfit_of
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.inputs.builders import NOW, a_job, a_mark, a_node, a_pool, a_queue
from fairlead_testkit.timing.in_hand import all_steps

MODELS = ("A30", "H100")
TENANTS = [Tenant(name="a", weight=2), Tenant(name="b"), Tenant(name="c")]
JOINED = [Pool(name="both", members=["c1/gpu", "c2/gpu"])]
APART = PolicyDocument(tenants=TENANTS, shards=4)
PLAIN = PolicyDocument(pools=JOINED, tenants=TENANTS, shards=4)
HDRF = PolicyDocument(hierarchy=Hierarchy(mode="hdrf"), pools=JOINED, tenants=TENANTS, shards=4)
GIB = 1024


def a_card(uuid: str, gib: int = 24, **more: object) -> CardState:
    plain = CardState(uuid=uuid, count=10, memory=gib * GIB, cores=100)
    return msgspec.structs.replace(plain, **more)


def a_cache(document: PolicyDocument, *states: State) -> ClusterCache:
    cache = ClusterCache()
    all_steps(cache.adopting(document, 1))
    all_steps(cache.learning({subject_of(state): state for state in states}))
    return cache


def asking(name: str, gpus: int = 1, *, pods: int = 1, scope: str = "a", **parts: int) -> JobState:
    """A job whose pods ask for vGPUs, and of each of these for parts."""
    said = {"mib": CARD_MEMORY, "percent": CARD_MEMORY_PERCENT, "cores": CARD_CORES}
    ask = {VGPUS: 1000 * gpus} | {said[part]: 1000 * amount for part, amount in parts.items()}
    counted = {resource: amount for resource, amount in ask.items() if amount}
    shape = JobShape(name="main", pods=pods, demand=counted, card_asks=[ask] if parts else [])
    demand = {resource: amount * pods for resource, amount in counted.items()}
    return a_job(name, scope=scope, demand=demand, pods=pods, shapes=[shape] if parts else [])


def weighs(cache: ClusterCache, uid: str) -> dict[str, int]:
    position = cache.pools["c1/gpu"].position(uid, NOW)
    assert position is not None
    return position.demand


QUOTA = a_pool(capacity={"cpu": 64_000, VGPUS: 40_000})
FOUR = a_node(name="n1", allocatable={VGPUS: 40_000}, cards=[a_card(f"GPU-{n}") for n in range(4)])


def test_half_a_card_weighs_half_a_card_and_the_pool_has_what_its_cards_are() -> None:
    half = asking("half", mib=12 * GIB, cores=50)
    cache = a_cache(APART, QUOTA, a_queue(), FOUR, half, asking("whole"))
    assert cache.pools["c1/gpu"].shape.capacity == {
        "cpu": 64_000,
        VGPUS: 4000,
        CARD_MEMORY: 4 * 24 * GIB * 1000,
        CARD_CORES: 400_000,
    }
    assert weighs(cache, half.uid) == {VGPUS: 100, CARD_MEMORY: 12 * GIB * 1000, CARD_CORES: 50_000}
    assert weighs(cache, "a/whole") == {VGPUS: 1000, CARD_MEMORY: 24 * GIB * 1000, CARD_CORES: 100_000}


def test_without_cards_and_when_they_vanish_jobs_weigh_what_is_stated() -> None:
    half = asking("half", mib=12 * GIB)
    cache = a_cache(APART, QUOTA, a_queue(), half)
    assert weighs(cache, half.uid) == half.demand
    pool = cache.pools["c1/gpu"]
    for known, demand in ((FOUR, {VGPUS: 100, CARD_MEMORY: 12 * GIB * 1000}), (None, half.demand)):
        for shard in sorted(pool.dirty):
            pool.mark_clean(shard)
        all_steps(cache.learning({subject_of(FOUR): known}))
        assert weighs(cache, half.uid) == demand
        assert pool.dirty == {0, 1, 2, 3}, "every tag changes with it"
    assert pool.shape.capacity == QUOTA.capacity


def test_who_waits_for_cards_that_an_autoscaler_would_bring_counts_until_the_quota_says_never() -> None:
    """Four cards are there, of a quota of forty: Kueue admits a job of 16, and nodes come for it."""
    large, next_one, other = (
        a_job(name, scope=name[0], demand={VGPUS: 1000 * cards}, submitted=NOW + at)
        for at, (name, cards) in enumerate([("a-large", 16), ("a-next", 1), ("b-other", 1)])
    )
    cache = a_cache(APART, QUOTA, a_queue(), FOUR, large, next_one, other)
    assert order_of(cache) == ["a-large", "b-other", "a-next"]
    assert "cannot start" not in told(cache, large)
    less = a_pool(capacity={"cpu": 64_000, VGPUS: 8000}, rev=2)
    all_steps(cache.learning({subject_of(less): less}))
    assert order_of(cache) == ["a-large", "a-next", "b-other"]
    assert "more than the 8 that the pool has: it cannot start" in told(cache, large)
    all_steps(cache.learning({subject_of(QUOTA): msgspec.structs.replace(QUOTA, rev=3)}))
    assert order_of(cache) == ["a-large", "b-other", "a-next"]


def test_who_asks_for_more_vgpus_than_the_quota_has_cannot_start_however_little_of_cards_that_is() -> None:
    parts = asking("a-parts", mib=1, pods=50)
    cache = a_cache(APART, QUOTA, a_queue(), FOUR, parts)
    assert [queue.apart for queue in cache.pools["c1/gpu"].order_at(NOW).queue_heads(1)] == [True]


def order_of(cache: ClusterCache) -> list[str]:
    return [position.id for position in cache.pools["c1/gpu"].order_at(NOW).positions()]


def told(cache: ClusterCache, job: JobState) -> str:
    pool = cache.pools["c1/gpu"]
    position = pool.position(job.uid, NOW)
    assert position is not None
    return " ".join(terms_in_words(position, None, pool.rules, NOW))


def test_what_pods_hold_of_cards_changes_no_weight() -> None:
    cache = a_cache(APART, QUOTA, a_queue(), FOUR, asking("half", mib=12 * GIB))
    pool = cache.pools["c1/gpu"]
    for shard in sorted(pool.dirty):
        pool.mark_clean(shard)
    held = [a_card("GPU-0", used_count=1, used_memory=9 * GIB), *FOUR.cards[1:]]
    all_steps(
        cache.learning({subject_of(FOUR): a_node(name="n1", allocatable=FOUR.allocatable, cards=held, rev=2)})
    )
    assert not pool.dirty


def test_what_hami_does_not_take_weighs_what_is_stated() -> None:
    odd = asking("odd", percent=150)
    assert weighs(a_cache(APART, QUOTA, a_queue(), FOUR, odd), odd.uid) == odd.demand


@pytest.mark.parametrize("half_way", [False, True], ids=["over at once", "stopped by and by"])
@pytest.mark.parametrize("first", ["cards", "runs"])
def test_past_use_counts_what_hami_gave(first: str, half_way: bool) -> None:  # of a parametrized test
    """Whichever is known first, the run or the cards, and whether it is seen to run or told when it was over."""
    hour = 3600 * SECOND
    document = msgspec.structs.replace(APART, half_life_hours=1.0)
    runs = msgspec.structs.replace(
        asking("half", mib=12 * GIB, cores=50), phase=Phase.RUNNING, started=NOW - 2 * hour
    )
    over = msgspec.structs.replace(runs, phase=Phase.ENDED, ended=NOW - hour, rev=2)
    cache = a_cache(document, QUOTA, a_queue(), *([FOUR] if first == "cards" else []))
    pool = cache.pools["c1/gpu"]
    for shard in range(pool.shards):
        pool.decay_past(shard, NOW - 3 * hour)
    for state in [runs, over] if half_way else [over]:
        all_steps(cache.learning({subject_of(state): state}))
    all_steps(cache.learning({subject_of(FOUR): FOUR}))
    for shard in range(pool.shards):
        pool.decay_past(shard, NOW)
    [past] = [one.past for one in pool.standings(["a"])]
    # One hour of use, an hour ago, by a half-life of one: half of a half is left.
    assert past == {
        VGPUS: pytest.approx(100 / 4, rel=0.1),
        CARD_MEMORY: pytest.approx(12 * GIB * 1000 / 4, rel=0.1),
        CARD_CORES: pytest.approx(50_000 / 4, rel=0.1),
    }
    all_steps(cache.learning({subject_of(FOUR): None}))
    for shard in range(pool.shards):
        pool.decay_past(shard, NOW)
    assert pool.past is not None
    assert pool.past.of("a").of("a") == past, "what is settled stays as it was counted"


@pytest.mark.parametrize(("free", "used_up"), [({"h100": 1, "t4": 1}, True), ({"h100": 2, "t4": 0}, False)])
def test_a_job_takes_its_cards_of_one_flavor(
    free: dict[str, int], used_up: bool
) -> None:  # of a parametrized test
    """H-DRF: one card is free of each of two flavors, and who waits asks for two."""
    flavors = {name: {VGPUS: 20_000} for name in free}
    pool = a_pool(capacity={VGPUS: 40_000}, flavors=flavors)
    held = [
        msgspec.structs.replace(
            asking(f"{flavor}-{number}"),
            phase=Phase.RUNNING,
            started=NOW,
            flavors={VGPUS: flavor},
        )
        for flavor, left in free.items()
        for number in range(2 - left)
    ]
    waits = asking("waits", 2, scope="b")
    document = msgspec.structs.replace(HDRF, pools=[])
    cache = a_cache(document, pool, a_queue(), FOUR, *held, waits)
    expected = {VGPUS, CARD_MEMORY, CARD_CORES} if used_up else set()
    assert cache.pools["c1/gpu"].rules.saturated == expected


@pytest.mark.parametrize("taken", [40, 39])
def test_quota_is_counted_as_the_frontend_does(taken: int) -> None:
    runs = a_job("runs", demand={VGPUS: 1000 * taken}, pods=taken, phase=Phase.RUNNING, started=NOW)
    wants = asking("wants", mib=GIB)
    cache = a_cache(APART, a_pool(capacity={VGPUS: 40_000}), a_queue(), FOUR, runs, wants)
    found = misfit_of(wants, cache, cache.pools["c1/gpu"])
    assert bool(found.no_quota) == (taken == 40)


def nodes_of(cluster: str, rng: random.Random) -> list[State]:
    def card(name: str) -> CardState:
        return a_card(
            name,
            rng.choice([16, 24, 80]),
            count=rng.choice([1, 4, 10]),
            model=rng.choice(MODELS),
            health=rng.random() < 0.9,
            used_count=rng.randint(0, 3),
        )

    return [
        a_node(
            name=f"n{at}",
            cluster=cluster,
            allocatable={"cpu": 64_000, VGPUS: 8000},
            ready=rng.random() < 0.8,
            cards=[card(f"{cluster}-{at}-{number}") for number in range(rng.choice([0, 0, 2, 4]))],
        )
        for at in range(rng.randint(0, 3))
    ]


def job_of(cluster: str, number: int, rng: random.Random) -> JobState:
    parts = rng.choice(
        [{}, {}, {"mib": rng.randint(0, 20) * GIB}, {"percent": rng.randint(1, 150)}, {"cores": 30}]
    )
    made = asking(f"j{number:02d}", rng.randint(1, 3), pods=rng.randint(1, 3), scope="a", **parts)
    demand = made.demand if rng.random() < 0.8 else {"cpu": rng.randint(1, 9000)} | made.demand
    shapes = made.shapes
    if shapes and rng.random() < 0.3:
        [only] = shapes
        card_annotations = {USE_MODEL: rng.choice(MODELS)}
        shapes = (
            JobShape(
                name="main",
                pods=only.pods,
                demand=only.demand,
                card_asks=only.card_asks,
                card_annotations=card_annotations,
            ),
        )
    if rng.random() < 0.2:
        demand, shapes = {"cpu": rng.randint(1, 9000)}, ()
    return a_job(
        made.id,
        uid=f"{cluster}-{number:02d}",
        cluster=cluster,
        scope=rng.choice("abc"),
        demand=demand,
        pods=made.pods,
        shapes=shapes,
        submitted=NOW - rng.randint(0, 9),
        phase=rng.choice([Phase.WAITING, Phase.WAITING, Phase.RUNNING]),
        flavorless=rng.choice([msgspec.UNSET, msgspec.UNSET, True]),
        flavors=rng.choice([{}, {VGPUS: "x"}, {VGPUS: "y", "cpu": "y"}]),
    )


def facts_of(rng: random.Random) -> list[State]:
    states: list[State] = []
    for cluster in rng.choice([("c1",), ("c1", "c2"), ("c1", "c2", "c3")]):
        quota = {"cpu": 64_000} | rng.choice(
            [{}, {VGPUS: 4000}, {VGPUS: 40_000}, {VGPUS: 8000, CARD_MEMORY: rng.randint(1, 90) * GIB * 1000}]
        )
        flavors = rng.choice(
            [
                {},
                {
                    "x": {VGPUS: quota.get(VGPUS, 0) // 4},
                    "y": {"cpu": 9, VGPUS: 3 * quota.get(VGPUS, 0) // 4},
                },
            ]
        )
        states += [
            a_pool(cluster=cluster, capacity=quota, flavors=flavors),
            a_queue(cluster=cluster, frontend="kueue"),
        ]
        states += [a_mark(cluster=cluster), *nodes_of(cluster, rng)]
        states += [job_of(cluster, number, rng) for number in range(rng.randint(0, 12))]
    return states


def _otherwise(state: State, rng: random.Random) -> State:
    """The same object as it may have been before."""
    match state:
        case JobState():
            number = int(state.id.removeprefix("j"))
            return msgspec.structs.replace(job_of(state.cluster, number, rng), scope=state.scope)
        case NodeState():
            return a_node(name=state.name, cluster=state.cluster, cards=[a_card("other")], allocatable={})
        case PoolState():
            return a_pool(cluster=state.cluster, capacity={"cpu": 3, VGPUS: 3})
        case _:
            return state


@given(st.integers(0, 2**32), st.sampled_from([PLAIN, HDRF, APART]))
def test_step_by_step_from_scratch_and_on_paper_the_order_is_the_same(
    seed: int, document: PolicyDocument
) -> None:
    rng = random.Random(seed)
    states = facts_of(rng)
    whole, steps = a_cache(document, *states), a_cache(document)
    told = [rng.choice([state, _otherwise(state, rng)]) for state in rng.sample(states, len(states))]
    for state in [*told, *rng.sample(states, len(states))]:
        all_steps(steps.learning({subject_of(state): state}))
    snapshot = snapshot_of({subject_of(one): one for one in states}, document, NOW)
    again = decode_snapshot(encode_snapshot(snapshot))
    assert again == snapshot
    ordered = {pool.name: pool for pool in order_snapshot(again)}
    assert ordered.keys() == whole.pools.keys() == steps.pools.keys()
    for name, expected in whole.pools.items():
        assert steps.pools[name].rules == expected.rules
        assert steps.pools[name].order_at(NOW).uids() == expected.order_at(NOW).uids()
        live = [expected.position(uid, NOW) for uid in expected.order_at(NOW).uids()]
        paper = ordered[name]
        heads = steps.pools[name].order_at(NOW).queue_heads(99)
        assert paper.apart == {one.uid for queue, found in heads.items() if queue.apart for one in found}
        assert list(map(_nameless, paper.positions)) == [
            _nameless(position) for position in live if position is not None
        ]
        assert paper.rules.saturated == expected.rules.saturated


def _nameless(position: Position) -> Position:
    """A snapshot says of two jobs of one name which is which."""
    return msgspec.structs.replace(position, id="")
