"""Snapshots made from stated facts: what is taken from them, under which names, and that the order is a scorer's."""

import msgspec
import pytest

from fairlead_contracts.base.instants import HOUR, SECOND
from fairlead_contracts.base.quantities import MAX_QUANTITY, MAX_SUM
from fairlead_contracts.messages.state import JobShape, JobState, Phase, QueueState, State, subject_of
from fairlead_contracts.messages.submissions import MAX_PODS
from fairlead_contracts.policyfile.document import Grant, Match, Pool, Tenant
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_contracts.snapshot.types import (
    SnapshotClassValue,
)
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.explain.reasons import terms_in_words
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.ordering import OrderedPool, order_snapshot
from fairlead_testkit.inputs.builders import (
    NOW,
    a_class,
    a_document,
    a_job,
    a_node,
    a_pool,
    a_queue,
)

FACTS: list[State] = [
    a_pool(),
    a_pool(cluster="c2", name="gpu"),
    a_pool(name="cpu", capacity={"cpu": 8000}),
    a_queue(),
    a_queue(cluster="c2"),
    a_queue(name="batch", pool="cpu"),
    a_job("train", phase=Phase.RUNNING, started=NOW, run_limit=60 * SECOND, ends_by=NOW + 60 * SECOND),
    a_job("one", gpu=4, requested_class="urgent", level=7),
    a_job("two", gpu=2, requested_class="urgent", scope="team-b"),
    a_job("two", gpu=1, scope="team-b", cluster="c2", uid="u2", submitted=NOW - HOUR),
    a_job("three", demand={"cpu": 1000, "tpu": 1}, scope="stranger", queue="batch"),
    a_job("held", phase=Phase.HELD),
    a_job("ended", phase=Phase.ENDED),
    a_job("lost", queue="nowhere"),
]
STATES = {subject_of(state): state for state in FACTS}
DOCUMENT = a_document(
    pools=[Pool(name="gpu", members=["c1/gpu", "c2/gpu"])],
    grants=[Grant(tenant="team-a", classes=["urgent"])],
)


def live_order(pool: str, capacity: dict[str, int]) -> list[str]:
    """The order by the parts that a scorer uses."""
    rulebook = Rulebook(DOCUMENT, 1)
    order = PoolFacts(rulebook.pool_rules(pool, capacity))
    queues = {state.name: state.pool for state in FACTS if isinstance(state, QueueState)}
    for job in FACTS:
        if not isinstance(job, JobState) or rulebook.pool_of(job.cluster, queues.get(job.queue, "")) != pool:
            continue
        tenant = rulebook.tenant_of(job)
        if job.phase is Phase.RUNNING:
            order.run(job.uid, tenant, job.demand)
        elif job.phase is Phase.WAITING:
            job_class = rulebook.class_of(job, tenant).job_class
            order.wait(
                WaitingJob(
                    uid=job.uid, scope=job.scope, id=job.id, tenant=tenant, job_class=job_class,
                    submitted=job.submitted, demand=job.demand, queue=JobQueue(job.cluster, job.queue),
                )
            )  # fmt: skip
    return [position.uid for position in order.at(NOW).positions()]


def test_a_snapshot_of_stated_facts_gives_the_order_that_a_scorer_gives() -> None:
    snapshot = snapshot_of(STATES, DOCUMENT, NOW)
    again = decode_snapshot(encode_snapshot(snapshot))
    assert again == snapshot
    found = {pool.name: [position.uid for position in pool.positions] for pool in order_snapshot(again)}
    both = {resource: 2 * amount for resource, amount in a_pool().capacity.items()}
    assert found == {"gpu": live_order("gpu", both), "c1/cpu": live_order("c1/cpu", {"cpu": 8000})}
    assert len(found["gpu"]) == 3
    assert found["c1/cpu"] == ["stranger/three"]


@pytest.mark.parametrize("queues", [1, 2, 9])
def test_a_snapshot_of_queues_without_a_limit_can_be_read(queues: int) -> None:
    pools = [a_pool(cluster=f"c{at}", capacity={"pods": MAX_QUANTITY}) for at in range(queues)]
    joined = a_document(pools=[Pool(name="gpu", members=[f"{pool.cluster}/{pool.name}" for pool in pools])])
    snapshot = snapshot_of({subject_of(pool): pool for pool in pools}, joined, NOW)
    assert snapshot.pools[0].capacity == {"pods": min(queues * MAX_QUANTITY, MAX_SUM)}
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot


