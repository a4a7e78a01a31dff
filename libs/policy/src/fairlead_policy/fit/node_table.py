"""Nodes as columns of numbers: how many pods of each shape every node has room for, a thousand nodes at a time."""

from collections.abc import Sequence

import numpy as np

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.exact.ranking import Flags, Ints
from fairlead_policy.fit.card_fit import deal_pods, pods_on_cards
from fairlead_policy.fit.card_table import CardTable
from fairlead_policy.fit.packing import Budget, Kind, kind_of, packing_rank, wants_of
from fairlead_policy.fit.shapes import PODS, FitNode, Gang, PodShape
from fairlead_policy.hami.admission import MIG, Refusal, barred
from fairlead_policy.hami.sharing import Chosen

_MUCH = 2**62
_ONE_POD = 1000

_LOOKED_AT = 64
"""Nodes that are looked at for pods of several containers on cards even when there is room for all on fewer."""

_MANY = 2**31
"""Pods on one node: no more are counted, so that no sum overflows."""


class ZoneNodes:
    """The nodes of one zone, by name, beside the shapes of a gang."""

    def __init__(
        self, gang: Gang, nodes: Sequence[FitNode], budget: Budget, table: CardTable | None = None
    ) -> None:
        self.shapes = gang.shapes
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self.budget = budget
        self._table = table
        self.resources = sorted({name for shape in gang.shapes for name in shape.demand} | {PODS})
        self.free = self._free()
        self.demand = self._demand()
        self.eligible: Flags = np.array(
            [shape.usable(self.nodes) for shape in gang.shapes], np.bool_
        ).reshape(len(gang.shapes), len(self.nodes))
        self._on_cards: dict[int, Ints] = {}
        self._alone: dict[int, Ints] = {}
        self._dealt: dict[tuple[int, int], list[tuple[Chosen, ...]]] = {}

    def _free(self) -> Ints:
        # A node that does not state how many pods it takes bounds them by nothing.
        defaults = [(name, _MUCH if name == PODS else 0) for name in self.resources]
        rows = [[node.free.get(name, default) for name, default in defaults] for node in self.nodes]
        try:
            found: Ints = np.array(rows, np.int64)
        except OverflowError:
            found = np.array([[min(max(amount, 0), _MUCH) for amount in row] for row in rows], np.int64)
        return found.reshape(len(self.nodes), len(self.resources)).clip(0, _MUCH)

    def _demand(self) -> Ints:
        rows = [
            [shape.demand.get(name, _ONE_POD if name == PODS else 0) for name in self.resources]
            for shape in self.shapes
        ]
        return np.array(rows, np.int64).reshape(len(self.shapes), len(self.resources))

    def alone(self, shape: int) -> Ints:
        """The number of pods of the shape that each node takes when no other shape takes anything."""
        if shape not in self._alone:
            self._alone[shape] = self.room(shape, self.free, {})
        return self._alone[shape]

    def room(self, shape: int, free: Ints, touched: dict[int, tuple[CardState, ...]]) -> Ints:
        """The number of pods of the shape that each node takes, be it more than there are; on cards at most as many as there are.

        Args:
            shape: position of the shape.
            free: the free amounts, a row a node.
            touched: the cards of nodes that are not as they were.
        """
        wanted = np.flatnonzero(self.demand[shape])
        room: Ints = np.full(len(self.nodes), _MANY, np.int64)
        if len(wanted):
            room = np.minimum(room, (free[:, wanted] // self.demand[shape, wanted]).min(axis=1))
        room[~self.eligible[shape]] = 0
        if self.shapes[shape].vgpus:
            room = np.minimum(room, self._room_on_cards(shape))
            for row in touched.keys() & set(np.flatnonzero(room).tolist()):
                room[row] = pods_on_cards(touched[row], self.shapes[shape], room.item(row), self.budget)
        return room

    def _room_on_cards(self, shape: int) -> Ints:
        """The room by the cards as they were, of nodes that the shape may use at all."""
        if shape not in self._on_cards:
            asked = self.shapes[shape]
            rows = np.flatnonzero(self.eligible[shape]).tolist()
            if self._table is not None and len(asked.vgpus) == 1 and not asked.card_annotations.one_numa_node:
                self._on_cards[shape] = self._table.pods(self.nodes, asked)
                return self._on_cards[shape]
            if len(asked.vgpus) > 1:
                self._deal(shape, rows)
            rooms: Ints = np.zeros(len(self.nodes), np.int64)
            known: dict[int, int] = {}
            for row in rows:
                if len(asked.vgpus) > 1:
                    rooms[row] = len(self._dealt.get((shape, row), ()))
                else:
                    rooms[row] = self._pods_on(self.nodes[row].cards, asked, known)
            self._on_cards[shape] = rooms
        return self._on_cards[shape]

    def _pods_on(self, cards: tuple[CardState, ...], asked: PodShape, known: dict[int, int]) -> int:
        """The number of pods that the cards take; nodes that register none may share one tuple of cards."""
        if id(cards) not in known:
            known[id(cards)] = pods_on_cards(cards, asked, asked.count, self.budget)
        return known[id(cards)]

    def _deal(self, shape: int, rows: Sequence[int]) -> None:
        """Deal the cards of nodes to pods of several containers, which takes long: until there is room for the whole gang."""
        asked, known, total = self.shapes[shape], dict[tuple[Kind, ...], list[tuple[Chosen, ...]]](), 0
        for number, row in enumerate(rows):
            if total >= asked.count and number >= _LOOKED_AT and len(self.shapes) == 1:
                return
            cards = self.nodes[row].cards
            key = tuple(kind_of(card, named=asked.card_annotations.name_cards) for card in cards)
            if key not in known:
                known[key] = deal_pods(cards, asked, asked.count, self.budget)
            self._dealt[shape, row] = known[key]
            total += len(known[key])

    def dealt(self, shape: int, row: int, pods: int) -> list[tuple[Chosen, ...]]:
        """Cards for so many pods on a node where nobody else of the gang is; fewer where no more is found."""
        if (hands := self._dealt.get((shape, row))) is not None:
            return hands[:pods]
        return deal_pods(self.nodes[row].cards, self.shapes[shape], pods, self.budget)

    @property
    def wholly_modelled(self) -> bool:
        """Whether a fit that is not found can be called proven: no MIG card is passed over, no turns are mixed."""
        for number, shape in enumerate(self.shapes):
            if len({packing_rank(want) for want in wants_of(shape)}) > 1:
                return False
            nodes = (
                node
                for node, usable in zip(self.nodes, self.eligible[number].tolist(), strict=True)
                if usable
            )
            if shape.vgpus and any(
                c.mode == MIG and barred(c, shape.card_annotations) is Refusal.MIG
                for node in nodes
                for c in node.cards
            ):
                return False
        return True
