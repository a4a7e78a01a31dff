"""A Workload translated into a job: its phase, levels, demand, class request and words. Pure."""

from typing import NamedTuple

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import MAX_QUANTITY, base_units
from fairlead_contracts.frontend.marks import BASE_PRIORITY, CARRIES, SUBMISSION, TRACEPARENT
from fairlead_contracts.messages.state import Fault, JobShape, JobState, Phase
from fairlead_kube.kinds.workloads import WORKLOAD_PRIORITY_CLASS
from fairlead_watcher.objects.class_request import AnnotationSource, ClassRequest, class_request_in
from fairlead_watcher.objects.metadata import LONGEST_VALUE, MetadataWords, merged
from fairlead_watcher.objects.refused_flavors import has_no_flavor, refused_by_all_pods
from fairlead_watcher.objects.shape_verdicts import WorkloadShape
from fairlead_watcher.objects.workload_context import QueueView, WorkloadContext
from fairlead_watcher.objects.workload_facts import POD, PODS, PriorityFacts, WorkloadFacts
from fairlead_watcher.statements.enforcement import STRICT
from fairlead_watcher.statements.holds import Hold, hold_on

UNSTAMPED = 0
"""The epoch and revision of statements here: the announcer sets both."""
MOST_FAULTS = 16
"""Unreadable annotations of one job that are told, each with its value."""
_REFUSED = ("resources validation failed: ", "resources didn't satisfy LimitRange constraints: ")
"""The beginnings of what Kueue 0.19 says of a Workload that it looks at no flavor for (`pkg/workload/resources.go`)."""
_POD_GROUP = "PodGroup"


class JobTranslation(NamedTuple):
    """A job, and the instant at which time alone changes it."""

    job: JobState
    due: Micros | None


def translate(cluster: str, facts: WorkloadFacts, around: WorkloadContext, now: Micros) -> JobTranslation:
    """The job that a Workload is."""
    queue, view = _queue(facts, around)
    facts = _with_pods(_beside_replaced(_as_counted(facts, view, around), queue, around), view)
    hold = None if facts.run or facts.end else hold_on(facts, around, now)
    words, class_request = _words(facts, around)
    job = JobState(
        cluster=cluster,
        epoch=UNSTAMPED,
        rev=UNSTAMPED,
        id=facts.name,
        uid=facts.uid,
        scope=facts.namespace,
        queue=queue,
        demand=facts.demand,
        phase=_phase(facts, hold),
        submitted=facts.created,
        queue_time=facts.queue_time,
        level=_level(facts, around),
        levelled_by=facts.priority.levelled_by,
        base=facts.priority.base,
        pods=facts.pods,
        shapes=tuple(facts.shapes),
        equivalence="" if facts.run or facts.end else facts.equivalence,
        requested_class=class_request.requested_class,
        priority_override=class_request.priority_override,
        local_queue=facts.local_queue or None,
        owner=_owner_name(facts),
        submission=words.annotations.get(SUBMISSION),
        flavors=_flavors(facts, view),
        charged=facts.run.charged if facts.run and not facts.end else {},
        started=facts.end.started if facts.end else facts.run.since if facts.run else None,
        unchecked=_unchecked(facts),
        admitted=_admitted(facts) or msgspec.UNSET,
        open_checks=(list(facts.unanswered) if _unchecked(facts) else []) or msgspec.UNSET,
        ended=facts.end.at if facts.end else None,
        outcome=facts.end.outcome if facts.end else None,
        run_limit=facts.run_limit,
        ends_by=_ends_by(facts),
        labels=words.labels,
        annotations=words.annotations,
        said=facts.said,
        flavorless=(hold is None and _is_flavorless(facts, view, around)) or msgspec.UNSET,
        refused_by=(hold is None and _refused_by(facts, view, around)) or msgspec.UNSET,
        limited=(hold is None and _is_limited(facts, view, around)) or msgspec.UNSET,
        held_by=hold.why if hold else "",
        faults=(*_faults(class_request, words, hold), *_priority_faults(facts.priority, around)),
        carries=words.annotations.get(CARRIES),
        traceparent=words.annotations.get(TRACEPARENT),
    )
    return JobTranslation(job, hold.until if hold else None)


def _words(facts: WorkloadFacts, around: WorkloadContext) -> tuple[MetadataWords, ClassRequest]:
    """The labels and annotations that count for the job, and the class that they ask for."""
    owner = _owner_words(facts, around)
    asked, priority = class_request_in(_places(facts, owner)), facts.priority
    if asked.requested_class is None and priority.class_kind == WORKLOAD_PRIORITY_CLASS:
        asked = msgspec.structs.replace(asked, requested_class=priority.class_name or None)
    return merged((facts.own, facts.template, owner)), asked


