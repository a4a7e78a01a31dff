"""Workloads that Kueue tries as one have one digest, and others another; by its source, `SpecShape` and `computeSchedulingHash`."""

import copy

import msgspec
import pytest

from fairlead_kube.kinds.workloads import Workload
from fairlead_testkit.kubelab import KubeObject
from fairlead_watcher.objects.equivalence import equivalence
from fairlead_watcher.objects.workload_facts import WorkloadFacts, workload_facts

PLAIN: KubeObject = {
    "metadata": {"name": "w", "namespace": "n", "uid": "u1", "creationTimestamp": "2026-11-21T10:00:00Z"},
    "spec": {
        "queueName": "q",
        "podSets": [
            {
                "name": "main",
                "count": 2,
                "template": {
                    "metadata": {"labels": {"job-name": "w"}},
                    "spec": {
                        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"gpu": "1"}}}]
                    },
                },
            }
        ],
    },
}


def digest(item: KubeObject) -> str:
    read = msgspec.json.decode(msgspec.json.encode(item), type=Workload)
    assert equivalence(read) == equivalence(msgspec.convert(item, Workload))
    found = workload_facts(read)
    assert isinstance(found, WorkloadFacts)
    return found.equivalence


def changed(where: str, path: str, value: object) -> KubeObject:
    item = copy.deepcopy(PLAIN)
    pods = item["spec"]["podSets"][0]
    inner = {
        "set": pods,
        "spec": pods["template"]["spec"],
        "template": pods["template"]["metadata"],
        "container": pods["template"]["spec"]["containers"][0],
        "workload": item,
    }[where]
    *parts, last = path.split("/")
    for part in parts:
        inner = inner.setdefault(part, {})
    inner[last] = value
    return item


@pytest.mark.parametrize(
    ("where", "path", "value"),
    [
        ("set", "name", "workers"),
        ("set", "count", 3),
        ("set", "minCount", 1),
        ("set", "topologyRequest", {"required": "rack"}),
        ("container", "resources/requests", {"gpu": "1", "cpu": "1"}),
        ("container", "ports", [{"containerPort": 80}]),
        ("spec", "initContainers", [{"name": "first"}]),
        ("spec", "nodeSelector", {"zone": "a"}),
        ("spec", "tolerations", [{"key": "k", "operator": "Exists"}]),
        ("spec", "tolerations", [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}]),
        ("spec", "affinity/podAntiAffinity", {"requiredDuringSchedulingIgnoredDuringExecution": []}),
        ("spec", "affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution", [{"weight": 1}]),
        ("spec", "runtimeClassName", "gvisor"),
        ("spec", "priority", 5),
        ("spec", "topologySpreadConstraints", [{"maxSkew": 1}]),
        ("spec", "overhead", {"cpu": "1"}),
        ("spec", "resourceClaims", [{"name": "r"}]),
        ("spec", "resources/requests", {"cpu": "2"}),
        ("workload", "metadata/annotations", {"kueue.x-k8s.io/workload-allowed-resource-flavors": "spot"}),
    ],
)
def test_what_kueue_tells_apart_has_another_digest(where: str, path: str, value: object) -> None:
    assert digest(changed(where, path, value)) != digest(PLAIN)


@pytest.mark.parametrize(
    ("where", "path", "value"),
    [
        ("workload", "metadata/name", "other"),
        ("workload", "metadata/namespace", "other"),
        ("workload", "spec/priority", 7),
        ("template", "labels", {"job-name": "other"}),
        ("container", "image", "other"),
        ("container", "name", "other"),
        ("container", "env", [{"name": "RUN", "value": "2"}]),
        ("container", "resources/limits", {"memory": "1Gi"}),
    ],
)
def test_what_kueue_does_not_look_at_makes_no_difference(where: str, path: str, value: object) -> None:
    assert digest(changed(where, path, value)) == digest(PLAIN)


def test_claims_of_two_namespaces_are_no_shape_however_they_are_called() -> None:
    """The templates of one name may ask for one device here and for eight there: Kueue counts each."""
    claims = changed("spec", "resourceClaims", [{"name": "r", "resourceClaimTemplateName": "cards"}])
    elsewhere = copy.deepcopy(claims)
    elsewhere["metadata"]["namespace"] = "other"
    assert digest(claims) != digest(elsewhere)


def test_what_runs_or_ended_has_none() -> None:
    for kind in ("QuotaReserved", "Finished"):
        held = {
            "type": kind,
            "status": "True",
            "lastTransitionTime": "2026-11-21T10:01:00Z",
            "reason": "r",
            "message": "",
        }
        assert digest(changed("workload", "status/conditions", [held])) == ""
    assert digest(PLAIN)
