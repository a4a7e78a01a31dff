"""Diagnosis of a gang that does not fit: from the plainest reason to the subtlest, the first that is there for each shape."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.fit.card_fit import pods_on_cards
from fairlead_policy.fit.filling import fillings
from fairlead_policy.fit.node_table import ZoneNodes
from fairlead_policy.fit.packing import Budget
from fairlead_policy.fit.shapes import PODS, FitNode, Gang, PodShape
from fairlead_policy.fit.unschedulable import (
    CardRefusals,
    CardShort,
    GangShort,
    NoCards,
    NodeShort,
    NoMatch,
    NoNodeHasAll,
    NoNodes,
    PodsShort,
    TaintsInTheWay,
    TooFewCards,
    TotalShort,
    UnschedulableReason,
)
from fairlead_policy.hami.admission import Refusal, barred, refusal_of
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.hami.requests import VgpuRequest

_TAKEN = (Refusal.SLOTS, Refusal.IN_USE)


def reasons_of(gang: Gang, zone: ZoneNodes) -> list[UnschedulableReason]:
    """The reasons for which these nodes don't hold the gang; at least one."""
    if not zone.nodes:
        return [NoNodes()]
    found = [
        reason
        for number, shape in enumerate(gang.shapes)
        if zone.alone(number).sum() < shape.count
        for reason in _of_shape(zone, number)
    ]
    if found:
        return found
    fits = max((len(pods) for ways in fillings(zone, CardStrategy.BINPACK) for pods in ways), default=0)
    return [*_totals_short(zone), GangShort(wanted=gang.pods, fits=min(fits, gang.pods))]


def _of_shape(zone: ZoneNodes, number: int) -> Iterator[UnschedulableReason]:
    shape = zone.shapes[number]
    matching = [node for node in zone.nodes if shape.matches(node)]
    if not matching:
        yield _no_match(shape, zone.nodes)
        return
    usable = [node for node in matching if shape.may_use(node)]
    if usable:
        yield from _on_usable(zone, number, usable)
    if len(usable) < len(matching):
        taints = {str(taint) for node in matching for taint in shape.untolerated(node)}
        kept_off = len(matching) - len(usable)
        yield TaintsInTheWay(shape=shape.name, taints=tuple(sorted(taints)), nodes=kept_off, all=not usable)


def _on_usable(zone: ZoneNodes, number: int, usable: Sequence[FitNode]) -> Iterator[UnschedulableReason]:
    """The reasons on nodes whose labels and taints let the pods in."""
    shape = zone.shapes[number]
    fits = int(zone.alone(number).sum())
    if fits:
        yield PodsShort(shape=shape.name, wanted=shape.count, fits=fits)
        yield from _total_short(shape, usable)
        for ask in shape.vgpus:
            yield from _refusals(shape, ask, [card for node in usable for card in node.cards])
    else:
        yield from _one_pod(shape, usable)


def _no_match(shape: PodShape, nodes: Sequence[FitNode]) -> UnschedulableReason:
    if any(shape.selects(node) for node in nodes):
        return NoMatch(shape=shape.name, labels={}, affinity=True)
    pairs = sorted(shape.selector.items())
    missing = {key: value for key, value in pairs if all(node.labels.get(key) != value for node in nodes)}
    return NoMatch(shape=shape.name, labels=missing or dict(pairs))


def _one_pod(shape: PodShape, nodes: Sequence[FitNode]) -> Iterator[UnschedulableReason]:
    """The reasons for which not even one pod fits."""
    demands = {name: amount for name, amount in shape.demand.items() if amount}
    if any(PODS in node.free for node in nodes):
        demands = {**demands, PODS: shape.demand_on(next(node for node in nodes if PODS in node.free))[PODS]}
    short = [
        NodeShort(
            shape=shape.name,
            resource=name,
            wanted=wanted,
            largest=max(_free(node, name) for node in nodes),
            free=sum(_free(node, name) for node in nodes if PODS in node.free or name != PODS),
            ever=max(node.has(name) for node in nodes),
        )
        for name, wanted in sorted(demands.items())
        if all(_free(node, name) < wanted for node in nodes)
    ]
    yield from short
    cards = list(_cards(shape, nodes)) if shape.vgpus else []
    yield from cards
    if not short and not cards:
        parts = [*sorted(demands), *(["cards"] if shape.vgpus else [])]
        yield NoNodeHasAll(shape=shape.name, resources=tuple(parts))