def _level(facts: WorkloadFacts, around: WorkloadContext) -> int:
    """The level that Kueue orders by. Most Workloads have no boost, and do not depend on whether boosts are read."""
    priority = facts.priority
    return priority.value + (priority.boost if priority.boost and around.reads_boosts() else 0)


def _queue(facts: WorkloadFacts, around: WorkloadContext) -> tuple[str, QueueView | None]:
    """The ClusterQueue's name and what is known of it: where quota is held, the admission's; else the LocalQueue's."""
    name = facts.run.queue if facts.run else ""
    if not name and facts.local_queue and (found := around.local_queue(facts.namespace, facts.local_queue)):
        name = found.queue
    return name, around.queue(name) if name else None


def _beside_replaced(facts: WorkloadFacts, queue: str, around: WorkloadContext) -> WorkloadFacts:
    """The Workload; an elastic job's new slice with what it asks for beside the one of its queue whose place it takes."""
    replaced = around.running(facts.namespace, facts.replaces) if facts.replaces else None
    if replaced is None or replaced.run is None or replaced.run.queue != queue:
        return facts
    demand = {name: max(0, amount - replaced.demand.get(name, 0)) for name, amount in facts.demand.items()}
    pods = max(1, facts.pods - replaced.pods)
    return msgspec.structs.replace(facts, demand=demand, pods=pods, shapes=[])


def _as_counted(facts: WorkloadFacts, queue: QueueView | None, around: WorkloadContext) -> WorkloadFacts:
    """The Workload; where Kueue counts others of its shape otherwise, with what it counts of them.

    Kueue may be told to leave resources out or to count others in their place or beside them, and counts the devices of
    claims. It says so of the first of a shape alone.
    """
    if facts.counted or facts.end or queue is None:
        return facts
    counted = around.counted(WorkloadShape(queue.name, facts.equivalence), facts.namespace)
    if counted is None:
        return facts
    shapes = facts.shapes or [_alike(facts)]  # its pods ask nodes for all of it
    return msgspec.structs.replace(facts, demand=dict(counted), shapes=shapes)


