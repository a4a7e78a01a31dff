"""A proof for gangs of several shapes: every way to share the pods among the nodes that could matter.

Node after node takes a vector of pods, one number a shape. Only vectors to which no further waiting pod could be added
are tried: moving a pod from a later node to this one keeps a fit a fit, so some fit has only such vectors. Nodes that
are alike stand side by side, and what remains to be placed after each is remembered when it leads nowhere: sharing the
same pods among alike nodes in another order ends in the same state. A gang that asks for more than what all later nodes have
is cut off.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from fairlead_policy.fit.filling import named
from fairlead_policy.fit.node_table import ZoneNodes
from fairlead_policy.fit.packing import CardRequest, kind_of, pack, packing_rank, wants_of
from fairlead_policy.fit.results import PlacedPod

SEARCH_NODES = 64
"""Nodes with room for any pod of the gang; with more of them nothing is searched."""

type DemandVector = tuple[int, ...]
"""Pods of each shape."""


def search(zone: ZoneNodes) -> list[PlacedPod] | None:
    """The pods on nodes, in an order of starting in which each finds room; None where there is no way, or none in time."""
    found = _Search(zone)
    if len(found.rows) > SEARCH_NODES:
        zone.budget.give_up()
        return None
    if not found.share(0, tuple(shape.count for shape in zone.shapes)):
        return None
    pods = [pod for row, vector in found.given for pod in found.pods_on(row, vector)]
    return sorted(pods, key=lambda pod: found.turns[pod.shape])


class _Search:
    def __init__(self, zone: ZoneNodes) -> None:
        self.given: list[tuple[int, DemandVector]] = []
        self.turns = [min(map(packing_rank, wants_of(shape)), default=0) for shape in zone.shapes]
        self._zone = zone
        alone = np.array([zone.alone(number) for number in range(len(zone.shapes))], np.int64)
        rows = np.flatnonzero(alone.sum(axis=0)).tolist()
        numbers: dict[object, int] = {}
        self._kinds = {
            row: numbers.setdefault(self._kind(row, alone[:, row].tolist()), len(numbers)) for row in rows
        }
        self.rows = sorted(rows, key=lambda row: (self._kinds[row], row))
        self._caps = [tuple(alone[:, row].tolist()) for row in self.rows]
        self._demand: list[list[int]] = zone.demand.tolist()
        self._ahead = self._sums_ahead()
        self._failed: set[tuple[int, DemandVector]] = set()
        self._vectors: dict[tuple[int, DemandVector], list[DemandVector]] = {}
        self._on_cards: dict[tuple[int, DemandVector], bool] = {}

    def _kind(self, row: int, caps: list[int]) -> object:
        """Rows of equal kind are alike."""
        named = any(shape.card_annotations.name_cards for shape in self._zone.shapes)
        cards = sorted((kind_of(card, named=named) for card in self._zone.nodes[row].cards), key=repr)
        return tuple(caps), tuple(self._zone.free[row].tolist()), tuple(cards)

    def _sums_ahead(self) -> list[tuple[DemandVector, DemandVector]]:
        """The room for each shape and what is free of each resource, from each position on."""
        sums = [(tuple(0 for _ in self._demand), tuple(0 for _ in self._zone.resources))]
        for row, caps in zip(reversed(self.rows), reversed(self._caps), strict=True):
            room, free = sums[-1]
            here: list[int] = self._zone.free[row].tolist()
            sums.append((_plus(room, caps), _plus(free, here)))
        return sums[::-1]

    def share(self, position: int, waiting: DemandVector) -> bool:
        """Whether the nodes from this one on take all that waits."""
        if not any(waiting):
            return True
        if not self._zone.budget.spend() or (position, waiting) in self._failed:
            return False
        if not self._may_do(position, waiting):
            return False
        row = self.rows[position]
        for vector in self._full_vectors(position, waiting):
            self.given.append((row, vector))
            if self.share(position + 1, tuple(w - v for w, v in zip(waiting, vector, strict=True))):
                return True
            self.given.pop()
        self._failed.add((position, waiting))
        return False

    def _may_do(self, position: int, waiting: DemandVector) -> bool:
        room, free = self._ahead[position]
        if any(wanted > has for wanted, has in zip(waiting, room, strict=True)):
            return False
        needs = (
            sum(count * demand[at] for count, demand in zip(waiting, self._demand, strict=True))
            for at in range(len(free))
        )
        return all(need <= has for need, has in zip(needs, free, strict=True))

    def _full_vectors(self, position: int, waiting: DemandVector) -> list[DemandVector]:
        """Largest numbers of pods by shape that the node takes together: no waiting pod fits beside them."""
        row = self.rows[position]
        most = tuple(map(min, self._caps[position], waiting))
        key = (self._kinds[row], most)
        if key not in self._vectors:
            free: list[int] = self._zone.free[row].tolist()
            fitting = [vector for vector in self._extended((), most, free) if self._cards_do(row, vector)]
            kept = set(fitting)
            self._vectors[key] = [
                vector
                for vector in fitting
                if not any(
                    (*vector[:at], vector[at] + 1, *vector[at + 1 :]) in kept for at in range(len(most))
                )
            ]
        return self._vectors[key]

    def _extended(
        self, begun: DemandVector, most: DemandVector, free: Sequence[int]
    ) -> Iterator[DemandVector]:
        """Every vector up to `most` that begins so and whose demand the node has, the largest first."""
        if len(begun) == len(most):
            yield begun
            return
        demand = self._demand[len(begun)]
        fits = min(
            [has // need for has, need in zip(free, demand, strict=True) if need], default=most[len(begun)]
        )
        for pods in range(min(fits, most[len(begun)]), -1, -1):
            if not self._zone.budget.spend():
                return
            left = [has - pods * need for has, need in zip(free, demand, strict=True)]
            yield from self._extended((*begun, pods), most, left)

    def _cards_do(self, row: int, vector: DemandVector) -> bool:
        key = (self._kinds[row], vector)
        if key not in self._on_cards:
            wanted = [want for _, wants in self._starting(vector) for want in wants]
            packed = pack(self._zone.nodes[row].cards, wanted, self._zone.budget) if wanted else []
            self._on_cards[key] = packed is not None
        return self._on_cards[key]

    def _starting(self, vector: DemandVector) -> Iterator[tuple[int, list[CardRequest]]]:
        """Each pod's shape and asks, in the order that never loses a fit."""
        for shape in sorted(range(len(vector)), key=lambda number: (self.turns[number], number)):
            for _ in range(vector[shape]):
                yield shape, wants_of(self._zone.shapes[shape])

    def pods_on(self, row: int, vector: DemandVector) -> Iterator[PlacedPod]:
        """The pods of the vector, with their cards."""
        node = self._zone.nodes[row]
        starting = list(self._starting(vector))
        wanted = [want for _, wants in starting for want in wants]
        hands = iter((pack(node.cards, wanted, self._zone.budget) or []) if wanted else [])
        for shape, wants in starting:
            yield PlacedPod(
                shape, node.name, named(node.cards, [chosen for _, chosen in zip(wants, hands, strict=False)])
            )


def _plus(one: DemandVector, other: Sequence[int]) -> DemandVector:
    return tuple(a + b for a, b in zip(one, other, strict=True))
