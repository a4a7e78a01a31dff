"""A node as Kubernetes describes it, with nothing on it yet and with what its pods take: for services that watch nodes themselves."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.frontend.card_annotations import RegisterError, cards_of
from fairlead_contracts.frontend.cards import Allocation, with_use
from fairlead_contracts.frontend.taints import Taint
from fairlead_policy.fit.facts import UNSCHEDULABLE
from fairlead_policy.fit.shapes import FitNode


def empty_node(
    name: str,
    amounts: Mapping[str, int],
    *,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    taints: Iterable[Taint],
    unschedulable: bool,
) -> FitNode:
    """The node. Cards that cannot be read it does not have.

    Args:
        name: the node's name.
        amounts: allocatable, in base units.
        labels: the node's labels.
        annotations: the node's annotations; HAMi's register is among them.
        taints: the taints as they stand in its spec.
        unschedulable: whether it is cordoned.
    """
    try:
        cards = cards_of(name, annotations or {})
    except RegisterError:
        cards = ()
    return FitNode(
        name=name,
        free=amounts,
        allocatable=amounts,
        labels=labels or {},
        taints=(*taints, UNSCHEDULABLE) if unschedulable else tuple(taints),
        cards=cards,
    )


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
