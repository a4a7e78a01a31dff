"""Checks of the doctor, each on a survey that has what it looks for and on one that has not."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from fairlead_cli.findings import Finding, Severity
from fairlead_cli.kueue.doctor.checks import CHECKS, examine, known_names
from fairlead_cli.kueue.doctor.kueue_config import HASHING, KueueRelease, KueueSeen
from fairlead_cli.kueue.doctor.survey import NeededRight, Survey
from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.state import PoolState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import read_document
from fairlead_kube.kinds.core import Namespace, Node, WebhookConfiguration
from fairlead_kube.kinds.queues import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from fairlead_kube.kinds.workloads import AdmissionCheck
from fairlead_kube.lever import Lever, LeverProbe
from fairlead_testkit.kubelab import A100, GPU, GPU_PRODUCT, ZONE, KubeObject, NodeShape, gpu_nodes, things

ACTIVE = {"conditions": [{"type": "Active", "status": "True"}]}
FLAVOR = things.flavor("a100", {GPU_PRODUCT: A100})
QUEUE = things.cluster_queue("gpus", {GPU: 16}, flavor="a100") | {"status": ACTIVE}
SPOT = "karpenter.sh/capacity-type"
NOW = 61 * SECOND


def nodes(*shapes: NodeShape) -> list[Node]:
    return msgspec.convert([node for shape in shapes for node in shape.nodes()], list[Node])


def policy(**keys: object) -> PolicyDocument:
    return read_document({"unlisted_weight": 1, **keys})


def hook(group: str, resource: str) -> KubeObject:
    rule = {"apiGroups": [group], "resources": [resource], "operations": ["CREATE", "UPDATE"]}
    return {"name": f"v{resource}", "rules": [rule]}


RESERVED = policy(mode="reserve", tenants=[{"name": "team-a"}])
LET_GO = {
    **QUEUE,
    "metadata": {"name": "gpus", "annotations": {"fairlead.dev/watchdog": "was StrictFIFO"}},
}
ENTRY = things.local_queue("main", "team-a", "gpus")
WEBHOOKS = [{"webhooks": [hook("kueue.x-k8s.io", "workloads"), hook("batch", "jobs")]}]
SOUND = Survey(
    cluster="lab",
    kueue=KueueSeen(served=("v1beta2", "v1beta1"), release=KueueRelease(0, 19, 2)),
    probe=LeverProbe(Lever.BOOST, "the webhook reads boosts"),
    policy=policy(tenants=[{"name": "team-a"}]),
    webhooks=msgspec.convert(WEBHOOKS, list[WebhookConfiguration]),
    cluster_queues=msgspec.convert([QUEUE], list[ClusterQueue]),
    local_queues=msgspec.convert([ENTRY], list[LocalQueue]),
    flavors=msgspec.convert([FLAVOR], list[ResourceFlavor]),
    nodes=nodes(gpu_nodes("a", 2, "zone-a")),
)


def changed(**parts: object) -> Survey:
    """The sound survey with other parts; objects are given as the API server has them."""
    kinds: Mapping[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Survey)}
    plain = {name: _typed(kinds[name], part) for name, part in parts.items()}
    return msgspec.structs.replace(SOUND, **plain)


def of_kueue(**seen: Any) -> Survey:  # noqa: ANN401 # whatever a KueueSeen has
    return changed(kueue=KueueSeen(served=("v1beta2",), **seen))


def _typed(kind: Any, part: object) -> object:  # noqa: ANN401 # a type as an annotation has it
    if not (isinstance(part, list) and part and isinstance(part[0], dict)):
        return part
    return msgspec.json.decode(msgspec.json.encode(part), type=kind)


def shared_with_slurm(gpus: int, **pool: object) -> Survey:
    """The pool of the sound survey joined with a partition of so many GPUs; both have the 16 GPUs of two nodes."""
    joined = {"name": "all", "members": ["hpc/pods", "lab/gpus"], "hardware": "shared", **pool}
    there = PoolState(cluster="hpc", epoch=1, rev=1, name="pods", capacity={GPU: 1000 * gpus})
    return changed(policy=policy(tenants=[{"name": "team-a"}], pools=[joined]), elsewhere=[there])


def queue(**spec: object) -> Survey:
    return changed(cluster_queues=[{**QUEUE, "spec": {**QUEUE["spec"], **spec}}])


def classes(**values: int) -> list[KubeObject]:
    return [things.priority_class(name, value) for name, value in values.items()]


def node_pool(name: str = "pool", *, labels: Mapping[str, str] | None = None, **spec: object) -> KubeObject:
    template = {"metadata": {"labels": dict(labels or {})}, "spec": spec}
    return {"metadata": {"name": name}, "spec": {"template": template}}


def requires(key: str, *values: str, operator: str = "In") -> KubeObject:
    return {"key": key, "operator": operator, "values": list(values)}


def written(manager: str, *, boost: bool = True) -> KubeObject:
    fields: KubeObject = (
        {"f:metadata": {"f:annotations": {"f:kueue.x-k8s.io/priority-boost": {}}}}
        if boost
        else {"f:spec": {"f:priority": {}}}
    )
    entries = [{"manager": manager, "fieldsV1": fields}, {"manager": "kueue-admission", "fieldsV1": fields}]
    return {"metadata": {"name": "w", "namespace": "team-a", "managedFields": entries}}


def with_workload(pods: int, gpus: int, **parts: object) -> Survey:
    found = things.workload("train", "team-a", "main", {GPU: gpus, "cpu": 1}, pods=pods)
    return changed(workloads=[found], **parts)


def asking_for(resources: int, name: str = "odd") -> KubeObject:
    demand = {f"example.com/r-{number}": 1 for number in range(resources)}
    return things.workload(name, "team-a", "main", demand)


def a_job(
    queue_name: str | None = None, *, suspend: bool = False, uid: str = "j1", **more: object
) -> KubeObject:
    job = things.job("train", "team-a", queue_name, {"cpu": 1})
    return {
        **job,
        "metadata": {**job["metadata"], "uid": uid},
        "spec": {**job["spec"], "suspend": suspend},
        **more,
    }


def a_pytorch_job(queue_name: str = "", *, suspend: bool = False) -> KubeObject:
    found = things.pytorch_job("torch", "team-a", queue_name, {GPU: 1})
    if not queue_name:
        found["metadata"]["labels"] = {}
    return {**found, "spec": {**found["spec"], "runPolicy": {"suspend": suspend}}}


def a_ray_job(*owners: KubeObject, **status: object) -> KubeObject:
    metadata = {"name": "ray", "namespace": "team-a", "ownerReferences": list(owners)}
    return {"kind": "RayJob", "metadata": metadata, "status": status}


SUSPENDED = a_job("main", suspend=True)
ADMITTED = {
    "metadata": {
        "name": "job-train",
        "namespace": "team-a",
        "ownerReferences": [{"kind": "Job", "name": "train", "uid": "j1", "controller": True}],
    },
    "spec": {"queueName": "main"},
    "status": {"conditions": [{"type": "QuotaReserved", "status": "True"}]},
}


def pod(name: str, node: str) -> KubeObject:
    annotations = {"kueue.x-k8s.io/workload": "job-train"}
    return {
        "metadata": {"name": name, "namespace": "team-a", "annotations": annotations},
        "spec": {"nodeName": node},
    }


def spot_flavor(**labels: str) -> list[KubeObject]:
    return [things.flavor("a100", {SPOT: "spot", **labels})]


def registering(register: str) -> list[Node]:
    """The nodes of the sound survey, HAMi's register on each."""
    noted = {"hami.io/node-nvidia-register": register}
    return [
        msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, annotations=noted))
        for node in SOUND.nodes
    ]


