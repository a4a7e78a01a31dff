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
that is not its id), a granted `priority_override` (a number in place of its class's weight), and that it is `flavorless`
(none of its queue's flavors takes it) or `limited` (a limit of its user's is reached). Of its pods it may say
`annotations` (HAMi's) and in `gang` a `selector`, `tolerations`, a `zone_key`, or several kinds of pods as `shapes`. A node may
say `taints`, `unschedulable`, its `pool` and `cluster`, and in place of `cards` HAMi's `annotations` and those of its `pods`.
A pool may say its `quota`, where the cards of its nodes make its capacity another.
With H-DRF a pool may say which resources are `saturated`, where its clusters or flavors make that another answer than its sums do. A queue and a class value may say their `cluster`, a queue its frontend's `capabilities`; a pool that has a queue in `queues` has all of its queues there. What this release knows of but does not act on is refused where it would change the order.
"""

from collections.abc import Collection

import msgspec

from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.base.json_text import WRITTEN_BY_HAND, JsonError, parse_json
from fairlead_contracts.base.reading import StructReader, no_mapping, with_unread
from fairlead_contracts.policyfile.read import names_of
from fairlead_contracts.snapshot.types import Snapshot, WrittenJob, WrittenSnapshot
from fairlead_contracts.snapshot.validate import SnapshotChecks, misplaced

_unopened_jobs = msgspec.json.Decoder(WrittenSnapshot[msgspec.Raw])
_job = msgspec.json.Decoder(WrittenJob)


def decode_snapshot(payload: bytes) -> Snapshot:
    """The snapshot in a JSON document. A million jobs take a few seconds.

    Raises:
        DocumentError: with every problem found; up to a megabyte, a key that an object gives twice is one.
    """
    try:
        if len(payload) > WRITTEN_BY_HAND or not parse_json(payload)[1]:
            return _decode(payload)
    except (JsonError, msgspec.MsgspecError, ValueError, RecursionError):
        pass
    # Read again value by value. Python's own parser reads numbers that fit nowhere, so that their place can be named.
    return _with_all_problems(payload)


def _decode(payload: bytes) -> Snapshot:
    """The snapshot, where its text has the keys and kinds of values that a snapshot has.

    Raises:
        MsgspecError, ValueError, RecursionError: it has not.
        DocumentError: it does not validate.
    """
    written = _unopened_jobs.decode(payload)
    checks = SnapshotChecks(written, map(_job.decode, written.jobs), kept={}, stated={})
    snapshot = checks.snapshot()
    return _right(snapshot, checks.problems)


def _with_all_problems(payload: bytes) -> Snapshot:
    if not payload.strip():
        return read_snapshot(None)
    try:
        found, twice = parse_json(payload)
    except JsonError as error:
        raise DocumentError([FieldError("snapshot", msgspec.UNSET, f"is not valid JSON: {error}")]) from error
    return read_snapshot(found, unread=twice)


def read_snapshot(found: object, *, unread: Collection[FieldError] = ()) -> Snapshot:
    """The snapshot in plain values, as a YAML or JSON parser gives them; what it left unread is told with the rest.

    Raises:
        DocumentError: with every problem found.
    """
    if not isinstance(found, dict):
        raise DocumentError([*unread, no_mapping("snapshot", found)])
    reader = StructReader()
    written = reader.struct(WrittenSnapshot[WrittenJob], found, "") or WrittenSnapshot[WrittenJob]()
    stated = {key: names_of(found.get(key)) for key in ("pools", "tenants")}
    checks = SnapshotChecks(written, written.jobs, kept=reader.kept, stated=stated)
    snapshot = checks.snapshot()
    return _right(snapshot, with_unread(unread, reader.problems + checks.problems))


def _right(snapshot: Snapshot | None, problems: list[FieldError]) -> Snapshot:
    if snapshot is not None and not problems:
        problems = list(misplaced(snapshot))
    if problems or snapshot is None:
        raise DocumentError(problems)
    return snapshot
