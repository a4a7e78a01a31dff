"""The part of a Workload, and of its owner, that we need; the rest is dropped as soon as it is decoded. Pure.

A write that touches none of it, as most writes to a status, changes nothing here.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from fairlead_bus.facts.event_diff import LastEviction, RunEnd
from fairlead_contracts.base.errors import FieldError, shown
from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.frontend.marks import GANG_FIT
from fairlead_contracts.messages.state import Fault, JobShape, Outcome
from fairlead_kube.kinds.demand import (
    counted_in_namespace,
    counted_otherwise,
    is_counted,
    pods_kept,
    workload_charges,
    workload_demand,
)
from fairlead_kube.kinds.objects import Condition, ObjectMeta, PartialObject, instant
from fairlead_kube.kinds.quantities import int32
from fairlead_kube.kinds.queues import MOST_COVERED
from fairlead_kube.kinds.workloads import (
    PRIORITY_BOOST,
    PodSetAssignment,
    Workload,
    forged_priority,
    found_priority,
    last_status_write,
    lever_owner,
)
from fairlead_watcher.objects.equivalence import equivalence
from fairlead_watcher.objects.metadata import NO_WORDS, MetadataWords, merged, words_of
from fairlead_watcher.objects.refused_flavors import is_verdict, refused_flavors
from fairlead_watcher.objects.shape_verdicts import FlavorVerdict
from fairlead_watcher.objects.shapes import held_shapes_of, shapes_of

GATES = "kueue.x-k8s.io/admission-gated-by"
"""Annotation with the gates that must be lifted before Kueue looks at a Workload (KEP-6915)."""
PODS = "pods"
POD = "Pod"
MOST_OWNERS = 16
"""Owners that are read, by name. Each pod of a group is one, and all say the same."""
LONGEST_SAID = 512
_AGREED, _OPEN = "Ready", "Pending"
EVICTED_BY_CHECK = "AdmissionCheck"
EVICTED_FOR_PODS = "PodsReadyTimeout"
_BACK_OF_THE_LINE = (EVICTED_FOR_PODS, EVICTED_BY_CHECK)
"""Evictions after which Kueue orders by the eviction's time (`GetQueueOrderTimestamp`, pkg/workload), with its
default `requeuingStrategy.timestamp: Eviction`."""
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
"""Annotation with the key of the slice that a new slice of an elastic job replaces."""
_OUTCOMES = {
    "Failed": Outcome.FAILED,
    "OutOfSync": Outcome.CANCELLED,
    "OwnerNotFound": Outcome.CANCELLED,
    "WorkloadSliceReplaced": Outcome.CANCELLED,
}
"""Outcomes by Kueue's reason. Every other reason means success, as Kueue before 0.9 had one word for every end."""


class Owner(NamedTuple):
    """The object that a Workload was made for."""

    kind: str
    name: str
    uid: str


class OwnerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an owner that we need."""

    uid: str
    words: MetadataWords


class QuotaHold(msgspec.Struct, frozen=True, kw_only=True):
    """The quota that is reserved for a Workload."""

    queue: str
    """The ClusterQueue; empty where the admission does not say."""
    since: Micros
    admitted: Micros | None = None
    """The instant at which the Workload's run limit began to count; None while admission checks are open."""
    flavors: dict[str, str] = {}
    """The flavor of each resource; without resources that its pod sets hold of several flavors."""
    charged: dict[str, dict[str, int]] = {}
    """The quota that the Workload holds, by flavor."""


class End(RunEnd, frozen=True, kw_only=True):
    """The end of a Workload, and its last run."""

    uid: str


class PriorityFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers that Kueue orders a Workload by, and where they come from."""

    value: int = 0
    boost: int = 0
    levelled_by: str = ""
    """The field manager that wrote the boost, or the priority in its place, while it is queued; see `lever_owner`."""
    base: int = 0
    """The Workload's priority, or what that was before we wrote one; see `found_priority`."""
    forged_base: str = ""
    """A note of the latter that somebody else wrote."""
    class_kind: str = ""
    class_name: str = ""


class WorkloadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a Workload that we need."""

    namespace: str
    name: str
    uid: str
    created: Micros
    queue_time: Micros
    local_queue: str
    owners: list[Owner] = []
    """The owner that controls the Workload; or the pods of a group, behind the StatefulSet or its like that makes them."""
    grouped: bool = False
    """Whether the Workload is a pod group, which no owner controls."""
    own: MetadataWords = NO_WORDS
    template: MetadataWords = NO_WORDS
    active: bool = True
    aside: str = ""
    """The reason for which Kueue keeps the Workload out of its queue, in words; empty where it queues it."""
    priority: PriorityFacts = PriorityFacts()
    demand: dict[str, int] = {}
    """Demand of the whole Workload in base units, without the resource `pods`."""
    replaces: str = ""
    """The Workload of the namespace whose place it takes once it is admitted: the slice of an elastic job (KEP-77) that runs."""
    pods: int = 0
    shapes: list[JobShape] = []
    """The demand of each kind of its pods while it waits; once it holds quota, of cards alone; see `shapes_of`."""
    equivalence: str = ""
    """The digest of the Workload's shape, while it waits or tells of what is counted of it; see `equivalence`."""
    counted: bool = False
    """Whether Kueue has said what it counts of the Workload."""
    counted_otherwise: bool = False
    """Whether that is other resources than its pods ask for: Kueue was told to leave some out, or to count others."""
    counted_in_namespace: bool = False
    """Whether that may hold in its namespace alone: a LimitRange may give pods cards that they do not ask for."""
    unreadable: Fault | None = None
    """The fault for which the demand cannot be read; None where it can."""
    too_many: int = 0
    """The number of resources that it asks for, where those are more than any queue has quota of; none of them is kept.
    A statement of all of them could be larger than NATS takes."""
    run_limit: Micros | None = None
    """The time that is left of its run limit."""
    run: QuotaHold | None = None
    put_back: bool = False
    """Whether Kueue does not queue the Workload again yet (Requeued=False)."""
    requeue_at: Micros | None = None
    eviction: LastEviction | None = None
    end: End | None = None
    open_checks: str = ""
    """The admission checks that do not let the Workload start, in words with what they say."""
    unanswered: tuple[str, ...] = ()
    """Names of those open checks that are `Pending`."""
    retried: int = 0
    """Number of times in a row that a check of somebody else had its quota taken back. Ours has Kueue keep it out of its queue."""
    said: str = ""
    verdict: FlavorVerdict | None = None
    """Kueue's last verdict on the flavors for it, while it waits; None where it was not tried."""


type Known = WorkloadFacts | End
"""A Workload as it is kept: its facts, or its end alone where that is long past."""


def workload_facts(workload: Workload, *, ended_after: Micros = 0) -> Known:
    """The part that is kept of a Workload.

    Args:
        workload: the Workload, as the server has it.
        ended_after: only the end is kept of a Workload that ended before this instant. Kueue keeps Workloads for ever.
    """
    end = _end(workload)
    if end is not None and end.at < ended_after:
        return end
    metadata, spec = workload.metadata, workload.spec
    demand, eviction = _demand(workload), _eviction(workload)
    otherwise, run = counted_otherwise(workload, demand.amounts), _run_now(workload, eviction)
    return WorkloadFacts(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        created=metadata.created,
        queue_time=eviction.at if eviction and eviction.reason in _BACK_OF_THE_LINE else metadata.created,
        local_queue=spec.queue_name,
        owners=_owners(metadata),
        grouped=metadata.controller is None and bool(metadata.owner_references),
        own=words_of(metadata),
        # Of several pod sets the first one wins: it is the leader's.
        template=merged(words_of(pod_set.template.metadata) for pod_set in spec.pod_sets or ()),
        active=workload.active,
        aside=_aside(workload),
        priority=_priority(workload, waits=not (run or end)),
        demand=demand.amounts,
        replaces="" if run or end else (metadata.annotation(REPLACES) or "").rpartition("/")[2],
        pods=sum(pods_kept(workload).values()),
        shapes=_shapes(workload, demand.amounts, holds=run is not None, ended=end is not None),
        equivalence=equivalence(workload) if otherwise or not (run or end) else "",
        counted=is_counted(workload),
        counted_otherwise=otherwise,
        counted_in_namespace=otherwise and counted_in_namespace(workload, demand.amounts),
        unreadable=demand.unreadable,
        too_many=demand.too_many,
        run_limit=_run_limit(workload),
        run=run,
        put_back=_is_false(workload.condition("Requeued")),
        requeue_at=_requeue_at(workload),
        eviction=eviction,
        end=end,
        open_checks="" if end else _open_checks(workload),
        unanswered=() if end else _unanswered(workload),
        retried=0 if end else _retried(workload),
        said=_said(workload),
        verdict=None if run or end else _verdict(workload),
    )


