"""Snapshots: the documented format, there and back, every problem at once, and nothing ignored that would matter."""

import json
from datetime import UTC, datetime

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotJob,
    SnapshotNode,
    SnapshotPool,
    SnapshotRunning,
    SnapshotTenant,
)
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_testkit.inputs.documented import GPU, NOW, changed, documented, job, problems_of


def test_every_documented_key_is_read() -> None:
    found = read_snapshot(documented())
    [job], [running], [node] = found.jobs, found.running, found.nodes
    assert found.now == NOW * SECOND
    assert found.pools[0].capacity == {"cpu": 512_000, "memory": 4 * 2**40, GPU: 64_000}
    assert job.demand == {"cpu": 500, "memory": 64 * 2**30, GPU: 1000}
    assert job.submitted == NOW * SECOND - 5_250_000
    assert job.queue_time == NOW * SECOND + SECOND // 2
    assert (job.uid, job.pool, job.job_class, job.level, job.pods) == ("j1", "gpu", "urgent", 3, 4)
    assert (running.started, running.demand) == ((NOW - 60) * SECOND, {GPU: 2000})
    assert (node.used, node.labels) == ({"cpu": 1000}, {"zone": "a"})
    assert decode_snapshot(json.dumps(documented()).encode()) == found


def test_what_may_be_left_out_has_its_default() -> None:
    found = read_snapshot(
        {"now": NOW, "pools": documented()["pools"], "tenants": [{"name": "team-1"}], "jobs": [job()]}
    )
    [only] = found.jobs
    assert (only.pool, only.job_class, only.level, only.queue, only.frontend) == ("gpu", "normal", 0, "", "")
    assert only.queue_time == only.submitted == NOW * SECOND
    assert found.policy == PolicyDocument()


def test_times_of_a_yaml_parser_are_taken() -> None:
    at = datetime.fromtimestamp(NOW, UTC)
    assert read_snapshot(changed(now=at)).now == NOW * SECOND
    assert "now" in {one.field for one in refusal(changed(now=at.replace(tzinfo=None)))}


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_whose_offset_leads_out_of_the_years_is_refused(at: str) -> None:
    assert list(problems_of(changed(jobs=[job(submitted=at)]))) == ["jobs[0].submitted"]
    like_its_neighbour = [job(), job(id="j2", submitted=at)]
    assert list(problems_of(changed(jobs=like_its_neighbour))) == ["jobs[1].submitted"]


def refusal(found: object) -> list[FieldError]:
    with pytest.raises(DocumentError) as refused:
        read_snapshot(found)
    return list(refused.value.problems)


def test_every_problem_is_told_at_once_with_field_and_value() -> None:
    found = problems_of(
        {
            "extra": 1,
            "policy": {"window": 0, "class_mode": "additive"},
            "pools": [{"name": "gpu", "capacity": {"cpu": -1}}, {"name": "gpu", "capacity": {}}],
            "tenants": [{"name": "team-1", "weight": -2, "pool": "cpu"}, {"name": "broken", "weight": "x"}],
            "running": [{"id": "j1", "tenant": "nobody", "demand": {}}],
            "jobs": [
                job(tenant="broken", **{"class": "fast"}),
                7,
                job(id="j2", tenant="broken", submitted="yesterday", demand={"gpu": 1, "cpu": "1x"}, level=2**40),
                job(id=...),
            ],
        }
    )  # fmt: skip
    assert set(found) == {
        "extra",
        "now",
        "policy.window",
        "policy.class_weights",
        "pools[0].capacity.cpu",
        "pools[1].name",
        "tenants[0].weight",
        "tenants[0].pool",
        "tenants[1].weight",
        "running[0].tenant",
        "jobs[0].id",
        "jobs[1]",
        "jobs[2].submitted",
        "jobs[2].demand.gpu",
        "jobs[2].demand.cpu",
        "jobs[2].level",
        "jobs[3].id",
    }


def test_values_that_are_the_defaults_are_taken() -> None:
    neutral = {
        "class_mode": "strict",
        "hierarchy": {"mode": "drf"},
        "fit": {"strategy": "none"},
        "mode": "advise",
        "half_life_hours": None,
        "bands": {},
        "class_weights": {},
    }
    assert read_snapshot(changed(policy=neutral)).policy == PolicyDocument()


