"""Resources that are used up (H-DRF): every shard knows the same, in step with the facts, and so does paper."""

import random

from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.messages.state import JobState, Phase, PoolState, State, subject_of
from fairlead_contracts.policyfile.document import Hierarchy, PolicyDocument, Pool, Tenant
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.ordering import order_snapshot
from fairlead_scorer.decide.decision import decide
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.inputs.builders import NOW, a_job, a_mark, a_pool, a_queue
from fairlead_testkit.timing.in_hand import all_steps

DOCUMENT = PolicyDocument(
    hierarchy=Hierarchy(mode="hdrf"),
    pools=[Pool(name="both", members=["c1/gpu", "c2/gpu"])],
    tenants=[
        Tenant(name="org"),
        Tenant(name="cards", parent="org"),
        Tenant(name="cpus", parent="org"),
        Tenant(name="rival"),
    ],
    shards=4,
)
TWO = {"gpu": 2000}


def a_cache(*states: State) -> ClusterCache:
    cache = ClusterCache()
    all_steps(cache.adopting(DOCUMENT, 1))
    all_steps(cache.learning({subject_of(state): state for state in states}))
    return cache


def of_clusters(**gpus: int) -> list[State]:
    return [
        state
        for cluster, cards in gpus.items()
        for state in (
            a_pool(cluster=cluster, capacity={"cpu": 40_000, "gpu": cards}),
            a_queue(cluster=cluster),
            a_mark(cluster=cluster),
        )
    ]


def test_all_shards_are_decided_anew_when_a_resource_is_used_up_or_no_more() -> None:
    waiting = [a_job(f"w{number}", scope="cards", demand=TWO) for number in range(20)]
    held = a_job("held", scope="cards", demand={"gpu": 7000}, phase=Phase.RUNNING)
    cache = a_cache(*of_clusters(c1=10_000), *waiting, held)
    pool = cache.pools["both"]

    def after(job: JobState) -> list[str]:
        for shard in sorted(pool.dirty):
            pool.mark_clean(shard)
        all_steps(cache.learning({subject_of(job): job}))
        found = {tuple(decide(pool, shard, NOW).basis.saturated) for shard in range(4)}
        assert len(found) == 1, "one set for all shards"
        return list(found.pop())

    assert decide(pool, 0, NOW).basis.saturated == []
    two_more = a_job("w0", scope="cards", demand=TWO, phase=Phase.RUNNING, rev=2)
    assert after(two_more) == ["gpu"]
    assert pool.dirty == {0, 1, 2, 3}
    decoy = a_job("decoy", scope="cards", demand={"gpu": 1})
    assert after(decoy) == ["gpu"]
    assert pool.dirty == {pool.shard_of("cards")}, "nothing else has changed"
    *small, fifth = (a_job(f"s{number}", scope="rival", demand={"gpu": 1000}) for number in range(5))
    for job in small:
        assert after(job) == ["gpu"]
    assert after(fifth) == [], "five cards of 43 are asked for one by one"
    assert pool.dirty == {0, 1, 2, 3}


def test_cards_that_are_free_in_another_cluster_are_no_use_to_who_waits_here() -> None:
    waiting = [a_job(f"w{number}", scope="cards", demand=TWO) for number in range(9)]
    held = a_job("held", scope="cards", demand={"gpu": 10_000}, phase=Phase.RUNNING)
    cache = a_cache(*of_clusters(c1=10_000, c2=10_000), *waiting, held)
    assert decide(cache.pools["both"], 0, NOW).basis.saturated == ["gpu"]
    there = a_job("there", scope="cards", demand=TWO, cluster="c2", uid="there")
    all_steps(cache.learning({subject_of(there): there}))
    assert decide(cache.pools["both"], 0, NOW).basis.saturated == []


def facts_of(seed: int) -> list[State]:
    rng = random.Random(seed)
    states: list[State] = []
    for cluster in rng.choice([("c1",), ("c1", "c2")]):
        flavors = rng.choice([("",), ("old", "new")])
        room = {name: {"cpu": rng.randint(1, 20), "gpu": rng.randint(1, 9)} for name in flavors}
        capacity = {name: sum(one[name] for one in room.values()) for name in ("cpu", "gpu")}
        told = room if len(room) > 1 else {}
        states += [a_pool(cluster=cluster, capacity=capacity, flavors=told), a_queue(cluster=cluster)]
        states.append(a_mark(cluster=cluster))
        for number in range(rng.randint(0, 12)):
            runs = rng.random() < 0.4
            states.append(
                a_job(
                    f"j{number:02d}",
                    uid=f"{cluster}-{number:02d}",
                    cluster=cluster,
                    scope=rng.choice(["cards", "cpus", "rival"]),
                    demand=rng.choice([{"gpu": rng.randint(1, 5)}, {"cpu": rng.randint(1, 5)}]),
                    submitted=NOW + rng.randint(-9, 0),
                    phase=Phase.RUNNING if runs else Phase.WAITING,
                    flavors=rng.choice([{}, {"gpu": "old"}, {"gpu": "new"}]) if runs and told else {},
                )
            )
    return states


@given(st.integers(0, 2**32))
def test_step_by_step_from_scratch_and_on_paper_the_same_is_used_up(seed: int) -> None:
    states = facts_of(seed)
    rng = random.Random(seed)
    whole = a_cache(*states)
    steps = ClusterCache()
    all_steps(steps.adopting(DOCUMENT, 1))
    told = [rng.choice([state, _otherwise(state, rng)]) for state in rng.sample(states, len(states))]
    for state in [*told, *rng.sample(states, len(states))]:
        all_steps(steps.learning({subject_of(state): state}))
    expected = whole.pools["both"]
    assert steps.pools["both"].rules == expected.rules
    [ordered] = order_snapshot(
        decode_snapshot(
            encode_snapshot(snapshot_of({subject_of(one): one for one in states}, DOCUMENT, NOW, pool="both"))
        )
    )
    assert ordered.rules.saturated == expected.rules.saturated
    assert [position.uid for position in ordered.positions] == expected.order_at(NOW).uids()


def _otherwise(state: State, rng: random.Random) -> State:
    """The same object as it may have been before."""
    if isinstance(state, JobState):
        return a_job(
            state.id,
            uid=state.uid,
            cluster=state.cluster,
            scope=state.scope,
            demand={"gpu": rng.randint(1, 9)},
            phase=rng.choice([Phase.WAITING, Phase.RUNNING]),
        )
    return (
        a_pool(cluster=state.cluster, capacity={"cpu": 3, "gpu": 3})
        if isinstance(state, PoolState)
        else state
    )
