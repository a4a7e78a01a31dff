"""A node as Kubernetes describes it, with nothing on it yet: what services that watch nodes themselves begin with."""

from collections.abc import Iterable, Mapping

from fairlead_contracts.frontend.card_annotations import RegisterError
from fairlead_policy.fit.facts import UNSCHEDULABLE
from fairlead_policy.fit.shapes import FitNode, NodeTaint
from fairlead_policy.hami.cards import cards_of


def bare_node(
    name: str,
    amounts: Mapping[str, int],
    *,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    taints: Iterable[NodeTaint],
    unschedulable: bool,
) -> FitNode:
    """The node. Cards that cannot be read it does not have.

    Args:
        name: of the node.
        amounts: allocatable, in base units.
        labels: of the node.
        annotations: of the node; HAMi's register is among them.
        taints: as they stand in its spec.
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
