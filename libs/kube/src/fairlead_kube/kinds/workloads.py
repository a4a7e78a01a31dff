"""Kueue's Workload, v1beta2 and v1beta1 in one shape. Paths and versions: Kueue 0.19, `apis/kueue/v1beta2`."""

from collections.abc import Callable, Sequence

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.marks import BASE_PRIORITY, LEVEL_WRITER, NO_PRIORITY
from fairlead_kube.kinds.objects import (
    ApiObject,
    Condition,
    KubeStruct,
    ObjectMeta,
    RawAmounts,
    condition,
    holds,
    instant,
)
from fairlead_kube.kinds.pods import PodTemplate
from fairlead_kube.kinds.quantities import int32

PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
"""The annotation that Kueue adds to `spec.priority`: an int32 as text; needs the gate PriorityBoost (0.17)."""
MULTIKUEUE_ORIGIN = "kueue.x-k8s.io/multikueue-origin"
"""The label of a Workload that MultiKueue copied from another cluster."""
WORKLOAD_PRIORITY_CLASS = "WorkloadPriorityClass"
POD_PRIORITY_CLASS = "PriorityClass"
_SOURCES = {
    "kueue.x-k8s.io/workloadpriorityclass": WORKLOAD_PRIORITY_CLASS,
    "scheduling.k8s.io/priorityclass": POD_PRIORITY_CLASS,
}


_UPDATE = "Update"


class OwnedAnnotations(KubeStruct, frozen=True, kw_only=True):
    """The annotations, of those that matter here, that one manager owns."""

    boost: object = msgspec.field(name=f"f:{PRIORITY_BOOST}", default=None)
    base: object = msgspec.field(name=f"f:{BASE_PRIORITY}", default=None)


class OwnedMetadata(KubeStruct, frozen=True, kw_only=True):
    """The part of the metadata that one manager owns."""

    annotations: OwnedAnnotations | None = msgspec.field(name="f:annotations", default=None)


class OwnedSpec(KubeStruct, frozen=True, kw_only=True):
    """The part of the specification that one manager owns."""

    priority: object = msgspec.field(name="f:priority", default=None)


class OwnedFields(KubeStruct, frozen=True, kw_only=True):
    """Fields that one manager owns; `{}` for each of them."""

    metadata: OwnedMetadata | None = msgspec.field(name="f:metadata", default=None)
    spec: OwnedSpec | None = msgspec.field(name="f:spec", default=None)


class ManagedFields(KubeStruct, frozen=True, kw_only=True):
    """A writer of fields and the fields that it owns, as the API server keeps them."""

    manager: str = ""
    operation: str = _UPDATE
    """Operation of the write: `Update` or `Apply`."""
    subresource: str = ""
    time: str = ""
    """Time of the last write that changed something, RFC 3339 in whole seconds."""
    fields: OwnedFields | None = msgspec.field(name="fieldsV1", default=None)


class WorkloadMeta(ObjectMeta, frozen=True, kw_only=True):
    """The metadata of a Workload, with the writers of the fields that order it."""

    managed_fields: list[ManagedFields] | None = None


class PriorityClassRef(KubeStruct, frozen=True, kw_only=True):
    """The object that a Workload's priority comes from."""

    group: str = ""
    kind: str = ""
    """Kind of the object: `WorkloadPriorityClass` or `PriorityClass`."""
    name: str = ""


class PodSet(KubeStruct, frozen=True, kw_only=True):
    """Pods of one shape."""

    name: str = "main"
    count: int = 1
    min_count: int | None = None
    """Number of pods that is enough (partial admission); None for all of them."""
    template: PodTemplate = PodTemplate()
    topology_request: object = None

    @property
    def fewest(self) -> int:
        """The fewest pods that it starts with."""
        return self.count if self.min_count is None else self.min_count


class WorkloadSpec(KubeStruct, frozen=True, kw_only=True):
    """The specification of a Workload."""

    queue_name: str = ""
    """Name of the LocalQueue."""
    priority: int | None = None
    priority_class_ref: PriorityClassRef | None = None
    priority_class_name: str = ""
    """Priority class in v1beta1, beside `priority_class_source`; `WorkloadSpec.class_ref` reads both versions."""
    priority_class_source: str = ""
    active: bool | None = None
    """Whether the Workload may be queued; None counts as True."""
    pod_sets: list[PodSet] | None = None
    maximum_execution_time_seconds: int | None = None

    @property
    def class_ref(self) -> PriorityClassRef | None:
        """The object that the priority comes from, in either version."""
        if self.priority_class_ref is not None or not self.priority_class_name:
            return self.priority_class_ref
        kind = _SOURCES.get(self.priority_class_source, "")
        return PriorityClassRef(kind=kind, name=self.priority_class_name)


class PodSetAssignment(KubeStruct, frozen=True, kw_only=True):
    """The flavors and counts that an admission gave to one pod set."""

    name: str = "main"
    flavors: dict[str, str] | None = None
    """Flavor by resource."""
    resource_usage: RawAmounts | None = None
    """Amounts of all pods together; not reduced by what was reclaimed since."""
    count: int | None = None


class Admission(KubeStruct, frozen=True, kw_only=True):
    """The quota that a Workload holds."""

    cluster_queue: str = ""
    pod_set_assignments: list[PodSetAssignment] | None = None


class ReclaimablePod(KubeStruct, frozen=True, kw_only=True):
    """Pods of a set that ended and whose quota is free again."""

    name: str = "main"
    count: int = 0