def having(gpus: str) -> list[Node]:
    """A node that says it has so many GPUs."""
    [node] = gpu_nodes("odd", 1, "zone-a").nodes()
    node["status"]["allocatable"] = {GPU: gpus}
    return msgspec.convert([node], list[Node])


TAINTED = NodeShape(
    "a", 2, gpus=8, gpu_product=A100, taints=({"key": "gpu", "value": "yes", "effect": "NoSchedule"},)
)
TOLERANT = {**FLAVOR, "spec": {**FLAVOR["spec"], "tolerations": [{"key": "gpu", "operator": "Exists"}]}}
BOOSTER: KubeObject = {
    "metadata": {"name": "booster", "namespace": "ops"},
    "spec": {"template": {"spec": {"containers": [{"image": "example.org/kueue-priority-booster:v0.18"}]}}},
}
GANG_FIT = {"metadata": {"name": "gang-fit"}, "spec": {"controllerName": "fairlead.dev/gang-fit"}}
MULTIKUEUE = {"metadata": {"name": "remote"}, "spec": {"controllerName": "kueue.x-k8s.io/multikueue"}}

COPY = {"metadata": {"labels": {"kueue.x-k8s.io/multikueue-origin": "mk"}}}
NO_BOOST = LeverProbe(Lever.PRIORITY, "the webhook reads no boosts")


