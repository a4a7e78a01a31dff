"""The cards of many nodes as columns: how many pods of one ask each node takes, eight thousand cards at a time.

The rule is that of `hami.admission` and `hami.sharing`, card by card the same. Whoever asks of the same nodes
again and again keeps a table: the columns of a node are made anew only where its cards are others than before.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.exact.ranking import Flags, Ints
from fairlead_policy.fit.shapes import FitNode, PodShape
from fairlead_policy.hami.admission import barred
from fairlead_policy.hami.annotations import CardAnnotations
from fairlead_policy.hami.requests import WHOLE

_SLOTS, _USED, _FREE_MEMORY, _FREE_CORES, _MEMORY, _CORES = range(6)
_COLUMNS = 6


class _NodeCards(msgspec.Struct, frozen=True):
    """The cards of one node, with what was worked out of them."""

    cards: tuple[CardState, ...]
    columns: Ints
    open: dict[CardAnnotations, Flags]
    """Cards that are not barred to pods with such annotations, by annotations."""


class CardTable:
    """Cards of nodes, by the nodes' names."""

    def __init__(self) -> None:
        self._kept: dict[str, _NodeCards] = {}

    def pods(self, nodes: Sequence[FitNode], shape: PodShape) -> Ints:
        """The number of pods of the shape that the cards of each node take, at most as many as there are.

        Args:
            nodes: the nodes, with cards or without.
            shape: a shape with one vGPU ask, which may take cards of any NUMA nodes together.
        """
        [ask] = shape.vgpus
        kept = [self._of(node) for node in nodes]
        at = np.repeat(np.arange(len(nodes)), [len(one.cards) for one in kept])
        if not len(at):
            return np.zeros(len(nodes), np.int64)
        room = self._room(kept, shape)
        pods: Ints = np.full(len(nodes), shape.count, np.int64)
        while True:
            # Each round is an upper bound, so the first that holds is the largest (see `hami.sharing`).
            units = np.bincount(at, np.minimum(room, pods[at]), len(nodes)).astype(np.int64)
            fewer = np.where(units < ask.count * pods, units // ask.count, pods)
            if (fewer == pods).all():
                return pods
            pods = fewer

    def _of(self, node: FitNode) -> _NodeCards:
        kept = self._kept.get(node.name)
        if kept is None or kept.cards is not node.cards:
            rows = [
                (
                    card.count - card.used_count,
                    card.used_count,
                    card.free_memory,
                    card.free_cores,
                    card.memory,
                    card.cores,
                )
                for card in node.cards
            ]
            columns = np.array(rows, np.int64).reshape(len(rows), _COLUMNS)
            kept = self._kept[node.name] = _NodeCards(node.cards, columns, {})
        return kept

    def _room(self, kept: Sequence[_NodeCards], shape: PodShape) -> Ints:
        """The number of vGPUs of the ask that each card takes, one after the other."""
        [ask], card_annotations = shape.vgpus, shape.card_annotations
        cards = np.concatenate([one.columns for one in kept])
        wanted: Ints = cards[:, _MEMORY] * ask.memory_percent // WHOLE
        if ask.memory:
            wanted = np.full(len(cards), ask.memory, np.int64)
        room = np.minimum(cards[:, _SLOTS], cards[:, _FREE_MEMORY] // np.maximum(wanted, 1))
        room = np.where(wanted > 0, room, cards[:, _SLOTS])
        if ask.cores:
            room = np.minimum(room, cards[:, _FREE_CORES] // ask.cores)
        alone = (cards[:, _CORES] == WHOLE) & (ask.cores == WHOLE) | card_annotations.idle_cards_only
        room = np.where(alone, np.minimum(room, 1), room)
        refused = cards[:, _FREE_MEMORY] < wanted
        refused |= cards[:, _FREE_CORES] < ask.cores
        refused |= alone & (cards[:, _USED] > 0)
        if not ask.cores:
            refused |= (cards[:, _CORES] != 0) & (cards[:, _FREE_CORES] == 0)
        refused |= ~np.concatenate([_open_to(one, card_annotations) for one in kept])
        return np.where(refused, 0, np.maximum(room, 0)).astype(np.int64)


def _open_to(kept: _NodeCards, card_annotations: CardAnnotations) -> Flags:
    if card_annotations not in kept.open:
        kept.open[card_annotations] = np.array(
            [barred(card, card_annotations) is None for card in kept.cards], np.bool_
        )
    return kept.open[card_annotations]