def _priority(workload: Workload, *, waits: bool) -> PriorityFacts:
    metadata, spec = workload.metadata, workload.spec
    base, reference = found_priority(workload), spec.class_ref
    return PriorityFacts(
        value=spec.priority or 0,
        boost=int32(metadata.annotation(PRIORITY_BOOST)) or 0,
        levelled_by=lever_owner(metadata) if waits else "",
        base=(spec.priority if base is msgspec.UNSET else base) or 0,
        forged_base=_shortened(forged_priority(metadata) or ""),
        class_kind=reference.kind if reference else "",
        class_name=reference.name if reference else "",
    )


def owner_facts(owner: PartialObject) -> OwnerFacts:
    """The part that is kept of an owner."""
    return OwnerFacts(uid=owner.metadata.uid, words=words_of(owner.metadata))


def _owners(metadata: ObjectMeta) -> list[Owner]:
    """The controller alone where there is one; otherwise the pods of a group, and first what makes them."""
    controller = metadata.controller
    if controller is not None:
        return [Owner(controller.kind, controller.name, controller.uid)]
    found = (Owner(one.kind, one.name, one.uid) for one in metadata.owner_references or ())
    return sorted(found, key=lambda one: (one.kind == POD, one))[:MOST_OWNERS]


class _Demand(NamedTuple):
    """The demand of a Workload, or why it has none here; see `WorkloadFacts`."""

    amounts: dict[str, int]
    unreadable: Fault | None = None
    too_many: int = 0


def _demand(workload: Workload) -> _Demand:
    try:
        found = workload_demand(workload)
    except FieldError as error:
        value = shown(error.value)
        return _Demand({}, Fault(field=error.field, value=value, remedy=f"write a quantity: {error.reason}"))
    amounts = {resource: amount for resource, amount in found.items() if amount and resource != PODS}
    return _Demand(amounts) if len(amounts) <= MOST_COVERED else _Demand({}, too_many=len(amounts))


def _shapes(workload: Workload, demand: dict[str, int], *, holds: bool, ended: bool) -> list[JobShape]:
    if holds:  # what ended holds its quota still, by its own words: that is what its run used
        return held_shapes_of(workload, demand)
    return [] if ended else shapes_of(workload, demand)


def _run(workload: Workload) -> QuotaHold | None:
    reserved = workload.condition("QuotaReserved")
    if reserved is None or reserved.status != "True":
        return None
    admission = workload.status.admission
    admitted = workload.condition("Admitted")
    return QuotaHold(
        queue=admission.cluster_queue if admission else "",
        since=reserved.since,
        admitted=admitted.since if admitted is not None and admitted.status == "True" else None,
        flavors=_flavors(workload.assignments),
        charged=_charged(workload),
    )


def _run_now(workload: Workload, eviction: LastEviction | None) -> QuotaHold | None:
    """The quota that it holds. Kueue gives that of what it deactivated away at once; without a job nobody clears its reservation."""
    return _run(workload) if workload.active or eviction is None else None