def asks_for(check: KubeObject, *, leads: bool | None = None) -> Survey:
    return msgspec.structs.replace(
        queue(admissionChecksStrategy={"admissionChecks": [{"name": check["metadata"]["name"]}]}),
        admission_checks=msgspec.convert([check], list[AdmissionCheck]),
        checker_leads=leads,
    )


TWO_QUEUES = [
    {**QUEUE, "metadata": {"name": name}, "spec": {**QUEUE["spec"], "cohortName": "gpus"}}
    for name in ("x", "y")
]
NO_QUOTA = things.cluster_queue("x", {GPU: 0}, flavor="a100", cohort="gpus") | {"status": ACTIVE}

NESTED = {
    "cohorts": [things.cohort("gpus", {GPU: 16}, flavor="a100"), things.cohort("left", parentName="gpus")],
    "cluster_queues": [
        NO_QUOTA,
        {**NO_QUOTA, "metadata": {"name": "y"}, "spec": {**NO_QUOTA["spec"], "cohortName": "left"}},
    ],
}

FOUND: list[tuple[str, Severity, Survey]] = [
    ("kueue-absent", Severity.ERROR, changed(kueue=KueueSeen())),
    ("cluster-unknown", Severity.WARNING, changed(told_of=["kubelab"])),
    ("kueue-old", Severity.WARNING, changed(kueue=KueueSeen(served=("v1beta1",)))),
    ("kueue-version-unknown", Severity.INFO, changed(kueue=KueueSeen(served=("v1beta2",)))),
    ("kueue-config-unread", Severity.WARNING, of_kueue(config_problem="line 3: a key is given twice")),
    ("kueue-untested", Severity.INFO, of_kueue(release=KueueRelease(0, 16))),
    ("parked-one-by-one", Severity.WARNING, of_kueue(release=KueueRelease(0, 17, 1))),
    ("parked-one-by-one", Severity.WARNING, of_kueue(release=KueueRelease(0, 19, 2), gates={HASHING: False})),
    ("pods-awaited", Severity.WARNING, of_kueue(awaits_pods=True)),
    (
        "kueue-reverts",
        Severity.ERROR,
        changed(
            kueue=KueueSeen(served=("v1beta1",), release=KueueRelease(0, 12, 3)),
            probe=LeverProbe(Lever.PRIORITY, "off"),
        ),
    ),
    ("webhook-missing", Severity.WARNING, changed(webhooks=[])),
    (
        "job-webhook-missing",
        Severity.WARNING,
        changed(webhooks=[{"webhooks": [hook("kueue.x-k8s.io", "workloads")]}]),
    ),
    ("cannot-read", Severity.WARNING, changed(unread={"nodes": "forbidden"})),
    ("webhook-unreachable", Severity.ERROR, changed(outage="no endpoints")),
    ("lever-unknown", Severity.ERROR, changed(probe=LeverProbe(Lever.UNKNOWN, "no webhook"))),
    (
        "lever-refused",
        Severity.ERROR,
        changed(probe=LeverProbe(Lever.PRIORITY, "gate off"), stated_lever=Lever.BOOST),
    ),
    ("lever-priority", Severity.INFO, changed(probe=LeverProbe(Lever.PRIORITY, "gate off"))),
    ("lever-priority", Severity.INFO, changed(stated_lever=Lever.PRIORITY)),
    (
        "rights-missing",
        Severity.ERROR,
        changed(
            rights=[
                NeededRight(
                    service="admitter", account="me", verb="patch", resource="workloads", allowed=False
                ),
            ]
        ),
    ),
    (
        "checker-rights-missing",
        Severity.WARNING,
        changed(
            admission_checks=msgspec.convert([GANG_FIT], list[AdmissionCheck]),
            rights=[
                NeededRight(
                    service="checker",
                    account="me",
                    verb="patch",
                    resource="workloads",
                    subresource="status",
                    allowed=False,
                ),
            ],
        ),
    ),
    (
        "submit-rights-missing",
        Severity.INFO,
        changed(
            rights=[
                NeededRight(
                    service="admitter",
                    account="me",
                    verb="impersonate",
                    resource="serviceaccounts",
                    namespace="team-a",
                    name="fairlead-submitter",
                    allowed=False,
                ),
            ]
        ),
    ),
    (
        "namespace-not-selected",
        Severity.WARNING,
        msgspec.structs.replace(
            queue(namespaceSelector={"matchLabels": {"gpu": "yes"}}),
            namespaces=msgspec.convert([things.namespace("team-a")], list[Namespace]),
        ),
    ),
    ("preempting-queue", Severity.WARNING, queue(preemption={"withinClusterQueue": "LowerPriority"})),
    ("preempting-queue", Severity.WARNING, queue(preemption={"reclaimWithinCohort": "LowerPriority"})),
    (
        "preempting-queue",
        Severity.WARNING,
        queue(preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}),
    ),
    (
        "admission-fair-sharing",
        Severity.WARNING,
        queue(admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"}),
    ),
    (
        "fair-sharing",
        Severity.WARNING,
        changed(cluster_queues=[{**QUEUE, "status": {**ACTIVE, "fairSharing": {"weightedShare": 0}}}]),
    ),
    ("own-quota", Severity.INFO, changed(cluster_queues=TWO_QUEUES)),
    ("nested-cohorts", Severity.INFO, changed(**NESTED)),
    ("strict-fifo", Severity.WARNING, queue(queueingStrategy="StrictFIFO")),
    ("not-reservable", Severity.WARNING, changed(policy=RESERVED)),
    ("not-reservable", Severity.WARNING, changed(policy=RESERVED, cluster_queues=TWO_QUEUES)),
    ("watchdog-acted", Severity.INFO, changed(cluster_queues=[LET_GO])),
    ("queue-stopped", Severity.INFO, queue(stopPolicy="Hold")),
    ("queue-stopped", Severity.INFO, changed(local_queues=[{**ENTRY, "spec": {"stopPolicy": "Hold"}}])),
    ("queue-inactive", Severity.WARNING, changed(cluster_queues=[{**QUEUE, "status": {}}])),
    ("multikueue", Severity.INFO, asks_for(MULTIKUEUE)),
    ("multikueue", Severity.ERROR, msgspec.structs.replace(asks_for(MULTIKUEUE), probe=NO_BOOST)),
    ("multikueue-copies", Severity.ERROR, changed(workloads=[COPY], probe=NO_BOOST)),
    ("gang-fit-unanswered", Severity.WARNING, asks_for(GANG_FIT)),
    ("gang-fit-unanswered", Severity.WARNING, asks_for(GANG_FIT | {"status": ACTIVE}, leads=False)),
    ("narrow-band", Severity.ERROR, changed(workload_classes=classes(urgent=100, approved=50))),
    ("narrow-band", Severity.ERROR, changed(workload_classes=classes(urgent=-5_000_000))),
    ("class-unlisted", Severity.WARNING, changed(workload_classes=classes(gold=500))),
    ("class-unlisted", Severity.INFO, changed(workload_classes=classes(scrap=-500))),
    ("class-ungranted", Severity.INFO, changed(workload_classes=classes(urgent=5_000_000))),
    (
        "small-parts",
        Severity.INFO,
        changed(policy=policy(tenants=[{"name": f"t{number}"} for number in range(200)])),
    ),
    (
        "queue-without-tenant",
        Severity.INFO,
        changed(local_queues=[things.local_queue("main", ns, "gpus") for ns in ("team-a", "team-z")]),
    ),
    (
        "queue-without-tenant",
        Severity.WARNING,
        changed(
            policy=policy(unlisted_weight=None, tenants=[{"name": "team-a"}]),
            local_queues=[things.local_queue("main", ns, "gpus") for ns in ("team-a", "team-z")],
        ),
    ),
    (
        "tenant-without-queue",
        Severity.WARNING,
        changed(policy=policy(tenants=[{"name": "team-a"}, {"name": "team-q"}])),
    ),
    ("member-without-pool", Severity.WARNING, shared_with_slurm(0, members=["hpc/pods", "lab/gpu"])),
    (
        "local-queue-dangling",
        Severity.WARNING,
        changed(local_queues=[things.local_queue("main", "team-a", "gpu")]),
    ),
    ("other-writer", Severity.ERROR, changed(written=[written("kubectl-annotate")])),
    ("other-writer", Severity.ERROR, changed(written=[written("their-controller", boost=False)])),
    ("priority-booster", Severity.ERROR, changed(deployments=[BOOSTER])),
    ("flavor-missing", Severity.WARNING, changed(flavors=[])),
    (
        "flavor-without-nodes",
        Severity.WARNING,
        changed(flavors=[things.flavor("a100", {GPU_PRODUCT: "H100"})]),
    ),
    ("flavor-taint", Severity.WARNING, changed(nodes=nodes(TAINTED))),
    ("flavor-taint", Severity.INFO, changed(nodes=nodes(TAINTED, gpu_nodes("b", 2, "zone-b")))),
    ("hardware-given-twice", Severity.WARNING, shared_with_slurm(1)),
    ("amount-unread", Severity.WARNING, changed(nodes=having("1e400"))),
    ("cards-unread", Severity.WARNING, changed(nodes=registering("[{v9}]"))),
    ("quota-above-capacity", Severity.WARNING, changed(nodes=nodes(gpu_nodes("a", 1, "zone-a")))),
    (
        "nodepool-cannot-make",
        Severity.WARNING,
        changed(
            flavors=spot_flavor(),
            nodes=[],
            node_pools=[node_pool(requirements=[requires(SPOT, "on-demand")])],
        ),
    ),
    ("nodepool-cannot-make", Severity.INFO, changed(node_pools=[node_pool()])),
    (
        "nodepool-taint",
        Severity.WARNING,
        changed(
            flavors=spot_flavor(),
            nodes=[],
            node_pools=[node_pool(taints=[{"key": "gpu", "effect": "NoSchedule"}])],
        ),
    ),
    (
        "nodepool-limit",
        Severity.WARNING,
        changed(
            flavors=spot_flavor(),
            nodes=[],
            node_pools=[{"metadata": {"name": "pool"}, "spec": {"limits": {GPU: 8}}}],
        ),
    ),
    ("job-without-queue", Severity.WARNING, changed(jobs=[a_job()])),
    ("job-without-queue", Severity.WARNING, changed(pytorch_jobs=[a_pytorch_job()])),
    ("job-without-queue", Severity.WARNING, changed(others=[a_ray_job(jobDeploymentStatus="Running")])),
    ("job-queue-missing", Severity.WARNING, changed(jobs=[a_job("mian", suspend=True)])),
    ("job-not-suspended", Severity.WARNING, changed(jobs=[a_job("main")])),
    ("job-not-suspended", Severity.WARNING, changed(pytorch_jobs=[a_pytorch_job("main")])),
    ("job-without-workload", Severity.WARNING, changed(jobs=[SUSPENDED], at=NOW)),
    ("queue-without-local-queue", Severity.WARNING, changed(local_queues=[])),
    ("job-too-many-resources", Severity.WARNING, changed(workloads=[asking_for(1025)])),
    ("gang-fits-nowhere", Severity.WARNING, with_workload(1, 9)),
    ("gang-fits-nowhere", Severity.WARNING, with_workload(3, 8)),
    (
        "gang-across-zones",
        Severity.WARNING,
        with_workload(3, 8, nodes=nodes(gpu_nodes("a", 2, "zone-a"), gpu_nodes("b", 2, "zone-b"))),
    ),
    (
        "gang-spread",
        Severity.INFO,
        changed(
            nodes=nodes(gpu_nodes("a", 1, "zone-a"), gpu_nodes("b", 1, "zone-b")),
            workloads=[ADMITTED],
            gang_pods=[pod("p0", "a-0"), pod("p1", "b-0")],
        ),
    ),
]


