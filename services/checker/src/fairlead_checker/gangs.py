"""A Workload with quota as the gang that it is: what its pods ask for, and where they may run. Pure.

What Kueue adds at admission counts, too: labels and tolerations of the flavors that it was given.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead_checker.facts import Checked, CheckedPods
from fairlead_contracts.frontend.cards import CARD_ANNOTATIONS, PER_VGPU, VGPUS, CardState
from fairlead_contracts.frontend.marks import ZONE_KEY
from fairlead_kube.kinds.demand import card_asks, pod_demand
from fairlead_kube.kinds.queues import ResourceFlavor
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.hami.annotations import card_annotations_of
from fairlead_policy.hami.requests import vgpu_asks

_PODS = "pods"
_ONE_CARD = 1000


def gang_of(
    workload: Checked, flavors: Mapping[str, ResourceFlavor], *, by_cards: bool, counts: Mapping[str, int]
) -> Gang:
    """The pods of a Workload.

    Args:
        workload: the Workload with its admission.
        flavors: the flavors by name; one that is not known any more gives nothing.
        by_cards: whether its vGPUs are looked for on cards, one by one, and not as a resource of nodes.
        counts: pods by pod set, where they are others than were admitted.

    Raises:
        FieldError: a quantity cannot be read, or is larger than any cluster.
        AskError: the pods ask for cards in a way that HAMi does not take.
    """
    return Gang(
        shapes=tuple(
            _shape(one, flavors, by_cards=by_cards, count=counts.get(one.pods.name, one.count))
            for one in workload.pod_sets
        ),
        zone_key=zone_key_of(workload),
    )


def zone_key_of(workload: Checked) -> str | None:
    """The label whose value all nodes of the gang shall share, as its first pods that say so ask."""
    asked = (one.pods.template.metadata.annotation(ZONE_KEY) for one in workload.pod_sets)
    return next(filter(None, asked), None)


def goes_by_cards(asks: Sequence[Mapping[str, int]], nodes: Iterable[FitNode]) -> bool:
    """Whether vGPUs are looked for on cards: where parts are asked for, and where any node registers cards."""
    if not asks:
        return False
    return asks_for_parts(asks) or any(node.cards for node in nodes)


def asks_for_parts(asks: Iterable[Mapping[str, int]]) -> bool:
    """Whether anybody asks for less than whole cards, which HAMi alone can give."""
    return any(ask.get(name) for ask in asks for name in PER_VGPU)


def with_whole_cards(node: FitNode) -> FitNode:
    """A node that HAMi does not serve, its free GPUs as cards that one pod each may have: they do for whole cards."""
    free = max(node.free.get(VGPUS, 0), 0) // _ONE_CARD
    if node.cards or not free:
        return node
    cards = tuple(
        CardState(uuid=f"{node.name}/{number}", count=1, memory=1, cores=100, index=number)
        for number in range(free)
    )
    return msgspec.structs.replace(node, cards=cards)


def _shape(
    one: CheckedPods, flavors: Mapping[str, ResourceFlavor], *, by_cards: bool, count: int
) -> PodShape:
    spec = one.pods.template.spec
    given = [flavors[name] for name in one.flavors if name in flavors]
    left_out = {_PODS, *PER_VGPU} | ({VGPUS} if by_cards else set())
    noted = one.pods.template.metadata.annotations or {}
    tolerated = [*(spec.tolerations or ()), *(t for flavor in given for t in flavor.spec.tolerations or ())]
    labels = {key: value for flavor in given for key, value in (flavor.spec.node_labels or {}).items()}
    return PodShape(
        name=one.pods.name,
        count=count,
        demand={name: amount for name, amount in pod_demand(spec).items() if name not in left_out},
        selector={**labels, **(spec.node_selector or {})},
        # None where a term goes by a node's fields, which are unknown here.
        affinity=tuple(map(tuple, spec.required_terms)) if all(spec.required_terms) else (),
        tolerations=tuple(tolerated),
        vgpus=vgpu_asks(card_asks(spec)) if by_cards else (),
        card_annotations=card_annotations_of(
            {name: noted[name] for name in CARD_ANNOTATIONS if name in noted}
        ),
    )
