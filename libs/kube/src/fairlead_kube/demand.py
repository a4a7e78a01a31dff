"""What pods, pod sets and Workloads ask for, as Kueue counts it. Pure."""

from fairlead_kube.pods import PodSpec
from fairlead_kube.workloads import PodSet, Workload


def in_base_units(resource: str, amount: str | float) -> int:
    """The amount in base units of contracts, rounded up as Kueue does."""
    raise NotImplementedError


def pod_demand(spec: PodSpec) -> dict[str, int]:
    """The effective request of one pod."""
    raise NotImplementedError


def pod_set_demand(pod_set: PodSet, count: int | None = None) -> dict[str, int]:
    """The demand of `count` pods of the set, by default all."""
    raise NotImplementedError


def workload_demand(workload: Workload) -> dict[str, int]:
    """The demand of the whole Workload, or the quota that it holds."""
    raise NotImplementedError