@pytest.mark.parametrize("instant", [-(2**63), 2**62])
def test_a_job_whose_time_no_calendar_names_spoils_no_snapshot(instant: int) -> None:
    odd = a_job("odd", submitted=instant, queue_time=instant)
    again = decode_snapshot(encode_snapshot(snapshot_of({**STATES, subject_of(odd): odd}, DOCUMENT, NOW)))
    order = [position.uid for position in order_snapshot(again)[-1].positions]
    assert order.index(odd.uid) == (1 if instant < 0 else 3)  # right behind what is urgent; last
    assert len(again.jobs) == len(snapshot_of(STATES, DOCUMENT, NOW).jobs) + 1


@pytest.mark.parametrize(
    ("stated", "told"), [((), 1), ((0,), 1), ((1, 0), 1), ((3, 2), 5), ((150_000, 1), MAX_PODS)]
)
@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.RUNNING])
def test_a_job_without_pods_of_a_kind_or_with_too_many_spoils_no_snapshot(
    stated: tuple[int, ...], told: int, phase: Phase
) -> None:
    shapes = [JobShape(name=f"kind-{at}", pods=pods, demand={"cpu": 1000}) for at, pods in enumerate(stated)]
    job = a_job("odd", shapes=shapes, pods=sum(stated), phase=phase)
    snapshot = snapshot_of({**STATES, subject_of(job): job}, DOCUMENT, NOW)
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
    waits, runs = snapshot.jobs, snapshot.running
    found = [one.pods for one in waits if one.id == "odd"] + [one.pods for one in runs if one.id == "odd"]
    assert found == [told]


def test_a_snapshot_states_what_was_granted_and_names_that_are_unique() -> None:
    snapshot = snapshot_of(STATES, DOCUMENT, NOW)
    assert {job.uid: (job.id, job.job_class, job.level, job.cluster) for job in snapshot.jobs} == {
        "team-a/one": ("one", "urgent", 7, "c1"),
        "team-b/two": ("team-b/two", "normal", 0, "c1"),
        "u2": ("u2", "normal", 0, "c2"),
        "stranger/three": ("three", "normal", 0, "c1"),
    }
    assert {tenant.name: (tenant.unlisted, tenant.pool) for tenant in snapshot.tenants} == {
        "stranger": (True, "c1/cpu"),
        "team-a": (False, "gpu"),
        "team-b": (False, "gpu"),
    }
    [running] = snapshot.running
    assert (running.id, running.ends) == ("train", NOW + 60 * SECOND)


def test_a_job_whose_scope_is_not_called_as_its_tenant_says_its_scope() -> None:
    document = msgspec.structs.replace(
        DOCUMENT,
        tenants=[Tenant(name="vision", match=Match(scopes=["team-a"])), *DOCUMENT.tenants],
    )
    snapshot = snapshot_of(STATES, document, NOW)
    names = {job.uid: (job.tenant, job.id, job.full_name) for job in snapshot.jobs}
    assert names["team-a/one"] == ("vision", "team-a/one", "team-a/one")
    assert names["stranger/three"] == ("stranger", "three", "stranger/three")


def test_a_snapshot_of_one_pool_has_that_one_alone() -> None:
    snapshot = snapshot_of(STATES, DOCUMENT, NOW, pool="c1/cpu")
    assert [pool.name for pool in snapshot.pools] == ["c1/cpu"]
    assert [job.id for job in snapshot.jobs] == ["three"]
    assert snapshot.pools[0].capacity == {"cpu": 8000, "tpu": 0}
    assert snapshot_of(STATES, DOCUMENT, NOW, pool="nowhere").pools == []


