"""Gangs: under HAMi the doctor counts cards, and calls impossible only what no card can ever hold; what runs it calls by its name."""

import msgspec
import pytest

from fairlead_cli.findings import checks_in
from fairlead_cli.kueue.doctor.checks import gangs
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_contracts.frontend.cards import CARD_MEMORY, REGISTER
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.queues import ClusterQueue, LocalQueue, ResourceFlavor
from fairlead_kube.kinds.workloads import Workload
from fairlead_testkit.kubelab import GPU, KubeObject, gpu_nodes, things

A30 = {"id": "GPU-1", "count": 10, "devmem": 24_576, "devcore": 100, "type": "NVIDIA-A30", "health": True}


def found(asked: dict[str, int | str], card: KubeObject = A30, **spec: object) -> dict[str, str]:
    """What the doctor says of a job of one pod, by name, beside a node whose only card HAMi shares out.

    Args:
        asked: the pod's requests.
        card: the card as HAMi registers it.
        spec: further fields of the node's spec.
    """
    [node] = gpu_nodes("a", 1, "zone-a").nodes()
    noted = {REGISTER: msgspec.json.encode([card]).decode()}
    whole = {**node, "metadata": {**node["metadata"], "annotations": noted}, "spec": spec}
    survey = Survey(
        cluster="lab",
        policy=PolicyDocument(),
        nodes=[msgspec.convert(whole, Node)],
        workloads=[msgspec.convert(things.workload("tune", "team-a", "main", asked), Workload)],
    )
    return {one.name: one.what for check in checks_in(gangs) for one in check.run(survey)}


def test_a_part_of_a_card_that_is_there_is_no_finding() -> None:
    assert "gang-fits-nowhere" not in found({GPU: 1, CARD_MEMORY: 24_576})


def test_more_memory_than_any_card_has_is_one() -> None:
    said = found({GPU: 1, CARD_MEMORY: 24_577})["gang-fits-nowhere"]
    assert "24577 MiB of card memory, more than any card has (24576 MiB)" in said


def test_a_card_for_ten_is_not_ten_whole_ones() -> None:
    assert "asks for 2 cards; no node has more than 1" in found({GPU: 2})["gang-fits-nowhere"]


def test_a_gang_larger_than_its_topology_is_not_said_to_be_admitted() -> None:
    survey = Survey(
        cluster="lab",
        policy=PolicyDocument(),
        nodes=[msgspec.convert(node, Node) for node in gpu_nodes("a", 1, "zone-a").nodes()],
        cluster_queues=[msgspec.convert(things.cluster_queue("gpus", {GPU: 16}, flavor="f"), ClusterQueue)],
        local_queues=[msgspec.convert(things.local_queue("main", "team-a", "gpus"), LocalQueue)],
        workloads=[msgspec.convert(things.workload("tune", "team-a", "main", {GPU: 9}), Workload)],
    )
    admitted = things.workload("tune", "team-a", "main", {GPU: 9}) | {
        "status": {"conditions": [{"type": "QuotaReserved", "status": "True"}]}
    }
    for name, topology, workload, told in (
        ("f", {}, None, "admits it all the same"),
        ("f", {"topologyName": "racks"}, None, "never admits it either: its flav"),
        ("f", {"topologyName": "racks"}, admitted, "admits it all the same"),
        ("of another queue", {"topologyName": "racks"}, None, "admits it all the same"),
    ):
        flavor = msgspec.convert({"metadata": {"name": name}, "spec": topology}, ResourceFlavor)
        one = msgspec.structs.replace(survey, flavors=[flavor])
        if workload is not None:
            one = msgspec.structs.replace(one, workloads=[msgspec.convert(workload, Workload)])
        [never] = [
            said for check in checks_in(gangs) for said in check.run(one) if said.name == "gang-fits-nowhere"
        ]
        assert f"Kueue {told}" in never.why


