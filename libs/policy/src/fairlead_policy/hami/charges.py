"""Weights of vGPU requests in a pool whose cards are known: shares of physical cards, in whole numbers.

Three things run out on shared cards, and each is a resource of the pool by itself, as dominant resource fairness has it:
`nvidia.com/gpu` counts cards (a vGPU takes its place among those that may share a card, or the whole card where it wants
it for itself), `nvidia.com/gpumem` their memory in MiB, `nvidia.com/gpucores` percent of their cores. An ask for whole
cards weighs the same share in all three: with such asks alone the order is the one that counting cards gives.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead_contracts.frontend.cards import CARD_CORES, CARD_MEMORY, VGPUS, CardState
from fairlead_policy.hami.admission import MIG
from fairlead_policy.hami.annotations import CardAnnotations
from fairlead_policy.hami.requests import WHOLE, VgpuRequest

_UNIT = 1000


class _AcceptedCards(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the cards that a pod accepts."""

    cards: int
    memory: int
    places: int
    """Thousandths of cards: what one vGPU takes of the places on each."""
    places_alone: int
    """Thousandths of cards that one vGPU takes of the places if it asks for all cores."""


class CardPool:
    """The cards of one pool, and what they weigh.

    Cards that are not healthy, and those in MIG mode, are not counted. With `deviceMemoryScaling` a card has what it
    registers: half of a card's memory scaled by 2 is a whole card's silicon.

    Args:
        cards: the cards of all nodes that the pool's jobs may run on; what is used of them does not count.
    """

    def __init__(self, cards: Iterable[CardState]) -> None:
        every = list(cards)
        self._counted = [card for card in every if card.health and card.mode != MIG]
        self._known = self._counted or every
        self._accepted_by: dict[CardAnnotations, _AcceptedCards] = {}

    def capacity(self, stated: Mapping[str, int]) -> dict[str, int]:
        """The pool's capacity, in base units: what it states, and else what its cards have.

        A pool that states a number of cards, and not their memory or cores, has those of so many average cards.
        """
        number = len(self._counted)
        cards = stated.get(VGPUS, number * _UNIT)
        memory, cores = 0, 0
        if number:
            memory = sum(card.memory for card in self._counted) * cards // number
            cores = sum(card.cores for card in self._counted) * cards // number
        return {
            **stated,
            VGPUS: cards,
            CARD_MEMORY: stated.get(CARD_MEMORY, memory),
            CARD_CORES: stated.get(CARD_CORES, cores),
        }

    def charge(self, ask: VgpuRequest, card_annotations: CardAnnotations) -> dict[str, int]:
        """The weight of one pod's ask, in base units, rounded up.

        A percentage of memory, and a place on a card, are those of the average card that the pod accepts. An ask for
        more than a card has weighs more than a card, so that nobody gains by asking too much.
        """
        accepted = self._accepted(card_annotations)
        places = accepted.places_alone if ask.cores == WHOLE else accepted.places
        memory = ask.count * ask.memory * _UNIT
        if not ask.memory:
            memory = -(
                -ask.count * accepted.memory * _UNIT * ask.memory_percent // (max(accepted.cards, 1) * WHOLE)
            )
        return {
            VGPUS: -(-ask.count * places // accepted.cards) if accepted.cards else ask.count * _UNIT,
            CARD_MEMORY: memory,
            CARD_CORES: ask.count * ask.cores * _UNIT,
        }

    def _accepted(self, card_annotations: CardAnnotations) -> _AcceptedCards:
        """The cards that the pod accepts; all where it accepts none."""
        if card_annotations not in self._accepted_by:
            accepted = [
                card
                for card in self._known
                if card_annotations.accept_model(card.model)
                and card_annotations.accept_uuid(card.uuid)
                and card_annotations.accept_mode(card)
            ]
            self._accepted_by[card_annotations] = _sums(accepted or self._known)
        return self._accepted_by[card_annotations]


def _sums(cards: Sequence[CardState]) -> _AcceptedCards:
    return _AcceptedCards(
        cards=len(cards),
        memory=sum(card.memory for card in cards),
        places=sum(_place(card, alone=False) for card in cards),
        places_alone=sum(_place(card, alone=card.cores == WHOLE) for card in cards),
    )


def _place(card: CardState, *, alone: bool) -> int:
    """Thousandths of the card: its part of those that may share it, or the whole card."""
    return _UNIT if alone or card.count <= 1 else -(-_UNIT // card.count)
