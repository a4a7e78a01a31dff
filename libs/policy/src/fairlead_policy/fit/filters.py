"""Nodes that a pod may use by labels and taints, whatever is free on them.

As kube-scheduler's plugins NodeAffinity and TaintToleration decide
(https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/, .../taint-and-toleration/).
"""

from collections.abc import Iterable, Iterator

from fairlead_contracts.frontend.observed import Taint
from fairlead_policy.fit.shapes import FitNode, PodShape

_KEEPS_OFF = ("NoSchedule", "NoExecute")


def may_use(shape: PodShape, node: FitNode) -> bool:
    """Whether labels and taints let the pods on the node."""
    return matches(shape, node) and next(untolerated(shape, node), None) is None


def usable(shape: PodShape, nodes: Iterable[FitNode]) -> list[bool]:
    """Whether labels and taints let the pods on each node."""
    if shape.selector or shape.affinity:
        return [may_use(shape, node) for node in nodes]
    return [not node.taints or next(untolerated(shape, node), None) is None for node in nodes]


def matches(shape: PodShape, node: FitNode) -> bool:
    """Whether the node has the labels that the pods ask for: all of the selector, and of some group of the affinity."""
    if not selected(shape, node):
        return False
    return not shape.affinity or any(
        group and all(requirement.holds(node.labels) for requirement in group) for group in shape.affinity
    )


def selected(shape: PodShape, node: FitNode) -> bool:
    """Whether the node has the labels of the selector."""
    return all(node.labels.get(key) == value for key, value in shape.selector.items())


def untolerated(shape: PodShape, node: FitNode) -> Iterator[Taint]:
    """The taints that keep the pods off."""
    for taint in node.taints:
        if taint.effect in _KEEPS_OFF and not any(one.tolerates(taint) for one in shape.tolerations):
            yield taint