def test_nodes_say_what_they_have_and_what_is_used_of_it() -> None:
    node = {
        "name": "n1",
        "allocatable": {"cpu": 64},
        "labels": {"zone": "a"},
        "used": {"cpu": "1"},
        "taints": ["dedicated=ml:NoSchedule", "spot:NoExecute"],
        "unschedulable": True,
        "pool": "gpu",
        "cluster": "c1",
        "cards": [
            {
                "uuid": "GPU-1",
                "memory": 24576,
                "type": "A30",
                "used": {"count": 1, "memory": 8000, "cores": 30},
            },
            {"uuid": "GPU-2", "memory": 24576, "health": False, "count": 4, "cores": 200},
        ],
    }
    registered = {
        "name": "n2",
        "allocatable": {},
        "annotations": {"hami.io/node-nvidia-register": "[]"},
        "pods": [{"name": "p", "annotations": {"hami.io/vgpu-devices-allocated": ";"}}],
    }
    found = read_snapshot(changed(nodes=[node, registered]))
    [one, two] = found.nodes
    assert one.registers_cards
    assert two.registers_cards
    assert (one.used, two.used) == ({"cpu": 1000}, None)
    [first, second] = one.cards
    assert (first.count, first.cores, first.model, first.used.memory) == (10, 100, "A30", 8000)
    assert (second.health, second.count, second.cores) == (False, 4, 200)
    assert read_snapshot(json.loads(encode_snapshot(found))) == found


def test_a_gang_says_what_its_pods_ask_for_and_where() -> None:
    plain = job(gang={"pods": 4})
    gang = job(
        id="j2",
        gang={
            "pods": 4,
            "per_pod": {"cpu": "250m"},
            "selector": {"zone": "a"},
            "tolerations": [{"key": "dedicated", "operator": "Exists"}],
            "zone_key": "zone",
        },
        annotations={"hami.io/node-scheduler-policy": "spread"},
    )
    shapes = job(
        id="j3",
        demand={"cpu": 2},
        gang={"shapes": [{"pods": 1, "per_pod": {}, "name": "leader"}, {"pods": 2, "per_pod": {"cpu": 1}}]},
    )
    found = read_snapshot(changed(jobs=[plain, gang, shapes]))
    [first, second, third] = found.jobs
    assert (first.pods, first.gang) == (4, None), "no more is said than the number"
    assert second.gang is not None
    assert (second.pods, second.gang.zone_key, second.gang.shapes[0].demand) == (4, "zone", {"cpu": 250})
    assert second.gang.annotations == {"hami.io/node-scheduler-policy": "spread"}
    assert third.gang is not None
    assert [(one.name, one.pods) for one in third.gang.shapes] == [("leader", 1), ("shape 2", 2)]
    assert read_snapshot(json.loads(encode_snapshot(found))) == found


@pytest.mark.parametrize(
    ("node", "field", "reason"),
    [
        ({"cards": [{"memory": 1}]}, "cards[0].uuid", "is missing"),
        ({"cards": [{"uuid": "a", "memory": -1}]}, "cards[0].memory", "must be a whole number from 0"),
        ({"cards": [{"uuid": "a", "memory": 1}] * 2}, "cards[1].uuid", "node 'n1' needs a name"),
        (
            {"cards": [{"uuid": "a", "memory": 1, "used": {"slots": 1}}]},
            "cards[0].used.slots",
            "is not a key",
        ),
        ({"taints": ["gpu"]}, "taints[0]", "key=value:effect"),
        ({"pool": "tpu"}, "pool", "is not a pool"),
        ({"used": {"cpu": -1}}, "used.cpu", "negative"),
    ],
)
def test_each_problem_of_a_node_names_its_place(node: dict[str, object], field: str, reason: str) -> None:
    found = problems_of(changed(nodes=[{"name": "n1", "allocatable": {}} | node]))
    assert reason in found[f"nodes[0].{field}"]


def test_two_nodes_of_one_name_are_refused_unless_their_clusters_differ() -> None:
    node = {"name": "n1", "allocatable": {}}
    assert "named twice" in problems_of(changed(nodes=[node, node]))["nodes[1].name"]
    assert len(read_snapshot(changed(nodes=[node | {"cluster": "a"}, node | {"cluster": "b"}])).nodes) == 2


