"""Doctor, checker, the gate of slurm-bridge and `explain` say the same of the same pods and nodes: whether there is room.

`explain` knows less: neither taints that are tolerated nor required affinity, nor cards that nobody registers.
"""

import json
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_checker import facts as checker_facts
from fairlead_checker.free_capacity import FreeCapacity
from fairlead_checker.node_snapshot import NodeSnapshot, StartAnswer
from fairlead_cli.findings import checks_in
from fairlead_cli.kueue.doctor.checks import gangs
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_contracts.frontend.cards import REGISTER, USE_MODEL
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.observed import observed_node
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.queues import ClusterQueue, LocalQueue, ResourceFlavor
from fairlead_kube.kinds.workloads import Workload, WorkloadStatus
from fairlead_kube.reflector import Key
from fairlead_policy.fit.feasibility import StatedNodes
from fairlead_policy.fit.observed import ready_node
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.hami.requests import VgpuRequestError
from fairlead_slurm_bridge.gate import kube_facts
from fairlead_slurm_bridge.gate.capacity import CapacityCache, NoRoom
from fairlead_slurm_bridge.gate.kube_facts import pod_ask
from fairlead_testkit.inputs.builders import a_job
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.kubelab import KubeObject, things
from fairlead_watcher.objects.workload_facts import WorkloadFacts, workload_facts
from fairlead_watcher.statements import pools

GPU, MEMORY, CORES, PERCENT = (f"nvidia.com/gpu{rest}" for rest in ("", "mem", "cores", "mem-percentage"))
SLICE = "nvidia.com/mig-1g.5gb"
TAINT = {"key": "dedicated", "value": "research", "effect": "NoSchedule"}
IN_X = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}
BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
NEWER = "[{v9}]"
"""A register in words that only a newer HAMi could read."""
NO_PROOF = "No room was found, which is no proof."


def a_node(has: Mapping[str, int | str], cards: Sequence[tuple[int, str]] = (), **more: object) -> KubeObject:
    """A node without its name: what it has, and the cards that HAMi registers on it."""
    return {"has": {"cpu": 8, "pods": 110, **has}, "cards": list(cards), "zone": "x", "taints": [], **more}


