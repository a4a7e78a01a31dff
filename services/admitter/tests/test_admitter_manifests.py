"""Submissions as objects of Kubernetes: what they become, and which field is told where they cannot."""

from collections.abc import Mapping

import msgspec
import pytest

from fairlead_admitter.frontends.kueue.manifests import (
    LIMIT_GRACE_SECONDS,
    MOST_GROUP_PODS,
    ManifestTerms,
    job_manifest,
    pod_manifests,
    pytorch_manifest,
)
from fairlead_admitter.frontends.kueue.pods import requests_of
from fairlead_admitter.intake.creation import JobOrder
from fairlead_admitter.intake.entry_queue import EntryQueue, entry_queue_for
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.submissions import read_submission
from fairlead_testkit.inputs.builders import NOW, a_body
from fairlead_testkit.kubelab import KubeObject

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TERMS = ManifestTerms(local_queue="main", classes=("urgent", "gold"), annotation_prefixes=("example.com/",))


def an_order(**changes: object) -> JobOrder:
    """An order of this body; `job_class` asks for a class."""
    body = {"id": "Train-1", "template": {"image": "busybox"}} | changes
    job_class = str(body.pop("job_class", "normal"))
    if job_class != "normal":
        body["class_"] = job_class
    submission = read_submission(a_body(**body), tenant="team-a", fallback_id="seq-1")
    return JobOrder(submission=submission, submitted=NOW, job_class=job_class, traceparent=TRACE)


def as_sent(manifest: object) -> KubeObject:
    sent: KubeObject = msgspec.json.decode(msgspec.json.encode(manifest))
    return sent


def the_job(**changes: object) -> KubeObject:
    return as_sent(job_manifest(an_order(**changes), TERMS))


def the_container(manifest: KubeObject) -> KubeObject:
    container: KubeObject
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    return container


def of_kind(kind: str, **fields: object) -> Mapping[str, object]:
    return {"image": "busybox", "kind": kind, **fields}


