"""A placement checked pod by pod, as the scheduler and HAMi would see them start: written apart from what made it."""

from collections import Counter
from collections.abc import Iterable, Mapping

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.fit.results import PlacedPod
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.hami.admission import refusal_of


def holds(gang: Gang, nodes: Mapping[str, FitNode], pods: Iterable[PlacedPod]) -> bool:
    """Whether all pods of the gang start in this order, each on a node and cards that take it."""
    starting = list(pods)
    used = {pod.node for pod in starting}
    free = {name: dict(nodes[name].free) for name in used}
    cards = {name: {card.uuid: card for card in nodes[name].cards} for name in used}
    zones, started = set(), Counter[int]()
    for pod in starting:
        shape, node = gang.shapes[pod.shape], nodes[pod.node]
        if not shape.may_use(node) or not _takes(free[pod.node], shape.demand_on(node)):
            return False
        if not _cards_take(cards[pod.node], shape, pod):
            return False
        started[pod.shape] += 1
        zones.add(node.labels.get(gang.zone_key) if gang.zone_key is not None else "")
    complete = all(started[number] == shape.count for number, shape in enumerate(gang.shapes))
    return complete and len(zones) <= 1 and None not in zones


def _takes(free: dict[str, int], demand: Mapping[str, int]) -> bool:
    for resource, amount in demand.items():
        if amount > max(free.get(resource, 0), 0):
            return False
        free[resource] = free.get(resource, 0) - amount
    return True


def _cards_take(cards: dict[str, CardState], shape: PodShape, pod: PlacedPod) -> bool:
    if len(pod.cards) != len(shape.vgpus):
        return False
    for ask, uuids in zip(shape.vgpus, pod.cards, strict=True):
        if len(set(uuids)) != ask.count or len(uuids) != ask.count:
            return False
        if shape.card_annotations.one_numa_node and len({cards[uuid].numa for uuid in uuids}) > 1:
            return False
        for uuid in uuids:
            card = cards[uuid]
            if refusal_of(card, ask, shape.card_annotations) is not None:
                return False
            cards[uuid] = card.taken(ask.memory_on(card), ask.cores)
    return True
