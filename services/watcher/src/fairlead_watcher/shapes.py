"""The pods of a Workload one by one, as its pod sets have them. Pure."""

from collections.abc import Mapping

from fairlead_contracts.errors import FieldError
from fairlead_contracts.state import JobShape
from fairlead_kube import PodSet, Workload, pod_demand
from fairlead_watcher.metadata import LONGEST_VALUE

_PODS = "pods"


def shapes_of(workload: Workload, demand: Mapping[str, int]) -> list[JobShape]:
    """What the pods of a Workload ask for; empty where its demand says it all, and where it cannot be read.

    So the state of most jobs stays as small as it was: only pods of several kinds, selectors, and demands that Kueue was
    told to count otherwise (`resources.transformations`) are worth a word. Of pods that may be fewer the fewest count.

    Args:
        workload: that waits.
        demand: of the whole Workload, as Kueue counts it.
    """
    try:
        shapes = [_shape(one) for one in workload.spec.pod_sets or ()]
    except FieldError:
        return []
    if len(shapes) == 1 and not shapes[0].selector:
        [only] = shapes
        if {resource: amount * only.pods for resource, amount in only.demand.items()} == demand:
            return []
    return shapes


def _shape(pod_set: PodSet) -> JobShape:
    spec = pod_set.template.spec
    asked = pod_demand(spec)
    return JobShape(
        name=pod_set.name,
        pods=pod_set.count if pod_set.min_count is None else pod_set.min_count,
        demand={resource: amount for resource, amount in asked.items() if amount and resource != _PODS},
        # Kubernetes takes no longer ones; what is left out stands in nobody's way.
        selector={
            key: value for key, value in (spec.node_selector or {}).items() if len(value) <= LONGEST_VALUE
        },
    )
