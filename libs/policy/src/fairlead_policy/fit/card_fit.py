"""The pods of one shape on the cards of one node: exact for one vGPU ask a pod, by search within limits for several."""

from collections.abc import Sequence

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.fit.packing import Budget, pack, take, wants_of
from fairlead_policy.fit.shapes import PodShape
from fairlead_policy.hami.admission import barred
from fairlead_policy.hami.sharing import Chosen, deal, pods_held

_NODE_STEPS = 200
"""Steps of search for the pods of several containers on one node."""


def pods_on_cards(cards: Sequence[CardState], shape: PodShape, most: int, budget: Budget) -> int:
    """The number of pods of one shape that fit on these cards."""
    for ask in shape.vgpus:
        most = min(most, pods_held(cards, ask, shape.card_annotations, most))
    return most if len(shape.vgpus) <= 1 else len(_deal_unlike(cards, shape, most, budget))


def deal_pods(
    cards: Sequence[CardState], shape: PodShape, pods: int, budget: Budget
) -> list[tuple[Chosen, ...]]:
    """The cards of each of so many pods of one shape; fewer where no more is found."""
    if len(shape.vgpus) == 1:
        return [(chosen,) for chosen in deal(cards, shape.vgpus[0], shape.card_annotations, pods)]
    return _deal_unlike(cards, shape, pods, budget)


def _deal_unlike(
    cards: Sequence[CardState], shape: PodShape, most: int, budget: Budget
) -> list[tuple[Chosen, ...]]:
    """Pods of several containers: as many as start one after the other as HAMi would have it, then more by search."""
    dealt = _started(list(cards), shape, most)
    most = min(most, _bound(cards, shape))
    wanted, size = wants_of(shape), len(shape.vgpus)
    while most > len(dealt):
        packed = pack(cards, wanted * most, part := budget.part(_NODE_STEPS))
        budget.absorb(part)
        if packed is not None:
            return [tuple(packed[start : start + size]) for start in range(0, len(packed), size)]
        most -= 1
    return dealt


def _started(cards: list[CardState], shape: PodShape, most: int) -> list[tuple[Chosen, ...]]:
    dealt: list[tuple[Chosen, ...]] = []
    while len(dealt) < most:
        hands: list[Chosen] = []
        for want in wants_of(shape):
            for chosen in deal(cards, want.ask, want.card_annotations, 1):
                take(cards, want, chosen)
                hands.append(chosen)
        if len(hands) < len(shape.vgpus):
            break
        dealt.append(tuple(hands))
    return dealt


def _bound(cards: Sequence[CardState], shape: PodShape) -> int:
    """The number of pods above which all cards together have not enough slots, cores or memory."""
    usable = [card for card in cards if barred(card, shape.card_annotations) is None]
    free = [
        sum(card.count - card.used_count for card in usable),
        sum(max(card.free_cores, 0) for card in usable),
        sum(max(card.free_memory, 0) for card in usable),
    ]
    # A percentage is taken of the smallest card: nowhere is it less.
    memory = [min((ask.memory_on(card) for card in usable), default=0) for ask in shape.vgpus]
    need = [
        sum(ask.count for ask in shape.vgpus),
        sum(ask.count * ask.cores for ask in shape.vgpus),
        sum(ask.count * each for ask, each in zip(shape.vgpus, memory, strict=True)),
    ]
    return min(has // wanted for has, wanted in zip(free, need, strict=True) if wanted)