class RequeueState(KubeStruct, frozen=True, kw_only=True):
    """The state of a Workload that backs off."""

    count: int | None = None
    requeue_at: str | None = None


class PodSetRequest(KubeStruct, frozen=True, kw_only=True):
    """The amounts that Kueue computed for a pod set; only after an attempt that failed."""

    name: str = "main"
    resources: RawAmounts | None = None


class CheckState(KubeStruct, frozen=True, kw_only=True):
    """The state of an AdmissionCheck in a Workload."""

    name: str = ""
    state: str = "Pending"
    """State: `Pending`, `Ready`, `Retry` or `Rejected`."""
    message: str = ""
    last_transition_time: str | None = None
    retry_count: int | None = None
    """Number of times in a row that it said `Retry` (Kueue 0.15)."""


class WorkloadStatus(KubeStruct, frozen=True, kw_only=True):
    """Progress of a Workload."""

    admission: Admission | None = None
    conditions: list[Condition] | None = None
    reclaimable_pods: list[ReclaimablePod] | None = None
    requeue_state: RequeueState | None = None
    resource_requests: list[PodSetRequest] | None = None
    admission_checks: list[CheckState] | None = None
    accumulated_past_execution_time_seconds: int | None = None


class Workload(ApiObject, frozen=True, kw_only=True):
    """A job as Kueue queues and admits it."""

    metadata: WorkloadMeta = WorkloadMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    def condition(self, kind: str) -> Condition | None:
        """The condition of this type, if it stands there: `QuotaReserved`, `Admitted`, `Evicted`, `Finished`, …."""
        return condition(self.status.conditions, kind)

    def holds(self, kind: str) -> bool:
        """Whether the condition of this type is True."""
        return holds(self.status.conditions, kind)

    @property
    def active(self) -> bool:
        """Whether the Workload may be queued; False where somebody deactivated it."""
        return self.spec.active is not False

    @property
    def assignments(self) -> Sequence[PodSetAssignment]:
        """The quota of each pod set by its admission; none without one."""
        admission = self.status.admission
        return (admission.pod_set_assignments if admission else None) or ()


def lever_owner(metadata: WorkloadMeta) -> str:
    """The manager that wrote the boost last; without a boost, the priority. Empty where the API server does not say."""
    boosted = metadata.annotation(PRIORITY_BOOST) is not None
    return next(iter(_owners(metadata, _boost if boosted else _priority)), "")


def last_status_write(metadata: WorkloadMeta) -> Micros:
    """The instant at which somebody last changed the status, in whole seconds; 0 where nobody did."""
    return instant(
        max((one.time for one in metadata.managed_fields or () if one.subresource == "status"), default="")
    )


def found_priority(workload: Workload) -> int | msgspec.UnsetType | None:
    """The priority that an admitter found before it wrote a level there, None for none; UNSET where none was written.

    Whoever may write a Workload, or has a controller copy annotations to it, can write the note of it. So the note
    counts only where the API server says that an admitter wrote the priority, and nobody else the note. Where somebody
    else did, what was found is lost: it is 0 then, the least that anybody has, as nobody shall have a priority by a note.
    """
    metadata = workload.metadata
    noted = metadata.annotation(BASE_PRIORITY)
    if noted is None or LEVEL_WRITER not in _owners(metadata, _priority):
        return msgspec.UNSET
    if forged_priority(metadata) is not None:
        return 0
    return None if noted == NO_PRIORITY else int32(noted) or 0


def forged_priority(metadata: WorkloadMeta) -> str | None:
    """The note of a priority that an admitter found, where somebody else wrote it; None for none."""
    noted = metadata.annotation(BASE_PRIORITY)
    noters = [] if noted is None else _owners(metadata, _base)
    return noted if noters and LEVEL_WRITER not in noters else None


def _owners(metadata: WorkloadMeta, field: Callable[[OwnedFields], object]) -> list[str]:
    """The managers that own a field, those first that updated it.

    One that updates a field takes it from all others but those that apply the same value. Kueue's own writes to the status
    own all annotations, without having written any.
    """
    owners = [
        one
        for one in metadata.managed_fields or ()
        if not one.subresource and one.fields is not None and field(one.fields) is not None
    ]
    owners.sort(key=lambda one: one.operation != _UPDATE)
    return [one.manager for one in owners]


def _priority(fields: OwnedFields) -> object:
    return None if fields.spec is None else fields.spec.priority


def _boost(fields: OwnedFields) -> object:
    annotations = None if fields.metadata is None else fields.metadata.annotations
    return None if annotations is None else annotations.boost


def _base(fields: OwnedFields) -> object:
    annotations = None if fields.metadata is None else fields.metadata.annotations
    return None if annotations is None else annotations.base


class PriorityClass(ApiObject, frozen=True, kw_only=True):
    """A named priority: `WorkloadPriorityClass` of Kueue and `PriorityClass` of pods have the same form."""

    value: int = 0
    description: str = ""


class AdmissionCheckSpec(KubeStruct, frozen=True, kw_only=True):
    """The controller that answers a check."""

    controller_name: str = ""


class AdmissionCheckStatus(KubeStruct, frozen=True, kw_only=True):
    """Status of a check; its conditions say whether its controller works."""

    conditions: list[Condition] | None = None


class AdmissionCheck(ApiObject, frozen=True, kw_only=True):
    """A gate after the reservation of quota."""

    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: AdmissionCheckStatus = AdmissionCheckStatus()
