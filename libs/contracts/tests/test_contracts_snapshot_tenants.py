"""Tenants of a snapshot: trees, their pools, past use, and what a policy says of the same."""

import pytest

from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_testkit.inputs.documented import GPU, NOW, changed, job, problems_of

TREE: list[dict[str, object]] = [
    {"name": "org", "pool": "gpu", "weight": 2},
    {"name": "team-1", "parent": "org", "past_use": {GPU: 12.5}},
]


def test_a_tree_past_use_and_a_class_weight_of_its_own_are_read_and_written() -> None:
    pools = [{"name": "gpu", "capacity": {"cpu": 8, GPU: 4}}, {"name": "other", "capacity": {}}]
    jobs = [job(priority_override=7, **{"class": "urgent"})]
    policy = {"half_life_hours": 24, "class_mode": "drf"}
    found = read_snapshot(changed(policy=policy, pools=pools, tenants=TREE, running=[], jobs=jobs))
    org, team = found.tenants
    assert (org.weight, team.parent, team.past_use) == (2, "org", {GPU: 12_500})
    assert (found.jobs[0].pool, found.jobs[0].priority_override) == ("gpu", 7)  # the pool is the parent's
    assert decode_snapshot(encode_snapshot(found)) == found


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tenants": TREE}, "tenants[1].past_use"),  # without a half-life it would count for nothing
        ({"tenants": [*TREE[:1], {"name": "team-1", "parent": "orc"}]}, "tenants[1].parent"),
        ({"tenants": [{"name": "team-1", "parent": ""}]}, "tenants[0].parent"),
        ({"tenants": [{"name": "team-1", "parent": "b"}, {"name": "b", "parent": "team-1"}]}, "tenants[1].parent"),
        ({"tenants": [{"name": "team-1"}, {"name": "crew", "parent": "team-1"}]}, "jobs[0].tenant"),
        ({"policy": {"tenants": [{"name": "x", "parent": "y"}]}}, "policy.tenants[0].parent"),
        ({"jobs": [job(priority_override=5)]}, "jobs[0].priority_override"),
        ({"policy": {"class_mode": "wdrf"}, "jobs": [job(priority_override=0)]}, "jobs[0].priority_override"),
        ({"policy": {"class_mode": "wdrf"}, "jobs": [job(priority_override="high")]}, "jobs[0].priority_override"),
        ({"policy": {"half_life_hours": 0}}, "policy.half_life_hours"),
    ],
)  # fmt: skip
def test_what_a_tree_or_a_mode_makes_wrong_is_named(changes: dict[str, object], field: str) -> None:
    assert field in problems_of(changed(**changes))


@pytest.mark.parametrize(
    ("by_policy", "stated", "field"),
    [
        ([], [{"name": "o", "pool": "gpu"}, {"name": "c", "parent": "o", "pool": "other"}], "tenants[1].pool"),
        ([{"name": "c", "parent": "o", "pool": "other"}], [{"name": "o", "pool": "gpu"}], "policy.tenants[0].pool"),
        ([{"name": "o", "pool": "gpu"}], [{"name": "c", "parent": "o", "pool": "other"}], "tenants[0].pool"),
        ([{"name": "o"}, {"name": "c", "pool": "gpu"}], [{"name": "c", "parent": "o"}], ""),
        ([{"name": "o", "pool": "gpu"}, {"name": "c", "parent": "o"}], [{"name": "c", "pool": "gpu"}], ""),
    ],
)  # fmt: skip
def test_a_tenant_is_in_the_pool_of_those_above_it_whoever_says_so(
    by_policy: list[object], stated: list[object], field: str
) -> None:
    pools = [{"name": "gpu", "capacity": {"cpu": 1}}, {"name": "other", "capacity": {}}]
    found = changed(policy={"tenants": by_policy}, pools=pools, tenants=stated, running=[], jobs=[])
    if field:
        assert list(problems_of(found)) == [field]
    else:
        assert read_snapshot(found).jobs == []


def test_a_policy_may_hang_its_tenants_under_one_of_the_snapshot() -> None:
    policy = {"tenants": [{"name": "team-1", "parent": "org"}]}
    found = read_snapshot(changed(policy=policy, tenants=[{"name": "org"}]))
    assert found.policy.tenants[0].parent == "org"


def test_past_use_where_a_tenant_has_no_single_pool_is_refused() -> None:
    pools = [{"name": "gpu", "capacity": {GPU: 4, "cpu": 1, "memory": 1}}, {"name": "other", "capacity": {}}]
    tenants = [{"name": "team-1", "past_use": {GPU: 1}}]
    found = problems_of(changed(policy={"half_life_hours": 1}, pools=pools, tenants=tenants))
    assert found["tenants[0].past_use"] == "counts in one pool: name the tenant's pool"


def test_past_use_of_a_resource_that_the_tenants_pool_has_not_is_refused() -> None:
    pools = [
        {"name": "gpu", "capacity": {"cpu": 8, "memory": 1, GPU: 4}},
        {"name": "other", "capacity": {"tpu": 1}},
    ]
    tenants = [TREE[0], {"name": "team-1", "parent": "org", "past_use": {GPU: 1, "tpu": 2}}]
    found = problems_of(changed(policy={"half_life_hours": 1}, pools=pools, tenants=tenants))
    assert list(found) == ["tenants[1].past_use.tpu"]
    assert "pool 'gpu', which has cpu, memory" in found["tenants[1].past_use.tpu"]


def test_past_use_may_name_what_cards_of_the_pools_nodes_bring() -> None:
    pools = [{"name": "gpu", "capacity": {"cpu": 8}}]
    nodes = [{"name": "n1", "allocatable": {"cpu": 8}, "cards": [{"uuid": "c1", "memory": 1000}]}]
    tenants = [{"name": "team-1", "past_use": {GPU: 1}}]
    policy = {"half_life_hours": 1}
    found = read_snapshot(
        {"now": NOW, "policy": policy, "pools": pools, "tenants": tenants, "nodes": nodes, "jobs": []}
    )
    assert found.tenants[0].past_use == {GPU: 1000}


def test_a_policy_may_put_its_tenants_into_pools_of_the_snapshot() -> None:
    pools = [{"name": "gpu", "capacity": {"cpu": 8}}, {"name": "other", "capacity": {"cpu": 8}}]
    there = {"pools": pools, "tenants": [{"name": "team-1"}], "jobs": [job()], "running": []}
    found = read_snapshot(changed(policy={"tenants": [{"name": "team-1", "pool": "other"}]}, **there))
    assert found.jobs[0].pool == "other"
    assert decode_snapshot(encode_snapshot(found)) == found
    nowhere = changed(policy={"tenants": [{"name": "team-1", "pool": "third"}]}, **there)
    assert "policy.tenants[0].pool" in problems_of(nowhere)
