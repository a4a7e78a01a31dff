"""The two answers, a placement or none, and nodes after pods were put on them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.frontend.cards import VGPUS
from fairlead_policy.fit.shapes import FitNode, Gang
from fairlead_policy.fit.unschedulable import UnschedulableReason

_ONE_CARD = 1000


class PlacedPod(msgspec.Struct, frozen=True, gc=False):
    """One pod on one node."""

    shape: int
    """Position of its shape in the gang."""
    node: str
    cards: tuple[tuple[str, ...], ...] = ()
    """The cards' uuids for each vGPU ask of the shape."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """A node for each pod of the gang, in an order of starting in which each one finds room."""

    pods: tuple[PlacedPod, ...]
    zone: str | None = None
    """The value of the gang's zone label; None where it has no zone key."""

    @property
    def nodes(self) -> dict[str, int]:
        """The nodes used and the number of pods on each, by name."""
        counts: dict[str, int] = {}
        for pod in sorted(self.pods, key=lambda pod: pod.node):
            counts[pod.node] = counts.get(pod.node, 0) + 1
        return counts


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """The gang fits nowhere, or nothing was found."""

    reasons: tuple[UnschedulableReason, ...]
    """Reasons for which it fits nowhere; never empty."""
    exact: bool
    """Whether that is proven; else the search ended at its limit, or some nodes are not modelled (MIG)."""


def with_pods(gang: Gang, nodes: Mapping[str, FitNode], pods: Iterable[PlacedPod]) -> dict[str, FitNode]:
    """The nodes that the pods use, with that much less free.

    A card of a node that registers none is one of its GPUs; one that a node does not register any more counts nowhere.
    """
    on: dict[str, list[PlacedPod]] = defaultdict(list)
    for pod in pods:
        on[pod.node].append(pod)
    return {name: _with(gang, nodes[name], placed) for name, placed in on.items()}


def _with(gang: Gang, node: FitNode, pods: Iterable[PlacedPod]) -> FitNode:
    free = dict(node.free)
    cards = {card.uuid: card for card in node.cards}
    for pod in pods:
        shape = gang.shapes[pod.shape]
        for resource, amount in shape.demand_on(node).items():
            free[resource] = free.get(resource, 0) - amount
        for ask, uuids in zip(shape.vgpus, pod.cards, strict=True):
            for uuid in uuids:
                if uuid in cards:
                    cards[uuid] = cards[uuid].taken(ask.memory_on(cards[uuid]), ask.cores)
                elif not node.cards:
                    free[VGPUS] = free.get(VGPUS, 0) - _ONE_CARD
    return msgspec.structs.replace(node, free=free, cards=tuple(cards.values()))
