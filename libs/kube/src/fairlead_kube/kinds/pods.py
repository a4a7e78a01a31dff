"""Pods and pod templates: their demand, and the nodes on which they may run."""

from fairlead_contracts.frontend.observed import LabelRequirement, Toleration
from fairlead_kube.kinds.objects import ApiObject, Condition, KubeStruct, ObjectMeta, RawAmounts


class ResourceRequirements(KubeStruct, frozen=True, kw_only=True):
    """The resources that a container, or a pod as a whole, asks for. A limit without a request is a request, too."""

    requests: RawAmounts | None = None
    limits: RawAmounts | None = None


class Container(KubeStruct, frozen=True, kw_only=True):
    """A container of a pod."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    """Restart policy: `Always` makes an init container a sidecar, which runs beside all that follow it."""
    ports: object = None
    """Ports as they are written; they are only compared, never read."""


class PodToleration(Toleration, frozen=True, kw_only=True, rename="camel"):
    """A taint that a pod puts up with, and for how long."""

    toleration_seconds: int | None = None


class NodeSelectorTerm(KubeStruct, frozen=True, kw_only=True):
    """A term of a node affinity: all its expressions must hold, but one term of several is enough."""

    match_expressions: list[LabelRequirement] | None = None


class NodeSelector(KubeStruct, frozen=True, kw_only=True):
    """The terms of a required node affinity."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


_SCHEDULING = {
    "required": "requiredDuringSchedulingIgnoredDuringExecution",
    "preferred": "preferredDuringSchedulingIgnoredDuringExecution",
}


class NodeAffinity(KubeStruct, frozen=True, kw_only=True, rename=_SCHEDULING):
    """The nodes on which a pod may run."""

    required: NodeSelector | None = None
    preferred: object = None


class Affinity(KubeStruct, frozen=True, kw_only=True):
    """The nodes on which a pod must run; what it only prefers, and beside whom, is compared and not read."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: object = None
    pod_anti_affinity: object = None


class PodSpec(KubeStruct, frozen=True, kw_only=True):
    """The part of a pod that says what it runs, asks for and tolerates."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    """Amounts of the pod as a whole (Kubernetes 1.34), in place of the containers' sum for the resources that
    they name."""
    overhead: RawAmounts | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[PodToleration] | None = None
    affinity: Affinity | None = None
    priority_class_name: str = ""
    priority: int | None = None
    node_name: str = ""
    runtime_class_name: str = ""
    topology_spread_constraints: object = None
    resource_claims: object = None

    @property
    def required_terms(self) -> list[list[LabelRequirement]]:
        """The expressions of each term of its required node affinity."""
        affinity = self.affinity.node_affinity if self.affinity else None
        required = affinity.required if affinity else None
        return [
            term.match_expressions or []
            for term in (required.node_selector_terms if required else None) or ()
        ]


class PodTemplate(KubeStruct, frozen=True, kw_only=True):
    """The template that pods are made from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ContainerWaiting(KubeStruct, frozen=True, kw_only=True):
    """The reason for which a container has not started."""

    reason: str = ""
    """The reason in one word, such as `ImagePullBackOff`."""
    message: str = ""


class ContainerTerminated(KubeStruct, frozen=True, kw_only=True):
    """The end of a container."""

    exit_code: int = 0
    """Exit code: 128 and the signal's number where a signal ended the container."""
    signal: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(KubeStruct, frozen=True, kw_only=True):
    """A container's state: it waits, or has ended, or neither while it runs or nobody knows."""

    waiting: ContainerWaiting | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(KubeStruct, frozen=True, kw_only=True):
    """The status of one container."""

    name: str = ""
    state: ContainerState = ContainerState()


class PodStatus(KubeStruct, frozen=True, kw_only=True):
    """The status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class Pod(ApiObject, frozen=True, kw_only=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
