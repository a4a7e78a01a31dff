"""The ledger: facts and policy become pools; step by step equals from scratch; nothing changes unnoticed."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.messages.state import Phase, State, subject_of
from fairlead_contracts.policyfile.document import Aging, Match, PolicyDocument, Pool, Tenant
from fairlead_scorer.deciding import Content, decide
from fairlead_scorer.ledger import Ledger
from fairlead_testkit.builders import (
    NOW,
    a_demand,
    a_document,
    a_grant,
    a_job,
    a_mark,
    a_node,
    a_pool,
    a_queue,
)

DOCUMENTS = [
    a_document(),
    PolicyDocument(
        tenants=[Tenant(name="team-a", weight=2.0), Tenant(name="team-b", weight=0.5)],
        pools=[Pool(name="all", members=["c1/gpu", "c2/gpu"])],
        unlisted_weight=1.0,
        shards=3,
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


def a_ledger(*states: State, document: PolicyDocument | None = None, revision: int = 1) -> Ledger:
    ledger = Ledger()
    ledger.adopt(document or a_document(), revision)
    ledger.learn(facts(*states))
    return ledger


def contents(ledger: Ledger, now: int = NOW) -> dict[tuple[str, int], Content]:
    return {
        (name, shard): decide(pool, shard, now)
        for name, pool in ledger.pools.items()
        for shard in range(pool.shards)
    }


def order(ledger: Ledger, pool: str) -> list[str]:
    found = ledger.pools[pool]
    return [
        place.id
        for shard in range(found.shards)
        for front in decide(found, shard, NOW).fronts
        for place in front.places
    ]


def tenants_waiting(ledger: Ledger, pool: str = "c1/gpu") -> list[str]:
    found = ledger.pools[pool]
    return [
        place.tenant
        for shard in range(found.shards)
        for front in decide(found, shard, NOW).fronts
        for place in front.places
    ]


def use(ledger: Ledger, pool: str, tenant: str) -> dict[str, int]:
    return ledger.pools[pool].standings([tenant])[0].use


CLUSTER = (a_pool(), a_queue(), a_mark())


def test_waiting_jobs_wait_running_ones_count_as_use_held_and_ended_do_neither() -> None:
    ledger = a_ledger(
        *CLUSTER,
        a_job("waits"),
        a_job("runs", phase=Phase.RUNNING, gpu=2),
        a_job("held", phase=Phase.HELD),
        a_job("over", phase=Phase.ENDED),
    )
    assert order(ledger, "c1/gpu") == ["waits"]
    assert use(ledger, "c1/gpu", "team-a") == a_demand(cpu=8, memory_gib=32, gpu=2)


def test_a_job_of_an_unknown_queue_is_nowhere_until_the_queue_is_stated() -> None:
    ledger = a_ledger(a_pool(), a_job("early"))
    assert order(ledger, "c1/gpu") == []
    ledger.learn(facts(a_queue()))
    assert order(ledger, "c1/gpu") == ["early"]
    ledger.learn({subject_of(a_queue()): None})
    assert order(ledger, "c1/gpu") == []


def test_the_queue_leads_to_the_stated_pool_and_that_to_the_policys_pool() -> None:
    ledger = a_ledger(*CLUSTER, a_job(), document=DOCUMENTS[1])
    assert set(ledger.pools) == {"all"}
    assert ledger.pools["all"].shape.clusters == {"c1", "c2"}


def test_a_policy_pools_capacity_is_the_sum_over_its_members() -> None:
    ledger = a_ledger(
        a_pool(capacity={"cpu": 1000}),
        a_pool(cluster="c2", capacity={"cpu": 500, "memory": 7}),
        document=DOCUMENTS[1],
    )
    assert ledger.pools["all"].shape.capacity == {"cpu": 1500, "memory": 7}


def test_a_pool_lacks_the_marks_of_every_cluster_that_the_policy_joins_even_one_never_stated() -> None:
    ledger = a_ledger(*CLUSTER, document=DOCUMENTS[1])
    assert ledger.unmarked("all", "server-1") == ["c2"]
    ledger.learn(facts(a_mark(cluster="c2")))
    assert ledger.unmarked("all", "server-1") == []
    assert ledger.unmarked("all", "server-2") == ["c1", "c2"]


def test_only_the_tenants_shard_is_dirty_after_its_jobs_change() -> None:
    ledger = a_ledger(*CLUSTER, a_job("a"), a_job("b", scope="team-b"))
    pool = ledger.pools["c1/gpu"]
    pool.dirty.clear()
    ledger.learn(facts(a_job("c", scope="team-b")))
    assert pool.dirty == {pool.shard_of("team-b")}


def test_a_level_written_to_a_job_makes_nothing_dirty() -> None:
    ledger = a_ledger(*CLUSTER, a_job("a"))
    pool = ledger.pools["c1/gpu"]
    pool.dirty.clear()
    ledger.learn(facts(a_job("a", level=500, rev=2)))
    assert pool.dirty == set()


def test_new_capacity_makes_every_shard_dirty() -> None:
    ledger = a_ledger(*CLUSTER)
    pool = ledger.pools["c1/gpu"]
    pool.dirty.clear()
    ledger.learn(facts(a_pool(capacity={"cpu": 1})))
    assert pool.dirty == set(range(pool.shards))


def test_a_class_that_is_not_granted_is_not_had() -> None:
    urgent = a_job("u", requested_class="urgent", submitted=NOW + 1)
    assert order(a_ledger(*CLUSTER, a_job("n"), urgent), "c1/gpu") == ["n", "u"]
    granted = a_document(grants=[a_grant()])
    assert order(a_ledger(*CLUSTER, a_job("n"), urgent, document=granted), "c1/gpu") == ["u", "n"]


def test_a_job_that_comes_back_under_its_name_with_another_uid_is_another_job() -> None:
    ledger = a_ledger(*CLUSTER, a_job("a", uid="1", phase=Phase.RUNNING))
    ledger.learn(facts(a_job("a", uid="2")))
    assert order(ledger, "c1/gpu") == ["a"]
    assert use(ledger, "c1/gpu", "team-a") == {}


@pytest.mark.parametrize("scopes", [("team-a", "team-b"), ("team-b", "team-a")])
def test_a_job_that_changed_its_account_counts_once_by_its_newer_statement(scopes: tuple[str, str]) -> None:
    before, after = (a_job("x", uid="1", scope=scope, rev=rev) for rev, scope in enumerate(scopes, start=1))
    for told in itertools.permutations((before, after)):
        assert tenants_waiting(a_ledger(*CLUSTER, *told)) == [after.scope]
    ledger = a_ledger(*CLUSTER, before, after)
    ledger.learn({subject_of(after): None})
    assert tenants_waiting(ledger) == [before.scope]
    ledger.learn(facts(after) | {subject_of(before): None})
    assert tenants_waiting(ledger) == [after.scope]
    assert ledger.pools["c1/gpu"].waiting == 1
    ledger.learn({subject_of(after): None})
    assert tenants_waiting(ledger) == []


def test_a_job_that_is_held_under_its_newer_account_does_not_wait_under_the_older() -> None:
    waits = a_job("x", uid="1", rev=1)
    ledger = a_ledger(*CLUSTER, waits, a_job("x", uid="1", scope="team-b", rev=2, phase=Phase.HELD))
    assert tenants_waiting(ledger) == []


def test_jobs_are_found_by_id_uid_submission_and_scoped_name() -> None:
    job = a_job("train", uid="u-1", submission="s-1")
    ledger = a_ledger(*CLUSTER, job)
    for name in ("train", "u-1", "s-1", "team-a/train"):
        assert ledger.find(name) == [job]
    assert ledger.find("team-b/train") == []


def test_without_a_policy_nothing_is_scored() -> None:
    ledger = Ledger()
    ledger.learn(facts(*CLUSTER, a_job()))
    assert ledger.pools == {}
    ledger.adopt(a_document(), 1)
    assert order(ledger, "c1/gpu") == ["job-1"]
    ledger.abandon()
    assert ledger.pools == {}


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
    """A ledger that takes in one thing after another, and what stands after it."""

    def __init__(self) -> None:
        self.ledger, self.document, self.revision = Ledger(), DOCUMENTS[0], 1
        self.known: dict[str, State] = {}
        self.ledger.adopt(self.document, self.revision)
        self._read: dict[tuple[str, int], Content] = {}

    def adopt(self, number: int) -> None:
        self.document, self.revision = DOCUMENTS[number], self.revision + 1
        self.ledger.adopt(self.document, self.revision)

    def learn(self, step: list[tuple[State, bool]]) -> None:
        batch = {subject_of(state): None if gone else state for state, gone in step}
        self.ledger.learn(batch)
        self.known |= {subject: state for subject, state in batch.items() if state is not None}
        for subject in [subject for subject, state in batch.items() if state is None]:
            self.known.pop(subject, None)

    def read(self) -> None:
        """Reads every shard; what is not dirty must read as it was read last."""
        last = contents(self.ledger)
        for (name, shard), content in last.items():
            if shard not in self.ledger.pools[name].dirty:
                assert self._read[name, shard] == content
        for pool in self.ledger.pools.values():
            pool.dirty.clear()
        self._read = last


@given(steps=steps)
def test_any_sequence_of_changes_equals_a_ledger_built_from_what_stands(
    steps: list[list[tuple[State, bool]] | int],
) -> None:
    history = History()
    for step in steps:
        if isinstance(step, int):
            history.adopt(step)
        else:
            history.learn(step)
        history.read()
    ledger, scratch = history.ledger, Ledger()
    scratch.learn(dict(reversed(history.known.items())))
    scratch.adopt(history.document, history.revision)
    assert contents(ledger) == contents(scratch)
    assert waiting(ledger) == waiting(scratch)
    for cluster, pool in itertools.product(["c1", "c2"], ["gpu", "cpu"]):
        assert taken(ledger, cluster, pool) == taken(scratch, cluster, pool)


def waiting(ledger: Ledger) -> dict[str, int]:
    return {name: pool.waiting for name, pool in ledger.pools.items()}


def taken(ledger: Ledger, cluster: str, pool: str) -> dict[str, int]:
    return {resource: amount for resource, amount in ledger.taken(cluster, pool).items() if amount}
