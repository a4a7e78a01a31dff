"""The kinds that we read and write: their paths, and the structs that they are decoded into."""

from urllib.parse import quote

import msgspec

from fairlead_kube.kinds.core import (
    Job,
    Namespace,
    Node,
    NodePool,
    PyTorchJob,
    QueuedObject,
    WebhookConfiguration,
)
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.queues import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from fairlead_kube.kinds.workloads import AdmissionCheck, PriorityClass, Workload

KUEUE = "kueue.x-k8s.io"


class Resource[T](msgspec.Struct, frozen=True, kw_only=True):
    """A kind that API servers serve."""

    group: str
    """API group of the kind; empty for the core group."""
    version: str
    plural: str
    kind: str
    """The kind's name, as in an object's `kind`."""
    namespaced: bool
    shape: type[T]
    """The struct that its objects are decoded into."""
    metadata_only: bool = False
    """Whether to ask the server for metadata alone (PartialObjectMetadata)."""

    @property
    def api_version(self) -> str:
        """The version, as in an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def at(self, version: str) -> "Resource[T]":
        """The same kind in another version."""
        return msgspec.structs.replace(self, version=version)

    def metadata(self) -> "Resource[PartialObject]":
        """The same kind, with its metadata alone: less for the server to send and for us to keep."""
        whole = _kind(self.api_version, self.plural, self.kind, PartialObject, namespaced=self.namespaced)
        return msgspec.structs.replace(whole, metadata_only=True)

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """The URL path of the collection, of one namespace's part of it, or of one object."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(quote(part, safe="") for part in parts)


def _kind[T](api: str, plural: str, kind: str, shape: type[T], *, namespaced: bool = False) -> Resource[T]:
    """A kind of an API, as `batch/v1` or `v1`."""
    group, _, version = api.rpartition("/")
    return Resource(
        group=group, version=version, plural=plural, kind=kind, namespaced=namespaced, shape=shape
    )


_KUEUE = f"{KUEUE}/v1beta2"
WORKLOADS = _kind(_KUEUE, "workloads", "Workload", Workload, namespaced=True)
CLUSTER_QUEUES = _kind(_KUEUE, "clusterqueues", "ClusterQueue", ClusterQueue)
COHORTS = _kind(_KUEUE, "cohorts", "Cohort", Cohort)
LOCAL_QUEUES = _kind(_KUEUE, "localqueues", "LocalQueue", LocalQueue, namespaced=True)
RESOURCE_FLAVORS = _kind(_KUEUE, "resourceflavors", "ResourceFlavor", ResourceFlavor)
WORKLOAD_PRIORITY_CLASSES = _kind(_KUEUE, "workloadpriorityclasses", "WorkloadPriorityClass", PriorityClass)
ADMISSION_CHECKS = _kind(_KUEUE, "admissionchecks", "AdmissionCheck", AdmissionCheck)

NODES = _kind("v1", "nodes", "Node", Node)
NAMESPACES = _kind("v1", "namespaces", "Namespace", Namespace)
PODS = _kind("v1", "pods", "Pod", Pod, namespaced=True)
PERSISTENT_VOLUME_CLAIMS = _kind(
    "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PartialObject, namespaced=True
).metadata()
EVENTS = _kind("v1", "events", "Event", PartialObject, namespaced=True)
SERVICE_ACCOUNTS = _kind("v1", "serviceaccounts", "ServiceAccount", PartialObject, namespaced=True).metadata()

PRIORITY_CLASSES = _kind("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", PriorityClass)
JOBS = _kind("batch/v1", "jobs", "Job", Job, namespaced=True)
PYTORCH_JOBS = _kind("kubeflow.org/v1", "pytorchjobs", "PyTorchJob", PyTorchJob, namespaced=True)
NODE_POOLS = _kind("karpenter.sh/v1", "nodepools", "NodePool", NodePool)
_WEBHOOKS = "admissionregistration.k8s.io/v1"
MUTATING_WEBHOOKS = _kind(
    _WEBHOOKS, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", WebhookConfiguration
)
VALIDATING_WEBHOOKS = _kind(
    _WEBHOOKS, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", WebhookConfiguration
)


def _queued(api: str, kind: str) -> Resource[QueuedObject]:
    return _kind(api, f"{kind.lower()}s", kind, QueuedObject, namespaced=True)


STATEFUL_SETS = _queued("apps/v1", "StatefulSet")
QUEUED_KINDS = (
    _queued("jobset.x-k8s.io/v1alpha2", "JobSet"),
    _queued("ray.io/v1", "RayJob"),
    _queued("ray.io/v1", "RayCluster"),
    _queued("ray.io/v1", "RayService"),
    _queued("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    STATEFUL_SETS,
    _queued("kubeflow.org/v2beta1", "MPIJob"),
    _queued("kubeflow.org/v1", "TFJob"),
    _queued("kubeflow.org/v1", "XGBoostJob"),
    _queued("kubeflow.org/v1", "PaddleJob"),
    _queued("kubeflow.org/v1", "JAXJob"),
    _queued("trainer.kubeflow.org/v1alpha1", "TrainJob"),
    _queued("workload.codeflare.dev/v1beta2", "AppWrapper"),
    _queued("sparkoperator.k8s.io/v1beta2", "SparkApplication"),
)
"""Kinds that Kueue 0.19 makes Workloads for, beside Jobs, PyTorchJobs and pods. A Deployment's pods are queued one by one."""