def test_a_job_waits_for_kueue_and_runs_once() -> None:
    job = the_job(pods=4, demand={"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 8})
    assert job["metadata"]["name"] == "train-1"
    assert job["metadata"]["namespace"] == "team-a"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "main"
    spec = job["spec"]
    assert (spec["suspend"], spec["parallelism"], spec["completions"]) == (True, 4, 4)
    assert (spec["backoffLimit"], spec["completionMode"]) == (0, "Indexed")
    assert the_container(job)["resources"] == {
        "requests": {"cpu": "2", "memory": "16Gi", "nvidia.com/gpu": "2"},
        "limits": {"memory": "16Gi", "nvidia.com/gpu": "2"},
    }


def test_pods_get_no_token_and_no_privileges() -> None:
    job = the_job()
    pod = job["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert the_container(job)["securityContext"] == {"allowPrivilegeEscalation": False}
    assert pod["serviceAccountName"] == "default"


def test_what_the_template_says_is_what_runs() -> None:
    template = {
        "image": "registry.example/train:3",
        "command": ["python", "train.py"],
        "args": ["--epochs", "3"],
        "env": {"A": "1"},
        "working_dir": "/work",
        "node_selector": {"topology.kubernetes.io/zone": "a"},
        "annotations": {"example.com/x": "y"},
    }
    job = the_job(template=template)
    container = the_container(job)
    assert (container["command"], container["args"]) == (["python", "train.py"], ["--epochs", "3"])
    assert (container["env"], container["workingDir"]) == ([{"name": "A", "value": "1"}], "/work")
    assert job["spec"]["template"]["spec"]["nodeSelector"] == {"topology.kubernetes.io/zone": "a"}
    assert job["spec"]["template"]["metadata"]["annotations"]["example.com/x"] == "y"


def test_job_and_pods_say_which_submission_they_are() -> None:
    order = an_order()
    job = as_sent(job_manifest(order, TERMS))
    expected = {
        "fairlead.dev/submission": "Train-1",
        "fairlead.dev/digest": order.submission.digest(),
        "fairlead.dev/submitted": str(order.submitted),
        "fairlead.dev/traceparent": TRACE,
    }
    assert job["metadata"]["annotations"] == expected
    assert job["spec"]["template"]["metadata"]["annotations"] == expected


@pytest.mark.parametrize(
    ("asked", "label"), [("urgent", "urgent"), ("gold", "gold"), ("approved", None), ("normal", None)]
)
def test_a_class_is_asked_for_by_annotation_and_by_a_priority_class_that_the_cluster_has(
    asked: str, label: str | None
) -> None:
    job = the_job(job_class=asked)
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    assert annotations.get(f"wdrf.x-k8s.io/{asked}") == (None if asked == "normal" else "true")
    assert job["metadata"]["labels"].get("kueue.x-k8s.io/priority-class") == label


def test_everybodys_class_has_its_priority_class_too() -> None:
    job = as_sent(job_manifest(an_order(), ManifestTerms(local_queue="main", classes=("normal",))))
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "normal"


def test_kubernetes_ends_a_job_at_its_limit_before_kueue_would_suspend_it() -> None:
    job = the_job(run_limit_seconds=59.5)
    assert job["spec"]["activeDeadlineSeconds"] == 60
    assert job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] == str(60 + LIMIT_GRACE_SECONDS)


def test_a_group_is_pods_of_equal_names_and_count_at_their_gate() -> None:
    order = an_order(pods=2, demand={"cpu": 4}, template=of_kind("pod-group"), run_limit_seconds=60)
    pods = [as_sent(pod) for pod in pod_manifests(order, TERMS)]
    assert [pod["metadata"]["name"] for pod in pods] == ["train-1-0", "train-1-1"]
    for pod in pods:
        assert pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] == "train-1"
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "2"
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/retriable-in-group"] == "false"
        assert pod["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
        assert pod["spec"]["activeDeadlineSeconds"] == 60


@pytest.mark.parametrize(("pods", "replicas"), [(1, {"Master": 1}), (4, {"Master": 1, "Worker": 3})])
def test_a_pytorch_job_has_a_master_and_workers(pods: int, replicas: dict[str, int]) -> None:
    order = an_order(pods=pods, demand={"nvidia.com/gpu": 4}, template=of_kind("pytorch-job"))
    manifest = as_sent(pytorch_manifest(order, TERMS))
    specs = manifest["spec"]["pytorchReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in specs.items()} == replicas
    assert manifest["spec"]["runPolicy"]["suspend"] is True
    assert specs["Master"]["template"]["spec"]["containers"][0]["name"] == "pytorch"


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "no template": ({"template": None}, "template"),
    "a card in two": (
        {"pods": 2, "demand": {"nvidia.com/gpu": 1}},
        "demand.nvidia.com/gpu",
    ),
    "cores that do not divide": ({"pods": 3, "demand": {"cpu": 1}}, "demand.cpu"),
    "bytes that do not divide": ({"pods": 3, "demand": {"memory": 100}}, "demand.memory"),
    "pods as a resource": ({"demand": {"pods": 3}}, "demand.pods"),
    "an unknown resource": ({"demand": {"gpu": 3}}, "demand.gpu"),
    "requests of requests": ({"demand": {"requests.example.com/x": 3}}, "demand.requests.example.com/x"),
    "an id with a dot": ({"id": "a.b"}, "id"),
    "an id with an underscore": ({"id": "a_b"}, "id"),
    "an id too long": ({"id": "x" * 64}, "id"),
    "an id too long for its pods": ({"id": "x" * 62, "pods": 4}, "id"),
    "an id too long for its group": ({"id": "x" * 62, "template": of_kind("pod-group")}, "id"),
    "a service that begins with a digit": ({"id": "1st", "template": of_kind("pytorch-job")}, "id"),
    "a label with a blank": ({"labels": {"a": "b c"}}, "labels.a"),
    "a label of Kueue": ({"labels": {"kueue.x-k8s.io/queue-name": "x"}}, "labels.kueue.x-k8s.io/queue-name"),
    "a label of ours": ({"labels": {"fairlead.dev/digest": "x"}}, "labels.fairlead.dev/digest"),
    "a label of Jobs": ({"labels": {"job-name": "x"}}, "labels.job-name"),
    "a label of Kubernetes": ({"labels": {"batch.kubernetes.io/x": "x"}}, "labels.batch.kubernetes.io/x"),
    "a label with an odd domain": ({"labels": {"a..b/c": "x"}}, "labels.a..b/c"),
    "a selector with an odd domain": (
        {"template": {"image": "x", "node_selector": {"a..b/c": "x"}}},
        "template.node_selector.a..b/c",
    ),
    "an annotation that gives a cloud role": (
        {"template": {"image": "x", "annotations": {"iam.amazonaws.com/role": "admin"}}},
        "template.annotations.iam.amazonaws.com/role",
    ),
    "an annotation below a domain that may be set": (
        {"template": {"image": "x", "kind": "pod-group", "annotations": {"a.example.com/x": "y"}}},
        "template.annotations.a.example.com/x",
    ),
    "an annotation with an odd domain": (
        {"template": {"image": "x", "annotations": {"a..b/c": "x"}}},
        "template.annotations.a..b/c",
    ),
}


def made_of(order: JobOrder) -> object:
    template = order.submission.template
    match template.kind if template is not None else "job":
        case "job":
            return job_manifest(order, TERMS)
        case "pytorch-job":
            return pytorch_manifest(order, TERMS)
        case "pod-group":
            return pod_manifests(order, TERMS)


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_an_object_is_refused_by_its_field(name: str) -> None:
    changes, field = WRONG[name]
    order = an_order(**({"demand": {"cpu": 12}} | changes))
    with pytest.raises(FieldError) as caught:
        made_of(order)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("resource", "amount", "near"),
    [
        ("cpu", 32, "33 or 30"),
        ("cpu", 1, "1002m or 999m"),
        ("memory", 100 * 2**30, "102Gi or 99Gi"),
        ("memory", 100, "102 or 99"),
        ("nvidia.com/gpu", 8, "9 or 6"),
    ],
)
def test_what_does_not_divide_is_told_with_amounts_that_do(resource: str, amount: int, near: str) -> None:
    with pytest.raises(FieldError) as caught:
        requests_of(an_order(pods=3, demand={resource: amount}).submission)
    assert caught.value.reason == f"must divide evenly by 3 pods, e.g. {near}"


def test_a_class_that_is_no_name_in_kubernetes_cannot_be_asked_for() -> None:
    with pytest.raises(FieldError) as caught:
        job_manifest(an_order(job_class="very/urgent"), TERMS)
    assert caught.value.field == "class"


def test_a_group_of_very_many_pods_is_refused() -> None:
    order = an_order(pods=MOST_GROUP_PODS + 1, demand={"cpu": 513}, template=of_kind("pod-group"))
    with pytest.raises(FieldError) as caught:
        pod_manifests(order, TERMS)
    assert caught.value.field == "pods"


DOORS = {"gpu": "shared", "cpu": "shared", "slow": "spare"}


@pytest.mark.parametrize(
    ("entries", "wanted", "found"),
    [
        (DOORS, None, EntryQueue("cpu", "shared")),
        (DOORS | {"default": "spare"}, None, EntryQueue("default", "spare")),
        (DOORS, "gpu", EntryQueue("gpu", "shared")),
        (DOORS, "shared", EntryQueue("cpu", "shared")),
        (DOORS | {"shared": "spare"}, "shared", EntryQueue("shared", "spare")),
        (DOORS, "nowhere", None),
        ({}, None, None),
    ],
)
def test_a_queue_is_a_door_of_the_tenant_or_what_lies_behind_one(
    entries: dict[str, str], wanted: str | None, found: EntryQueue | None
) -> None:
    assert entry_queue_for(entries, wanted) == found
