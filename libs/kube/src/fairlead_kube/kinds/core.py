"""Kinds of Kubernetes itself, of Kubeflow and of Karpenter: nodes, namespaces, jobs, node pools, webhooks."""

from fairlead_contracts.frontend.observed import LabelRequirement, Taint
from fairlead_kube.kinds.objects import (
    ApiObject,
    Condition,
    KubeStruct,
    LabelSelector,
    ObjectMeta,
    RawAmounts,
    holds,
)
from fairlead_kube.kinds.pods import PodTemplate

_ENDS = frozenset({"Complete", "Completed", "Failed", "Succeeded"})
"""Words for an end, of conditions and phases."""


class NodeSpec(KubeStruct, frozen=True, kw_only=True):
    """The taints and the mark of a node that keep pods off."""

    taints: list[Taint] | None = None
    unschedulable: bool = False


class NodeStatus(KubeStruct, frozen=True, kw_only=True):
    """The capacity and conditions of a node."""

    allocatable: RawAmounts | None = None
    capacity: RawAmounts | None = None
    conditions: list[Condition] | None = None


class Node(ApiObject, frozen=True, kw_only=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Whether its kubelet says that it takes pods."""
        return holds(self.status.conditions, "Ready")


class Namespace(ApiObject, frozen=True, kw_only=True):
    """A namespace."""


class JobSpec(KubeStruct, frozen=True, kw_only=True):
    """The pods that a batch Job runs."""

    suspend: bool = False
    template: PodTemplate = PodTemplate()


class JobStatus(KubeStruct, frozen=True, kw_only=True):
    """Progress of a batch Job: its numbers of pods, and its conditions."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int | None = None
    conditions: list[Condition] | None = None


class Job(ApiObject, frozen=True, kw_only=True):
    """A batch Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class RunPolicy(KubeStruct, frozen=True, kw_only=True):
    """Rules by which a training job runs."""

    suspend: bool = False


class PyTorchJobSpec(KubeStruct, frozen=True, kw_only=True):
    """Specification of a PyTorchJob. Nobody here reads its roles."""

    run_policy: RunPolicy | None = None


class TrainingJobStatus(KubeStruct, frozen=True, kw_only=True):
    """Progress of a training job."""

    conditions: list[Condition] | None = None


class PyTorchJob(ApiObject, frozen=True, kw_only=True):
    """A training job of Kubeflow."""

    spec: PyTorchJobSpec = PyTorchJobSpec()
    status: TrainingJobStatus = TrainingJobStatus()


class QueuedStatus(TrainingJobStatus, frozen=True, kw_only=True):
    """Progress of an object of any kind that is queued, in the field that the kind has for it."""

    job_deployment_status: str = ""
    """Progress of a RayJob."""
    phase: str = ""
    """Progress of an AppWrapper."""
    application_state: dict[str, str] | None = None
    """Progress of a SparkApplication: `state` and an error."""

    @property
    def over(self) -> bool:
        """Whether it ended, well or not."""
        state = (self.application_state or {}).get("state", "")
        said = (self.job_deployment_status, self.phase, state.capitalize())
        return not _ENDS.isdisjoint(said) or any(holds(self.conditions, kind) for kind in _ENDS)


class QueuedObject(ApiObject, frozen=True, kw_only=True):
    """An object of any kind that Kueue makes Workloads for."""

    kind: str = ""
    status: QueuedStatus = QueuedStatus()


class NodePoolTemplateSpec(KubeStruct, frozen=True, kw_only=True):
    """The nodes that Karpenter makes."""

    requirements: list[LabelRequirement] | None = None
    taints: list[Taint] | None = None


class NodePoolTemplate(KubeStruct, frozen=True, kw_only=True):
    """The nodes that Karpenter makes, and their labels."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodePoolTemplateSpec = NodePoolTemplateSpec()


class NodePoolSpec(KubeStruct, frozen=True, kw_only=True):
    """The nodes that a NodePool may make, and how many."""

    template: NodePoolTemplate = NodePoolTemplate()
    limits: RawAmounts | None = None
    weight: int | None = None


class NodePool(ApiObject, frozen=True, kw_only=True):
    """Karpenter's NodePool."""

    spec: NodePoolSpec = NodePoolSpec()


class ObjectReference(KubeStruct, frozen=True, kw_only=True, omit_defaults=True):
    """The object that an Event is about."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class WebhookRule(KubeStruct, frozen=True, kw_only=True):
    """The requests that a webhook sees."""

    api_groups: list[str] | None = None
    resources: list[str] | None = None
    operations: list[str] | None = None


class Webhook(KubeStruct, frozen=True, kw_only=True):
    """A webhook that sees requests to the API server."""

    name: str
    rules: list[WebhookRule] | None = None
    namespace_selector: LabelSelector | None = None

    def sees(self, group: str, resource: str, operation: str) -> bool:
        """Whether one of the webhook's rules matches the request."""
        return any(
            _among(group, rule.api_groups)
            and _among(resource, rule.resources)
            and _among(operation, rule.operations)
            for rule in self.rules or ()
        )


class WebhookConfiguration(ApiObject, frozen=True, kw_only=True):
    """A mutating or validating configuration; both have the same form."""

    webhooks: list[Webhook] | None = None


def _among(value: str, patterns: list[str] | None) -> bool:
    return value in (patterns or ()) or "*" in (patterns or ())
