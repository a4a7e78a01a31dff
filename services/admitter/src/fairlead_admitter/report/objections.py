"""Objections to a job as it is, told so that its author can put it right. Pure: facts in, objections out.

An objection stops no job: each is ordered by what holds. But nobody looks in a policy for the reason of a low position.
"""

import enum
from collections.abc import Callable, Iterator

import msgspec

from fairlead_admitter.observe.facts import ClusterFacts
from fairlead_contracts.base.errors import shown
from fairlead_contracts.base.quantities import format_quantity, in_digits
from fairlead_contracts.messages.state import Fault, JobState, Phase
from fairlead_contracts.policyfile.validate import LARGEST_CLASS_WEIGHT, LEAST_WEIGHT
from fairlead_policy.rules.rulebook import Rulebook


class Reason(enum.StrEnum):
    """The reason of an objection in one word: the bounded label of the counter, and the reason of a Kubernetes Event."""

    CLASS_NOT_GRANTED = "ClassNotGranted"
    OVERRIDE_NOT_GRANTED = "OverrideNotGranted"
    FOREIGN_BOOST = "ForeignBoost"
    FOREIGN_PRIORITY = "ForeignPriority"
    BAD_ANNOTATION = "BadAnnotation"
    UNREADABLE = "Unreadable"
    NO_SUCH_QUEUE = "NoSuchQueue"
    LARGER_THAN_QUOTA = "LargerThanQuota"


OF_STEERED = frozenset({Reason.FOREIGN_BOOST, Reason.FOREIGN_PRIORITY})
"""Reasons that hold only where the order is written: elsewhere the frontend goes by the level that somebody gave a job."""


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """An objection to a job: in which field, what was found there, and what to do."""

    reason: Reason
    field: str
    value: str
    remedy: str

    @property
    def note(self) -> str:
        """The objection in a sentence."""
        return f"{self.field}: found {shown(self.value)}; {self.remedy}"


def objections_to(
    job: JobState, facts: ClusterFacts, rulebook: Rulebook, reason_of: Callable[[Fault], Reason]
) -> list[Objection]:
    """The objections to a queued or a running job, by what the cluster and the policy say now.

    A running job has found its queue and its room: only what it asked for in vain is told. The frontend says for which
    reason a fault is an objection.
    """
    found = [
        Objection(reason=reason_of(fault), field=fault.field, value=fault.value, remedy=fault.remedy)
        for fault in job.faults
    ]
    told = {objection.reason for objection in found}
    found += _to_its_class(job, facts, rulebook)
    found += _to_its_override(job, rulebook)
    if job.phase is Phase.RUNNING:
        return found
    if Reason.NO_SUCH_QUEUE not in told:
        found += _to_its_queue(job, facts)
    if Reason.LARGER_THAN_QUOTA not in told:
        found += _to_its_size(job, facts)
    return found


def _to_its_class(job: JobState, facts: ClusterFacts, rulebook: Rulebook) -> Iterator[Objection]:
    tenant = rulebook.tenant_of(job)
    granted = rulebook.class_of(job, tenant)
    asked = granted.refused
    if asked is None:
        return
    classes = rulebook.document.classes
    if asked in classes:
        remedy = (
            f"it is not granted to tenant {tenant!r}, so the job stands in class {granted.job_class!r}. An operator grants"
            f" it to the tenant in the policy, or to this job by: fairlead approve {job.full_name} --class {asked}"
        )
    elif asked in facts.classes:
        return  # the cluster's own class, of which the policy says nothing: nobody asked us for anything
    else:
        remedy = f"the policy has no such class; classes are {', '.join(classes)}"
    yield Objection(reason=Reason.CLASS_NOT_GRANTED, field="class", value=asked, remedy=remedy)


def _to_its_override(job: JobState, rulebook: Rulebook) -> Iterator[Objection]:
    stated, tenant = job.priority_override, rulebook.tenant_of(job)
    if stated is None or rulebook.override_of(job, tenant) is not None:
        return
    if rulebook.document.class_mode == "strict":
        remedy = "it does not count: classes are strict here, and no number takes a class's place"
    elif not rulebook.grants_override(job, tenant):
        remedy = (
            f"it is not granted to tenant {tenant!r}, so the job counts by its class. An operator grants it in the policy: "
            f"grants: [{{tenant: {tenant}, priority_override: true}}]"
        )
    else:
        remedy = f"it does not count: weights of classes lie between {in_digits(LEAST_WEIGHT)} and {in_digits(LARGEST_CLASS_WEIGHT)}"
    yield Objection(
        reason=Reason.OVERRIDE_NOT_GRANTED, field="priority-override", value=str(stated), remedy=remedy
    )


def _to_its_queue(job: JobState, facts: ClusterFacts) -> Iterator[Objection]:
    if job.queue in facts.queues:
        return
    entries = ", ".join(sorted(facts.entries(job.scope))) or "none"
    yield Objection(
        reason=Reason.NO_SUCH_QUEUE,
        field="queue",
        value=job.local_queue or job.queue,
        remedy=f"no such queue is known; {job.scope} has: {entries}",
    )


def _to_its_size(job: JobState, facts: ClusterFacts) -> Iterator[Objection]:
    queue = facts.queues.get(job.queue)
    pool = facts.pools.get(queue.pool) if queue is not None else None
    if pool is None:
        return
    for resource, amount in sorted(job.demand.items()):
        most = pool.capacity.get(resource, 0)
        if amount > most:
            yield Objection(
                reason=Reason.LARGER_THAN_QUOTA,
                field=f"demand.{resource}",
                value=format_quantity(resource, amount),
                remedy=f"it can never start: all quotas of pool {pool.name} together are {format_quantity(resource, most)}",
            )