def _free(node: FitNode, resource: str) -> int:
    # A node that does not state its number of pods takes any.
    unbounded = resource == PODS and PODS not in node.free
    return 2**62 if unbounded else max(node.free.get(resource, 0), 0)


def _cards(shape: PodShape, nodes: Sequence[FitNode]) -> Iterator[UnschedulableReason]:
    if not any(node.cards for node in nodes):
        yield NoCards(shape=shape.name)
        return
    if any(pods_on_cards(node.cards, shape, 1, Budget(1000)) for node in nodes):
        return
    for ask in shape.vgpus:
        yield from _one_ask(shape, ask, nodes)


def _one_ask(shape: PodShape, ask: VgpuRequest, nodes: Sequence[FitNode]) -> Iterator[UnschedulableReason]:
    taking = [
        sum(refusal_of(card, ask, shape.card_annotations) is None for card in node.cards) for node in nodes
    ]
    cards = [card for node in nodes for card in node.cards]
    if any(taking):
        if max(taking) < ask.count:
            have = max(len(node.cards) for node in nodes)
            yield TooFewCards(shape=shape.name, wanted=ask.count, most=max(taking), have=have)
    # Of cards that are all taken, whatever is left on them, how much that is would tell nobody what to wait for.
    elif any(refusal_of(card, ask, shape.card_annotations) not in _TAKEN for card in cards):
        yield from _short_cards(
            shape, ask, [card for card in cards if barred(card, shape.card_annotations) is None]
        )
    yield from _refusals(shape, ask, cards)


def _refusals(shape: PodShape, ask: VgpuRequest, cards: Sequence[CardState]) -> Iterator[UnschedulableReason]:
    refusals = Counter(
        str(why) for card in cards if (why := refusal_of(card, ask, shape.card_annotations)) is not None
    )
    if refusals:
        yield CardRefusals(shape=shape.name, cards=len(cards), refused=dict(sorted(refusals.items())))


def _short_cards(
    shape: PodShape, ask: VgpuRequest, cards: Sequence[CardState]
) -> Iterator[UnschedulableReason]:
    if not cards:
        return
    closest = max(cards, key=lambda card: (card.free_memory - ask.memory_on(card), card.uuid))
    if closest.free_memory < ask.memory_on(closest):
        yield CardShort(
            shape=shape.name,
            of=Refusal.MEMORY,
            wanted=ask.memory_on(closest),
            largest=max(closest.free_memory, 0),
            free=sum(max(card.free_memory, 0) for card in cards),
            # A number of MiB is the same on every card, a percentage is not: each card has a hundred of it.
            ever=max(card.memory for card in cards) if ask.memory else closest.memory,
        )
    closest = max(cards, key=lambda card: (card.free_cores, card.uuid))
    if closest.free_cores < ask.cores:
        yield CardShort(
            shape=shape.name,
            of=Refusal.CORES,
            wanted=ask.cores,
            largest=max(closest.free_cores, 0),
            free=sum(max(card.free_cores, 0) for card in cards),
            ever=max(card.cores for card in cards),
        )


def _total_short(shape: PodShape, nodes: Sequence[FitNode]) -> Iterator[UnschedulableReason]:
    for name, amount in sorted(shape.demand.items()):
        free = sum(_free(node, name) for node in nodes)
        if amount * shape.count > free:
            yield TotalShort(shape=shape.name, resource=name, wanted=amount * shape.count, free=free)


def _totals_short(zone: ZoneNodes) -> Iterator[UnschedulableReason]:
    """Resources that all shapes together want more of than the nodes have that any of them may use."""
    for at, name in enumerate(zone.resources):
        wanting = np.flatnonzero(zone.demand[:, at])
        wanted = sum(
            shape.count * int(demand) for shape, demand in zip(zone.shapes, zone.demand[:, at], strict=True)
        )
        rows = np.flatnonzero(zone.eligible[wanting].any(axis=0))
        free: int = sum(zone.free[rows, at].tolist())
        if wanted > free:
            yield TotalShort(shape="the gang's pods", resource=name, wanted=wanted, free=free)
