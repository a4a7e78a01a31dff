"""Snapshots: all that an order is made from, as one JSON or YAML document.

    {"now": 1760000000,
     "policy": {the policy document},
     "pools": [{"name": "gpu", "capacity": {"cpu": "512", "memory": "4Ti", "nvidia.com/gpu": 64}}],
     "tenants": [{"name": "org-a", "weight": 2, "pool": "gpu"},
                 {"name": "team-1", "parent": "org-a", "weight": 1, "past_use": {"nvidia.com/gpu": 12.5}}],
     "nodes": [{"name": "n1", "allocatable": {...}, "labels": {...}, "used": {...},
                "cards": [{"uuid": "GPU-1", "memory": 24576, "used": {"count": 1, "memory": 8000, "cores": 30}}]}],
     "queues": [{"name": "cq-1", "pool": "gpu", "frontend": "kueue", "default_level": 0, "lowest_level": 1,
                 "highest_level": 1000000, "bands_by_class": true, "preemption": {"withinClusterQueue": "Never"}}],
     "class_values": [{"class": "urgent", "value": 1000000}],
     "running": [{"id": "r1", "tenant": "team-1", "class": "normal", "demand": {...}, "started": ..., "ends": ...}],
     "jobs": [{"id": "j1", "tenant": "team-1", "class": "normal", "submitted": ..., "demand": {...},
               "gang": {"pods": 4, "per_pod": {...}}, "frontend": "kueue", "queue": "cq-1", "queue_time": ...,
               "level": 3, "runtime_limit": 3600}]}

Quantities are integers, decimals or Kubernetes strings; times are Unix seconds or RFC 3339. `demand` is the whole
job's. A tenant's weight, pool and parent count before those that the policy gives it. Beside the format above, a job may
say its `pool` (for a tenant with jobs in several), its `cluster` (where one frontend runs on several), its `uid` (where
that is not its id) and a granted `priority_override` (a number in place of its class's weight). Of its pods it may say
`annotations` (HAMi's) and in `gang` a `selector`, `tolerations`, a `zone_key`, or several kinds of pods as `shapes`. A node may
say `taints`, `unschedulable`, its `pool` and `cluster`, and in place of `cards` HAMi's `annotations` and those of its `pods`.
With H-DRF a pool may say which resources are `saturated`, where its clusters or flavors make that another answer than its sums do. A queue and a class value may say their `cluster`; a pool that has a queue in `queues` has all of its queues there. What this release knows of but does not act on is refused where it would change the order.
"""

import msgspec

from fairlead_contracts.document import names_of
from fairlead_contracts.errors import DocumentError, FieldError
from fairlead_contracts.given_twice import gives_twice, parse_json
from fairlead_contracts.instants import Micros, to_datetime, to_seconds
from fairlead_contracts.quantities import format_quantity
from fairlead_contracts.reading import StructReader
from fairlead_contracts.snapshot_checks import SnapshotChecks
from fairlead_contracts.snapshot_gangs import ONLY_SHAPE
from fairlead_contracts.snapshot_parts import (
    CardUse,
    OpenedSnapshot,
    Snapshot,
    SnapshotCard,
    SnapshotClassValue,
    SnapshotGang,
    SnapshotJob,
    SnapshotNode,
    SnapshotPod,
    SnapshotPool,
    SnapshotQueue,
    SnapshotRunning,
    SnapshotShape,
    SnapshotTenant,
    SnapshotToleration,
    WrittenSnapshot,
)
from fairlead_contracts.snapshot_queues import class_value_to_plain, misplaced, queue_to_plain
from fairlead_contracts.snapshot_quick import GivenTwiceError, UnreadJobs
from fairlead_contracts.snapshot_tenants import pools_of_tenants

__all__ = [
    "CardUse",
    "Snapshot",
    "SnapshotCard",
    "SnapshotClassValue",
    "SnapshotGang",
    "SnapshotJob",
    "SnapshotNode",
    "SnapshotPod",
    "SnapshotPool",
    "SnapshotQueue",
    "SnapshotRunning",
    "SnapshotShape",
    "SnapshotTenant",
    "SnapshotToleration",
    "decode_snapshot",
    "encode_snapshot",
    "read_snapshot",
]

_opened = msgspec.json.Decoder(OpenedSnapshot)
_around = msgspec.json.Decoder(WrittenSnapshot)


