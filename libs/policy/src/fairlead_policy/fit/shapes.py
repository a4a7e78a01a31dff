"""Nodes and gangs, as facts. Quantities are integers in base units: millicores, bytes, thousandths."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import MAX_QUANTITY
from fairlead_contracts.frontend.cards import CardState
from fairlead_contracts.frontend.observed import LabelRequirement, Taint, Toleration
from fairlead_policy.hami.annotations import CardAnnotations
from fairlead_policy.hami.requests import VgpuRequest

PODS = "pods"
"""The resource that every pod takes one of, on nodes that state it."""

_ONE_POD = 1000
_KEEPS_OFF = ("NoSchedule", "NoExecute")
_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_NO_CARD_ANNOTATIONS = CardAnnotations()


class FitNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node: what is free on it now, and what it has when nothing runs."""

    name: str
    free: Mapping[str, int]
    """Amounts that are free, by resource: what is missing here is not there. Below zero counts as nothing."""
    allocatable: Mapping[str, int] | None = None
    """Amounts when nothing runs; None where they are not known: what is free stands for them then."""
    labels: Mapping[str, str] = _NO_LABELS
    taints: tuple[Taint, ...] = ()
    """Taints, with those that Kubernetes sets itself, `node.kubernetes.io/unschedulable` for one."""
    cards: tuple[CardState, ...] = ()
    cards_unread: bool = False
    """Whether HAMi registers cards here in words that cannot be read: it may give them away, and nobody else knows them."""

    def emptied(self) -> "FitNode":
        """The node as if nothing ran on it."""
        free = self.free if self.allocatable is None else self.allocatable
        return msgspec.structs.replace(self, free=free, cards=tuple(card.emptied() for card in self.cards))

    def has(self, resource: str) -> int:
        """The amount of a resource that one could have here if nothing ran."""
        return (self.free if self.allocatable is None else self.allocatable).get(resource, 0)


class PodShape(msgspec.Struct, frozen=True, kw_only=True):
    """A number of pods, all alike.

    Raises:
        FieldError: a negative count, or a demand that is negative or larger than any cluster.
    """

    count: int
    demand: Mapping[str, int] = _NOTHING
    """Demand of one pod, without the resources of vGPU asks: HAMi answers for them, not the scheduler."""
    name: str = "pods"
    selector: Mapping[str, str] = _NO_LABELS
    affinity: tuple[tuple[LabelRequirement, ...], ...] = ()
    """Required node affinity: one of the groups must hold, in it each requirement. Empty asks nothing."""
    tolerations: tuple[Toleration, ...] = ()
    vgpus: tuple[VgpuRequest, ...] = ()
    """One ask a container, in the containers' order."""
    card_annotations: CardAnnotations = _NO_CARD_ANNOTATIONS

    def __post_init__(self) -> None:
        if self.count < 0:
            raise FieldError(f"{self.name}.count", self.count, "a number of pods is 0 or more")
        for resource, amount in self.demand.items():
            if not 0 <= amount <= MAX_QUANTITY:
                raise FieldError(
                    f"{self.name}.demand.{resource}", amount, "negative, or larger than any cluster"
                )
        for ask in self.vgpus:
            if ask.count < 1 or min(ask.cores, ask.memory, ask.memory_percent) < 0:
                raise FieldError(
                    f"{self.name}.vgpus", str(ask), "an ask is for one card or more, of nothing negative"
                )

    def may_use(self, node: FitNode) -> bool:
        """Whether labels and taints let the pods on the node, whatever is free there.

        As kube-scheduler's plugins NodeAffinity and TaintToleration decide
        (https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/, .../taint-and-toleration/).
        """
        return self.matches(node) and next(self.untolerated(node), None) is None

    def usable(self, nodes: Iterable[FitNode]) -> list[bool]:
        """Whether labels and taints let the pods on each node; mostly they ask for no labels, and nodes have no taints."""
        if self.selector or self.affinity:
            return [self.may_use(node) for node in nodes]
        return [not node.taints or next(self.untolerated(node), None) is None for node in nodes]

    def matches(self, node: FitNode) -> bool:
        """Whether the node has the labels that the pods ask for: all of the selector, and of some group of the affinity."""
        return self.selects(node) and (
            not self.affinity
            or any(group and all(one.holds(node.labels) for one in group) for group in self.affinity)
        )

    def selects(self, node: FitNode) -> bool:
        """Whether the node has the labels of the selector."""
        return all(node.labels.get(key) == value for key, value in self.selector.items())

    def untolerated(self, node: FitNode) -> Iterator[Taint]:
        """The taints that keep the pods off."""
        for taint in node.taints:
            if taint.effect in _KEEPS_OFF and not any(one.tolerates(taint) for one in self.tolerations):
                yield taint

    def demand_on(self, node: FitNode) -> dict[str, int]:
        """The demand of one pod there, and its place among the node's pods."""
        return {PODS: _ONE_POD, **self.demand} if PODS in node.free else dict(self.demand)


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that start together or not at all."""

    shapes: tuple[PodShape, ...]
    zone_key: str | None = None
    """A label whose value must be the same on all nodes of the gang; nodes without it don't count then."""

    @property
    def pods(self) -> int:
        """The number of pods in all."""
        return sum(shape.count for shape in self.shapes)
