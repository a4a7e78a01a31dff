"""Demand of a pod on nodes that count GPUs, and on nodes that have them card by card under HAMi. Pure."""

import msgspec

from fairlead_contracts.frontend.cards import CARD_RESOURCES, PER_VGPU
from fairlead_kube.kinds.demand import card_asks, pod_demand
from fairlead_kube.kinds.pods import PodSpec
from fairlead_policy.fit.shapes import Gang, PodShape
from fairlead_policy.hami.requests import vgpu_asks

_PODS = "pods"


class PodAsk(msgspec.Struct, frozen=True, kw_only=True):
    """Demand of a pod, as a gang of one."""

    whole: Gang | None
    """Demand on nodes that count GPUs; None for a pod that asks for parts, which those do not give."""
    by_card: Gang
    """Demand on nodes whose cards are known one by one."""


def pod_ask(spec: PodSpec, name: str) -> PodAsk:
    """The pod's demand.

    Args:
        spec: specification of the pod.
        name: the pod's name in a refusal.

    Raises:
        FieldError: a quantity cannot be read.
        AskError: HAMi would not take what it asks of cards.
    """
    demand = {resource: amount for resource, amount in pod_demand(spec).items() if resource != _PODS}
    cards = card_asks(spec)
    parts = any(ask.get(resource) for ask in cards for resource in PER_VGPU)
    shape = PodShape(
        name=name,
        count=1,
        demand=demand,
        selector=spec.node_selector or {},
        tolerations=tuple(spec.tolerations or ()),
    )
    rest = {resource: amount for resource, amount in demand.items() if resource not in CARD_RESOURCES}
    by_card = msgspec.structs.replace(shape, demand=rest, vgpus=vgpu_asks(cards))
    return PodAsk(
        whole=None if parts else Gang(shapes=(shape,)),
        by_card=Gang(shapes=(by_card,)),
    )