def decode_snapshot(payload: bytes) -> Snapshot:
    """The snapshot in a JSON document. A million jobs take a few seconds.

    Raises:
        DocumentError: with every problem found; a key that an object gives twice is one.
    """
    try:
        return _at_once(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError, GivenTwiceError):
        # Told again key by key. Python's own parser reads numbers that fit nowhere, so that their place can be named.
        return _with_all_problems(payload)


def _at_once(payload: bytes) -> Snapshot:
    """The snapshot, where its text is in order.

    Raises:
        MsgspecError, ValueError, RecursionError: it is not JSON, or has keys or kinds of values that no snapshot has.
        GivenTwiceError: some object gives a key twice.
        DocumentError: it does not validate.
    """
    opened = _opened.decode(payload)
    around = opened.around()
    if gives_twice(around):
        raise GivenTwiceError
    jobs = None if opened.jobs is None else UnreadJobs(opened.jobs)
    checks = SnapshotChecks(_around.decode(around), {}, {}, jobs)
    snapshot = checks.snapshot()
    colons = payload.count(b":") - around.count(b":")
    # Of a key of the snapshot itself that is given twice, only the last value is in there; of null, nothing.
    if colons if jobs is None else jobs.give_twice(colons - 1):
        raise GivenTwiceError
    return _right(snapshot, checks.problems)


def _with_all_problems(payload: bytes) -> Snapshot:
    try:
        found, twice = parse_json(payload)
    except (ValueError, RecursionError) as error:
        raise DocumentError([FieldError("snapshot", "", f"is not valid JSON: {error}")]) from error
    try:
        snapshot = read_snapshot(found)
    except DocumentError as error:
        raise DocumentError(twice + error.problems) from error
    return _right(snapshot, twice)


def read_snapshot(found: object) -> Snapshot:
    """The snapshot in plain values, as a YAML or JSON parser gives them.

    Raises:
        DocumentError: with every problem found.
    """
    if not isinstance(found, dict):
        raise DocumentError([FieldError("snapshot", found, "must be a mapping of keys and values")])
    reader = StructReader()
    written = reader.struct(WrittenSnapshot, found, "")
    stated = {key: names_of(found.get(key)) for key in ("pools", "tenants")}
    checks = SnapshotChecks(written or WrittenSnapshot(), reader.kept, stated)
    snapshot = checks.snapshot()
    return _right(snapshot, reader.problems + checks.problems)


def _right(snapshot: Snapshot | None, problems: list[FieldError]) -> Snapshot:
    if snapshot is not None and not problems:
        problems = list(misplaced(snapshot))
    if problems or snapshot is None:
        raise DocumentError(problems)
    return snapshot


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
        "queues": [queue_to_plain(queue, alone) for queue in snapshot.queues],
        "class_values": [class_value_to_plain(found) for found in snapshot.class_values],
        "running": [_running(job, stated.get(job.tenant, alone)) for job in snapshot.running],
        "jobs": [_job(job, stated.get(job.tenant, alone)) for job in snapshot.jobs],
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=1)


def _amounts(amounts: dict[str, int]) -> dict[str, str]:
    return {resource: format_quantity(resource, amount) for resource, amount in sorted(amounts.items())}


def _pool(pool: SnapshotPool) -> dict[str, object]:
    plain: dict[str, object] = {"name": pool.name, "capacity": _amounts(pool.capacity)}
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


def _running(job: SnapshotRunning, expected: str | None) -> dict[str, object]:
    plain: dict[str, object] = {"id": job.id, "tenant": job.tenant, "class": job.urgency}
    plain |= _optional("pool", job.pool, expected)
    plain |= {"demand": _amounts(job.demand)}
    plain |= _time("started", job.started) | _time("ends", job.ends)
    plain |= _optional("frontend", job.frontend, "")
    return plain | _gang(job)


def _job(job: SnapshotJob, expected: str | None) -> dict[str, object]:
    plain: dict[str, object] = {"id": job.id} | _optional("uid", job.uid, job.id)
    plain |= {"tenant": job.tenant, "class": job.urgency} | _optional("pool", job.pool, expected)
    plain |= {"submitted": to_datetime(job.submitted), "demand": _amounts(job.demand)} | _gang(job)
    for name in ("cluster", "frontend", "queue"):
        plain |= _optional(name, getattr(job, name), "")
    plain |= _time("queue_time", job.queue_time)
    plain |= _optional("priority_override", job.priority_override, None)
    plain |= _optional("level", job.level, SnapshotJob.DEFAULT_LEVEL)
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