@pytest.mark.parametrize(
    ("deployed", "why"),
    [(True, "its image names no version"), (False, "it was not found, or may not be read")],
)
def test_why_the_release_of_kueue_is_unknown_is_told(*, deployed: bool, why: str) -> None:
    found = examine(of_kueue(deployed=deployed))
    assert [one.what.startswith(why) for one in found if one.name == "kueue-version-unknown"] == [True]


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FINE: list[tuple[str, Survey]] = [
    ("kueue-untested", SOUND),
    ("parked-one-by-one", of_kueue(release=KueueRelease(0, 17, 1), gates={HASHING: True})),
    ("lever-priority", changed(probe=LeverProbe(Lever.UNKNOWN, ""), stated_lever=Lever.BOOST)),
    ("lever-unknown", changed(probe=LeverProbe(Lever.UNKNOWN, ""), stated_lever=Lever.BOOST)),
    ("preempting-queue", queue(preemption={"withinClusterQueue": "Never", "reclaimWithinCohort": "Any"})),
    ("gang-fit-unanswered", asks_for(GANG_FIT | {"status": ACTIVE})),
    ("gang-fit-unanswered", asks_for(GANG_FIT, leads=True)),
    ("own-quota", changed(**NESTED)),
    ("nested-cohorts", changed(cluster_queues=TWO_QUEUES)),
    ("nested-cohorts", changed(cluster_queues=[NO_QUOTA, {**NO_QUOTA, "metadata": {"name": "y"}}])),
    ("own-quota", changed(cluster_queues=[NO_QUOTA, {**NO_QUOTA, "metadata": {"name": "y"}}])),
    ("narrow-band", changed(workload_classes=classes(urgent=5_000_000, approved=2_000_000))),
    (
        "tenant-without-queue",
        changed(policy=policy(tenants=[{"name": "blue", "match": {"labels": {"team": "blue"}}}])),
    ),
    (
        "tenant-without-queue",
        changed(policy=policy(tenants=[{"name": "q", "match": {"local_queues": ["team-a/main"]}}])),
    ),
    (
        "tenant-without-queue",
        changed(policy=policy(tenants=[{"name": "q", "match": {"clusters": ["other"]}}])),
    ),
    ("member-without-pool", shared_with_slurm(0)),
    ("other-writer", changed(written=[written("fairlead-admitter")])),
    ("flavor-taint", changed(nodes=nodes(TAINTED), flavors=[TOLERANT])),
    ("hardware-given-twice", shared_with_slurm(0)),
    ("hardware-given-twice", shared_with_slurm(8, hardware="disjoint")),
    ("hardware-given-twice", shared_with_slurm(8, members=["hpc/pods", "lab/others"])),
    (
        "nodepool-cannot-make",
        changed(
            flavors=spot_flavor(**{ZONE: "a"}),
            nodes=[],
            node_pools=[node_pool(requirements=[requires(SPOT, "spot")])],
        ),
    ),
    ("flavor-without-nodes", changed(flavors=spot_flavor(), nodes=[], node_pools=[node_pool()])),
    ("nodepool-cannot-make", changed(node_pools=[node_pool(labels={GPU_PRODUCT: A100})])),
    ("job-without-queue", changed(jobs=[a_job(status=COMPLETE)])),
    ("job-without-queue", changed(jobs=[a_job()], local_queues=[])),
    ("job-without-queue", changed(others=[a_ray_job({"kind": "AppWrapper", "controller": True})])),
    ("job-without-queue", changed(others=[a_ray_job(jobDeploymentStatus="Complete")])),
    ("job-without-queue", changed(others=[a_ray_job(applicationState={"state": "COMPLETED"})])),
    ("job-queue-missing", changed(jobs=[SUSPENDED])),
    ("job-not-suspended", changed(jobs=[a_job("main")], workloads=[ADMITTED])),
    ("job-not-suspended", changed(jobs=[SUSPENDED])),
    ("job-without-workload", changed(jobs=[SUSPENDED], at=60 * SECOND)),
    ("job-without-workload", changed(jobs=[SUSPENDED], workloads=[ADMITTED], at=NOW)),
    ("multikueue-copies", changed(workloads=[COPY])),
    ("queue-without-local-queue", SOUND),
    ("cards-unread", changed(nodes=registering("[]"))),
    ("gang-fits-nowhere", with_workload(1, 99, nodes=registering("[{v9}]"))),
    ("job-too-many-resources", changed(workloads=[asking_for(1024)])),
    ("gang-fits-nowhere", with_workload(2, 8)),
    ("gang-fits-nowhere", with_workload(3, 8, node_pools=[node_pool()])),
    (
        "gang-across-zones",
        with_workload(2, 8, nodes=nodes(gpu_nodes("a", 2, "z-a"), gpu_nodes("b", 2, "z-b"))),
    ),
    ("gang-spread", changed(workloads=[ADMITTED], gang_pods=[pod("p0", "a-0"), pod("p1", "a-1")])),
]