def _flavors(assignments: Iterable[PodSetAssignment]) -> dict[str, str]:
    """The flavor of each resource that has only one."""
    held: dict[str, set[str]] = {}
    for assignment in assignments:
        for resource, flavor in (assignment.flavors or {}).items():
            held.setdefault(resource, set()).add(flavor)
    return {resource: next(iter(flavors)) for resource, flavors in held.items() if len(flavors) == 1}


def _charged(workload: Workload) -> dict[str, dict[str, int]]:
    try:
        return workload_charges(workload)
    except FieldError:
        return {}  # told of its demand already


def _end(workload: Workload) -> End | None:
    finished = workload.condition("Finished")
    if finished is None or finished.status != "True":
        return None
    run = _run(workload)
    return End(
        uid=workload.metadata.uid,
        at=finished.since,
        outcome=_OUTCOMES.get(finished.reason, Outcome.SUCCEEDED),
        started=run.since if run else None,
        admitted=run.admitted if run and run.admitted != run.since else None,
    )


def _eviction(workload: Workload) -> LastEviction | None:
    """The last eviction, also one that is over: a new admission leaves the condition there as False, with another reason."""
    evicted = workload.condition("Evicted")
    if evicted is None or evicted.status != "True":
        return None
    return LastEviction(reason=evicted.reason, at=evicted.since)


def _requeue_at(workload: Workload) -> Micros | None:
    state = workload.status.requeue_state
    return instant(state.requeue_at) if state is not None and state.requeue_at else None


def _aside(workload: Workload) -> str:
    """Kueue's reason not to queue it (`IsAdmissible`, pkg/workload): gates, a job that wants no pods now, pods that are gone."""
    if gates := workload.metadata.annotation(GATES):
        return f"gated by {gates}"
    reserved = workload.condition("QuotaReserved")
    if reserved is not None and _is_false(reserved) and reserved.reason == "OnHold":
        return f"Kueue keeps it on hold: {_shortened(reserved.message)}"
    if workload.holds("WaitingForReplacementPods"):
        return "some of its pods are gone, and Kueue waits for others in their place"
    return ""


def _run_limit(workload: Workload) -> Micros | None:
    """The time that is left of its limit: Kueue counts earlier runs, too."""
    limit = workload.spec.maximum_execution_time_seconds
    if limit is None:
        return None
    past = workload.status.accumulated_past_execution_time_seconds or 0
    return max(0, limit - past) * SECOND


def _said(workload: Workload) -> str:
    """Kueue's last words on the Workload: on its end, on why it waits, on its quota, admission or eviction."""
    kinds = ["QuotaReserved", "Admitted", "Evicted"]
    if workload.holds("Finished"):
        kinds.insert(0, "Finished")
    found = (workload.condition(kind) for kind in kinds)
    return next((_shortened(one.message) for one in found if one is not None and one.message), "")


def _verdict(workload: Workload) -> FlavorVerdict | None:
    reserved = workload.condition("QuotaReserved")
    if reserved is None or not _is_false(reserved) or not is_verdict(reserved.message):
        return None
    partly = any(pods.min_count is not None for pods in workload.spec.pod_sets or ())
    # The condition's own time stays when only its message changes.
    at = max(reserved.since, last_status_write(workload.metadata))
    return FlavorVerdict(at, refused_flavors(reserved.message, partly=partly))


def _open_checks(workload: Workload) -> str:
    """The open checks, in words: those that are not `Ready`."""
    found = [
        f"admission check {check.name} is {check.state}" + (f": {check.message}" if check.message else "")
        for check in workload.status.admission_checks or ()
        if check.state != _AGREED
    ]
    return _shortened("; ".join(found))


def _unanswered(workload: Workload) -> tuple[str, ...]:
    return tuple(one.name for one in workload.status.admission_checks or () if one.state == _OPEN)


def _retried(workload: Workload) -> int:
    checks = workload.status.admission_checks or ()
    return max((one.retry_count or 0 for one in checks if one.name != GANG_FIT), default=0)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SAID else text[: LONGEST_SAID - 1] + "…"


def _is_false(found: Condition | None) -> bool:
    return found is not None and found.status == "False"
