"""The facts that are kept of Workloads, each a gang, and of pods that are on nodes; the rest is dropped as soon as it is decoded. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.card_annotations import held_cards
from fairlead_contracts.frontend.cards import Allocation
from fairlead_contracts.frontend.marks import SUBMISSION, TRACEPARENT, ZONE_KEY
from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_kube.kinds.demand import bound_demand
from fairlead_kube.kinds.objects import instant
from fairlead_kube.kinds.observed import observed_pods
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.quantities import int32
from fairlead_kube.kinds.queues import ResourceFlavor
from fairlead_kube.kinds.workloads import PRIORITY_BOOST, CheckState, PodSet, Workload

OF_WORKLOAD = "kueue.x-k8s.io/workload"
"""Annotation of a pod: the Workload that it was admitted by."""
OF_GROUP = "kueue.x-k8s.io/pod-group-name"
"""Label of a pod of a group: the group's name, which is the Workload's."""
OF_POD_SET = "kueue.x-k8s.io/podset"
"""Label of a pod: which pod set it is of."""
BY_CHECK = "AdmissionCheck"
"""Kueue's reason for an eviction after `Retry`."""


class CheckedPods(msgspec.Struct, frozen=True, kw_only=True):
    """A pod set, with what its admission gives it."""

    pods: PodSet
    flavors: tuple[str, ...] = ()
    count: int
    """Pods that were admitted: fewer than stated in a partial admission."""

    def admitted(self, flavors: Mapping[str, ResourceFlavor], count: int) -> ObservedPods:
        """The description of so many of its pods, with what Kueue adds at admission: labels and tolerations of the flavors that it was given."""
        pods = observed_pods(self.pods.template, self.pods.name, count)
        given = [flavors[name].spec for name in self.flavors if name in flavors]
        labels = {key: value for flavor in given for key, value in (flavor.node_labels or {}).items()}
        tolerated = (toleration for flavor in given for toleration in flavor.tolerations or ())
        return msgspec.structs.replace(
            pods, selector={**labels, **pods.selector}, tolerations=(*pods.tolerations, *tolerated)
        )


class CheckedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A Workload that has admission checks and is not over."""

    namespace: str
    name: str
    uid: str
    version: str
    """The resourceVersion: an answer is written of this very state, or not at all."""
    created: Micros
    traceparent: str | None = None
    """The trace that it was submitted in."""
    submission: str | None = None
    """Id of its submission on NATS, where it was submitted there."""
    level: int
    """Effective priority of the Workload."""
    owner: str
    """The uid of what it was made for; empty where nobody controls it."""
    checks: dict[str, CheckState]
    pod_sets: tuple[CheckedPods, ...]
    reserved: Micros | None
    """Instant since which it has quota; None without."""
    admitted: bool
    evicted: bool
    """Whether the Workload was put back for a check's `Retry`, and got no quota since."""
    requeue_at: Micros | None
    """Instant until which Kueue keeps it out of its queue."""

    @property
    def zone_key(self) -> str | None:
        """The label whose value all nodes of the gang shall share, as its first pods that say so ask."""
        asked = (one.pods.template.metadata.annotation(ZONE_KEY) for one in self.pod_sets)
        return next(filter(None, asked), None)

    def gang(
        self, flavors: Mapping[str, ResourceFlavor], counts: Mapping[str, int]
    ) -> tuple[ObservedPods, ...]:
        """The gang that it is: what its pods ask for, and where they may run, a description for each pod set.

        Args:
            flavors: the flavors by name; one that is not known any more gives nothing.
            counts: pods by pod set, where they are others than were admitted.

        Raises:
            FieldError: a quantity cannot be read, or is larger than any cluster.
        """
        return tuple(one.admitted(flavors, counts.get(one.pods.name, one.count)) for one in self.pod_sets)


class PodUse(msgspec.Struct, frozen=True, kw_only=True):
    """The use of a pod of its node."""

    node: str
    demand: dict[str, int]
    workload: str = ""
    """The Workload's name, where the pod says so."""
    owner: str = ""
    """Uid of the pod's controller."""
    pod_set: str = ""
    held: tuple[Allocation, ...] = ()
    """Parts of cards that HAMi gave the pod."""


def checked(workload: Workload) -> CheckedWorkload | None:
    """The facts that are kept of a Workload; None for one without checks, and for one that is over."""
    status, metadata = workload.status, workload.metadata
    if not status.admission_checks or workload.holds("Finished") or not workload.active:
        return None
    reserved, evicted = workload.condition("QuotaReserved"), workload.condition("Evicted")
    requeue = status.requeue_state.requeue_at if status.requeue_state else None
    controller = metadata.controller
    return CheckedWorkload(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        created=metadata.created,
        traceparent=_carried(workload, TRACEPARENT),
        submission=_carried(workload, SUBMISSION),
        level=(workload.spec.priority or 0) + (int32(metadata.annotation(PRIORITY_BOOST)) or 0),
        owner=controller.uid if controller else "",
        checks={one.name: one for one in status.admission_checks},
        pod_sets=tuple(_pod_sets(workload)),
        reserved=reserved.since if reserved and reserved.status == "True" else None,
        admitted=workload.holds("Admitted"),
        evicted=evicted is not None and evicted.status == "True" and evicted.reason == BY_CHECK,
        requeue_at=instant(requeue) if requeue else None,
    )


def _carried(workload: Workload, name: str) -> str | None:
    """The annotation of that name on the Workload, else on its pods' templates: Kueue chooses what it copies from them."""
    places = [workload.metadata, *(pods.template.metadata for pods in workload.spec.pod_sets or ())]
    return next((found for place in places if (found := place.annotation(name))), None)


def _pod_sets(workload: Workload) -> Iterable[CheckedPods]:
    given = {one.name: one for one in workload.assignments}
    for pods in workload.spec.pod_sets or ():
        one = given.get(pods.name)
        count = pods.count if one is None or one.count is None else one.count
        flavors = sorted(set((one.flavors or {}).values())) if one else ()
        yield CheckedPods(pods=pods, flavors=tuple(flavors), count=count)


def pod_use(pod: Pod) -> PodUse | None:
    """The use of a pod of its node; None for one that is on none."""
    if not pod.spec.node_name:
        return None
    metadata = pod.metadata
    controller = metadata.controller
    return PodUse(
        node=pod.spec.node_name,
        demand=bound_demand(pod.spec),
        workload=metadata.annotation(OF_WORKLOAD) or metadata.label(OF_GROUP) or "",
        owner=controller.uid if controller else "",
        pod_set=metadata.label(OF_POD_SET) or "",
        held=held_cards(metadata.annotations or {}),
    )