def named(survey: Survey, name: str) -> list[Finding]:
    return [finding for finding in examine(survey) if finding.name == name]


@pytest.mark.parametrize(
    ("name", "severity", "survey"), FOUND, ids=[f"{n}-{name}" for n, (name, _, _) in enumerate(FOUND)]
)
def test_what_is_wrong_is_found_with_object_reason_and_remedy(
    name: str, severity: Severity, survey: Survey
) -> None:
    findings = named(survey, name)
    assert findings
    for finding in findings:
        assert finding.severity is severity
        assert finding.subject
        assert finding.what
        assert finding.why
        if severity is not Severity.INFO:
            assert finding.mend


@pytest.mark.parametrize(("name", "survey"), FINE, ids=[f"{n}-{name}" for n, (name, _) in enumerate(FINE)])
def test_what_is_right_is_not_found(name: str, survey: Survey) -> None:
    assert named(survey, name) == []


def test_a_sound_cluster_has_nothing_but_what_is_fine() -> None:
    assert {finding.severity for finding in examine(SOUND)} == {Severity.OK}
    assert len(list(examine(SOUND))) == len(CHECKS)


def test_what_a_day_of_waiting_is_worth_is_told_of_each_pool() -> None:
    """16 cards between one tenant that is listed and ten that may come: a tenth of a part of 16/11."""
    [worth] = [finding.what for finding in examine(SOUND) if finding.subject == "aging"]
    assert worth == (
        "pool lab/gpus of 16 gpu: a day is worth 0.145 gpu for each unlisted tenant, 0.145 gpu for team-a"
    )
    in_cohort = {**QUEUE, "spec": {**QUEUE["spec"], "cohortName": "all"}}
    above = msgspec.convert([things.cohort("all", {GPU: 16}, flavor="a100")], list[Cohort])
    joined = changed(cluster_queues=[in_cohort], cohorts=above)
    assert any("of 32 gpu" in finding.what for finding in examine(joined) if finding.subject == "aging")


