"""Objections in Kueue's words, and as Kubernetes Events on a Workload and on what it was made for.

`kubectl describe` shows them.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from fairlead_admitter.frontends.kueue.calls import KueueCalls, telling
from fairlead_admitter.report.objections import Objection, Reason
from fairlead_contracts.messages.leave import LeverName
from fairlead_contracts.messages.state import Fault, JobState
from fairlead_kube.client import KubeClient
from fairlead_kube.errors import AlreadyExistsError
from fairlead_kube.kinds.core import ObjectReference
from fairlead_kube.kinds.resources import EVENTS
from fairlead_kube.kinds.workloads import PRIORITY_BOOST, Workload

_QUEUE_FIELD = "spec.queueName"
_PRIORITY_FIELD = "spec.priority"
_DEMAND_FIELD = "spec.podSets "
"""Fields that the watcher names in faults: of a queue that isn't there, of a priority that no class gave, and the
beginning of those of a demand for more than there ever is of a resource."""
_COMPONENT = "fairlead-admitter"
_LONGEST_MESSAGE = 1024
_DIGEST_BYTES = 8
_LONGEST_STEM = 200


@dataclass(eq=False)
class KueueObjections:
    """Writes each objection as one Event an object; see EventSink."""

    client: KubeClient
    """The cluster's client, with writes of its own to spend."""
    calls: KueueCalls
    lever: Callable[[], LeverName | None]
    """The lever that levels are written by."""

    def objection_to_level(self, level: int, lift: int) -> Objection:
        """The objection to a level that somebody else gave to a job; see EventSink."""
        return objection_to_boost(level, lift, lever=self.lever())

    @staticmethod
    def reason_of(fault: Fault) -> Reason:
        """The reason of the objection that a fault is; see EventSink."""
        if fault.field == _QUEUE_FIELD:
            return Reason.NO_SUCH_QUEUE
        if fault.field == _PRIORITY_FIELD:
            return Reason.FOREIGN_PRIORITY
        if fault.field.startswith(_DEMAND_FIELD):
            return Reason.LARGER_THAN_QUOTA
        return Reason.BAD_ANNOTATION if "annotations" in fault.field else Reason.UNREADABLE

    async def object_to(self, job: JobState, objection: Objection) -> None:
        """Say the objection of the Workload and of its owner; see EventSink."""
        workload = await self.calls.look(job.scope, job.id, job.uid)
        if workload is None:
            return
        api_version = (await self.calls.workloads()).api_version
        for involved in _involved(workload, api_version):
            await self._write(involved, objection)

    async def _write(self, involved: ObjectReference, objection: Objection) -> None:
        """Writes the Event, unless there is one of its name: another replica's for this objection, or ours of an hour ago, will do."""
        with telling(f"event on {involved.kind} {involved.namespace}/{involved.name}"):
            try:
                await self.client.create(EVENTS, self._event(involved, objection), involved.namespace)
            except AlreadyExistsError:
                return

    def _event(self, involved: ObjectReference, objection: Objection) -> dict[str, object]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "metadata": {"name": event_name(involved, objection), "namespace": involved.namespace},
            "involvedObject": involved,
            "reason": objection.reason.value,
            "message": objection.note[:_LONGEST_MESSAGE],
            "type": "Warning",
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": "",
        }


def objection_to_boost(level: int, lift: int, *, lever: LeverName | None) -> Objection:
    """The objection to a boost that somebody else wrote: a priority of somebody else's is the job's own.

    Beside a priority of ours the boost is known with that alone.
    """
    field, value = f"metadata.annotations[{PRIORITY_BOOST}]", lift
    if lever == "priority":
        field, value = f"spec.priority with {field}", level
    return Objection(
        reason=Reason.FOREIGN_BOOST,
        field=field,
        value=str(value),
        remedy="this value moves no job: Fairlead orders the queue by it, and replaces or removes a value that would "
        "change the order. Ask for a class to go first",
    )


def event_name(involved: ObjectReference, objection: Objection) -> str:
    """The Event's name: the same for the same object and cause, whoever says it, in whatever words."""
    cause = (involved.uid, objection.reason.value, objection.field, objection.value)
    digest = hashlib.blake2b("\0".join(cause).encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{involved.name[:_LONGEST_STEM]}.{digest}"


def _involved(workload: Workload, api_version: str) -> list[ObjectReference]:
    """The objects that the Event is about: the Workload and what it was made for. A group of plain pods has many owners, and no maker."""
    metadata = workload.metadata
    found = [
        ObjectReference(
            api_version=api_version,
            kind="Workload",
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
        )
    ]
    owner = metadata.maker
    if owner is not None:
        found.append(
            ObjectReference(
                api_version=owner.api_version,
                kind=owner.kind,
                name=owner.name,
                namespace=metadata.namespace,
                uid=owner.uid,
            )
        )
    return found
