"""The sense of a snapshot's queues and class values. Used by `validate`, which knows where in the file they stand."""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.frontend.shipped import shipped_capabilities
from fairlead_contracts.messages.state import HIGHEST_LEVEL
from fairlead_contracts.snapshot.gangs import Fail
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotClassValue,
    SnapshotQueue,
    WrittenClassValue,
    WrittenQueue,
)

type QueueKey = tuple[str, str, str]
"""(cluster, frontend, name) of a queue."""


def check_queue(queue: WrittenQueue, pool: str, fail: Fail) -> SnapshotQueue:
    """The queue, in the pool that was found for it."""
    for name in ("default_level", "lowest_level", "highest_level"):
        check_level(name, getattr(queue, name), fail)
    if queue.lowest_level > queue.highest_level:
        fail("highest_level", queue.highest_level, f"must not be below lowest_level, {queue.lowest_level}")
    return SnapshotQueue(
        name=queue.name,
        pool=pool,
        frontend=queue.frontend or "",
        cluster=queue.cluster or "",
        default_level=queue.default_level,
        lowest_level=queue.lowest_level,
        highest_level=queue.highest_level,
        bands_by_class=queue.bands_by_class,
        preemption=queue.preemption,
        capabilities=_capabilities(queue),
    )


def _capabilities(queue: WrittenQueue) -> Capabilities | None:
    """The capabilities that the queue states; None where its frontend's name says them all."""
    alone = {
        name: value
        for name in ("ties", "orders_across_queues")
        if (value := getattr(queue, name)) is not None
    }
    if queue.capabilities is None and not alone:
        return None
    known = queue.capabilities or shipped_capabilities(queue.frontend or "")
    return Capabilities(**msgspec.structs.asdict(known) | alone)


def check_class_value(found: WrittenClassValue, classes: Collection[str], fail: Fail) -> SnapshotClassValue:
    """Checks a cluster's value of one class.

    Args:
        found: the value as written.
        classes: the policy's classes; empty where they are not known.
        fail: tells a problem.
    """
    if classes and found.job_class not in classes:
        fail("class", found.job_class, f"must be one of {', '.join(classes)}")
    check_level("value", found.value, fail)
    return SnapshotClassValue(job_class=found.job_class, value=found.value, cluster=found.cluster or "")


def check_level(name: str, level: int, fail: Fail) -> None:
    """Whether a frontend can have the level."""
    if abs(level) > HIGHEST_LEVEL:
        fail(name, level, f"must lie between -{HIGHEST_LEVEL} and {HIGHEST_LEVEL}")


def misplaced(snapshot: Snapshot) -> Iterator[FieldError]:
    """Finds what belongs to no queue of the snapshot: jobs of pools that have queues there, and values of classes.

    A job would be planned by levels that it cannot get, and a value would change nothing.
    """
    clusters = {queue.cluster for queue in snapshot.queues}
    for at, value in enumerate(snapshot.class_values):
        if value.cluster not in clusters:
            reason = "is not the cluster of a queue in `queues`"
            yield FieldError(f"class_values[{at}].cluster", value.cluster, reason)
    keys: dict[str, set[QueueKey]] = {}
    for queue in snapshot.queues:
        keys.setdefault(queue.pool, set()).add((queue.cluster, queue.frontend, queue.name))
    for at, job in enumerate(snapshot.jobs if keys else ()):
        known = keys.get(job.pool)
        key = job.cluster, job.frontend, job.queue
        if known is not None and key not in known:
            yield FieldError(f"jobs[{at}].queue", job.queue, _why_astray(key, job.pool, known))


def _why_astray(key: QueueKey, pool: str, known: Collection[QueueKey]) -> str:
    alike = {(cluster, frontend) for cluster, frontend, name in known if name == key[2]}
    if alike:
        places = " or ".join(sorted(_place(*one) for one in alike))
        return f"stands {places} in `queues`, and the job {_place(*key[:2])}"
    return f"is not a queue of pool {pool!r} in `queues`"


def _place(cluster: str, frontend: str) -> str:
    return f"on cluster {cluster!r} with frontend {frontend!r}"


def queue_to_plain(queue: SnapshotQueue, alone: str | None) -> Mapping[str, object]:
    """The queue as it is written, without what goes without saying.

    Args:
        queue: the queue to write.
        alone: the only pool, where there is one.
    """
    plain: dict[str, object] = {"name": queue.name}
    if queue.pool != alone:
        plain["pool"] = queue.pool
    for name in ("frontend", "cluster"):
        if value := getattr(queue, name):
            plain[name] = value
    levels = {name: getattr(queue, name) for name in ("default_level", "lowest_level", "highest_level")}
    stops = {"preemption": queue.preemption} if queue.preemption else {}
    states = {} if queue.capabilities is None else {"capabilities": queue.capabilities}
    return plain | levels | {"bands_by_class": queue.bands_by_class} | stops | states


def class_value_to_plain(found: SnapshotClassValue) -> Mapping[str, object]:
    """The value as it is written."""
    where = {"cluster": found.cluster} if found.cluster else {}
    return {"class": found.job_class, "value": found.value} | where