def test_a_snapshot_states_queues_and_what_their_clusters_say_of_classes() -> None:
    preemption = {"withinClusterQueue": "LowerPriority"}
    banded = a_queue(
        name="batch",
        pool="cpu",
        frontend="kueue",
        bands_by_class=True,
        highest_level=77,
        preemption=preemption,
    )
    facts = STATES | {
        subject_of(banded): banded,
        "x": a_class(value=5000), "y": a_class(name="not-ours", value=3), "z": a_class(cluster="c3", value=1),
    }  # fmt: skip
    snapshot = snapshot_of(facts, DOCUMENT, NOW)
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
    assert [(queue.cluster, queue.name, queue.pool) for queue in snapshot.queues] == [
        ("c1", "batch", "c1/cpu"), ("c1", "main", "gpu"), ("c2", "main", "gpu"),
    ]  # fmt: skip
    assert snapshot.queues[0].bands_by_class
    assert snapshot.queues[0].highest_level == 77
    assert snapshot.queues[0].preemption == preemption
    assert snapshot.class_values == [SnapshotClassValue(job_class="urgent", value=5000, cluster="c1")]
    alone = snapshot_of(facts, DOCUMENT, NOW, pool="c1/cpu")
    assert [(queue.cluster, queue.name) for queue in alone.queues] == [("", "batch")]
    assert alone.class_values == [SnapshotClassValue(job_class="urgent", value=5000)]
    assert decode_snapshot(encode_snapshot(alone)) == alone


def words_of(pool: OrderedPool, tenant: str) -> list[str]:
    position = next(one for one in pool.positions if one.tenant == tenant and not one.unbounded)
    return terms_in_words(position, pool.standings[tenant], pool.rules, NOW)


def test_past_use_is_stated_of_who_used_of_late_in_one_pool() -> None:
    document = msgspec.structs.replace(DOCUMENT, half_life_hours=24.0)
    past = {
        "gpu": {"team-a": {"nvidia.com/gpu": 1500, "tpu": 3}, "gone": {"cpu": 1}, "stranger": {"cpu": 1}},
        "c1/cpu": {"stranger": {"cpu": 500}},
        "another": {"team-b": {"cpu": 1}},
    }
    snapshot = snapshot_of(STATES, document, NOW, past=past)
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
    assert {tenant.name: (tenant.pool, tenant.past_use) for tenant in snapshot.tenants} == {
        "gone": ("gpu", {"cpu": 1}),
        "stranger": (None, {}),  # in two pools: a snapshot has room for one
        "team-a": ("gpu", {"nvidia.com/gpu": 1500, "tpu": 3}),
        "team-b": ("gpu", {}),
    }
    [gpu] = [pool for pool in order_snapshot(snapshot) if pool.name == "gpu"]
    assert gpu.standings["team-a"].past == {"nvidia.com/gpu": 1500}
    assert any("1.5 gpu of past use" in one for one in words_of(gpu, "team-a"))


def test_past_use_stays_behind_where_the_policy_has_moved_its_tenant() -> None:
    tenants = [*DOCUMENT.tenants, Tenant(name="moved", pool="gpu")]
    document = msgspec.structs.replace(DOCUMENT, half_life_hours=24.0, tenants=tenants)
    snapshot = snapshot_of(STATES, document, NOW, past={"c1/cpu": {"moved": {"only-here": 500}}})
    [moved] = [tenant for tenant in snapshot.tenants if tenant.name == "moved"]
    assert moved.past_use == {}
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot


@pytest.mark.parametrize("subject", ["aa", "zz"])
def test_a_job_that_stands_under_two_subjects_counts_once_by_its_newer_statement(subject: str) -> None:
    moved = a_job("one", scope="team-b", uid="team-a/one", rev=2)
    snapshot = snapshot_of(STATES | {subject: moved}, DOCUMENT, NOW)
    assert [job.tenant for job in snapshot.jobs if job.uid == "team-a/one"] == ["team-b"]


def test_a_snapshot_states_pods_and_nodes_as_far_as_they_are_known() -> None:
    shapes = [JobShape(name="main", pods=2, demand={"cpu": 500}, selector={"gpu": "a30"})]
    gang = a_job("gang", demand={"cpu": 1000}, pods=2, shapes=shapes)
    nodes = [a_node(name="n1"), a_node(name="n1", cluster="c2"), a_node(name="gone", ready=False)]
    added: list[State] = [gang, *nodes]
    states = STATES | {subject_of(state): state for state in added}
    snapshot = snapshot_of(states, DOCUMENT, NOW)
    assert [(node.cluster, node.name, node.used) for node in snapshot.nodes] == [
        ("c1", "n1", None),
        ("c2", "n1", None),
    ]
    found = next(job for job in snapshot.jobs if job.id == "gang")
    assert found.gang is not None
    assert [(shape.pods, shape.demand, shape.selector) for shape in found.gang.shapes] == [
        (2, {"cpu": 500}, {"gpu": "a30"})
    ]
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
