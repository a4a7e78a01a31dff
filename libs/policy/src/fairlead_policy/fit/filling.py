"""A gang put on nodes shape after shape: exact for one shape, a heuristic for several.

For several shapes it is best-fit decreasing, the shape with the largest dominant share of all that is free first (Panigrahy
et al., "Heuristics for Vector Bin Packing", 2011), and the same with the shapes in the order of each resource in turn:
a shape that is small by its dominant share may still be the hardest to place.
"""

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.exact.ranking import Ints
from fairlead_policy.fit.card_fit import deal_pods
from fairlead_policy.fit.node_table import ZoneNodes
from fairlead_policy.fit.packing import take, wants_of
from fairlead_policy.fit.results import PlacedPod
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.hami.sharing import Chosen

type CardShares = list[tuple[int, int]]
"""Shares of nodes in a shape's pods, as (row of the node, pods), no node twice."""

_ORDERS = 4
"""Orders of the shapes that are tried at most."""

_LEAVING = 8
"""Shapes up to which nodes are left to the shapes yet to come: it costs the square of their number."""


class Filling:
    """Pods put on nodes so far."""

    def __init__(self, zone: ZoneNodes) -> None:
        self.pods: list[PlacedPod] = []
        self._zone = zone
        self._free = zone.free.copy()
        self._load: Ints = np.zeros(len(zone.nodes), np.int64)
        self._cards: dict[int, tuple[CardState, ...]] = {}

    def add(self, shape: int, strategy: CardStrategy, later: Sequence[int] = ()) -> None:
        """Put as many of the shape's pods as fit.

        Args:
            shape: position of the shape.
            later: shapes yet to come, whose nodes are left to them where others will do.
        """
        count = self._zone.shapes[shape].count
        room = self._room(shape)
        if strategy is CardStrategy.SPREAD:
            self._put(shape, widest(room, count, self._load))
            return
        rivals: Ints = np.zeros(len(room), np.int64)
        for other in later:
            rivals += self._room(other) > 0
        self._put(shape, fewest(room, count, self._load, rivals))

    def _room(self, shape: int) -> Ints:
        return self._zone.room(shape, self._free, self._cards) if self.pods else self._zone.alone(shape)

    def _put(self, shape: int, shares: CardShares) -> None:
        for row, pods in shares:
            cards = self._take_cards(shape, row, pods)
            self._free[row] -= self._zone.demand[shape] * len(cards)
            self._load[row] += len(cards)
            self.pods += [PlacedPod(shape, self._zone.nodes[row].name, each) for each in cards]

    def _take_cards(self, shape: int, row: int, pods: int) -> list[tuple[tuple[str, ...], ...]]:
        """The uuids for each pod that found cards, and the cards marked used."""
        asked = self._zone.shapes[shape]
        if not asked.vgpus:
            return [()] * pods
        touched = self._cards.get(row)
        cards = list(self._zone.nodes[row].cards if touched is None else touched)
        if touched is None:
            dealt = self._zone.dealt(shape, row, pods)
        else:
            dealt = deal_pods(cards, asked, pods, self._zone.budget)
        for hands in dealt:
            for want, chosen in zip(wants_of(asked), hands, strict=True):
                take(cards, want, chosen)
        self._cards[row] = tuple(cards)
        return [named(cards, hands) for hands in dealt]


def named(cards: Sequence[CardState], hands: Sequence[Chosen]) -> tuple[tuple[str, ...], ...]:
    """Positions of cards as their uuids."""
    return tuple(tuple(cards[position].uuid for position in chosen) for chosen in hands)


def fillings(zone: ZoneNodes, strategy: CardStrategy) -> Iterator[list[list[PlacedPod]]]:
    """Ways to put the gang on the nodes, those of one order of the shapes together; each may be short of pods.

    For several shapes the ways are the same for both strategies, the strategy's own first. So whoever takes the best of
    a group by binpack uses no more nodes than by spread.
    """
    shapes = [number for number, shape in enumerate(zone.shapes) if shape.count]
    if len(shapes) <= 1:
        yield [_filled(zone, shapes, strategy, leave=False)]
        return
    other = CardStrategy.SPREAD if strategy is CardStrategy.BINPACK else CardStrategy.BINPACK
    for order in _orders(zone, shapes):
        ways = [_filled(zone, order, way, leave=False) for way in (strategy, other)]
        if len(order) <= _LEAVING:
            ways.append(_filled(zone, order, CardStrategy.BINPACK, leave=True))
        yield ways


def _filled(zone: ZoneNodes, order: Sequence[int], strategy: CardStrategy, *, leave: bool) -> list[PlacedPod]:
    filling = Filling(zone)
    for number, shape in enumerate(order):
        filling.add(shape, strategy, order[number + 1 :] if leave else ())
    return filling.pods


def _orders(zone: ZoneNodes, shapes: Sequence[int]) -> list[list[int]]:
    """Orders of the shapes: by dominant share, then by each resource's; each order once."""
    total = zone.free.astype(np.float64).sum(axis=0)
    weights = zone.demand / np.maximum(total, 1.0)
    cards = [sum(ask.count for ask in shape.vgpus) for shape in zone.shapes]
    keys = [weights.max(axis=1), *weights.T]
    orders: list[list[int]] = []
    for key in keys:
        order = sorted(shapes, key=lambda number: (-cards[number], -key.item(number), number))
        if order not in orders and len(orders) < _ORDERS:
            orders.append(order)
    return orders


def fewest(room: Ints, pods: int, load: Ints, rivals: Ints) -> CardShares:
    """Fills as few nodes as can be: nodes that the gang uses already, then the roomiest.

    The last node is the one with least room of those with enough. With `rivals` and `load` all equal this is the
    smallest number of nodes there is.

    Args:
        room: pods that each node takes.
        pods: number to be placed; fewer are where there is not room for all.
        load: pods of the gang that each node has.
        rivals: nodes with the smallest number are taken first, whatever their room.
    """
    rows = np.flatnonzero(room)
    fresh = load == 0
    order = rows[np.lexsort((rows, -room[rows], fresh[rows], rivals[rows]))].tolist()
    shares: CardShares = []
    left = pods
    for number, row in enumerate(order):
        if left <= room.item(row):
            alike = [row for row in order[number:] if room.item(row) >= left]
            first = (rivals.item(row), fresh.item(row))
            enough = [row for row in alike if (rivals.item(row), fresh.item(row)) == first]
            return [*shares, (min(enough, key=lambda row: (room.item(row), row)), left)] if left else shares
        shares.append((row, room.item(row)))
        left -= room.item(row)
    return shares


def widest(room: Ints, pods: int, load: Ints) -> CardShares:
    """Fills as many nodes as can be, one pod after the other on the node with fewest pods of the gang, then with most room."""
    heap = [(load.item(row), -room.item(row), row) for row in np.flatnonzero(room).tolist()]
    heapq.heapify(heap)
    shares: dict[int, int] = {}
    for _ in range(pods):
        if not heap:
            break
        held, left, row = heap[0]
        shares[row] = shares.get(row, 0) + 1
        if left + 1:
            heapq.heapreplace(heap, (held + 1, left + 1, row))
        else:
            heapq.heappop(heap)
    return sorted(shares.items())
