"""The cards of nodes as HAMi registers them, with what its pods hold of them. Pure.

HAMi renews its handshake on each node about twice a minute, and nothing that is stated changes by it. What is held is
noted on the pods: since v2.5.0 they carry a label by which to find them. As in HAMi, a register that cannot be read
counts as none, and a pod whose note cannot be read holds nothing. Only NVIDIA's register is read.
"""

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

import msgspec

from fairlead_contracts.base.observer import LibraryObserver
from fairlead_contracts.frontend.card_annotations import (
    AllocatedError,
    RegisterError,
    cards_of,
    decode_allocated,
)
from fairlead_contracts.frontend.cards import ALLOCATED, HOLDER, Allocation, CardState, with_use
from fairlead_contracts.messages.state import NodeState
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.reflector import Key


class RegisteredCards(NamedTuple):
    """The cards that a node registers."""

    cards: list[CardState]
    refused: str
    """The reason for which the node's cards cannot be read; empty where they can."""


class CardHolding(msgspec.Struct, frozen=True, kw_only=True):
    """The cards that a pod holds of its node."""

    node: str
    held: tuple[Allocation, ...] = ()
    refused: str = ""
    """The reason for which the note cannot be read; empty where it can."""


def registered_on(node: str, annotations: Mapping[str, str]) -> RegisteredCards:
    """The cards of a node, with nothing in use."""
    try:
        return RegisteredCards(list(cards_of(node, annotations)), "")
    except RegisterError as error:
        return RegisteredCards([], str(error))


def holding_of(pod: PartialObject) -> CardHolding | None:
    """The cards that a pod holds; None for one that HAMi gave nothing.

    Of a pod whose init containers hold cards, all containers are summed: its metadata does not tell them apart.
    """
    annotations = pod.metadata.annotations or {}
    node, noted = annotations.get(HOLDER), annotations.get(ALLOCATED)
    if not node or noted is None:
        return None
    try:
        held = decode_allocated(f"{pod.metadata.namespace}/{pod.metadata.name}", noted)
    except AllocatedError as error:
        return CardHolding(node=node, refused=str(error))
    return CardHolding(node=node, held=tuple(chain.from_iterable(held)))


class Refusals:
    """Tells once of each node and pod whose words on cards cannot be read, and again when they change."""

    def __init__(self, observer: LibraryObserver) -> None:
        self._observer = observer
        self._refused: dict[Key, str] = {}

    def note(self, key: Key, why: str) -> None:
        """Notes why words cannot be read; empty where all can. A node comes by twice a minute."""
        if not why:
            self._refused.pop(key, None)
        elif self._refused.get(key) != why:
            self._refused[key] = why
            self._observer.note("cards.refused", error=why)


class CardBook:
    """The nodes of a cluster, each with what pods hold of its cards."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeState] = {}
        self._holdings: dict[Key, CardHolding] = {}
        self._pods_on: dict[str, set[Key]] = {}
        """The pods that hold cards, by the name of their node."""
        self._changed: dict[str, None] = {}
        self._refused: tuple[set[str], set[Key]] = set(), set()

    def node(self, name: str, state: NodeState | None) -> None:
        """Takes a node in as it is now, with none of its cards in use; None: it is gone."""
        if state is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = state
        _note_refused(self._refused[0], name, refused=state is not None and bool(state.cards_refused))
        self._changed[name] = None

    def pod(self, key: Key, holding: CardHolding | None) -> None:
        """Takes in a pod that HAMi gave cards; None: it ended or is gone."""
        before = self._holdings.pop(key, None)
        if before is not None:
            self._pods_on[before.node].discard(key)
            if not self._pods_on[before.node]:
                del self._pods_on[before.node]
            self._changed[before.node] = None
        if holding is not None:
            self._holdings[key] = holding
            self._pods_on.setdefault(holding.node, set()).add(key)
            self._changed[holding.node] = None
        _note_refused(self._refused[1], key, refused=holding is not None and bool(holding.refused))

    @property
    def refused(self) -> Mapping[str, int]:
        """Number of nodes and pods whose words on cards cannot be read, by `node` and `pod`."""
        nodes, pods = self._refused
        return {"node": len(nodes), "pod": len(pods)}

    def take(self) -> dict[str, NodeState | None]:
        """Takes the nodes that may have changed since the last take, by name; None for those that are gone."""
        changed, self._changed = self._changed, {}
        return {name: self._stated(name) for name in changed}

    def _stated(self, name: str) -> NodeState | None:
        node = self._nodes.get(name)
        if node is None or not node.cards or name not in self._pods_on:
            return node
        held = chain.from_iterable(self._holdings[key].held for key in self._pods_on[name])
        return msgspec.structs.replace(node, cards=list(with_use(node.cards, held)))


def _note_refused[K](among: set[K], key: K, *, refused: bool) -> None:
    if refused:
        among.add(key)
    else:
        among.discard(key)
