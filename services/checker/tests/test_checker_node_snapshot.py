"""Gangs on nodes as they are now: what counts, and that nothing is given away twice."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_checker.facts import CheckedWorkload, checked, pod_use
from fairlead_checker.free_capacity import FreeCapacity
from fairlead_checker.node_snapshot import NodeSnapshot
from fairlead_contracts.frontend.cards import ALLOCATED, HOLDER, REGISTER
from fairlead_contracts.frontend.marks import ZONE_KEY
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.observed import observed_node
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.queues import ResourceFlavor
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_policy.fit.observed import ready_node
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_testkit.kubelab import KubeObject

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"


def pod_spec(requests: KubeObject, **spec: object) -> KubeObject:
    return {"containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}], **spec}


def gang(
    pods: int,
    requests: KubeObject,
    *,
    name: str = "w",
    flavor: str = "f",
    annotations: KubeObject | None = None,
    **spec: object,
) -> CheckedWorkload:
    found = {
        "metadata": {
            "name": name, "namespace": "a", "uid": name,
            "ownerReferences": [{"kind": "Job", "name": name, "uid": f"job-{name}", "controller": True}],
        },
        "spec": {
            "podSets": [{
                "name": "main", "count": pods,
                "template": {"metadata": {"annotations": annotations or {}}, "spec": pod_spec(requests, **spec)},
            }]
        },
        "status": {
            "admission": {"podSetAssignments": [{"name": "main", "count": pods, "flavors": {GPU: flavor}}]},
            "admissionChecks": [{"name": "gang-fit"}],
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
        },
    }  # fmt: skip
    taken = checked(msgspec.convert(found, Workload))
    assert taken is not None
    return taken


def node(name: str, gpus: int = 0, **found: object) -> Node:
    has = {"cpu": "64", "pods": "110"} | ({GPU: str(gpus)} if gpus else {})
    whole = {
        "metadata": {"name": name, **found},
        "status": {"allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return msgspec.convert(whole, Node)


def with_cards(name: str, *mebibytes: int) -> Node:
    cards = [
        {"id": f"{name}-{n}", "count": 10, "devmem": size, "devcore": 100, "type": "NVIDIA", "health": True}
        for n, size in enumerate(mebibytes)
    ]
    return node(name, annotations={REGISTER: json.dumps(cards)})


def bound(on: str, requests: KubeObject, *, owner: str = "", annotations: KubeObject | None = None) -> Pod:
    owners = [{"kind": "Job", "name": "x", "uid": owner, "controller": True}] if owner else []
    whole = {
        "metadata": {"annotations": annotations or {}, "ownerReferences": owners},
        "spec": {"nodeName": on, **pod_spec(requests)},
    }
    return msgspec.convert(whole, Pod)


def free_nodes(*nodes: Node, pods: tuple[Pod, ...] = ()) -> FreeCapacity:
    made = FreeCapacity()
    for one in nodes:
        made.set_node(one.metadata.name, ready_node(observed_node(one)))
    for number, pod in enumerate(pods):
        made.set_pod(Key("a", f"pod-{number}"), pod_use(pod))
    return made


def snapshot_of(
    here: FreeCapacity, *flavors: ResourceFlavor, strategy: CardStrategy = CardStrategy.BINPACK
) -> NodeSnapshot:
    return NodeSnapshot(here.nodes(), {flavor.metadata.name: flavor for flavor in flavors}, strategy)


def test_all_pods_count_whoever_made_them_until_they_are_over() -> None:
    here = free_nodes(node("n1", 4), node("n2", 4), pods=(bound("n1", {GPU: "1"}),))
    answer = snapshot_of(here).fit_now(gang(2, {GPU: "4"}))
    assert not answer.fits
    assert "1 of 2 pods fits" in answer.why
    freed = here.freed
    here.set_pod(Key("a", "pod-0"), None)
    assert here.freed > freed
    assert snapshot_of(here).fit_now(gang(2, {GPU: "4"})).fits


def test_what_is_kept_for_one_gang_is_not_given_to_the_next() -> None:
    snapshot = snapshot_of(free_nodes(node("n1", 4), node("n2", 4)))
    first = snapshot.fit_now(gang(2, {GPU: "4"}))
    snapshot.reserve(first)
    assert first.fits
    assert not snapshot.fit_now(gang(2, {GPU: "4"}, name="other")).fits


def test_a_gang_that_does_not_fit_takes_nothing_from_a_smaller_one() -> None:
    snapshot = snapshot_of(free_nodes(node("n1", 4)))
    refused = snapshot.fit_now(gang(2, {GPU: "4"}))
    snapshot.reserve(refused)
    assert snapshot.fit_now(gang(1, {GPU: "4"}, name="small")).fits


def test_room_is_kept_for_the_pods_that_are_not_on_nodes_yet() -> None:
    released = gang(2, {GPU: "4"})
    here = free_nodes(
        node("n1", 4), node("n2", 4), node("n3", 4), pods=(bound("n1", {GPU: "4"}, owner="job-w"),)
    )
    assert here.bound(released) == {"main": 1}
    snapshot = snapshot_of(here)
    snapshot.reserve_missing(released, {"main": 1})
    assert not snapshot.fit_now(gang(2, {GPU: "4"}, name="other")).fits
    assert snapshot.fit_now(gang(1, {GPU: "4"}, name="small")).fits


def test_labels_and_tolerations_of_the_flavor_count() -> None:
    flavor = msgspec.convert(
        {
            "metadata": {"name": "f"},
            "spec": {"nodeLabels": {"gpu": "a100"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
        },
        ResourceFlavor,
    )
    built = msgspec.to_builtins(node("n1", 4, labels={"gpu": "a100"}))
    tainted = msgspec.convert({**built, "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}, Node)
    assert snapshot_of(free_nodes(tainted), flavor).fit_now(gang(1, {GPU: "4"})).fits
    assert not snapshot_of(free_nodes(tainted)).fit_now(gang(1, {GPU: "4"})).fits
    assert not snapshot_of(free_nodes(node("n1", 4)), flavor).fit_now(gang(1, {GPU: "4"})).fits


def test_a_node_that_is_cordoned_or_not_ready_takes_nothing() -> None:
    built = msgspec.to_builtins(node("n1", 4))
    cordoned = msgspec.convert({**built, "spec": {"unschedulable": True}}, Node)
    silent = msgspec.convert({**built, "status": {**built["status"], "conditions": []}}, Node)
    for one in (cordoned, silent):
        assert not snapshot_of(free_nodes(one)).fit_now(gang(1, {GPU: "1"})).fits


def test_one_zone_is_found_where_it_is_asked_for() -> None:
    zones = [node(f"n{n}", 4, labels={"zone": zone}) for n, zone in enumerate(["a", "b", "b"])]
    asked = gang(2, {GPU: "4"}, annotations={ZONE_KEY: "zone"})
    assert snapshot_of(free_nodes(*zones)).fit_now(asked).zone == "b"
    full = free_nodes(*zones, pods=(bound("n1", {GPU: "1"}),))
    answer = snapshot_of(full).fit_now(asked)
    assert not answer.fits
    assert "fits only across a and b" in answer.why
    assert snapshot_of(full).fit_now(gang(2, {GPU: "4"})).fits


def test_fractions_are_looked_for_on_cards_as_they_are_held() -> None:
    """24 GiB free on two cards, and no card has 20."""
    note: KubeObject = {HOLDER: "n1", ALLOCATED: "n1-0,NVIDIA,12000,0:;"}
    other: KubeObject = {HOLDER: "n1", ALLOCATED: "n1-1,NVIDIA,12576,0:;"}
    held = (
        bound("n1", {GPU: "1", MEMORY: "12000"}, annotations=note),
        bound("n1", {GPU: "1", MEMORY: "12576"}, annotations=other),
    )
    here = free_nodes(with_cards("n1", 24_576, 24_576), pods=held)
    answer = snapshot_of(here).fit_now(gang(1, {GPU: "1", MEMORY: "20480"}))
    assert not answer.fits
    assert "no card has 20480 MiB" in answer.why
    snapshot = snapshot_of(here)
    first = snapshot.fit_now(gang(1, {GPU: "1", MEMORY: "12000"}))
    assert first.fits
    snapshot.reserve(first)
    snapshot.reserve(snapshot.fit_now(gang(1, {GPU: "1", MEMORY: "12000"}, name="second")))
    assert not snapshot.fit_now(gang(1, {GPU: "1", MEMORY: "12000"}, name="third")).fits


def test_whole_cards_are_found_on_nodes_with_hami_and_without_together() -> None:
    here = free_nodes(with_cards("n1", 24_576), node("n2", 1))
    snapshot = snapshot_of(here)
    both = snapshot.fit_now(gang(2, {GPU: "1"}))
    assert both.fits
    assert sorted(pod.node for pod in both.pods) == ["n1", "n2"]
    snapshot.reserve(both)
    assert not snapshot.fit_now(gang(1, {GPU: "1"}, name="other")).fits
    assert not snapshot_of(free_nodes(node("n2", 1))).fit_now(gang(1, {GPU: "1", MEMORY: "100"})).fits, (
        "HAMi alone has parts"
    )


def test_what_cannot_be_read_is_let_through_and_says_so() -> None:
    answer = snapshot_of(free_nodes(node("n1", 4))).fit_now(gang(1, {GPU: "many"}))
    assert answer.fits
    assert "Not looked at" in answer.why


def test_what_hami_does_not_take_is_not_let_through() -> None:
    here = free_nodes(with_cards("n1", 24_576))
    answer = snapshot_of(here).fit_now(gang(1, {GPU: "1", "nvidia.com/gpumem-percentage": "150"}))
    assert not answer.fits
    assert "HAMi does not take" in answer.why


def test_pods_that_end_are_forgotten() -> None:
    here = free_nodes(node("n1", 4), pods=(bound("n1", {GPU: "1"}, owner="job-w"),))
    here.set_pod(Key("a", "pod-0"), None)
    assert here.bound(gang(1, {GPU: "1"})) == {"main": 0}


sizes = st.integers(1, 4)


@pytest.mark.timeout(120)
@given(
    frees=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    gangs=st.lists(st.tuples(sizes, sizes), min_size=1, max_size=5),
)
def test_gangs_let_through_together_can_all_be_put_on_the_nodes(
    frees: list[int], gangs: list[tuple[int, int]]
) -> None:
    """Nodes are never given away twice, whatever one look lets through, and whatever is on them already."""
    here = free_nodes(*(node(f"n{number}", free) for number, free in enumerate(frees)))
    snapshot = snapshot_of(here)
    given: dict[str, int] = {}
    for number, (pods, gpus) in enumerate(gangs):
        answer = snapshot.fit_now(gang(pods, {GPU: str(gpus)}, name=f"g{number}"))
        snapshot.reserve(answer)
        for pod in answer.pods:
            given[pod.node] = given.get(pod.node, 0) + gpus
        room = sum((free - given.get(f"n{at}", 0)) // gpus for at, free in enumerate(frees))
        if not answer.fits:
            assert room < pods, "all of it had room"
    assert all(amount <= frees[int(name[1:])] for name, amount in given.items())