def test_a_pool_whose_cards_are_known_takes_fractions_that_it_does_not_state() -> None:
    card = {"uuid": "GPU-1", "memory": 24576}
    asking = [job(demand={GPU: 1, "nvidia.com/gpumem": 8000})]
    assert "is not a resource" in problems_of(changed(jobs=asking))["jobs[0].demand.nvidia.com/gpumem"]
    found = read_snapshot(changed(jobs=asking, nodes=[{"name": "n1", "allocatable": {}, "cards": [card]}]))
    assert found.jobs[0].demand == {GPU: 1000, "nvidia.com/gpumem": 8_000_000}


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"demand": {"gpu": 1}}, "demand.gpu", "is not a resource of pool 'gpu'"),
        ({"demand": {"cpu": True}}, "demand.cpu", "a quantity is a number"),
        ({"demand": {"cpu": float("nan")}}, "demand.cpu", "finite"),
        ({"demand": {"cpu": 10**400}}, "demand.cpu", "larger than any cluster"),
        ({"demand": {"cpu": -1}}, "demand.cpu", "negative"),
        ({"demand": {"cpu": None}}, "demand.cpu", "a quantity is a number"),
        ({"tenant": "nobody"}, "tenant", "is not a tenant"),
        ({"class": "fast"}, "class", "must be one of"),
        ({"pool": "tpu"}, "pool", "is not a pool"),
        ({"frontend": "pbs"}, "frontend", "is not a frontend"),
        ({"submitted": None}, "submitted", "must be a time"),
        ({"submitted": True}, "submitted", "must be a time"),
        ({"submitted": 1e300}, "submitted", "must be a time"),
        ({"submitted": float("inf")}, "submitted", "must be a time"),
        ({"submitted": "2025-10-09T10:53:20"}, "submitted", "must be a time"),
        ({"queue_time": []}, "queue_time", "must be a time"),
        ({"runtime_limit": -1}, "runtime_limit", "seconds"),
        ({"gang": {"pods": 0}}, "gang.pods", "between"),
        ({"gang": {"pods": 10**5, "per_pod": {"cpu": 10**13}}}, "gang.per_pod.cpu", "more than any cluster"),
        ({"gang": {"tolerations": [{"operator": "Like"}]}}, "gang.tolerations[0].operator", "operators are"),
        ({"gang": {"tolerations": [{"effect": "No"}]}}, "gang.tolerations[0].effect", "effects are"),
        ({"gang": {"pods": 1, "shapes": [{"pods": 1, "per_pod": {}}]}}, "gang.pods", "for each shape"),
        ({"gang": {"shapes": [{"pods": 99999, "per_pod": {}}] * 2}}, "gang.shapes", "together"),
        ({"id": ""}, "id", "printable"),
        ({"id": "a\nb"}, "id", "printable"),
        ({"id": "\ud800"}, "id", "printable"),
        ({"queue": "\x00"}, "queue", "printable"),
        ({"level": "high"}, "level", "must be a whole number or null"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(changes: dict[str, object], field: str, reason: str) -> None:
    found = problems_of(changed(jobs=[job(**changes)]))
    assert list(found) == [f"jobs[0].{field}"]
    assert reason in found[f"jobs[0].{field}"]


@pytest.mark.parametrize("text", ["2025-10-09T10:53:20", "2025-10-09"])
def test_a_time_without_its_offset_is_quoted_as_it_was_written(text: str) -> None:
    """YAML reads it as a time, where it stands without quotes."""
    with pytest.raises(DocumentError) as refused:
        read_snapshot(changed(jobs=[job(submitted=yaml.safe_load(text))]))
    [problem] = refused.value.problems
    assert "such as 2026-11-21T13:00:00Z" in problem.reason
    assert text in str(problem)


def test_a_value_that_equals_an_amount_read_before_is_another_one() -> None:
    alike = [job(demand={"cpu": 1}), job(id="j2", demand={"cpu": True}), job(id="j3", demand={"memory": 1})]
    assert list(problems_of(changed(jobs=alike))) == ["jobs[1].demand.cpu"]
    found = read_snapshot(changed(jobs=[alike[0], alike[2]]))
    assert [one.demand for one in found.jobs] == [{"cpu": 1000}, {"memory": 1}]


def test_a_uid_is_one_jobs_alone() -> None:
    assert list(problems_of(changed(jobs=[job(uid="x"), job(id="x")]))) == ["jobs[1].uid"]
    assert list(problems_of(changed(jobs=[job(), job()]))) == ["jobs[1].id"]


def test_the_pool_of_a_job_is_its_own_then_its_tenants_then_the_only_one() -> None:
    pools = [{"name": name, "capacity": {"cpu": 1}} for name in ("a", "b", "c")]
    tenants = [{"name": "stated", "pool": "b"}, {"name": "everywhere"}]
    policy = {"tenants": [{"name": "listed", "pool": "p"}], "pools": [{"name": "p", "members": ["x/p"]}]}
    base: dict[str, object] = {"now": NOW, "policy": policy, "pools": pools, "tenants": tenants}
    found = read_snapshot(
        base | {"jobs": [job(tenant="stated"), job(id="j2", tenant="everywhere", pool="c")]}
    )
    assert [one.pool for one in found.jobs] == ["b", "c"]
    for tenant in ("everywhere", "listed"):
        assert list(problems_of(base | {"jobs": [job(tenant=tenant)]})) == ["jobs[0].pool"]


def test_grants_may_name_tenants_of_the_snapshot() -> None:
    policy = {"grants": [{"tenant": "team-1", "classes": ["urgent"]}]}
    assert read_snapshot(changed(policy=policy)).policy.grants[0].tenant == "team-1"


def test_an_unlisted_tenant_is_taken_where_the_policy_gives_it_a_weight() -> None:
    found = read_snapshot(changed(policy={"unlisted_weight": 1}, running=[], jobs=[job(tenant="new")]))
    assert found.jobs[0].pool == "gpu"


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b"\xff", b"{" * 100_000, b'{"now": 1' + b"0" * 5000 + b"}"]
)
def test_bytes_that_are_no_snapshot_are_refused(payload: bytes) -> None:
    with pytest.raises(DocumentError):
        decode_snapshot(payload)


names = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
instants = st.integers(0, 4_000_000_000 * SECOND)
amounts = st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), st.integers(1, 2**50), max_size=3)


@st.composite
def jobs_named(
    draw: st.DrawFn, name: str, owner: st.SearchStrategy[str], pool: st.SearchStrategy[str]
) -> SnapshotJob:
    return SnapshotJob(
        id=name,
        uid=draw(st.sampled_from([name, f"uid {name}"])),
        tenant=draw(owner),
        pool=draw(pool),
        job_class=draw(st.sampled_from(PolicyDocument().classes)),
        demand=draw(amounts),
        submitted=draw(instants),
        queue_time=draw(instants),
        cluster=draw(st.sampled_from(["", "c1"])),
        frontend=draw(st.sampled_from(["", "kueue"])),
        queue=draw(st.sampled_from(["", "q"])),
        level=draw(st.integers(-5, 5)),
        runtime_limit=draw(st.none() | st.integers(0, 10**6).map(lambda seconds: seconds * SECOND)),
        pods=draw(st.integers(1, 3)),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    pools = [
        SnapshotPool(name=name, capacity=dict.fromkeys(("cpu", "memory", GPU), draw(st.integers(0, 2**50))))
        for name in draw(st.lists(names, min_size=1, max_size=2, unique=True))
    ]
    pool = st.sampled_from([one.name for one in pools])
    tenants = [
        SnapshotTenant(
            name=name, weight=draw(st.none() | st.sampled_from([0.0, 1.5])), pool=draw(st.none() | pool)
        )
        for name in draw(st.lists(names, min_size=1, max_size=3, unique=True))
    ]
    policy = PolicyDocument(tenants=[Tenant(name="listed", weight=3)])
    owner = st.sampled_from(["listed", *(one.name for one in tenants)])
    ids = draw(st.lists(names, max_size=6, unique=True))
    jobs = [draw(jobs_named(name, owner, pool)) for name in ids]
    running = [
        SnapshotRunning(
            id=f"running {number}", tenant=draw(owner), pool=draw(pool), job_class="normal", demand=draw(amounts),
            started=draw(st.none() | instants),
        )
        for number in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    nodes = [SnapshotNode(name="n", allocatable=draw(amounts))]
    return Snapshot(
        now=draw(instants),
        policy=policy,
        pools=pools,
        tenants=tenants,
        nodes=nodes,
        running=running,
        jobs=jobs,
    )


@given(snapshots())
def test_there_and_back_again(snapshot: Snapshot) -> None:
    payload = encode_snapshot(snapshot)
    assert decode_snapshot(payload) == snapshot
    assert read_snapshot(msgspec.json.decode(payload)) == snapshot


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_whatever_stands_at_a_key_gives_a_snapshot_or_its_problems(data: st.DataObject) -> None:
    found = documented()
    key = data.draw(st.sampled_from(sorted(found)))
    entries = found[key]
    if isinstance(entries, list) and data.draw(st.booleans()):
        entry: dict[str, object] = entries[0]
        entry[data.draw(st.sampled_from(sorted(entry)))] = data.draw(anything)
    else:
        found[key] = data.draw(anything)
    problems: list[FieldError] = []
    try:
        assert isinstance(read_snapshot(found), Snapshot)
    except DocumentError as error:
        problems = error.problems
    assert all(problem.field and problem.reason for problem in problems)


@pytest.mark.parametrize(
    "second",
    [
        {"frontend": "cq"},  # a name that is good for a queue
        {"demand": {"cpu": True}},
        {"demand": {"tpu": 1}},
        {"submitted": True},
        {"submitted": 10**12},
        {"runtime_limit": -1},
        {"class": ""},
        {"tenant": "nobody"},
        {"id": "j1"},
        {"id": "j\n"},
    ],
    ids=str,
)
def test_a_job_like_its_neighbours_but_for_one_fault_is_refused(second: dict[str, object]) -> None:
    first = job(queue="cq", demand={"cpu": 1})
    plain = changed(jobs=[first, {**first, "id": "j2"}])
    assert len(read_snapshot(plain).jobs) == 2
    [field] = problems_of(changed(jobs=[first, {**first, "id": "j2", **second}]))
    assert field.startswith("jobs[1].")


@pytest.mark.parametrize(
    ("demand", "gang", "field"),
    [
        ({GPU: 1}, {"pods": 4, "per_pod": {GPU: 8}}, f"demand.{GPU}"),
        ({GPU: 3}, {"shapes": [{"pods": 1, "per_pod": {}}, {"pods": 4, "per_pod": {GPU: 1}}]}, f"demand.{GPU}"),
        ({}, {"pods": 4, "per_pod": {GPU: 8}}, "demand"),
        ({GPU: 4}, {"pods": 4, "per_pod": {GPU: 1, "nvidia.com/nosuch": 8}}, "gang"),
    ],
)  # fmt: skip
def test_a_gang_whose_pods_ask_for_other_than_its_demand_is_refused(
    demand: dict[str, object], gang: dict[str, object], field: str
) -> None:
    right = job(
        id="j0", demand={GPU: 32}, gang={"pods": 4, "per_pod": {GPU: 8}}
    )  # learned before the wrong one
    wrong = job(demand=demand, gang=gang)
    assert list(problems_of(changed(jobs=[right, wrong]))) == [f"jobs[1].{field}"]
    running = {"id": "r1", "tenant": "team-1", "demand": demand, "gang": gang}
    assert list(problems_of(changed(running=[running]))) == [f"running[0].{field}"]
    found = read_snapshot(changed(jobs=[job(demand=demand, gang=gang, frontend="kueue")]))
    assert len(found.jobs) == 1, "its quota may count so"


def test_what_a_gang_may_ask_for_beside_its_demand() -> None:
    shared = {"cpu": 1, GPU: 2, "nvidia.com/gpumem": 4000}  # cpu: 3 pods of 334m
    per_pod = {"cpu": "334m", GPU: "667m", "nvidia.com/gpumem": 4000, "ephemeral": 5}
    nodes = [{"name": "n1", "allocatable": {"ephemeral": 8}, "cards": [{"uuid": "c", "memory": 9000}]}]
    found = read_snapshot(
        changed(nodes=nodes, jobs=[job(demand=shared, gang={"pods": 3, "per_pod": per_pod})])
    )
    assert found.jobs[0].demand["cpu"] == 1000
