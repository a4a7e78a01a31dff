"""A real Kubernetes with a real Kueue on loopback, for tests and for people: `make lab-kube`.

etcd, kube-apiserver, Kueue with its webhooks, controller-manager, scheduler and KWOK's nodes, as plain processes built
once from Go modules. No container engine, no root. Tests take the fixture `kube_lab` (one lab for all of them, each
test in namespaces and queues of its own), `kueue_lab` (the same, with a Kueue to restart) or `kube_labs` (a lab with
other options), and the marker `kube`.
"""

from fairlead_testkit.kubelab.api import Api, KubeObject
from fairlead_testkit.kubelab.audit import AuditLine
from fairlead_testkit.kubelab.building import Kit, build
from fairlead_testkit.kubelab.errors import (
    ApiError,
    ApiUnreachableError,
    BuildError,
    GoMissingError,
    KubectlError,
    KubeLabError,
    NotMountableError,
)
from fairlead_testkit.kubelab.lab import KubeLab
from fairlead_testkit.kubelab.options import (
    A100,
    BATCH_JOB,
    DEFAULT_NODES,
    GPU,
    GPU_PRODUCT,
    POD,
    PYTORCH_JOB,
    RUN_SECONDS,
    WORKLOADS_ALONE,
    ZONE,
    LabOptions,
    NodeShape,
    gpu_nodes,
)
from fairlead_testkit.kubelab.users import (
    ADMIN,
    ADMITTER,
    CHECK_WATCHDOG,
    CHECKER,
    OPERATOR,
    SLURM_BRIDGE,
    WATCHER,
)

__all__ = [
    "A100",
    "ADMIN",
    "ADMITTER",
    "BATCH_JOB",
    "CHECKER",
    "CHECK_WATCHDOG",
    "DEFAULT_NODES",
    "GPU",
    "GPU_PRODUCT",
    "OPERATOR",
    "POD",
    "PYTORCH_JOB",
    "RUN_SECONDS",
    "SLURM_BRIDGE",
    "WATCHER",
    "WORKLOADS_ALONE",
    "ZONE",
    "Api",
    "ApiError",
    "ApiUnreachableError",
    "AuditLine",
    "BuildError",
    "GoMissingError",
    "Kit",
    "KubeLab",
    "KubeLabError",
    "KubeObject",
    "KubectlError",
    "LabOptions",
    "NodeShape",
    "NotMountableError",
    "build",
    "gpu_nodes",
]
