"""Equivalence: which Workloads Kueue tries as one. Pure.

Of Workloads of one shape and one priority Kueue tries the first alone: when that one does not fit, it parks the others
untried (SchedulingEquivalenceHashing). Shapes are told apart by `computeSchedulingHash` (pkg/workload) and `SpecShape`
(pkg/util/pod) of Kueue 0.19; priorities are left out here, as levels change them.
"""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from fairlead_kube.kinds.pods import Container
from fairlead_kube.kinds.workloads import PodSet, Workload

ALLOWED_FLAVORS = "kueue.x-k8s.io/workload-allowed-resource-flavors"
"""The annotation by which Kueue tries a Workload with these flavors alone (ConcurrentAdmission)."""

_BYTES = 6
_ENCODER = msgspec.json.Encoder(order="sorted")


def equivalence(workload: Workload) -> str:
    """The digest that Workloads of one shape have in common."""
    pod_sets = workload.spec.pod_sets or ()
    # Kueue counts the devices that claims ask for, and a claim's template is found by its name in the namespace.
    claims = any(pods.template.spec.resource_claims for pods in pod_sets)
    around = [workload.metadata.namespace if claims else "", workload.metadata.annotation(ALLOWED_FLAVORS)]
    shape = _ENCODER.encode([[_shape(pods) for pods in pod_sets], *around])
    return blake2b(shape, digest_size=_BYTES).hexdigest()


def _shape(pods: PodSet) -> list[object]:
    spec = pods.template.spec
    return [
        *(pods.name, pods.count, pods.min_count, pods.topology_request),
        *(_containers(spec.init_containers), _containers(spec.containers)),
        *(spec.node_selector, spec.affinity, spec.tolerations, spec.runtime_class_name, spec.priority),
        *(spec.topology_spread_constraints, spec.overhead, spec.resource_claims),
        spec.resources and spec.resources.requests,
    ]


def _containers(found: Iterable[Container] | None) -> list[object]:
    return [[one.resources.requests, one.ports] for one in found or ()]
