"""Options of a lab: nodes, Kueue's gates and configuration, and which parts run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairlead_testkit.kubelab.api import KubeObject

ZONE = "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"
GPU_PRODUCT = "nvidia.com/gpu.product"
A100 = "NVIDIA-A100-SXM4-80GB"
RUN_SECONDS = "fairlead.test/run-seconds"
"""Annotation on a pod (or on the template of a Job): how long KWOK runs it. Without it a Job's pod ends at once, and
any other pod runs until it is deleted."""

_PODS = "110"
"""Number of pods that a node takes: a kubelet's default."""

BATCH_JOB = "batch/job"
POD = "pod"
PYTORCH_JOB = "kubeflow.org/pytorchjob"


@dataclass(frozen=True)
class NodeShape:
    """Equal nodes, any number of them, run by KWOK.

    Attributes:
        name: name of the shape; its nodes' are `<name>-0`, `<name>-1` and so on.
        count: number of nodes.
        cpu: cores, as a quantity.
        memory: amount of memory, as a quantity.
        gpus: number of nvidia.com/gpu; 0 for none.
        gpu_product: the label that NVIDIA's feature discovery sets; None for none.
        zone: the zone's label; None for none.
        labels: further labels.
        taints: taints as Kubernetes writes them.
    """

    name: str
    count: int = 1
    cpu: str = "64"
    memory: str = "512Gi"
    gpus: int = 0
    gpu_product: str | None = None
    zone: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()

    def nodes(self) -> list[KubeObject]:
        """The Node objects."""
        resources = {"cpu": self.cpu, "memory": self.memory, "pods": _PODS}
        if self.gpus:
            resources[GPU] = str(self.gpus)
        return [self._node(f"{self.name}-{number}", resources) for number in range(self.count)]

    def _node(self, name: str, resources: Mapping[str, str]) -> KubeObject:
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        optional = {ZONE: self.zone, GPU_PRODUCT: self.gpu_product}
        labels |= {key: value for key, value in optional.items() if value is not None}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels | dict(self.labels)},
            "spec": {"taints": [dict(taint) for taint in self.taints]},
            "status": {"capacity": dict(resources), "allocatable": dict(resources)},
        }


def gpu_nodes(name: str, count: int, zone: str) -> NodeShape:
    """Nodes of eight A100, as most clusters have them."""
    return NodeShape(name, count, cpu="128", memory="1Ti", gpus=8, gpu_product=A100, zone=zone)


DEFAULT_NODES = (
    gpu_nodes("gpu-a", 2, "zone-a"),
    gpu_nodes("gpu-b", 2, "zone-b"),
    NodeShape("cpu", 2, cpu="64", memory="256Gi", zone="zone-a"),
)


@dataclass(frozen=True)
class LabOptions:
    """Options of a lab. The defaults are the whole stack.

    Attributes:
        kueue: an older version of Kueue, of those in `toolsets.OLDER`; None for the lab's own.
        gates: Kueue's feature gates.
        frameworks: kinds that Kueue looks after.
        kueue_config: merged into Kueue's configuration, fields of objects one by one: `fairSharing`,
            `admissionFairSharing`, `waitForPodsReady` and so on.
        workers: whether controller-manager, scheduler and KWOK run, so that Jobs get pods and pods run to their end.
        nodes: made at the start; raw Workloads need none.
        pytorchjobs: whether the kind PyTorchJob is installed (with no operator: nobody makes their pods).
        nodepools: whether Karpenter's kind NodePool is installed.
        crds: files of more custom resources.
        requests_in_flight: the most reads in flight, twice the most writes; 5000 for load. None leaves the server's limits.
        garbage_percent: of etcd and the API server (Go's `GOGC`): how much may be allocated before memory is collected, in
            percent of what is in use. 100 is Go's own, for who measures them; a fifth of their time goes into it.
    """

    kueue: str | None = None
    gates: Mapping[str, bool] = field(default_factory=lambda: {"PriorityBoost": True})
    frameworks: tuple[str, ...] = (BATCH_JOB, POD, PYTORCH_JOB)
    kueue_config: Mapping[str, object] = field(default_factory=dict)
    workers: bool = True
    nodes: tuple[NodeShape, ...] = DEFAULT_NODES
    pytorchjobs: bool = True
    nodepools: bool = True
    crds: tuple[Path, ...] = ()
    requests_in_flight: int | None = None
    garbage_percent: int = 300


WORKLOADS_ALONE = LabOptions(workers=False, nodes=(), pytorchjobs=False, nodepools=False)
"""etcd, API server and Kueue: all that raw Workloads need."""
