"""The cluster cache: facts and policy become pools; step by step equals from scratch; nothing changes unnoticed."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.messages.decisions import EffectiveJob, SiblingStanding
from fairlead_contracts.messages.state import JobArray, Phase, State, subject_of
from fairlead_contracts.policyfile.document import Aging, Match, PolicyDocument, Pool, Tenant
from fairlead_scorer.decide.decision import DecisionContent, decide
from fairlead_scorer.query.job_sentences import unranked
from fairlead_scorer.query.names import called
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_testkit.inputs.builders import (
    NOW,
    a_demand,
    a_document,
    a_grant,
    a_job,
    a_mark,
    a_node,
    a_pool,
    a_position,
    a_queue,
)
from fairlead_testkit.timing.in_hand import all_steps

DOCUMENTS = [
    a_document(),
    PolicyDocument(
        tenants=[Tenant(name="team-a", weight=2.0), Tenant(name="team-b", weight=0.5)],
        pools=[Pool(name="all", members=["c1/gpu", "c2/gpu"])],
        unlisted_weight=1.0,
        shards=3,
    ),
    PolicyDocument(
        tenants=[Tenant(name="team-a"), Tenant(name="team-b")],
        pools=[Pool(name="same", members=["c1/gpu", "c2/gpu"], hardware="shared")],
        unlisted_weight=1.0,
        shards=2,
    ),
    PolicyDocument(
        tenants=[Tenant(name="team-b", match=Match(queues=["side"])), Tenant(name="team-a", pool="far")],
        pools=[Pool(name="far", members=["c2/gpu"])],
        aging=Aging(entitlement_per_day=12.0, cap_days=1 / 24),
        window=2,
        shards=1,
    ),
]


def facts(*states: State) -> dict[str, State | None]:
    return {subject_of(state): state for state in states}


def a_cache(*states: State, document: PolicyDocument | None = None, revision: int = 1) -> ClusterCache:
    cache = ClusterCache()
    all_steps(cache.adopting(document or a_document(), revision))
    all_steps(cache.learning(facts(*states)))
    return cache


def contents(cache: ClusterCache, now: int = NOW) -> dict[tuple[str, int], DecisionContent]:
    return {
        (name, shard): decide(pool, shard, now)
        for name, pool in cache.pools.items()
        for shard in range(pool.shards)
    }


def order(cache: ClusterCache, pool: str) -> list[str]:
    found = cache.pools[pool]
    return [
        position.id
        for shard in range(found.shards)
        for heads in decide(found, shard, NOW).queue_heads
        for position in heads.positions
    ]


def tenants_waiting(cache: ClusterCache, pool: str = "c1/gpu") -> list[str]:
    found = cache.pools[pool]
    return [
        position.tenant
        for shard in range(found.shards)
        for heads in decide(found, shard, NOW).queue_heads
        for position in heads.positions
    ]


def use(cache: ClusterCache, pool: str, tenant: str) -> dict[str, int]:
    return cache.pools[pool].standings([tenant])[0].use


CLUSTER = (a_pool(), a_queue(), a_mark())


def test_waiting_jobs_wait_running_ones_count_as_use_held_and_ended_do_neither() -> None:
    cache = a_cache(
        *CLUSTER,
        a_job("waits"),
        a_job("runs", phase=Phase.RUNNING, gpu=2),
        a_job("held", phase=Phase.HELD),
        a_job("over", phase=Phase.ENDED),
    )
    assert order(cache, "c1/gpu") == ["waits"]
    assert use(cache, "c1/gpu", "team-a") == a_demand(cpu=8, memory_gib=32, gpu=2)


def test_a_job_of_an_unknown_queue_is_nowhere_until_the_queue_is_stated() -> None:
    cache = a_cache(a_pool(), a_job("early"))
    assert order(cache, "c1/gpu") == []
    all_steps(cache.learning(facts(a_queue())))
    assert order(cache, "c1/gpu") == ["early"]
    all_steps(cache.learning({subject_of(a_queue()): None}))
    assert order(cache, "c1/gpu") == []


def test_the_queue_leads_to_the_stated_pool_and_that_to_the_policys_pool() -> None:
    cache = a_cache(*CLUSTER, a_job(), document=DOCUMENTS[1])
    assert set(cache.pools) == {"all"}
    assert cache.pools["all"].shape.clusters == {"c1", "c2"}


def test_a_policy_pools_capacity_is_the_sum_over_its_members() -> None:
    cache = a_cache(
        a_pool(capacity={"cpu": 1000}),
        a_pool(cluster="c2", capacity={"cpu": 500, "memory": 7}),
        document=DOCUMENTS[1],
    )
    assert cache.pools["all"].shape.capacity == {"cpu": 1500, "memory": 7}


def test_a_pool_lacks_the_marks_of_every_cluster_that_the_policy_joins_even_one_never_stated() -> None:
    cache = a_cache(*CLUSTER, document=DOCUMENTS[1])
    assert cache.unmarked("all", "server-1") == ["c2"]
    all_steps(cache.learning(facts(a_mark(cluster="c2"))))
    assert cache.unmarked("all", "server-1") == []
    assert cache.unmarked("all", "server-2") == ["c1", "c2"]


def test_of_shared_hardware_there_is_as_much_as_one_cluster_has() -> None:
    cache = a_cache(
        a_pool(capacity={"cpu": 1000, "memory": 3}),
        a_pool(cluster="c2", capacity={"cpu": 500, "memory": 7}),
        document=DOCUMENTS[2],
    )
    assert cache.pools["same"].shape.capacity == {"cpu": 1000, "memory": 7}


SAME = (*CLUSTER, a_pool(cluster="c2"), a_queue(cluster="c2"))


def test_on_shared_hardware_a_job_and_the_one_that_carries_it_out_count_once() -> None:
    carried = a_job("slurm", uid="s", phase=Phase.RUNNING, gpu=2)
    carrier = a_job("pod", uid="p", cluster="c2", phase=Phase.RUNNING, gpu=2, carries="s")
    used = a_demand(cpu=8, memory_gib=32, gpu=2)
    for document, pool, sides in ((DOCUMENTS[2], "same", 1), (DOCUMENTS[1], "all", 2)):
        cache = a_cache(*SAME, carrier, carried, document=document)
        assert use(cache, pool, "team-a") == {name: amount * sides for name, amount in used.items()}
    cache = a_cache(*SAME, carrier, document=DOCUMENTS[2])
    assert use(cache, "same", "team-a") == used, "nobody knows the job that it names"
    all_steps(cache.learning(facts(carried)))
    assert use(cache, "same", "team-a") == used
    all_steps(cache.learning({subject_of(carrier): None}))
    assert use(cache, "same", "team-a") == used


def test_many_jobs_whose_queue_leads_elsewhere_are_counted_there_in_steps() -> None:
    cache = a_cache(*CLUSTER, *(a_job(f"j{number}") for number in range(1100)))
    steps = list(cache.learning(facts(a_queue(pool="cpu"))))
    assert len(steps) == 2, "others run in between, and leases are renewed"
    assert waiting(cache) == {"c1/gpu": 0, "c1/cpu": 1100}


def test_of_an_array_the_tasks_inside_its_window_have_a_position_each() -> None:
    array = a_job("7", uid="s-7", gpu=1, array=JobArray(tasks=200, window=[3, 4, 9]))
    cache = a_cache(*CLUSTER, array, a_job("9", submitted=NOW + 1))
    assert order(cache, "c1/gpu") == ["7_3", "7_4", "7_9", "9"]
    # One is split off, gets a level and starts; the window moves on.
    all_steps(cache.learning(facts(a_job("7_3", uid="s-7_0000000003", rev=2, phase=Phase.RUNNING, gpu=1))))
    assert order(cache, "c1/gpu") == ["7_4", "7_9", "9"]
    all_steps(
        cache.learning(facts(a_job("7", uid="s-7", rev=3, array=JobArray(tasks=199, window=[4, 9, 10]))))
    )
    assert order(cache, "c1/gpu") == ["7_4", "7_9", "7_10", "9"]
    assert use(cache, "c1/gpu", "team-a")["nvidia.com/gpu"] == 1000
    all_steps(cache.learning({subject_of(array): None}))
    assert order(cache, "c1/gpu") == ["9"]


def test_tasks_behind_the_window_of_an_array_have_no_position_and_are_counted() -> None:
    def behind(cache: ClusterCache) -> list[tuple[str, int, str]]:
        return [
            (one.id, one.array.tasks, unranked(one))
            for one in cache.unranked_in("c1/gpu", None)
            if one.array is not None
        ]

    array = a_job("7", uid="s-7", array=JobArray(tasks=200, window=[3, 4, 9]))
    cache = a_cache(*CLUSTER, array)
    why = "197 tasks of this array; they get positions as the tasks before them start"
    assert behind(cache) == [("7", 197, why)]
    all_steps(cache.learning(facts(a_job("7", uid="s-7", rev=2, array=JobArray(tasks=4, window=[4, 9, 10])))))
    assert [tasks for _, tasks, _ in behind(cache)] == [1]
    moved = a_job("7", uid="s-7", rev=3, scope="team-b", array=JobArray(tasks=5, window=[]))
    all_steps(cache.learning(facts(moved)))
    all_steps(cache.learning({subject_of(array): None}))
    assert [tasks for _, tasks, _ in behind(cache)] == [5], "its account changed"
    all_steps(
        cache.learning(
            facts(a_job("7", uid="s-7", rev=4, scope="team-b", array=JobArray(tasks=3, window=[1, 2, 3])))
        )
    )
    assert behind(cache) == []


def test_who_may_start_in_several_queues_is_ranked_in_the_first_and_runs_where_it_runs() -> None:
    side = a_queue(name="side", pool="cpu")
    cache = a_cache(*CLUSTER, a_pool(name="cpu"), side, a_job("a", queue="main", queues=["side", "main"]))
    assert (order(cache, "c1/cpu"), order(cache, "c1/gpu")) == (["a"], [])
    all_steps(
        cache.learning(facts(a_job("a", rev=2, phase=Phase.RUNNING, queue="main", queues=["side", "main"])))
    )
    assert use(cache, "c1/gpu", "team-a")


def test_only_the_tenants_shard_is_dirty_after_its_jobs_change() -> None:
    cache = a_cache(*CLUSTER, a_job("a"), a_job("b", scope="team-b"))
    pool = cache.pools["c1/gpu"]
    for shard in sorted(pool.dirty):
        pool.mark_clean(shard)
    all_steps(cache.learning(facts(a_job("c", scope="team-b"))))
    assert pool.dirty == {pool.shard_of("team-b")}


def test_a_level_written_to_a_job_makes_nothing_dirty() -> None:
    cache = a_cache(*CLUSTER, a_job("a"))
    pool = cache.pools["c1/gpu"]
    for shard in sorted(pool.dirty):
        pool.mark_clean(shard)
    all_steps(cache.learning(facts(a_job("a", level=500, rev=2))))
    assert pool.dirty == set()


def test_new_capacity_makes_every_shard_dirty() -> None:
    cache = a_cache(*CLUSTER)
    pool = cache.pools["c1/gpu"]
    for shard in sorted(pool.dirty):
        pool.mark_clean(shard)
    all_steps(cache.learning(facts(a_pool(capacity={"cpu": 1}))))
    assert pool.dirty == set(range(pool.shards))


def test_a_class_that_is_not_granted_is_not_had() -> None:
    urgent = a_job("u", requested_class="urgent", submitted=NOW + 1)
    assert order(a_cache(*CLUSTER, a_job("n"), urgent), "c1/gpu") == ["n", "u"]
    granted = a_document(grants=[a_grant()])
    assert order(a_cache(*CLUSTER, a_job("n"), urgent, document=granted), "c1/gpu") == ["u", "n"]


def test_a_job_that_comes_back_under_its_name_with_another_uid_is_another_job() -> None:
    cache = a_cache(*CLUSTER, a_job("a", uid="1", phase=Phase.RUNNING))
    all_steps(cache.learning(facts(a_job("a", uid="2"))))
    assert order(cache, "c1/gpu") == ["a"]
    assert use(cache, "c1/gpu", "team-a") == {}


@pytest.mark.parametrize("scopes", [("team-a", "team-b"), ("team-b", "team-a")])
def test_a_job_that_changed_its_account_counts_once_by_its_newer_statement(scopes: tuple[str, str]) -> None:
    before, after = (a_job("x", uid="1", scope=scope, rev=rev) for rev, scope in enumerate(scopes, start=1))
    for told in itertools.permutations((before, after)):
        assert tenants_waiting(a_cache(*CLUSTER, *told)) == [after.scope]
    cache = a_cache(*CLUSTER, before, after)
    all_steps(cache.learning({subject_of(after): None}))
    assert tenants_waiting(cache) == [before.scope]
    all_steps(cache.learning(facts(after) | {subject_of(before): None}))
    assert tenants_waiting(cache) == [after.scope]
    assert cache.pools["c1/gpu"].waiting == 1
    all_steps(cache.learning({subject_of(after): None}))
    assert tenants_waiting(cache) == []


def test_a_job_that_is_held_under_its_newer_account_does_not_wait_under_the_older() -> None:
    waits = a_job("x", uid="1", rev=1)
    cache = a_cache(*CLUSTER, waits, a_job("x", uid="1", scope="team-b", rev=2, phase=Phase.HELD))
    assert tenants_waiting(cache) == []


def test_a_job_is_found_by_its_one_name_and_by_what_others_call_it() -> None:
    job = a_job("job-train-1f2e3", uid="u-1", owner="Job/train", submission="Train")
    cache = a_cache(*CLUSTER, job)
    assert job.full_name == "team-a/train"
    for name in ("train", "job-train-1f2e3", "Train", "Job/train", "job/train", "job.batch/train", "u-1"):
        assert cache.find(name) == [job]
        assert cache.find(f"team-a/{name}") == [job]
        assert cache.find(f"team-b/{name}") == []
    assert cache.find("RayJob/train") == cache.find("Job/Train") == []


def test_positions_are_called_as_people_call_the_jobs_and_so_are_those_that_hold_them_back() -> None:
    jobs = [a_job(f"job-{name}-1f2e3", uid=name, owner=f"Job/{name}") for name in ("first", "second")]
    cache = a_cache(*CLUSTER, *jobs, a_job("plain", uid="plain"))
    effective_job = EffectiveJob(
        uid="first", id="job-first-1f2e3", job_class="normal", dominant="cpu", use=1, submitted=0
    )
    within = SiblingStanding(tenant="team-a", dominant="cpu", use=1, tag=1.0, effective=effective_job)
    position = a_position(uid="second", id="job-second-1f2e3", effective=effective_job, within=[within])
    found = called(position, cache)
    assert found.id == "second"
    assert found.effective is not None
    assert found.effective.id == "first"
    assert found.within[0].effective is not None
    assert found.within[0].effective.id == "first"
    plain = a_position(uid="plain", id="plain")
    assert called(plain, cache) is plain


def test_without_a_policy_nothing_is_scored() -> None:
    cache = ClusterCache()
    all_steps(cache.learning(facts(*CLUSTER, a_job())))
    assert cache.pools == {}
    all_steps(cache.adopting(a_document(), 1))
    assert order(cache, "c1/gpu") == ["job-1"]
    cache.abandon()
    assert cache.pools == {}


# Step by step equals from scratch ----------------------------------------------------------------------------------

clusters = st.sampled_from(["c1", "c2"])
jobs = st.builds(
    lambda number, cluster, **changes: a_job(
        f"j{number}", cluster=cluster, uid=f"{cluster}-{number}-x", **changes
    ),
    st.integers(0, 7),
    clusters,
    scope=st.sampled_from(["team-a", "team-b", "other"]),
    queue=st.sampled_from(["main", "side"]),
    phase=st.sampled_from(Phase),
    gpu=st.sampled_from([0.5, 1, 4]),
    submitted=st.integers(NOW - 7_200_000_000, NOW),
    requested_class=st.sampled_from([None, "urgent"]),
    queues=st.sampled_from([[], ["main", "side"], ["side", "main"]]),
    array=st.sampled_from([None, None, JobArray(tasks=9, window=[0, 3])]),
    carries=st.sampled_from([None, None, "c1-1-x", "c2-2-x", "c1-3-x_0000000003"]),
)
queues = st.builds(
    a_queue, cluster=clusters, name=st.sampled_from(["main", "side"]), pool=st.sampled_from(["gpu", "cpu"])
)
pools = st.builds(
    a_pool,
    cluster=clusters,
    name=st.sampled_from(["gpu", "cpu"]),
    capacity=st.sampled_from([{}, a_pool().capacity, a_demand(cpu=9, gpu=3)]),
)
others = st.one_of(st.builds(a_mark, cluster=clusters), st.builds(a_node, cluster=clusters))
states = st.one_of(jobs, jobs, jobs, queues, pools, others)
batches = st.lists(st.tuples(states, st.booleans()), min_size=1, max_size=6)
steps = st.lists(st.one_of(batches, st.integers(0, len(DOCUMENTS) - 1)), max_size=20)


class History:
    """A cache that takes in one thing after another, and what stands after it."""

    def __init__(self) -> None:
        self.cache, self.document, self.revision = ClusterCache(), DOCUMENTS[0], 1
        self.known: dict[str, State] = {}
        all_steps(self.cache.adopting(self.document, self.revision))
        self._read: dict[tuple[str, int], DecisionContent] = {}

    def adopt(self, number: int) -> None:
        self.document, self.revision = DOCUMENTS[number], self.revision + 1
        all_steps(self.cache.adopting(self.document, self.revision))

    def learn(self, step: list[tuple[State, bool]]) -> None:
        batch = {subject_of(state): None if gone else state for state, gone in step}
        all_steps(self.cache.learning(batch))
        self.known |= {subject: state for subject, state in batch.items() if state is not None}
        for subject in [subject for subject, state in batch.items() if state is None]:
            self.known.pop(subject, None)

    def read(self) -> None:
        """Reads every shard; what is not dirty must read as it was read last."""
        last = contents(self.cache)
        for (name, shard), content in last.items():
            if shard not in self.cache.pools[name].dirty:
                assert self._read[name, shard] == content
        for pool in self.cache.pools.values():
            for shard in sorted(pool.dirty):
                pool.mark_clean(shard)
        self._read = last


@given(steps=steps)
def test_any_sequence_of_changes_equals_a_cache_built_from_what_stands(
    steps: list[list[tuple[State, bool]] | int],
) -> None:
    history = History()
    for step in steps:
        if isinstance(step, int):
            history.adopt(step)
        else:
            history.learn(step)
        history.read()
    cache, scratch = history.cache, ClusterCache()
    all_steps(scratch.learning(dict(reversed(history.known.items()))))
    all_steps(scratch.adopting(history.document, history.revision))
    assert contents(cache) == contents(scratch)
    assert waiting(cache) == waiting(scratch)
    for cluster, pool in itertools.product(["c1", "c2"], ["gpu", "cpu"]):
        assert taken(cache, cluster, pool) == taken(scratch, cluster, pool)


def waiting(cache: ClusterCache) -> dict[str, int]:
    return {name: pool.waiting for name, pool in cache.pools.items()}


def taken(cache: ClusterCache, cluster: str, pool: str) -> dict[str, int]:
    return {resource: amount for resource, amount in cache.taken(cluster, pool).items() if amount}
