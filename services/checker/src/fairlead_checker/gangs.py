"""A Workload with quota as the gang that it is: what its pods ask for, and where they may run. Pure.

What Kueue adds at admission counts, too: labels and tolerations of the flavors that it was given.
"""

from collections.abc import Mapping

import msgspec

from fairlead_checker.facts import Checked, CheckedPods
from fairlead_contracts.frontend.marks import ZONE_KEY
from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_kube.kinds.observed import observed_pods
from fairlead_kube.kinds.queues import ResourceFlavor


def admitted_pods(
    workload: Checked, flavors: Mapping[str, ResourceFlavor], counts: Mapping[str, int]
) -> tuple[ObservedPods, ...]:
    """The pods of a Workload, a description for each pod set.

    Args:
        workload: the Workload with its admission.
        flavors: the flavors by name; one that is not known any more gives nothing.
        counts: pods by pod set, where they are others than were admitted.

    Raises:
        FieldError: a quantity cannot be read, or is larger than any cluster.
    """
    return tuple(_admitted(one, flavors, counts.get(one.pods.name, one.count)) for one in workload.pod_sets)


def _admitted(one: CheckedPods, flavors: Mapping[str, ResourceFlavor], count: int) -> ObservedPods:
    pods = observed_pods(one.pods.template, one.pods.name, count)
    given = [flavors[name].spec for name in one.flavors if name in flavors]
    labels = {key: value for flavor in given for key, value in (flavor.node_labels or {}).items()}
    tolerated = (toleration for flavor in given for toleration in flavor.tolerations or ())
    return msgspec.structs.replace(
        pods, selector={**labels, **pods.selector}, tolerations=(*pods.tolerations, *tolerated)
    )


def zone_key_of(workload: Checked) -> str | None:
    """The label whose value all nodes of the gang shall share, as its first pods that say so ask."""
    asked = (one.pods.template.metadata.annotation(ZONE_KEY) for one in workload.pod_sets)
    return next(filter(None, asked), None)