def test_a_gang_for_which_one_flavor_has_no_topology_is_admitted_there() -> None:
    flavors = [{"name": name, "resources": [{"name": GPU, "nominalQuota": 8}]} for name in ("racks", "plain")]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    queue = things.cluster_queue("gpus", {}, flavor="racks", resourceGroups=groups)
    survey = Survey(
        cluster="lab",
        policy=PolicyDocument(),
        nodes=[msgspec.convert(node, Node) for node in gpu_nodes("a", 1, "zone-a").nodes()],
        cluster_queues=[msgspec.convert(queue, ClusterQueue)],
        local_queues=[msgspec.convert(things.local_queue("main", "team-a", "gpus"), LocalQueue)],
        workloads=[msgspec.convert(things.workload("tune", "team-a", "main", {GPU: 9}), Workload)],
        flavors=[
            msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceFlavor)
            for name, spec in (("racks", {"topologyName": "racks"}), ("plain", {}))
        ],
    )
    [never] = [
        said for check in checks_in(gangs) for said in check.run(survey) if said.name == "gang-fits-nowhere"
    ]
    assert "Kueue admits it all the same" in never.why


def test_what_hami_refuses_never_starts() -> None:
    said = found({GPU: 1, "nvidia.com/gpumem-percentage": 150})["gang-fits-nowhere"]
    assert "HAMi does not take 150" in said


@pytest.mark.parametrize(
    ("card", "spec"),
    [({"health": False}, {}), ({}, {"unschedulable": True})],
    ids=["a card that is not healthy", "a node that is cordoned"],
)
def test_what_passes_by_itself_is_not_held_against_a_job(card: KubeObject, spec: KubeObject) -> None:
    assert "gang-fits-nowhere" not in found({GPU: 1, CARD_MEMORY: 1000}, A30 | card, **spec)


def test_a_gang_that_runs_is_called_by_what_people_made_and_counted_whole() -> None:
    """The pods of a JobSet belong to several Jobs of its operator's."""
    workload = things.workload("jobset-train-1f2e3", "team-a", "main", {GPU: 1}, pods=2)
    owner = {"kind": "JobSet", "name": "train", "uid": "s1", "controller": True}
    workload["metadata"] |= {"ownerReferences": [owner]}

    def pod(node: str, job: str) -> KubeObject:
        metadata = {
            "name": f"{job}-0",
            "namespace": "team-a",
            "labels": {"batch.kubernetes.io/job-name": job},
            "annotations": {"kueue.x-k8s.io/workload": "jobset-train-1f2e3"},
        }
        return {"metadata": metadata, "spec": {"nodeName": node}}

    zones = [*gpu_nodes("a", 1, "zone-a").nodes(), *gpu_nodes("b", 1, "zone-b").nodes()]
    survey = Survey(
        cluster="lab",
        policy=PolicyDocument(),
        nodes=msgspec.convert(zones, list[Node]),
        local_queues=[msgspec.convert(things.local_queue("main", "team-a", "cq"), LocalQueue)],
        workloads=[msgspec.convert(workload, Workload)],
        gang_pods=msgspec.convert([pod("a-0", "train-leader-0"), pod("b-0", "train-workers-0")], list[Pod]),
    )
    [told] = (one for check in checks_in(gangs) for one in check.run(survey) if one.name == "gang-spread")
    assert (told.subject, told.what) == ("JobSet/team-a/train", "its 2 pods run in zone-a (1), zone-b (1)")


@pytest.mark.parametrize(
    ("zones", "severity"), [(("zone-a", "zone-b"), "info"), (("zone-a", "zone-a"), "ok")]
)
def test_pods_that_do_not_say_of_which_workload_they_are_are_not_called_fine(
    zones: tuple[str, str], severity: str
) -> None:
    """As where Kueue's gate TopologyAwareScheduling is off."""
    pods = [{"metadata": {"name": f"p{number}", "namespace": "team-a"}, "spec": {}} for number in range(2)]
    survey = Survey(
        cluster="lab",
        policy=PolicyDocument(),
        nodes=msgspec.convert(
            [*gpu_nodes("a", 1, zones[0]).nodes(), *gpu_nodes("b", 1, zones[1]).nodes()], list[Node]
        ),
        gang_pods=msgspec.convert(pods, list[Pod]),
    )
    [told] = [one for check in checks_in(gangs) for one in check.run(survey) if "gang-spread" in check.names]
    assert told.severity == severity
    assert told.what.startswith("2 running pods of Kueue's without") is (severity == "info")
