"""Capacity of the nodes, pods' holdings of it, and promises to pods that are not there yet. Pure.

A promise counts from the moment that it is given, so that however many ask in the same second none is told of room that
another one has got. It turns into its pod when the pod is seen, and goes only when the pod has gone or was never made.
A pod holds its room until it is over or really gone: one that is being deleted still does.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from fairlead_contracts.frontend.cards import PER_VGPU, VGPUS, Allocation
from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_kube.reflector import Key
from fairlead_policy.fit.observed import fit_question, less_pods
from fairlead_policy.fit.results import PlacedPod, Unfit, with_pods
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape

_TOLD = 3
"""Number of reasons that a refusal names; the first are the plainest."""
_ONE = 1000


class PodDemand(msgspec.Struct, frozen=True, kw_only=True):
    """Demand of a pod on its node."""

    node: str
    """Node of the pod; empty while it is bound to none."""
    demand: Mapping[str, int]
    held: tuple[Allocation, ...] = ()
    """Cards that HAMi gave the pod."""


class RoomKept(msgspec.Struct, frozen=True, kw_only=True):
    """Answer that there is room, which is kept."""

    node: str
    """Node with the room; the cluster's own scheduler may choose another."""


class NoRoom(msgspec.Struct, frozen=True, kw_only=True):
    """Answer that there is no room."""

    why: str


class _Promise(msgspec.Struct, frozen=True, kw_only=True):
    gang: Gang
    pod: PlacedPod
    gpus: int
    """Number of whole GPUs that the pod asks for."""


class CapacityCache:
    """The capacity of one cluster for pods of Slurm's jobs."""

    def __init__(self) -> None:
        self.freed = 0
        """Count that grows whenever more may be free somewhere than before."""
        self._bare: dict[str, FitNode] = {}
        self._uses: dict[Key, PodDemand] = {}
        self._on: defaultdict[str, set[Key]] = defaultdict(set)
        self._promised: dict[Key, _Promise] = {}
        self._known: dict[str, FitNode] = {}
        """Nodes as they are now; others are worked out when they are asked for."""

    # --- what is seen

    def node(self, name: str, bare: FitNode | None) -> None:
        """Take in a node as it is without pods; None for a node that is gone, or takes no pods now."""
        if bare is None:
            self._bare.pop(name, None)
        else:
            self._bare[name] = bare
        self._changed(name, freed=True)

    def pod(self, key: Key, use: PodDemand | None) -> None:
        """Take in a pod; None for one that is over or gone. On a node it takes the place of its promise."""
        before = self._uses.pop(key, None)
        if before is not None and before.node:
            self._on[before.node].discard(key)
            self._changed(before.node, freed=True)
        if use is None:
            self.release(key)
            return
        self._uses[key] = use
        if use.node:
            self._on[use.node].add(key)
            self._changed(use.node, freed=False)
            self.release(key)

    # --- what is promised

    def reserve(self, key: Key, ask: ObservedPods) -> RoomKept | NoRoom:
        """Keep room for a pod that is about to be made; for the same pod again, the same room."""
        promised = self._promised.get(key)
        if promised is not None:
            return RoomKept(node=promised.pod.node)
        use = self._uses.get(key)
        if use is not None and use.node:
            return RoomKept(node=use.node)
        found = _placed(ask, self.nodes().values())
        if isinstance(found, Unfit):
            return NoRoom(why=" ".join(map(str, found.reasons[:_TOLD])))
        self._promised[key] = found
        self._changed(found.pod.node, freed=False)
        return RoomKept(node=found.pod.node)

    def release(self, key: Key) -> None:
        """Keep room for this pod no more."""
        promise = self._promised.pop(key, None)
        if promise is not None:
            self._changed(promise.pod.node, freed=True)

    @property
    def promised(self) -> frozenset[Key]:
        """Pods that room is kept for."""
        return frozenset(self._promised)

    def gpus_of(self, keys: Iterable[Key]) -> int:
        """Whole GPUs that these pods have, or were promised. Parts do not count."""
        return sum(self._gpus_of(key) for key in keys)

    def _gpus_of(self, key: Key) -> int:
        promise = self._promised.get(key)
        if promise is not None:
            return promise.gpus
        use = self._uses.get(key)
        return 0 if use is None else whole_gpus(use.demand)

    def would_fit(self, asks: Sequence[ObservedPods]) -> list[bool]:
        """Whether each pod has room now, in this order, beside those before it that do; nothing is kept."""
        nodes = dict(self.nodes())
        answers = []
        refused: set[bytes] = set()
        for ask in asks:
            form = msgspec.json.encode(msgspec.structs.replace(ask, name=""))
            found = None if form in refused else _placed(ask, nodes.values())
            if isinstance(found, _Promise):
                nodes[found.pod.node] = _with_promises(nodes[found.pod.node], [found])
            else:
                refused.add(form)  # nodes only fill up here
            answers.append(isinstance(found, _Promise))
        return answers

    def nodes(self) -> Mapping[str, FitNode]:
        """The nodes that take pods, by name, with what is free on them."""
        for name, bare in self._bare.items():
            if name not in self._known:
                self._known[name] = self._worked_out(name, bare)
        return {name: self._known[name] for name in self._bare}

    def _worked_out(self, name: str, bare: FitNode) -> FitNode:
        uses = [self._uses[key] for key in self._on[name]]
        held = chain.from_iterable(use.held for use in uses)
        node = less_pods(bare, (use.demand for use in uses), held)
        return _with_promises(node, (one for one in self._promised.values() if one.pod.node == name))

    def _changed(self, node: str, *, freed: bool) -> None:
        self._known.pop(node, None)
        if freed:
            self.freed += 1


def _placed(ask: ObservedPods, nodes: Iterable[FitNode]) -> _Promise | Unfit:
    """The place where the pod has room, or a refusal. Nodes without cards of HAMi's are taken first."""
    every = list(nodes)
    without_hami = [node.name for node in every if not node.cards]
    question = fit_question((ask,), every)
    found = question.among(without_hami).answer()
    if isinstance(found, Unfit) and len(without_hami) < len(every):
        found = question.answer()
    if isinstance(found, Unfit):
        return found
    return _Promise(gang=question.gang, pod=found.pods[0], gpus=whole_gpus(ask.demand))


def _with_promises(node: FitNode, promises: Iterable[_Promise]) -> FitNode:
    for one in promises:
        node = with_pods(one.gang, {node.name: node}, [one.pod])[node.name]
    return node


def free_gpus(nodes: Iterable[FitNode], shape: PodShape) -> int:
    """The number of whole GPUs that nobody has any part of, on nodes where such pods may run."""
    return sum(_free_on(node) for node in nodes if shape.may_use(node))


def _free_on(node: FitNode) -> int:
    if node.cards:
        return sum(card == card.emptied() for card in node.cards)
    return max(node.free.get(VGPUS, 0), 0) // _ONE


def whole_gpus(demand: Mapping[str, int]) -> int:
    """The number of whole GPUs that a pod takes; 0 where it asks for parts, which take no tokens."""
    return 0 if any(demand.get(part) for part in PER_VGPU) else demand.get(VGPUS, 0) // _ONE