def _alike(facts: WorkloadFacts) -> JobShape:
    """The shape of pods that are all alike."""
    pods = max(1, facts.pods)
    return JobShape(
        name=PODS, pods=pods, demand={name: amount // pods for name, amount in facts.demand.items()}
    )


def _with_pods(facts: WorkloadFacts, queue: QueueView | None) -> WorkloadFacts:
    """The Workload; where its queue has quota for pods, with pods in its demand, as in Kueue."""
    if queue is None or PODS not in queue.most or not facts.pods:
        return facts
    pods = {PODS: min(facts.pods * base_units(PODS), MAX_QUANTITY)}
    return msgspec.structs.replace(facts, demand=facts.demand | pods)


def _flavors(facts: WorkloadFacts, queue: QueueView | None) -> dict[str, str]:
    """The flavors of which it holds quota, where its pool has several for a resource; elsewhere they tell nothing."""
    if queue is None or not queue.flavored or facts.run is None or facts.end is not None:
        return {}
    return facts.run.flavors


def _is_flavorless(facts: WorkloadFacts, queue: QueueView | None, around: WorkloadContext) -> bool:
    """Whether none of its queue's flavors suits it, and the queue goes on behind it: a StrictFIFO one does not."""
    if facts.run or facts.end or queue is None or queue.strategy == STRICT:
        return False
    refused = around.refused(WorkloadShape(queue.name, facts.equivalence))
    return has_no_flavor(refused, facts.demand, queue.givers)


def _refused_by(facts: WorkloadFacts, queue: QueueView | None, around: WorkloadContext) -> tuple[str, ...]:
    """The flavors that Kueue says do not suit it; of several pod sets those that suit none of them."""
    if facts.run or facts.end or queue is None:
        return ()
    refused = around.refused_last(WorkloadShape(queue.name, facts.equivalence))
    return tuple(sorted(refused_by_all_pods(refused, max(1, len(facts.shapes)))))


def _is_limited(facts: WorkloadFacts, queue: QueueView | None, around: WorkloadContext) -> bool:
    """Whether Kueue finds more in its way than quota and flavors, and the queue goes on behind it.

    It is tried in its turn all the same: Kueue looks at it anew neither when a LimitRange changes nor, behind others of its
    shape, when a node comes.
    """
    if facts.run or facts.end or queue is None or queue.strategy == STRICT:
        return False
    refused = around.refused(WorkloadShape(queue.name, facts.equivalence))
    return facts.said.startswith(_REFUSED) or any(one.no_node for one in refused)


def _phase(facts: WorkloadFacts, hold: Hold | None) -> Phase:
    if facts.end is not None:
        return Phase.ENDED
    if facts.run is not None:
        return Phase.RUNNING
    return Phase.WAITING if hold is None else Phase.HELD


def _unchecked(facts: WorkloadFacts) -> str:
    """The reason why it has quota and does not start: Kueue starts nothing before it calls the Workload admitted."""
    if facts.end is not None or facts.run is None or facts.run.admitted is not None:
        return ""
    return facts.open_checks or "Kueue has not admitted it yet"


def _admitted(facts: WorkloadFacts) -> Micros | None:
    """The instant at which its checks let it start; None where that is when it got its quota."""
    if facts.end is not None:
        return facts.end.admitted
    return facts.run.admitted if facts.run and facts.run.admitted != facts.run.since else None


def _ends_by(facts: WorkloadFacts) -> Micros | None:
    """The end of its run limit, which Kueue counts from the admission, not from the reservation before its checks."""
    if facts.end or facts.run is None or facts.run.admitted is None or facts.run_limit is None:
        return None
    return facts.run.admitted + facts.run_limit


def _owner_name(facts: WorkloadFacts) -> str | None:
    """The owner's name. People know a pod group by the group's name, which is the Workload's."""
    if not facts.owners:
        return None
    first = facts.owners[0]
    if first.kind == POD and facts.grouped:
        return f"{_POD_GROUP}/{facts.name}"
    return f"{first.kind}/{first.name}"


def _owner_words(facts: WorkloadFacts, around: WorkloadContext) -> MetadataWords:
    """The words of its owners. Another object of the same kind and name may have come in an owner's place."""
    words: list[MetadataWords] = []
    for owner in facts.owners:
        found = around.owner(owner.kind, facts.namespace, owner.name)
        words.append(found.words if found is not None and found.uid == owner.uid else MetadataWords())
    return words[0] if len(words) == 1 else merged(words)


def _places(facts: WorkloadFacts, owner: MetadataWords) -> tuple[AnnotationSource, ...]:
    kind = facts.owners[0].kind if facts.owners else ""
    return (
        AnnotationSource("metadata.annotations", facts.own.annotations),
        AnnotationSource("spec.podSets[*].template.metadata.annotations", facts.template.annotations),
        AnnotationSource(f"{kind} metadata.annotations", owner.annotations),
    )


def _faults(class_request: ClassRequest, words: MetadataWords, hold: Hold | None) -> list[Fault]:
    """The faults; of many annotations that cannot be read, the first ones."""
    faults = class_request.faults[:MOST_FAULTS]
    if more := len(class_request.faults) - len(faults):
        remedy = "mend those that are told; the others are told then"
        faults.append(Fault(field="metadata.annotations", value=f"{more} more cannot be read", remedy=remedy))
    if hold is not None and hold.fault is not None:
        faults.append(hold.fault)
    if words.left_out:
        remedy = f"keep labels and annotations few, and values below {LONGEST_VALUE} characters"
        value = f"{words.left_out} entries were left out"
        faults.append(Fault(field="metadata", value=value, remedy=remedy))
    return faults


def _priority_faults(priority: PriorityFacts, around: WorkloadContext) -> list[Fault]:
    """The faults of a priority that is not its class's, or is noted by somebody else.

    A class whose value is changed leaves the Workloads that wait as they are (Kueue, "Workload Priority Class"): who set
    the number is not known.
    """
    faults: list[Fault] = []
    value = around.class_value(priority.class_kind, priority.class_name) if priority.class_name else None
    lost = bool(priority.forged_base) and priority.base == 0
    if value is not None and priority.base != value and not lost:
        remedy = (
            f"{priority.class_kind} {priority.class_name} says {value}, and Fairlead orders by the class: set it to that, "
            "or leave it, where the class was changed since"
        )
        faults.append(Fault(field="spec.priority", value=str(priority.base), remedy=remedy))
    if priority.forged_base:
        remedy = "this value moves no job: only Fairlead writes this annotation. Leave it out of new jobs"
        faults.append(
            Fault(field=f"metadata.annotations[{BASE_PRIORITY}]", value=priority.forged_base, remedy=remedy)
        )
    return faults
