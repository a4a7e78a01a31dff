"""A snapshot as the format is documented, and what reading says of one that is changed; for tests of it."""

import json

import pytest

from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot

GPU = "nvidia.com/gpu"
NOW = 1_760_000_000


def documented() -> dict[str, object]:
    """The format with every key that this release takes."""
    return {
        "now": NOW,
        "policy": {"classes": ["urgent", "normal"], "window": 8},
        "pools": [{"name": "gpu", "capacity": {"cpu": "512", "memory": "4Ti", GPU: 64}}],
        "tenants": [{"name": "team-1", "weight": 2, "pool": "gpu"}],
        "nodes": [{"name": "n1", "allocatable": {"cpu": 64}, "labels": {"zone": "a"}, "used": {"cpu": "1"}}],
        "running": [
            {
                "id": "r1",
                "tenant": "team-1",
                "class": "normal",
                "demand": {GPU: 2},
                "started": NOW - 60,
                "ends": "2027-01-01T00:00:00Z",
            }
        ],
        "jobs": [
            {
                "id": "j1",
                "tenant": "team-1",
                "class": "urgent",
                "submitted": NOW - 5.25,
                "demand": {"cpu": 0.5, "memory": "64Gi", GPU: 1},
                "gang": {"pods": 4, "per_pod": {"cpu": "125m"}},
                "frontend": "kueue",
                "queue": "cq-1",
                "queue_time": "2025-10-09T10:53:20.5+02:00",
                "level": 3,
                "runtime_limit": 3600,
            }
        ],
    }


def changed(**changes: object) -> dict[str, object]:
    """The document with other values at these keys."""
    return {**documented(), **changes}


def job(**changes: object) -> dict[str, object]:
    """A plain job, with other values; `...` leaves a key out."""
    plain: dict[str, object] = {"id": "j1", "tenant": "team-1", "submitted": NOW, "demand": {"cpu": 1}}
    return {name: value for name, value in (plain | changes).items() if value is not ...}


def refused(found: object) -> list[FieldError]:
    """The problems of a snapshot, the same whether it is read as values or as JSON."""
    with pytest.raises(DocumentError) as by_values:
        read_snapshot(found)
    with pytest.raises(DocumentError) as by_json:
        decode_snapshot(json.dumps(found).encode())
    assert list(map(str, by_json.value.problems)) == list(map(str, by_values.value.problems))  # noqa: S101 # a check of tests
    return by_values.value.problems


def problems_of(found: object) -> dict[str, str]:
    """The reasons for which a snapshot is refused, by field."""
    return {problem.field: problem.reason for problem in refused(found)}
