"""Objections in Kueue's words: to a level that somebody else wrote, and for which reason a fault of a Workload is one."""

from fairlead_admitter.report.objections import Objection, Reason
from fairlead_contracts.messages.state import Fault
from fairlead_kube.kinds.workloads import PRIORITY_BOOST

_QUEUE_FIELD = "spec.queueName"
_DEMAND_FIELD = "spec.podSets "
"""Beginning of the fields that the watcher names in faults of a demand: a queue that isn't there, and more than there
ever is of a resource."""


def objection_to_level(lift: int) -> Objection:
    """The objection to a level that somebody else gave to a job."""
    return Objection(
        reason=Reason.FOREIGN_BOOST,
        field=f"metadata.annotations[{PRIORITY_BOOST}]",
        value=str(lift),
        remedy="this value moves no job: Fairlead orders the queue by this annotation, and replaces or removes a value "
        "that would change the order. Ask for a class to go first",
    )


def reason_of(fault: Fault) -> Reason:
    """The reason of the objection that a fault is."""
    if fault.field == _QUEUE_FIELD:
        return Reason.NO_SUCH_QUEUE
    if fault.field.startswith(_DEMAND_FIELD):
        return Reason.LARGER_THAN_QUOTA
    return Reason.BAD_ANNOTATION if "annotations" in fault.field else Reason.UNREADABLE
