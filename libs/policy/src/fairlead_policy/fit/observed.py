"""Nodes and pods as Kubernetes describes them, as nodes and gangs: the one way there for all who ask of a cluster itself.

Whether cards count is decided here, too. Pods that ask for parts of cards are looked for on cards one by one, for only
HAMi gives parts. Whole cards are, too, as soon as a node registers its cards; the free GPUs of nodes that register none
then stand as cards that one pod each may have. What a node registers in words that cannot be read, as those of a newer
HAMi, may be anything: its GPUs are HAMi's tokens, several of a card, and nothing is proven of pods that ask for cards.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import msgspec

from fairlead_contracts.frontend.card_annotations import RegisterError, cards_of
from fairlead_contracts.frontend.cards import PER_VGPU, VGPUS, Allocation, CardState, with_use
from fairlead_contracts.frontend.observed import ObservedNode, ObservedPods
from fairlead_policy.fit.card_table import CardTable
from fairlead_policy.fit.facts import UNSCHEDULABLE
from fairlead_policy.fit.placing import place
from fairlead_policy.fit.results import Placement, Unfit
from fairlead_policy.fit.shapes import PODS, FitNode, Gang, PodShape
from fairlead_policy.hami.annotations import CardStrategy, card_annotations_of
from fairlead_policy.hami.requests import vgpu_requests

_ONE_CARD = 1000
_NOT_A_RESOURCE = frozenset({PODS, *PER_VGPU})
"""Asks that no node states an amount of: each pod takes one place, and HAMi answers for parts of cards."""


class FitQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Pods, and the nodes that are asked for room for them."""

    gang: Gang
    nodes: tuple[FitNode, ...]
    provable: bool
    """Whether a place that is not found can be proven not to be there."""

    @property
    def by_cards(self) -> bool:
        """Whether cards are looked for one by one."""
        return any(shape.vgpus for shape in self.gang.shapes)

    def among(self, nodes: Iterable[str]) -> "FitQuestion":
        """The same question of some of its nodes, by their names."""
        names = frozenset(nodes)
        return msgspec.structs.replace(self, nodes=tuple(node for node in self.nodes if node.name in names))

    def answer(
        self,
        strategy: CardStrategy = CardStrategy.BINPACK,
        *,
        empty: bool = False,
        table: CardTable | None = None,
    ) -> Placement | Unfit:
        """The places of all pods, or what stands in the way; the arguments as of `place`."""
        found = place(self.gang, self.nodes, strategy, empty=empty, table=table)
        if isinstance(found, Unfit) and not self.provable:
            return msgspec.structs.replace(found, exact=False)
        return found


def fit_question(
    pods: Sequence[ObservedPods], nodes: Iterable[FitNode], zone_key: str | None = None
) -> FitQuestion:
    """The question whether these pods fit together.

    Args:
        pods: the pods, a description for each kind.
        nodes: the nodes, with what is free on them; see `empty_node` and `less_pods`.
        zone_key: a label whose value all nodes of the gang shall share.

    Raises:
        VgpuRequestError: the pods ask for cards in a way that HAMi does not take.
    """
    here = tuple(nodes)
    asking = [one for one in pods if one.card_asks]
    parts = any(one.ask_for_parts for one in asking)
    unread = any(node.cards_unread for node in here)
    by_cards = parts or (bool(asking) and (unread or any(node.cards for node in here)))
    shapes = tuple(pod_shape(one, by_cards=by_cards) for one in pods)
    # A part would fit a card that is made up. Beside parts, whole cards are looked for under HAMi alone, which proves nothing.
    beside_parts = parts and not all(one.ask_for_parts for one in asking)
    whole = by_cards and not parts
    # Of a card that is made up nobody knows the model, the UUID or the mode.
    unknown = whole and any(shape.card_annotations.want_some_cards for shape in shapes if shape.vgpus)
    return FitQuestion(
        gang=Gang(shapes=shapes, zone_key=zone_key),
        nodes=tuple(map(_with_whole_cards, here)) if whole else here,
        provable=not (by_cards and unread)
        and not ((beside_parts or unknown) and any(map(_counts_gpus, here))),
    )


def pod_shape(pods: ObservedPods, *, by_cards: bool) -> PodShape:
    """The pods as nodes are asked for them.

    Args:
        pods: their description.
        by_cards: whether their vGPUs are looked for on cards, one by one, and not as a resource of nodes.

    Raises:
        VgpuRequestError: they ask for cards in a way that HAMi does not take.
    """
    left_out = _NOT_A_RESOURCE | {VGPUS} if by_cards else _NOT_A_RESOURCE
    return PodShape(
        name=pods.name,
        count=pods.count,
        demand={name: amount for name, amount in pods.demand.items() if name not in left_out},
        selector=pods.selector,
        affinity=pods.affinity,
        tolerations=pods.tolerations,
        vgpus=vgpu_requests(pods.card_asks) if by_cards else (),
        card_annotations=card_annotations_of(pods.card_annotations),
    )


def empty_node(node: ObservedNode) -> FitNode:
    """The node with nothing on it. Cards that cannot be read it does not have, and that is noted."""
    unread = False
    try:
        cards = cards_of(node.name, node.annotations)
    except RegisterError:
        cards, unread = (), True
    return FitNode(
        name=node.name,
        free=node.allocatable,
        allocatable=node.allocatable,
        labels=node.labels,
        taints=(*node.taints, UNSCHEDULABLE) if node.unschedulable else node.taints,
        cards=cards,
        cards_unread=unread,
    )


def ready_node(node: ObservedNode) -> FitNode | None:
    """The node with nothing on it; None for one that takes no pods now."""
    return empty_node(node) if node.ready else None


def less_pods(empty: FitNode, demands: Iterable[Mapping[str, int]], held: Iterable[Allocation]) -> FitNode:
    """The node with what its pods leave.

    Args:
        empty: the node with nothing on it.
        demands: the pods' demands, in base units.
        held: the cards that they hold.
    """
    taken = Counter[str]()
    for demand in demands:
        taken.update(demand)
    free = {resource: amount - taken[resource] for resource, amount in empty.free.items()}
    return msgspec.structs.replace(empty, free=free, cards=with_use(empty.cards, held))


def _counts_gpus(node: FitNode) -> bool:
    """Whether the node has GPUs free that no HAMi gives away."""
    return not node.cards and not node.cards_unread and node.free.get(VGPUS, 0) >= _ONE_CARD


def _with_whole_cards(node: FitNode) -> FitNode:
    """The node, the free GPUs of one without HAMi as cards that one pod each may have whole."""
    if not _counts_gpus(node):
        return node
    return msgspec.structs.replace(node, cards=_whole_cards(node.free[VGPUS] // _ONE_CARD))


@cache
def _whole_cards(number: int) -> tuple[CardState, ...]:
    return tuple(
        CardState(uuid=f"whole-{index}", count=1, memory=1, cores=100, index=index) for index in range(number)
    )
