"""Builders of the objects that tests of Kueue need, as the API server takes them; every field that matters is an argument."""

from collections.abc import Iterable, Mapping

from fairlead_testkit.kubelab.api import KubeObject
from fairlead_testkit.kubelab.options import GPU, RUN_SECONDS

KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE_NAME = "kueue.x-k8s.io/queue-name"
PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
_CLASS_REF = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass"}
_NEVER = {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}


def namespace(name: str, labels: Mapping[str, str] | None = None) -> KubeObject:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}


def flavor(name: str, labels: Mapping[str, str] | None = None) -> KubeObject:
    """A ResourceFlavor; the labels are those of its nodes."""
    return {
        "apiVersion": KUEUE,
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": {"nodeLabels": dict(labels or {})},
    }


def cluster_queue(
    name: str,
    quota: Mapping[str, int | str],
    *,
    flavor: str,
    cohort: str | None = None,
    strategy: str = "BestEffortFIFO",
    preemption: Mapping[str, object] | None = None,
    limits: Mapping[str, int] | None = None,
    **spec: object,
) -> KubeObject:
    """A ClusterQueue of one flavor, for all namespaces.

    Args:
        quota: nominal, by resource.
        strategy: StrictFIFO or BestEffortFIFO.
        preemption: preemption as Kueue has it; by default Never.
        limits: `borrowingLimit` and `lendingLimit` of each resource, where there are any.
        spec: further fields of the spec, as `fairSharing={"weight": "2"}`.
    """
    return {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {},
            "queueingStrategy": strategy,
            "preemption": dict(_NEVER if preemption is None else preemption),
            "resourceGroups": [_group(flavor, quota, limits or {})],
            **({} if cohort is None else {"cohortName": cohort}),
            **spec,
        },
    }


def cohort(
    name: str, quota: Mapping[str, int | str] | None = None, *, flavor: str = "", **spec: object
) -> KubeObject:
    """A Cohort, with quota of its own where one is given."""
    groups = {} if quota is None else {"resourceGroups": [_group(flavor, quota, {})]}
    return {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": {**groups, **spec}}


def local_queue(name: str, namespace: str, cluster_queue: str) -> KubeObject:
    """A LocalQueue."""
    return {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterQueue": cluster_queue},
    }


def priority_class(name: str, value: int) -> KubeObject:
    """A WorkloadPriorityClass."""
    return {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}


def workload(
    name: str,
    namespace: str,
    queue: str,
    requests: Mapping[str, int | str],
    *,
    pods: int = 1,
    boost: int | str | None = None,
    priority: int | None = None,
    priority_class: str | None = None,
    limit: int | None = None,
    annotations: Mapping[str, str] | None = None,
) -> KubeObject:
    """A raw Workload, with no job behind it: the cheapest thing that waits in a queue.

    Args:
        queue: LocalQueue that it enters.
        requests: requests of each pod.
        boost: the annotation that we write.
        priority: priority of its own; where there is a class, the class's value.
        limit: limit of its run time, in seconds.
    """
    boosted = {} if boost is None else {PRIORITY_BOOST: str(boost)}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace, "annotations": boosted | dict(annotations or {})},
        "spec": {
            "queueName": queue,
            "active": True,
            "podSets": [{"name": "main", "count": pods, "template": {"spec": _pod(requests)}}],
            **({} if priority is None else {"priority": priority}),
            **({} if priority_class is None else {"priorityClassRef": _CLASS_REF | {"name": priority_class}}),
            **({} if limit is None else {"maximumExecutionTimeSeconds": limit}),
        },
    }


def job(
    name: str,
    namespace: str,
    queue: str | None,
    requests: Mapping[str, int | str],
    *,
    pods: int = 1,
    seconds: float | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
) -> KubeObject:
    """A batch Job whose pods run side by side.

    Args:
        queue: LocalQueue; None for a Job that Kueue does not see.
        requests: requests of each pod.
        seconds: time for which KWOK runs each pod; None for no time at all.
        labels: labels of the Job, besides the queue's.
    """
    running = {} if seconds is None else {RUN_SECONDS: f"{seconds:g}"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": ({} if queue is None else {QUEUE_NAME: queue}) | dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {
                "metadata": {"annotations": running | dict(pod_annotations or {})},
                "spec": {"restartPolicy": "Never", **_pod(requests)},
            },
        },
    }


def pytorch_job(name: str, namespace: str, queue: str, requests: Mapping[str, int | str]) -> KubeObject:
    """A PyTorchJob of one master and two workers."""

    def replicas(count: int) -> KubeObject:
        container = {"name": "pytorch", "image": "busybox", "resources": _resources(requests)}
        return {
            "replicas": count,
            "restartPolicy": "Never",
            "template": {"spec": {"containers": [container]}},
        }

    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": namespace, "labels": {QUEUE_NAME: queue}},
        "spec": {"pytorchReplicaSpecs": {"Master": replicas(1), "Worker": replicas(2)}},
    }


def pod_group(
    name: str,
    namespace: str,
    queue: str,
    requests: Mapping[str, int | str],
    *,
    pods: int,
    seconds: float | None = None,
) -> list[KubeObject]:
    """A gang of plain pods, which Kueue admits whole."""
    metadata = {
        "namespace": namespace,
        "labels": {QUEUE_NAME: queue, "kueue.x-k8s.io/pod-group-name": name},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": str(pods)}
        | ({} if seconds is None else {RUN_SECONDS: f"{seconds:g}"}),
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{number}", **metadata},
            "spec": {"restartPolicy": "Never", **_pod(requests)},
        }
        for number in range(pods)
    ]


def condition(item: KubeObject, kind: str) -> bool:
    """Whether an object has this condition, as `Admitted`, with the status True."""
    conditions: Iterable[KubeObject] = item.get("status", {}).get("conditions") or []
    return any(found["type"] == kind and found["status"] == "True" for found in conditions)


def gpus(workload: KubeObject) -> int:
    """The GPUs that all pods of a Workload ask for."""
    return sum(
        int(part["count"])
        * int(part["template"]["spec"]["containers"][0].get("resources", {}).get("requests", {}).get(GPU, 0))
        for part in workload["spec"]["podSets"]
    )


def stated_condition(
    kind: str, status: str = "True", reason: str = "", message: str = "", *, at: str
) -> KubeObject:
    """A condition as it stands in a status; `at` is a time as 2026-01-31T12:00:00Z."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def finished(at: str) -> KubeObject:
    """The change, of its status, that ends a raw Workload; `at` is a time as 2026-01-31T12:00:00Z."""
    return {
        "status": {"conditions": [stated_condition("Finished", reason="Succeeded", message="done", at=at)]}
    }


def _group(flavor: str, quota: Mapping[str, int | str], limits: Mapping[str, int]) -> KubeObject:
    bounds = {name: str(amount) for name, amount in limits.items()}
    resources = [{"name": name, "nominalQuota": str(amount), **bounds} for name, amount in quota.items()]
    return {"coveredResources": list(quota), "flavors": [{"name": flavor, "resources": resources}]}


def _pod(requests: Mapping[str, int | str]) -> KubeObject:
    return {"containers": [{"name": "main", "image": "busybox", "resources": _resources(requests)}]}


def _resources(requests: Mapping[str, int | str]) -> KubeObject:
    amounts = {name: str(amount) for name, amount in requests.items()}
    limits = {name: amount for name, amount in amounts.items() if name == GPU}  # devices want equal limits
    return {"requests": amounts, "limits": limits}
