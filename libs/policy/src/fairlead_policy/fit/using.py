"""Nodes after pods were put on them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from fairlead_policy.fit.results import PlacedPod
from fairlead_policy.fit.shapes import Gang, Node


def with_pods(gang: Gang, nodes: Mapping[str, Node], pods: Iterable[PlacedPod]) -> dict[str, Node]:
    """The nodes that the pods use, with that much less free.

    Args:
        gang: of the pods.
        nodes: by name.
        pods: as placed.
    """
    on: dict[str, list[PlacedPod]] = defaultdict(list)
    for pod in pods:
        on[pod.node].append(pod)
    return {name: _with(gang, nodes[name], placed) for name, placed in on.items()}


def _with(gang: Gang, node: Node, pods: Iterable[PlacedPod]) -> Node:
    free = dict(node.free)
    cards = {card.uuid: card for card in node.cards}
    for pod in pods:
        shape = gang.shapes[pod.shape]
        for resource, amount in shape.demand_on(node).items():
            free[resource] = free.get(resource, 0) - amount
        for ask, uuids in zip(shape.vgpus, pod.cards, strict=True):
            for uuid in uuids:
                cards[uuid] = cards[uuid].taken(ask.memory_on(cards[uuid]), ask.cores)
    return msgspec.structs.replace(node, free=free, cards=tuple(cards.values()))
