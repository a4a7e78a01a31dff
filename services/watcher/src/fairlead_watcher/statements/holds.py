"""Holds: the reasons for which a queued Workload cannot start, whatever its position. Pure."""

import msgspec

from fairlead_contracts.base.instants import SECOND, Micros, to_datetime
from fairlead_contracts.base.quantities import format_quantity
from fairlead_contracts.messages.state import Fault
from fairlead_kube.kinds.queues import MOST_COVERED, UNCOUNTED
from fairlead_watcher.objects.workload_context import LocalQueueFacts, QueueView, WorkloadContext
from fairlead_watcher.objects.workload_facts import EVICTED_BY_CHECK, EVICTED_FOR_PODS, WorkloadFacts

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
QUEUE_FIELD = "spec.queueName"
"""The field of faults that name a queue which does not exist."""
DEMAND_FIELD = "spec.podSets"
"""The beginning of the fields of faults that ask for more than there ever is."""

LONGEST_RETRY_SECONDS = 300
"""Seconds for which others go before what a check put back, at most. They are 2 at first, longer than Kueue's batch of a second,
and twice as many each time."""

_DEACTIVATED = {
    "DeactivatedDueToMaximumExecutionTimeExceeded": "it ran for longer than its limit",
    "DeactivatedDueToRequeuingLimitExceeded": "it was put back more often than Kueue allows",
    "DeactivatedDueToAdmissionCheck": "an admission check rejected it",
}
"""Sentences by Kueue's reason for an eviction."""


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A reason for which a Workload cannot start."""

    why: str
    until: Micros | None = None
    """The instant at which the hold ends by itself; None where only a change of some object ends it."""
    fault: Fault | None = None
    """The fault, where the Workload's author can mend it."""


def hold_on(facts: WorkloadFacts, around: WorkloadContext, now: Micros) -> Hold | None:
    """The first reason, if there is one: the Workload's own, its queue's, or its demand's."""
    local_queue = around.local_queue(facts.namespace, facts.local_queue) if facts.local_queue else None
    queue = around.queue(local_queue.queue) if local_queue is not None else None
    return (
        _own_hold(facts)
        or _too_many_hold(facts.too_many, counted=facts.counted)
        or _queue_hold(facts, local_queue, queue)
        or (_selector_hold(facts, queue, around) if queue is not None else None)
        or _eviction_hold(facts, now)
        or (_demand_hold(facts.demand, queue) if queue is not None else None)
    )


def _own_hold(facts: WorkloadFacts) -> Hold | None:
    if facts.unreadable is not None:
        return Hold(why="what it asks for cannot be read", fault=facts.unreadable)
    if not facts.active:
        return Hold(why=f"it is deactivated (spec.active){_deactivated_by_kueue(facts)}")
    return Hold(why=facts.aside) if facts.aside else None


def _eviction_hold(facts: WorkloadFacts, now: Micros) -> Hold | None:
    """The hold on what Kueue put back, or never took. It is asked for behind those of the queue: a drained queue puts its jobs back, and keeps them."""
    if facts.requeue_at is not None and facts.requeue_at > now:
        until = to_datetime(facts.requeue_at).isoformat()
        return Hold(why=f"backing off until {until}{_for_what(facts)}", until=facts.requeue_at)
    if facts.put_back and facts.eviction is None and facts.said:
        return Hold(why=f"Kueue does not queue it: {facts.said}")
    if facts.put_back:
        return Hold(why=f"evicted, and not queued again yet{_for_what(facts)}")
    return _retry_hold(facts, now)


def _retry_hold(facts: WorkloadFacts, now: Micros) -> Hold | None:
    """The time in which others go before what a check put back. Kueue queues it at once, and as the first it would take the same room again for ever."""
    if facts.eviction is None or facts.eviction.reason != EVICTED_BY_CHECK or not facts.retried:
        return None
    seconds = min(2 ** min(facts.retried, 16), LONGEST_RETRY_SECONDS)  # the count may be any
    until = facts.eviction.at + seconds * SECOND
    if until <= now:
        return None
    times = "once" if facts.retried == 1 else f"{facts.retried} times in a row"
    told = f"a check put it back {times}: others go first until {to_datetime(until).isoformat()}"
    return Hold(why=f"{told}{_for_what(facts)}", until=until)


