"""Snapshots written: JSON that a person can read and edit."""

import msgspec

from fairlead_contracts.base.instants import Micros, to_datetime, to_seconds
from fairlead_contracts.base.quantities import format_quantity
from fairlead_contracts.snapshot.gangs import ONLY_SHAPE
from fairlead_contracts.snapshot.tenants import pools_of_tenants
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotClassValue,
    SnapshotJob,
    SnapshotNode,
    SnapshotPool,
    SnapshotQueue,
    SnapshotRunning,
    SnapshotShape,
    SnapshotTenant,
)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The snapshot as JSON that a person can read and edit; reading it gives the same snapshot."""
    capacity = {pool.name: pool for pool in snapshot.pools}
    alone = snapshot.pools[0].name if len(capacity) == 1 else None
    stated = pools_of_tenants(snapshot.policy, snapshot.tenants, alone)
    plain: dict[str, object] = {
        "now": to_datetime(snapshot.now),
        "policy": snapshot.policy,
        "pools": [_pool(pool) for pool in snapshot.pools],
        "tenants": [_without_nothing(tenant) for tenant in snapshot.tenants],
        "nodes": [_node(node) for node in snapshot.nodes],
        "queues": [_queue(queue, alone) for queue in snapshot.queues],
        "class_values": [_class_value(value) for value in snapshot.class_values],
        "running": [_running(job, stated.get(job.tenant, alone)) for job in snapshot.running],
        "jobs": [_job(job, stated.get(job.tenant, alone)) for job in snapshot.jobs],
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=1)


def _amounts(amounts: dict[str, int]) -> dict[str, str]:
    return {resource: format_quantity(resource, amount) for resource, amount in sorted(amounts.items())}


def _pool(pool: SnapshotPool) -> dict[str, object]:
    plain: dict[str, object] = {"name": pool.name, "capacity": _amounts(pool.capacity)}
    plain |= {} if pool.quota is None else {"quota": _amounts(pool.quota)}
    plain |= {} if pool.card_shares else {"card_shares": False}
    return plain | _optional("saturated", pool.saturated, None)


def _without_nothing(tenant: SnapshotTenant) -> dict[str, object]:
    plain = {name: value for name, value in msgspec.structs.asdict(tenant).items() if value is not None}
    plain.pop("past_use")
    return plain | ({"past_use": _amounts(tenant.past_use)} if tenant.past_use else {})


def _node(node: SnapshotNode) -> dict[str, object]:
    plain: dict[str, object] = {"name": node.name}
    plain |= _optional("pool", node.pool, None) | _optional("cluster", node.cluster, "")
    plain |= {"allocatable": _amounts(node.allocatable), "labels": node.labels}
    if node.used is not None:
        plain["used"] = _amounts(node.used)
    for name in ("taints", "cards", "annotations", "pods", "unschedulable"):
        if value := getattr(node, name):
            plain[name] = value
    return plain


def _queue(queue: SnapshotQueue, expected: str | None) -> dict[str, object]:
    plain: dict[str, object] = {"name": queue.name} | _optional("pool", queue.pool, expected)
    for name in ("frontend", "cluster"):
        plain |= _optional(name, getattr(queue, name), "")
    for name in ("default_level", "lowest_level", "highest_level", "bands_by_class"):
        plain[name] = getattr(queue, name)
    if queue.preemption:
        plain["preemption"] = queue.preemption
    return plain | _optional("capabilities", queue.capabilities, None)


def _class_value(value: SnapshotClassValue) -> dict[str, object]:
    plain: dict[str, object] = {"class": value.job_class, "value": value.value}
    return plain | _optional("cluster", value.cluster, "")


def _running(job: SnapshotRunning, expected: str | None) -> dict[str, object]:
    plain: dict[str, object] = {"id": job.id, "tenant": job.tenant, "class": job.job_class}
    plain |= _optional("pool", job.pool, expected)
    plain |= {"demand": _amounts(job.demand)}
    plain |= _time("started", job.started) | _time("ends", job.ends)
    plain |= _optional("frontend", job.frontend, "")
    return plain | _gang(job)


def _job(job: SnapshotJob, expected: str | None) -> dict[str, object]:
    plain: dict[str, object] = {"id": job.id} | _optional("uid", job.uid, job.id)
    plain |= {"tenant": job.tenant, "class": job.job_class} | _optional("pool", job.pool, expected)
    plain |= {"submitted": to_datetime(job.submitted), "demand": _amounts(job.demand)} | _gang(job)
    for name in ("cluster", "frontend", "queue"):
        plain |= _optional(name, getattr(job, name), "")
    plain |= _time("queue_time", job.queue_time)
    plain |= _optional("priority_override", job.priority_override, None)
    plain |= _optional("level", job.level, SnapshotJob.DEFAULT_LEVEL)
    for name in ("flavorless", "limited"):
        plain |= _optional(name, getattr(job, name), False)  # noqa: FBT003 # its default
    if job.runtime_limit is not None:
        plain["runtime_limit"] = to_seconds(job.runtime_limit)
    return plain


def _optional(name: str, value: object, default: object) -> dict[str, object]:
    return {} if value == default else {name: value}


def _time(name: str, instant: Micros | None) -> dict[str, object]:
    return {} if instant is None else {name: to_datetime(instant)}


def _gang(job: SnapshotRunning | SnapshotJob) -> dict[str, object]:
    gang = job.gang
    if gang is None:
        return {} if job.pods == 1 else {"gang": {"pods": job.pods}}
    shapes = [_shape(shape) for shape in gang.shapes]
    only = gang.shapes[0]
    single = len(shapes) == 1 and only.name == ONLY_SHAPE and only.demand != {} and not only.containers
    plain: dict[str, object] = dict(shapes[0]) if single else {"shapes": shapes}
    if single:
        plain.pop("name")
    plain |= _optional("zone_key", gang.zone_key, None)
    return {"gang": plain} | _optional("annotations", gang.annotations, {})


def _shape(shape: SnapshotShape) -> dict[str, object]:
    plain: dict[str, object] = {"name": shape.name, "pods": shape.pods}
    if shape.demand is not None:
        plain["per_pod"] = _amounts(shape.demand)
    if shape.containers:
        plain["containers"] = [_amounts(one) for one in shape.containers]
    return plain | _optional("selector", shape.selector, {}) | _optional("tolerations", shape.tolerations, [])