def described(number: int, found: KubeObject) -> Node:
    cards = [
        {"id": f"{number}-{at}", "count": 2, "devmem": memory, "devcore": 100, "type": model, "mode": "hami-core", "health": True}
        for at, (memory, model) in enumerate(found["cards"])
    ]  # fmt: skip
    whole = {
        "metadata": {
            "name": f"n{number}",
            "labels": {"zone": found["zone"]},
            "annotations": {REGISTER: found.get("register", json.dumps(cards))} if cards else {},
        },
        "spec": {"taints": found["taints"]},
        "status": {"allocatable": found["has"], "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return msgspec.convert(whole, Node)


def a_pod(
    *containers: Mapping[str, int], annotations: KubeObject | None = None, **spec: object
) -> KubeObject:
    resources = [{"resources": {"requests": dict(one), "limits": dict(one)}} for one in containers]
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": resources, **spec}}


def affinity(*terms: KubeObject) -> KubeObject:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def by_doctor(pod_sets: Sequence[tuple[int, KubeObject]], nodes: Sequence[Node], zone: str | None) -> bool:
    """Whether the doctor finds that the gang never fits; its queue's only flavor has the nodes of that zone."""
    flavor = things.flavor("f", {} if zone is None else {"zone": zone})
    queue = things.cluster_queue("gpus", {GPU: 1000}, flavor="f")
    survey = Survey(
        cluster="lab",
        policy=PolicyDocument(),
        nodes=list(nodes),
        flavors=[msgspec.convert(flavor, ResourceFlavor)],
        cluster_queues=[msgspec.convert(queue, ClusterQueue)],
        local_queues=[msgspec.convert(things.local_queue("main", "a", "gpus"), LocalQueue)],
        workloads=[workload(pod_sets)],
    )
    found = [finding.name for check in checks_in(gangs) for finding in check.run(survey)]
    return "gang-fits-nowhere" in found


def by_checker(
    pod_sets: Sequence[tuple[int, KubeObject]], nodes: Sequence[Node], zone: str | None
) -> StartAnswer:
    """The checker's answer, nothing being on the nodes."""
    free = FreeCapacity()
    for node in nodes:
        free.set_node(node.metadata.name, ready_node(observed_node(node)))
    flavor = msgspec.convert(things.flavor("f", {} if zone is None else {"zone": zone}), ResourceFlavor)
    waiting = checker_facts.checked(workload(pod_sets))
    assert waiting is not None
    return NodeSnapshot(free.nodes(), {"f": flavor}, CardStrategy.BINPACK).fit_now(waiting)


def by_gate(pod: KubeObject, nodes: Sequence[Node], zone: str | None) -> bool:
    """Whether the gate has room for the pod, which goes to the zone by its own selector."""
    capacity = CapacityCache()
    for node in nodes:
        capacity.node(node.metadata.name, kube_facts.partition_node(node, {}))
    spec = pod["spec"] if zone is None else {**pod["spec"], "nodeSelector": {"zone": zone}}
    try:
        asked = pod_ask(msgspec.convert({**pod, "spec": spec}, Pod))
    except VgpuRequestError:
        return False
    return not isinstance(capacity.reserve(Key("a", "pod"), asked), NoRoom)


def by_explain(pod_sets: Sequence[tuple[int, KubeObject]], nodes: Sequence[Node]) -> bool:
    """Whether `explain` tells that the gang never fits, by what the watcher states of it and of the nodes."""
    waiting = msgspec.structs.replace(workload(pod_sets), status=WorkloadStatus())
    facts = workload_facts(waiting)
    assert isinstance(facts, WorkloadFacts)
    job = a_job(demand=facts.demand, pods=facts.pods, shapes=tuple(facts.shapes))
    return bool(StatedNodes().outgrown(job, [pools.node("c1", node) for node in nodes]))


def workload(pod_sets: Sequence[tuple[int, KubeObject]]) -> Workload:
    sets = [
        {"name": f"set-{at}", "count": count, "template": pod} for at, (count, pod) in enumerate(pod_sets)
    ]
    given = [{"name": one["name"], "count": one["count"], "flavors": {GPU: "f"}} for one in sets]
    whole = {
        "metadata": {"name": "w", "namespace": "a", "uid": "w"},
        "spec": {"queueName": "main", "active": True, "podSets": sets},
        "status": {
            "admission": {"podSetAssignments": given},
            "admissionChecks": [{"name": "gang-fit"}],
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
        },
    }
    return msgspec.convert(whole, Workload)


NODES = st.builds(
    lambda base, zone, taints: {**base, "zone": zone, "taints": taints},
    st.sampled_from([
        a_node({}),
        a_node({GPU: 1}),
        a_node({GPU: 4}),
        a_node({SLICE: 2}),
        a_node({GPU: 2}, [(8000, "A30")]),
        a_node({GPU: 4}, [(8000, "A30"), (24000, "H100")]),
        a_node({GPU: 4}, [(8000, "A30"), (24000, "H100")], register=NEWER),
    ]),
    st.sampled_from(["x", "y"]),
    st.sampled_from([[], [TAINT]]),
)  # fmt: skip
PLAIN_NODES = NODES.map(lambda node: {**node, "taints": []})
CONTAINERS = st.sampled_from([
    {"cpu": 1},
    {"cpu": 9},
    {"cpu": 1, SLICE: 1},
    {GPU: 1},
    {GPU: 2},
    {GPU: 0},
    {GPU: 1, MEMORY: 4000},
    {GPU: 1, MEMORY: 16000},
    {GPU: 1, MEMORY: 0},
    {MEMORY: 4000, CORES: 30},
    {GPU: 2, PERCENT: 50},
    {GPU: 1, PERCENT: 150},
])  # fmt: skip
PLAIN_PODS = st.builds(
    lambda containers, model: a_pod(*containers, annotations={USE_MODEL: model} if model else {}),
    st.lists(CONTAINERS, min_size=1, max_size=2),
    st.sampled_from([None, None, "A30", "H100"]),
)
PODS = st.builds(
    lambda pod, more: {**pod, "spec": pod["spec"] | more},
    PLAIN_PODS,
    st.sampled_from([
        {},
        {},
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"affinity": affinity(IN_X)},
        {"affinity": affinity(IN_X, BY_NAME)},
    ]),
)  # fmt: skip
ZONES = st.sampled_from([None, "x", "z"])


def agreed(pod_sets: Sequence[tuple[int, KubeObject]], nodes: Sequence[Node], zone: str | None) -> bool:
    """Whether there is room, as all say; what is not proven is let through by all that ask for a proof."""
    never, answer = by_doctor(pod_sets, nodes, zone), by_checker(pod_sets, nodes, zone)
    assert never is not answer.fits, answer.why
    if all(NEWER not in observed_node(node).annotations.values() for node in nodes):
        assert never or not by_explain(pod_sets, nodes), (
            "explain knows less, and tells nothing that is not so"
        )
    if [count for count, _ in pod_sets] == [1]:
        room = by_gate(pod_sets[0][1], nodes, zone)
        assert room == (answer.fits and not answer.why.startswith(NO_PROOF)), answer.why
    return answer.fits


@settings(max_examples=cases(4), deadline=None)
@given(nodes=st.lists(NODES, min_size=1, max_size=3), pod=PODS, zone=ZONES)
def test_all_agree_on_a_pod(nodes: list[KubeObject], pod: KubeObject, zone: str | None) -> None:
    agreed([(1, pod)], [described(*one) for one in enumerate(nodes)], zone)


@settings(max_examples=cases(2), deadline=None)
@given(
    nodes=st.lists(NODES, min_size=1, max_size=3),
    pod_sets=st.lists(st.tuples(st.integers(1, 3), PODS), min_size=1, max_size=2),
    zone=ZONES,
)
def test_doctor_and_checker_agree_on_a_gang(
    nodes: list[KubeObject], pod_sets: list[tuple[int, KubeObject]], zone: str | None
) -> None:
    agreed(pod_sets, [described(*one) for one in enumerate(nodes)], zone)


@settings(max_examples=cases(2), deadline=None)
@given(
    nodes=st.lists(PLAIN_NODES, min_size=1, max_size=3),
    pod_sets=st.lists(st.tuples(st.integers(1, 3), PLAIN_PODS), min_size=1, max_size=2),
)
def test_doctor_and_explain_agree_where_both_know_all(
    nodes: list[KubeObject], pod_sets: list[tuple[int, KubeObject]]
) -> None:
    nodes = [node for node in nodes if "register" not in node]
    if not any(node["cards"] for node in nodes):
        nodes = [*nodes, a_node({}, [(1, "T4")])]
    found = [described(*one) for one in enumerate(nodes)]
    assert by_explain(pod_sets, found) == by_doctor(pod_sets, found, None)


UNDER_HAMI, PLAIN = a_node({GPU: 10}, [(24576, "NVIDIA-A30")]), a_node({GPU: 8})
UNREAD = a_node({GPU: 10}, [(24576, "NVIDIA-A30")], register=NEWER)


@pytest.mark.parametrize(
    ("nodes", "pod", "fits"),
    [
        ([UNDER_HAMI], a_pod({GPU: 1, MEMORY: 4000}), True),
        ([UNDER_HAMI], a_pod({GPU: 1, MEMORY: 40000}), False),
        ([UNDER_HAMI], a_pod({GPU: 2}), False),
        ([UNDER_HAMI, PLAIN], a_pod({GPU: 2}), True),
        ([PLAIN], a_pod({GPU: 1, MEMORY: 4000}), False),
        ([UNREAD], a_pod({GPU: 2}), True),
        ([UNREAD], a_pod({GPU: 1, MEMORY: 40000}), True),
        ([UNDER_HAMI], a_pod({GPU: 1}, annotations={USE_MODEL: "H100"}), False),
        ([UNDER_HAMI], a_pod({GPU: 1, PERCENT: 150}), False),
        ([a_node({SLICE: 7})], a_pod({SLICE: 7}), True),
        ([a_node({SLICE: 7})], a_pod({SLICE: 8}), False),
        ([PLAIN], a_pod({"cpu": 1}, nodeSelector={"zone": "y"}), False),
        ([PLAIN], a_pod({"cpu": 1}, affinity=affinity({**IN_X}, BY_NAME)), True),
        ([a_node({}, zone="y")], a_pod({"cpu": 1}, affinity=affinity(IN_X)), False),
        ([a_node({}, zone="y")], a_pod({"cpu": 1}, affinity=affinity(IN_X, BY_NAME)), True),
        ([a_node({}, taints=[TAINT])], a_pod({"cpu": 1}), False),
        ([a_node({"example.com/odd": "12 of them"})], a_pod({"cpu": 1}), True),
    ],
    ids=[
        "a part of a card that HAMi has",
        "more memory than a card has",
        "two cards of a node that has one for ten",
        "two cards beside a node without HAMi",
        "a part without HAMi",
        "whole cards whose register cannot be read",
        "a part of a card whose register cannot be read",
        "another model",
        "what HAMi refuses",
        "slices by MIG as a resource of the node",
        "more slices than there are",
        "a label that no node has",
        "an affinity that holds",
        "an affinity that holds nowhere",
        "an affinity one of whose terms goes by a node's fields",
        "a taint",
        "an amount that cannot be read",
    ],
)
def test_all_agree(nodes: list[KubeObject], pod: KubeObject, fits: bool) -> None:
    assert agreed([(1, pod)], [described(*one) for one in enumerate(nodes)], None) is fits


def test_pods_that_ask_for_too_much_to_be_stated_are_not_taken_for_alike() -> None:
    odd = {f"example.com/r-{number}": 1 for number in range(600)}
    nodes = [described(at, a_node({GPU: gpus, **odd})) for at, gpus in enumerate((5, 1))]
    assert agreed([(1, a_pod({GPU: 5, **odd})), (1, a_pod({GPU: 1, **odd}))], nodes, None)
