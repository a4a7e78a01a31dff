"""Objects as servers really send them: nulls of Go, both versions of Kueue, numbers where text is usual."""

import msgspec
import pytest

from fairlead_contracts.frontend.observed import LabelRequirement
from fairlead_kube.kinds.core import Node, NodePool, PyTorchJob, Webhook
from fairlead_kube.kinds.objects import (
    Condition,
    LabelSelector,
    ObjectMeta,
    PartialObject,
    condition,
    holds,
    instant,
)
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.queues import ClusterQueue, Cohort
from fairlead_kube.kinds.resources import JOBS, KUEUE, NODES, WORKLOADS
from fairlead_kube.kinds.workloads import Workload


def test_a_bookmark_of_a_pod_with_nulls_is_read() -> None:
    text = b"""{"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "creationTimestamp": null},
        "spec": {"containers": null}, "status": {}}"""
    pod = msgspec.json.decode(text, type=Pod)
    assert pod.metadata.resource_version == "7"
    assert pod.metadata.created == 0
    assert pod.spec.containers is None


def test_both_versions_of_a_class_reference_are_one() -> None:
    new = b'{"spec": {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}}'
    old = b"""{"spec": {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}}"""
    pods = (
        b'{"spec": {"priorityClassName": "high", "priorityClassSource": "scheduling.k8s.io/priorityclass"}}'
    )
    found = [msgspec.json.decode(text, type=Workload).spec.class_ref for text in (new, old, pods, b"{}")]
    assert [(ref.kind, ref.name) if ref else None for ref in found] == [
        ("WorkloadPriorityClass", "high"),
        ("WorkloadPriorityClass", "high"),
        ("PriorityClass", "high"),
        None,
    ]


@pytest.mark.parametrize("field", ["cohort", "cohortName"])
def test_both_versions_of_a_cohorts_name_are_one(field: str) -> None:
    text = f'{{"spec": {{"{field}": "research", "stopPolicy": "None", "namespaceSelector": {{}}}}}}'
    queue = msgspec.json.decode(text.encode(), type=ClusterQueue)
    assert queue.spec.parent == "research"
    assert not queue.spec.stopped
    assert queue.spec.namespace_selector == LabelSelector()


def test_quotas_may_be_numbers_and_limits_absent() -> None:
    text = b"""{"spec": {"parentName": "root", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": "f", "resources": [{"name": "cpu", "nominalQuota": 5, "lendingLimit": "0"}]}]}]}}"""
    cohort = msgspec.json.decode(text, type=Cohort)
    assert cohort.spec.above == "root"
    [group] = cohort.spec.resource_groups or []
    [flavor] = group.flavors or []
    [quota] = flavor.resources or []
    assert (quota.nominal_quota, quota.borrowing_limit, quota.lending_limit) == (5, None, "0")


def test_an_affinity_is_read_where_it_is_required() -> None:
    text = b"""{"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}}}}"""
    affinity = msgspec.json.decode(text, type=Pod).spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    [term] = affinity.node_affinity.required.node_selector_terms or []
    assert term.match_expressions == [LabelRequirement(key="zone", operator="In", values=("a",))]


def test_a_training_job_and_the_requirements_of_a_node_pool_are_read() -> None:
    job = msgspec.json.decode(
        b'{"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, "template": {}}}, "runPolicy": {"suspend": true}}}',
        type=PyTorchJob,
    )
    assert job.spec.run_policy is not None
    assert job.spec.run_policy.suspend
    pool = msgspec.json.decode(
        b'{"spec": {"limits": {"cpu": 1000}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"requirements": '
        b'[{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"], "minValues": 1}]}}}}',
        type=NodePool,
    )
    assert pool.spec.limits == {"cpu": 1000}
    assert pool.spec.template.metadata.label("a") == "b"


def test_conditions_are_found_by_type() -> None:
    conditions = [Condition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:01Z")]
    assert holds(conditions, "Ready")
    assert not holds(conditions, "Other")
    assert not holds(None, "Ready")
    found = condition(conditions, "Ready")
    assert found is not None
    assert found.since == 1_767_225_601_000_000
    assert msgspec.json.decode(b'{"status": {"conditions": null}}', type=Node).ready is False


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T01:00:01+01:00", 1_000_000),
        ("1970-01-01T00:00:01.000002Z", 1_000_002),
        (None, 0),
    ],
)
def test_timestamps_become_instants(text: str | None, micros: int) -> None:
    assert instant(text) == micros


@pytest.mark.parametrize(
    ("operator", "values", "matches"),
    [
        ("In", ("a", "b"), True),
        ("NotIn", ("a",), False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
    ],
)
def test_selectors_match_by_all_their_requirements(
    operator: str, values: tuple[str, ...] | None, *, matches: bool
) -> None:
    selector = LabelSelector(
        match_labels={"team": "x"},
        match_expressions=[LabelRequirement(key="tier", operator=operator, values=values)],
    )
    assert selector.matches({"team": "x", "tier": "a"}) is matches
    assert not selector.matches({"tier": "a"})


def test_a_webhook_sees_what_its_rules_cover() -> None:
    text = b'{"name": "v", "rules": [{"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "operations": ["*"]}]}'
    webhook = msgspec.json.decode(text, type=Webhook)
    assert webhook.sees(KUEUE, "workloads", "CREATE")
    assert not webhook.sees(KUEUE, "clusterqueues", "CREATE")


def test_paths_are_those_of_the_api() -> None:
    assert NODES.path() == "/api/v1/nodes"
    assert NODES.path("ignored", "n1") == "/api/v1/nodes/n1"
    assert WORKLOADS.path() == "/apis/kueue.x-k8s.io/v1beta2/workloads"
    assert (
        WORKLOADS.path("team", "a/b", "status")
        == "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/a%2Fb/status"
    )
    assert WORKLOADS.at("v1beta1").api_version == "kueue.x-k8s.io/v1beta1"
    assert JOBS.metadata().shape is PartialObject


def test_metadata_gives_labels_annotations_and_the_controlling_owner() -> None:
    text = b"""{"name": "w", "labels": null, "annotations": {"a": "b"}, "ownerReferences": [
        {"kind": "Pod", "uid": "1", "name": "p", "apiVersion": "v1"},
        {"kind": "Job", "uid": "2", "name": "j", "apiVersion": "batch/v1", "controller": true}]}"""
    metadata = msgspec.json.decode(text, type=ObjectMeta)
    assert metadata.label("x") is None
    assert metadata.annotation("a") == "b"
    assert metadata.controller is not None
    assert metadata.controller.uid == "2"