def test_every_finding_has_a_name_that_can_be_accepted() -> None:
    assert {name for name, _, _ in FOUND} | {"gangs-passed-over"} == known_names()


def test_a_check_is_silent_where_what_it_needs_could_not_be_read() -> None:
    survey = changed(unread={"nodes": "forbidden"}, nodes=[])
    names = {finding.name for finding in examine(survey)}
    assert "cannot-read" in names
    assert not names & {"flavor-without-nodes", "quota-above-capacity", "labels", "capacity"}


def test_the_remedy_of_a_flavor_names_the_value_that_nodes_have() -> None:
    [finding] = named(changed(flavors=[things.flavor("a100", {GPU_PRODUCT: "A100"})]), "flavor-without-nodes")
    assert f"{GPU_PRODUCT} is {A100} on 2 nodes" in finding.what
    patch = f'{{"spec":{{"nodeLabels":{{"{GPU_PRODUCT}":"{A100}"}}}}}}'
    assert f"kubectl patch resourceflavor a100 --type merge -p '{patch}'" in finding.mend


def test_a_label_that_a_device_plugin_sets_cannot_be_asked_of_karpenter() -> None:
    [finding] = named(changed(nodes=[], node_pools=[node_pool()]), "nodepool-cannot-make")
    assert "which Karpenter does not know" in finding.what


@pytest.mark.parametrize("preemption", ["accept", "protect"])
def test_preemption_that_the_policy_takes_is_no_warning(preemption: str) -> None:
    survey = msgspec.structs.replace(
        queue(preemption={"withinClusterQueue": "LowerPriority"}), policy=policy(preemption=preemption)
    )
    assert {finding.severity for finding in named(survey, "preempting-queue")} == {Severity.INFO}


def test_a_strict_queue_is_right_where_starts_are_promised() -> None:
    found = msgspec.structs.replace(queue(queueingStrategy="StrictFIFO"), policy=RESERVED)
    assert {one.name for one in examine(found)} & {"strict-fifo", "not-reservable"} == set()
