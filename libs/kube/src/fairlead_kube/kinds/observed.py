"""Nodes and pods of Kubernetes as the description that is asked which pods fit which nodes. Pure."""

from fairlead_contracts.frontend.cards import CARD_ANNOTATIONS
from fairlead_contracts.frontend.observed import ObservedNode, ObservedPods
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.demand import card_asks, pod_demand
from fairlead_kube.kinds.pods import Pod, PodTemplate
from fairlead_kube.kinds.quantities import readable_amounts


def observed_node(node: Node) -> ObservedNode:
    """The node's description. An amount that cannot be read it does not have."""
    return ObservedNode(
        name=node.metadata.name,
        ready=node.ready,
        allocatable=readable_amounts(node.status.allocatable or {}),
        labels=node.metadata.labels or {},
        annotations=node.metadata.annotations or {},
        taints=tuple(node.spec.taints or ()),
        unschedulable=node.spec.unschedulable,
    )


def observed_pods(pod: PodTemplate | Pod, name: str, count: int) -> ObservedPods:
    """The description of pods that are made alike.

    Args:
        pod: one of them, or what they are made from.

    Raises:
        FieldError: a quantity cannot be read, or is larger than any cluster.
    """
    spec, noted = pod.spec, pod.metadata.annotations or {}
    terms = spec.required_terms
    return ObservedPods(
        name=name,
        count=count,
        demand=pod_demand(spec),
        card_asks=tuple(card_asks(spec)),
        card_annotations={name: noted[name] for name in CARD_ANNOTATIONS if name in noted},
        selector=spec.node_selector or {},
        # A term without expressions goes by a node's fields, which are not described: the pod may run where it holds.
        affinity=tuple(map(tuple, terms)) if all(terms) else (),
        tolerations=tuple(spec.tolerations or ()),
    )
