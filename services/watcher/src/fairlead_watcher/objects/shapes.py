"""The pods of a Workload one by one, as its pod sets have them. Pure."""

from collections.abc import Mapping

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.cards import CARD_RESOURCES, VGPUS
from fairlead_contracts.messages.state import JobShape
from fairlead_kube.kinds.demand import pods_kept
from fairlead_kube.kinds.observed import observed_pods
from fairlead_kube.kinds.workloads import PodSet, Workload
from fairlead_watcher.objects.metadata import LONGEST_VALUE

_PODS = "pods"
MOST_ENTRIES = 1024
"""Resources and labels of all kinds of pods of a Workload together. Kueue may be told not to count some, so that whoever
asks for thousands may still start, and a statement must fit into one message of NATS (1 MiB)."""
_ALWAYS_STATED = frozenset({"cpu", "memory", *CARD_RESOURCES})
"""Resources that are stated of pods that ask for more than can be."""


def shapes_of(workload: Workload, demand: Mapping[str, int]) -> list[JobShape]:
    """Shapes of the pods of a Workload that waits; empty where its demand says it all, or it is unreadable.

    So the state of most jobs stays small: only pods of several kinds, selectors, parts of cards, and demands that Kueue
    was told to count otherwise (`resources.transformations`) are stated. Where a pod set may shrink, its fewest pods
    count. Of pods that ask for too much to be stated some is left out: that stands in nobody's way, while pods of several
    kinds that are taken for alike could seem to fit nowhere.

    Args:
        workload: a waiting one.
        demand: demand of the whole Workload, as Kueue counts it.
    """
    try:
        shapes = [_shape(one) for one in workload.spec.pod_sets or ()]
    except FieldError:
        return []
    if sum(map(_entries, shapes)) > MOST_ENTRIES:
        shapes = list(map(_shortened, shapes))
    if sum(map(_entries, shapes)) > MOST_ENTRIES:
        return []  # hundreds of containers with cards: no node has so many, however they are shared
    return [] if len(shapes) == 1 and _says_all(shapes[0], demand) else shapes


def held_shapes_of(workload: Workload, demand: Mapping[str, int]) -> list[JobShape]:
    """Shapes of the pods of a Workload that holds quota, cards among it; empty where none are, or its demand says it all.

    Nobody asks any more where these pods may run. Pods that ended, and those that were never admitted, are left out.
    """
    left = pods_kept(workload)
    shapes = [
        msgspec.structs.replace(shape, pods=left[shape.name], selector={})
        for shape in shapes_of(workload, {})
        if left.get(shape.name)
    ]
    if not any(shape.demand.keys() & {*CARD_RESOURCES} for shape in shapes):
        return []
    return [] if len(shapes) == 1 and _says_all(shapes[0], demand) else shapes


def _entries(shape: JobShape) -> int:
    return len(shape.demand) + len(shape.selector) + sum(map(len, shape.card_asks))


def _shortened(shape: JobShape) -> JobShape:
    demand = {resource: amount for resource, amount in shape.demand.items() if resource in _ALWAYS_STATED}
    return msgspec.structs.replace(shape, demand=demand, selector={})


def _says_all(only: JobShape, demand: Mapping[str, int]) -> bool:
    """Whether the demand of the whole job says what its pods ask for, all alike."""
    if only.selector or only.card_asks:
        return False
    return {resource: amount * only.pods for resource, amount in only.demand.items()} == demand


def _shape(pod_set: PodSet) -> JobShape:
    described = observed_pods(pod_set.template, pod_set.name, pod_set.fewest)
    asks = list(map(dict, described.card_asks))
    noted_for_cards = {
        name: value
        for name, value in described.card_annotations.items()
        if len(value) in range(1, LONGEST_VALUE + 1)
    }
    return JobShape(
        name=described.name,
        pods=described.count,
        demand={
            resource: amount for resource, amount in described.demand.items() if amount and resource != _PODS
        },
        # Kubernetes takes no longer ones; what is left out stands in nobody's way.
        selector={key: value for key, value in described.selector.items() if len(value) <= LONGEST_VALUE},
        card_asks=asks
        if len(asks) > 1 or noted_for_cards or any(ask.keys() - {VGPUS} for ask in asks)
        else [],
        card_annotations=noted_for_cards if asks else {},
    )
