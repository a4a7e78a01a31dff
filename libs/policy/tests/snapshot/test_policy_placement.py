"""Walking an order with nodes in view: who is placed where, and why others are not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.snapshot.read import read_snapshot
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.snapshot.card_shares import with_card_shares
from fairlead_policy.snapshot.levels import plan_snapshot_levels
from fairlead_policy.snapshot.ordering import order_snapshot
from fairlead_policy.snapshot.placement import FitVerdict, JobFit, PlacementWalk, walk

GPU, MEM, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
NOW = 1_760_000_000
CARD = 24576
V100 = "hami.io/node-nvidia-register"


def card(uuid: str, **more: object) -> dict[str, object]:
    return {"uuid": uuid, "memory": CARD, "type": "NVIDIA-NVIDIA A30", **more}


def node(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "allocatable": {"cpu": 32, "memory": "128Gi", GPU: 8}, **more}


def job(name: str, demand: dict[str, object], **more: object) -> dict[str, object]:
    return {"id": name, "tenant": "team", "submitted": NOW - 100, "demand": demand, **more}


def snapshot(*jobs: dict[str, object], nodes: list[dict[str, object]], **more: object) -> Snapshot:
    return read_snapshot(
        {
            "now": NOW,
            "policy": {"fit": {"strategy": "binpack"}},
            "pools": [{"name": "gpu", "capacity": {"cpu": 512, "memory": "4Ti", GPU: 64}}],
            "tenants": [{"name": "team"}],
            "nodes": nodes,
            "jobs": [{**one, "submitted": NOW - 1000 + at} for at, one in enumerate(jobs)],
            **more,
        }
    )


def walked(found: Snapshot, strategy: CardStrategy = CardStrategy.BINPACK) -> PlacementWalk:
    return walk(
        found, {pool.name: [p.uid for p in pool.positions] for pool in order_snapshot(found)}, strategy
    )


def answers(found: Snapshot) -> dict[str, str]:
    return {uid: fit.answer.value for uid, fit in walked(found).jobs.items()}


def words(fit: JobFit) -> str:
    return " ".join(map(str, fit.reasons))


def test_each_job_takes_from_those_after_it_and_one_without_room_is_passed_over() -> None:
    nodes = [node("n1"), node("n2")]
    gang = {"pods": 3, "per_pod": {GPU: 4}}
    found = walked(
        snapshot(
            job("first", {GPU: 12}, gang=gang),
            job("second", {GPU: 12}, gang=gang),
            job("third", {GPU: 4}),
            job("fourth", {"cpu": 1}),
            nodes=nodes,
        )
    )
    assert {uid: fit.answer.value for uid, fit in found.jobs.items()} == {
        "first": "placed",
        "second": "no-room",
        "third": "placed",
        "fourth": "placed",
    }
    assert {one.node: one.pods for one in found.jobs["first"].nodes} == {"n1": 2, "n2": 1}
    assert words(found.jobs["second"]).startswith(
        "pods: 1 of 3 pods fits. pods ask for 12 nvidia.com/gpu together; 4"
    )
    assert [one.node for one in found.jobs["third"].nodes] == ["n2"]


def test_no_quota_is_told_apart_from_no_room_and_from_never() -> None:
    found = walked(
        snapshot(
            job("wide", {"memory": "2Ti"}),
            job("huge", {GPU: 65}),
            job("labels", {GPU: 4}, gang={"pods": 4, "per_pod": {GPU: 1}, "selector": {"gpu": "h100"}}),
            job("fits", {GPU: 8}),
            job("split", {GPU: 8}),
            job("late", {GPU: 50}, gang={"pods": 50, "per_pod": {GPU: 1}}),
            nodes=[node("n1", used={GPU: 4}), node("n2", used={GPU: 0}), node("n3", used={GPU: 3})],
            running=[{"id": "r", "tenant": "team", "demand": {GPU: 7}}],
        )
    )
    assert {uid: fit.answer for uid, fit in found.jobs.items()} == {
        "wide": FitVerdict.NEVER,
        "huge": FitVerdict.NEVER,
        "labels": FitVerdict.NEVER,
        "fits": FitVerdict.PLACED,
        "split": FitVerdict.NO_ROOM,
        "late": FitVerdict.NEVER,
    }
    assert (
        words(found.jobs["wide"])
        == "pods: a pod asks for 2Ti memory, more than any node has, even empty (128Gi)."
    )
    assert words(found.jobs["huge"]) == "It asks for 65 nvidia.com/gpu, more than pool gpu has (64)."
    assert words(found.jobs["labels"]) == "pods: no node has the label gpu=h100."
    assert (
        words(found.jobs["split"])
        == "pods: 9 nvidia.com/gpu free in all, but no node has 8; the most on one is 5."
    )


def test_a_full_pool_says_so() -> None:
    small = [{"name": "gpu", "capacity": {GPU: 8}}]
    found = walked(
        snapshot(job("a", {GPU: 6}), job("b", {GPU: 4}), nodes=[node("n1"), node("n2")], pools=small)
    )
    assert found.jobs["b"].answer is FitVerdict.NO_QUOTA
    assert (
        words(found.jobs["b"])
        == "Pool gpu has too little quota left: the job asks for 4 nvidia.com/gpu, 2 are left."
    )


def test_fractions_are_placed_on_cards_and_24_gb_in_all_are_not_20_on_one() -> None:
    cards = [
        card("GPU-1", used={"count": 1, "memory": 12000}),
        card("GPU-2", used={"count": 1, "memory": 13000}),
    ]
    found = walked(
        snapshot(
            job("eight", {GPU: 1, MEM: 8000}),
            job("twenty", {GPU: 1, MEM: 16000}),
            job("whole", {GPU: 1}),
            job("more", {GPU: 1, MEM: 30000}),
            nodes=[node("n1", cards=cards)],
        )
    )
    [on] = found.jobs["eight"].nodes
    assert (on.node, on.pods, on.cards) == ("n1", 1, {"GPU-1": 1})
    assert found.jobs["twenty"].answer is FitVerdict.NO_ROOM
    assert words(found.jobs["twenty"]).startswith(
        "pods: 16152 MiB of card memory free in all, but no card has 16000 MiB; the most on one is 11576 MiB."
    )
    assert "2 cards are in use, and the pod wants a card for itself" in words(found.jobs["whole"])
    assert found.jobs["more"].answer is FitVerdict.NEVER
    assert "more than any card has (24576 MiB)" in words(found.jobs["more"])


REGISTERED = {
    "string": "GPU-1,10,24576,100,NVIDIA-NVIDIA A30,0,true,0,hami-core:GPU-2,10,24576,100,NVIDIA-NVIDIA A30,0,true:",
    "json": json.dumps(
        [
            {
                "id": f"GPU-{number}",
                "count": 10,
                "devmem": 24576,
                "devcore": 100,
                "type": "A30",
                "health": True,
            }
            for number in (1, 2)
        ]
    ),
}


@pytest.mark.parametrize("encoding", ["string", "json"])
def test_cards_are_read_from_either_register_and_use_from_pods(encoding: str) -> None:
    held = "GPU-1,NVIDIA,20000,30:;GPU-1,NVIDIA,4000,0:;"
    registering = node(
        "n1",
        annotations={V100: REGISTERED[encoding], "hami.io/device-cordon": "GPU-9"},
        pods=[{"name": "p", "annotations": {"hami.io/vgpu-devices-allocated": held}}, {"name": "other"}],
    )
    found = walked(snapshot(job("j", {GPU: 1, MEM: 8000}), nodes=[registering]))
    [on] = found.jobs["j"].nodes
    assert on.cards == {"GPU-2": 1}, "576 MiB are left of the first"


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"annotations": {V100: "GPU-1,10"}}, f"nodes[0].annotations.{V100}", "node 'n1': neither"),
        ({"annotations": {V100: "[]"}, "cards": [card("a")]}, "nodes[0].cards", "node 'n1' registers cards"),
        (
            {
                "cards": [card("a")],
                "pods": [{"name": "p", "annotations": {"hami.io/vgpu-devices-allocated": "a,b:;"}}],
            },
            "nodes[0].pods[0].annotations.hami.io/vgpu-devices-allocated",
            "node 'n1', pod 'p': an entry is",
        ),
    ],
)
def test_cards_that_cannot_be_read_name_their_node(
    changes: dict[str, object], field: str, reason: str
) -> None:
    found = snapshot(job("j", {"cpu": 1}), nodes=[node("n1", **changes)])
    with pytest.raises(DocumentError) as refused:
        order_snapshot(found)
    [problem] = refused.value.problems
    assert problem.field == field
    assert problem.reason.startswith(reason)


def test_asks_that_hami_does_not_take_are_refused_with_their_place() -> None:
    jobs = [
        job("a", {GPU: "500m"}),
        job("b", {GPU: 1, "nvidia.com/gpumem-percentage": 101}),
        job("c", {GPU: 4}, gang={"pods": 3}),
        job("d", {GPU: 1}, gang={"shapes": [{"pods": 1, "per_pod": {"cpu": 1}}, {"pods": 1, "per_pod": {}}]}),
    ]
    with pytest.raises(DocumentError) as refused:
        order_snapshot(snapshot(*jobs, nodes=[node("n1", cards=[card("x")])]))
    assert [one.field for one in refused.value.problems] == [
        f"jobs[0].demand.{GPU}",
        "jobs[1].demand.nvidia.com/gpumem-percentage",
        f"jobs[2].demand.{GPU}",
        "jobs[3].gang.shapes",
    ]


def test_fractions_count_as_shares_of_physical_cards() -> None:
    """Half of one of 4 cards is an eighth, whatever the vGPU count says; whole cards count as they do without cards."""
    pools = [{"name": "gpu", "capacity": {"cpu": 512, GPU: 4}}]
    nodes = [node("n1", cards=[card(f"GPU-{number}") for number in range(4)])]
    ordering = snapshot(
        job("half", {GPU: 1, MEM: CARD // 2}),
        job("percent", {GPU: 1, "nvidia.com/gpumem-percentage": 50, CORES: 20}),
        job("two", {GPU: 2}),
        job("last", {"cpu": 1}),
        nodes=nodes,
        pools=pools,
        policy={"aging": {"entitlement_per_day": 0}},
    )
    [pool] = order_snapshot(ordering)
    assert [(position.id, position.tag) for position in pool.positions] == [
        ("half", 0.0),
        ("percent", 0.125),
        ("two", 0.25),
        ("last", 0.75),
    ]
    assert pool.rules.capacity == {"cpu": 512_000, GPU: 4000, MEM: 4 * CARD * 1000, CORES: 400_000}


def test_card_shares_done_twice_are_done_once() -> None:
    found = snapshot(
        job("j", {GPU: 4, MEM: 8000, "cpu": 4}, gang={"pods": 2}),
        job(
            "k",
            {GPU: 2},
            gang={"pods": 2, "per_pod": {GPU: 1, CORES: 20}},
            annotations={"nvidia.com/use-gputype": "A"},
        ),
        nodes=[node("n1", cards=[card("x"), card("y")])],
        running=[{"id": "r", "tenant": "team", "demand": {MEM: 4000}}],
    )
    once = with_card_shares(found)
    assert with_card_shares(once) == once
    assert once.jobs[0].demand == {"cpu": 4000, GPU: 400, MEM: 32_000_000}
    assert once.running[0].demand == {GPU: 100, MEM: 4_000_000}, "a count of one is HAMi's default"
    plain = snapshot(job("j", {GPU: 4}), nodes=[node("n1")])
    assert with_card_shares(plain) is plain


CARD_ASKS = (GPU, MEM, "nvidia.com/gpumem-percentage", CORES)


@given(
    st.sampled_from([None, 1, 2]),
    st.sets(st.sampled_from(CARD_ASKS), min_size=1),
    st.sets(st.sampled_from(CARD_ASKS)),
    st.sampled_from(["binpack", "none"]),
)
def test_an_ask_of_nothing_asks_for_nothing_wherever_it_stands(
    pods: int | None, demanded: set[str], per_pod: set[str], strategy: str
) -> None:
    def made(demanded: set[str], per_pod: set[str]) -> Snapshot:
        demand: dict[str, object] = {"cpu": 2, **dict.fromkeys(demanded, 0)}
        gang: dict[str, object] = {}
        if pods is not None:
            each = {"cpu": 2 // pods} | dict.fromkeys(per_pod, 0)
            gang = {"gang": {"pods": pods, "per_pod": each}}
        return snapshot(
            *(job(name, demand, **gang) for name in ("j", "k")),
            nodes=[node("n1", cards=[card("x")])],
            policy={"fit": {"strategy": strategy}},
        )

    asking, silent = made(demanded, per_pod), made(set(), set())
    once = with_card_shares(asking)
    assert with_card_shares(once) == once
    tags = [[position.tag for position in order_snapshot(found)[0].positions] for found in (asking, silent)]
    assert tags[0] == tags[1]
    assert answers(asking) == answers(silent)


@pytest.mark.parametrize(("policy", "nodes"), [("binpack", {"n1": 2}), ("spread", {"n1": 1, "n2": 1})])
def test_a_job_s_own_policy_for_nodes_counts_before_the_document_s(
    policy: str, nodes: dict[str, int]
) -> None:
    other = CardStrategy.SPREAD if policy == "binpack" else CardStrategy.BINPACK
    one = job(
        "j",
        {GPU: 2},
        gang={"pods": 2, "per_pod": {GPU: 1}},
        annotations={"hami.io/node-scheduler-policy": policy},
    )
    found = walked(snapshot(one, nodes=[node("n1"), node("n2")]), other)
    assert {on.node: on.pods for on in found.jobs["j"].nodes} == nodes


@pytest.mark.parametrize(("policy", "cards"), [("binpack", {"a": 2}), ("spread", {"a": 1, "b": 1})])
def test_a_job_s_policy_for_cards_counts(policy: str, cards: dict[str, int]) -> None:
    one = job(
        "j",
        {GPU: 2},
        gang={"pods": 2, "per_pod": {GPU: 1, MEM: 100}},
        annotations={"hami.io/gpu-scheduler-policy": policy},
    )
    found = walked(snapshot(one, nodes=[node("n1", cards=[card("a"), card("b")])]))
    assert found.jobs["j"].nodes[0].cards == cards


def test_where_use_is_not_stated_nothing_is_claimed_but_what_never_fits() -> None:
    found = walked(
        snapshot(
            job("fits", {GPU: 8}),
            job("never", {GPU: 9}),
            nodes=[node("n1"), node("n2", used={})],
            running=[{"id": "r", "tenant": "team", "demand": {GPU: 1}}],
        )
    )
    assert found.jobs["fits"].answer is FitVerdict.UNKNOWN
    assert words(found.jobs["fits"]) == "Jobs run, and 1 node does not say what is used of them."
    assert found.jobs["never"].answer is FitVerdict.NEVER
    assert answers(snapshot(job("j", {GPU: 1}), nodes=[])) == {"j": "unknown"}


def test_parts_of_cards_that_nobody_registers_are_neither_placed_nor_refused() -> None:
    pools = [{"name": "gpu", "capacity": {GPU: 8, MEM: 80_000}}]
    found = walked(
        snapshot(
            job("part", {GPU: 1, MEM: 8000}), job("nine", {GPU: 9, MEM: 1}), nodes=[node("n1")], pools=pools
        )
    )
    assert found.jobs["part"].answer is FitVerdict.UNKNOWN
    assert words(found.jobs["part"]) == "pods: no node that they may use has registered a card."
    assert found.jobs["nine"].answer is FitVerdict.NEVER


def test_taints_and_tolerations_count() -> None:
    nodes = [node("n1", taints=["dedicated=ml:NoSchedule"]), node("n2", unschedulable=True)]
    tolerating = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    found = walked(snapshot(job("a", {GPU: 1}), job("b", {GPU: 1}, gang=tolerating), nodes=nodes))
    assert found.jobs["a"].answer is FitVerdict.NEVER
    assert [on.node for on in found.jobs["b"].nodes] == ["n1"]


def test_nodes_of_a_pool_or_a_cluster_are_for_its_jobs_alone() -> None:
    pools = [{"name": name, "capacity": {GPU: 64}} for name in ("gpu", "other")]
    tenants = [{"name": "team", "pool": "gpu"}, {"name": "guest", "pool": "other"}]
    nodes = [node("n", pool="other"), node("n", cluster="east"), node("n", cluster="west")]
    jobs = [
        job("a", {GPU: 8}, cluster="west"),
        job("b", {GPU: 8}, cluster="west"),
        job("c", {GPU: 8}),
        job("d", {GPU: 8}, tenant="guest"),
    ]
    found = walked(snapshot(*jobs, nodes=nodes, pools=pools, tenants=tenants))
    assert {uid: [on.node for on in fit.nodes] for uid, fit in found.jobs.items()} == {
        "a": ["west/n"],
        "b": [],
        "c": ["east/n"],
        "d": ["n"],
    }


def test_a_job_that_can_never_run_takes_no_place_in_the_window() -> None:
    jobs = [job("never", {GPU: 9}, level=5), job("a", {GPU: 1}), job("b", {GPU: 1}), job("c", {GPU: 1})]
    found = snapshot(*[one | {"queue_time": NOW - at} for at, one in enumerate(jobs)], nodes=[node("n1")])
    [pool] = order_snapshot(found)
    assert [position.id for position in pool.positions] == ["never", "a", "b", "c"], (
        "fit does not change the order"
    )
    plan = plan_snapshot_levels(pool, found.jobs, 2, never=walked(found).never)
    assert plan.levels["c"] == 0
    assert plan.levels["never"] < plan.levels["b"], "a level that it had may stay where it does no harm"
    assert plan.levels["a"] > plan.levels["b"] > 0
    unlabelled = snapshot(*jobs[1:], {**jobs[0], "level": 0}, nodes=[node("n1")])
    [pool] = order_snapshot(unlabelled)
    plan = plan_snapshot_levels(pool, unlabelled.jobs, 2, never=walked(unlabelled).never)
    assert plan.levels["never"] == 0