def _too_many_hold(resources: int, *, counted: bool) -> Hold | None:
    if not resources:
        return None
    most = f"a ClusterQueue can have quota of {MOST_COVERED}"
    so = "so Kueue never admits it" if counted else f"so Kueue never admits it unless {UNCOUNTED}"
    return Hold(
        why=f"asks for {resources} resources; {most}",
        fault=Fault(
            field=f"{DEMAND_FIELD} resources",
            value=f"{resources} resources",
            remedy=f"ask for fewer: {most}, {so}",
        ),
    )


def _deactivated_by_kueue(facts: WorkloadFacts) -> str:
    """The reason for which Kueue deactivated the Workload, where it did: most people look for somebody who edited it."""
    why = _DEACTIVATED.get(facts.eviction.reason) if facts.eviction is not None else None
    return f": Kueue stopped it, as {why}" if why else ""


def _for_what(facts: WorkloadFacts) -> str:
    """The reason for which it was put back into the queue: the check's words, which Kueue's own do not say, or pods that are not ready."""
    reason = facts.eviction.reason if facts.eviction is not None else ""
    if reason == EVICTED_FOR_PODS:
        return "; its pods were not ready in time"
    return f"; {facts.open_checks}" if reason == EVICTED_BY_CHECK and facts.open_checks else ""


def _queue_hold(
    facts: WorkloadFacts, local_queue: LocalQueueFacts | None, queue: QueueView | None
) -> Hold | None:
    name = facts.local_queue
    if local_queue is None:
        remedy = f"name a LocalQueue of namespace {facts.namespace} in the label {QUEUE_LABEL}, or have one made of this name"
        return Hold(
            why=f"no LocalQueue {name!r} in namespace {facts.namespace}",
            fault=Fault(field=QUEUE_FIELD, value=name, remedy=remedy),
        )
    if queue is None:
        remedy = f"have ClusterQueue {local_queue.queue} made, or name another LocalQueue"
        return Hold(
            why=f"LocalQueue {name} leads to ClusterQueue {local_queue.queue!r}, which does not exist",
            fault=Fault(field=QUEUE_FIELD, value=name, remedy=remedy),
        )
    if local_queue.stopped:
        return Hold(why=f"LocalQueue {name} is on hold (its stopPolicy)")
    if queue.stopped:
        return Hold(why=f"ClusterQueue {queue.name} is on hold (its stopPolicy)")
    if not queue.active:
        because = f": {queue.why_inactive}" if queue.why_inactive else ""
        return Hold(why=f"ClusterQueue {queue.name} is not active{because}")
    return None


def _selector_hold(facts: WorkloadFacts, queue: QueueView, around: WorkloadContext) -> Hold | None:
    if queue.takes(around.namespace(facts.namespace)):
        return None
    why = (
        f"ClusterQueue {queue.name} takes no Workloads of namespace {facts.namespace} (its namespaceSelector)"
    )
    remedy = f"name a LocalQueue of another ClusterQueue, or have namespace {facts.namespace} labelled as its selector asks"
    return Hold(why=why, fault=Fault(field=QUEUE_FIELD, value=facts.local_queue, remedy=remedy))


def _demand_hold(demand: dict[str, int], queue: QueueView) -> Hold | None:
    for resource, amount in sorted(demand.items()):
        most = queue.most.get(resource)
        if most is not None and amount <= most:
            continue
        asked = format_quantity(resource, amount)
        there = "has no quota of it" if most is None else f"can get at most {format_quantity(resource, most)}"
        return Hold(
            why=f"asks for {asked} of {resource}; ClusterQueue {queue.name} {there}",
            fault=Fault(
                field=f"{DEMAND_FIELD} {resource}",
                value=asked,
                remedy=f"ask for less, or name another queue: ClusterQueue {queue.name} {there}",
            ),
        )
    return None
