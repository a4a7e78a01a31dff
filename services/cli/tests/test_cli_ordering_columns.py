"""`fairlead order` prints from columns, to the byte what it prints from positions, one by one."""

import random
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_cli.paper.arranging import PlannedPool, order
from fairlead_cli.paper.lines import as_lines
from fairlead_cli.paper.results import as_json
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.snapshot.read import read_snapshot
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_testkit.inputs.cases import cases
from fairlead_testkit.inputs.fuzz_inputs import PlainDocument, a_snapshot

GPU = "nvidia.com/gpu"
NOW = 1_760_000_000
CAP_HOURS = 200.005
"""Hours of a cap that ends amid a minute: some jobs of that minute are beyond it, some are not."""


def one_by_one(planned: PlannedPool) -> PlannedPool:
    """The same with its positions as objects."""
    positions = list(planned.pool.positions)
    return msgspec.structs.replace(planned, pool=msgspec.structs.replace(planned.pool, positions=positions))


def entries(document: PlainDocument, key: str) -> list[PlainDocument]:
    found = document[key]
    assert isinstance(found, list)
    return found


def a_right_snapshot(rng: random.Random) -> Snapshot | None:
    """A snapshot that is right, one in two without a tree; None where reserve mode or cards refuse it."""
    document = a_snapshot(rng)
    jobs = entries(document, "jobs")
    if rng.random() < 0.5:
        policy = document["policy"]
        assert isinstance(policy, dict)
        for key in ("class_mode", "class_weights", "hierarchy", "mode", "reserve", "grants"):
            policy.pop(key, None)
        for tenant in entries(document, "tenants"):
            tenant.pop("parent", None)
        for job in jobs:
            job.pop("priority_override", None)
    for job in jobs:
        # Waiting of all lengths: before the first second, within an hour, around a cap, and far beyond it.
        job["submitted"] = rng.choice([job["submitted"], NOW, NOW - rng.randrange(10**6), NOW - 0.25])
    try:
        return read_snapshot(document)
    except DocumentError:
        return None


@given(st.integers(0, 2**32).map(random.Random), st.booleans())
@settings(max_examples=cases())
def test_columns_and_positions_print_the_same(rng: random.Random, levels: bool) -> None:
    snapshot = a_right_snapshot(rng)
    if snapshot is None:
        return
    try:
        planned = order(snapshot, levels=levels)
    except DocumentError:
        return
    compared = [one_by_one(one) for one in planned]
    assert b"".join(as_json(planned, snapshot.now)) == b"".join(as_json(compared, snapshot.now))
    assert list(as_lines(planned, snapshot)) == list(as_lines(compared, snapshot))


def many_jobs(count: int, *, of_nobody: bool) -> Iterator[dict[str, object]]:
    for number in range(count):
        tenant = "nobody" if of_nobody and number % 3 == 0 else f"team-{number % 7}"
        since = NOW - number * 7919 % 2_000_000 - number % 2 / 4
        if number % 5 == 0:
            since = NOW - round(CAP_HOURS * 3600) + number % 97 - 48
        demand = {GPU: number % 5, "cpu": f"{number % 11 * 250}m", "memory": number % 13 * 2**29}
        yield {"id": f"j{number}", "tenant": tenant, "submitted": since, "demand": demand}


def a_large_pool(count: int, *, of_nobody: bool) -> Snapshot:
    document = {
        "now": NOW,
        "policy": {"aging": {"cap_days": CAP_HOURS / 24}},
        "pools": [{"name": "gpu", "capacity": {"cpu": 512, "memory": "4Ti", GPU: 64}}],
        "tenants": [{"name": "nobody", "weight": 0}, *({"name": f"team-{number}"} for number in range(7))],
        "jobs": list(many_jobs(count, of_nobody=of_nobody)),
    }
    return read_snapshot(document)


def test_so_do_many_parts_of_a_large_pool() -> None:
    for of_nobody in (False, True):
        snapshot = a_large_pool(7000, of_nobody=of_nobody)
        [planned] = order(snapshot, levels=False)
        parts = list(planned.pool.parts())
        assert len(parts) > 3
        assert any(part.apart for part in parts) == of_nobody, (
            "who has an infinite share is told of as an object"
        )
        compared = one_by_one(planned)
        assert b"".join(as_json([planned], snapshot.now)) == b"".join(as_json([compared], snapshot.now))
        assert list(as_lines([planned], snapshot)) == list(as_lines([compared], snapshot))


SHAPES: dict[str, PlainDocument] = {
    "a tree": {},
    "a tree, additive": {
        "class_mode": "additive",
        "class_weights": {"urgent": 0, "normal": 0.25, "spare": 1},
    },
    "a tree, multiplicative": {
        "class_mode": "multiplicative",
        "class_weights": {"urgent": 8, "normal": 1, "spare": 0.5},
    },
    "a tree, H-DRF": {"hierarchy": {"mode": "hdrf"}},
}


def a_large_tree(policy: PlainDocument, *, of_nobody: bool) -> Snapshot:
    """A snapshot of two deep trees and a tenant alone; jobs of each class, some with a number."""
    jobs = list(many_jobs(4000, of_nobody=of_nobody))
    for number, job in enumerate(jobs):
        job["class"] = ("urgent", "normal", "spare")[number % 17 % 3]
        if "class_mode" in policy and number % 23 == 0:
            job["priority_override"] = 3.5
    classes = ["urgent", "normal", "spare"]
    names = ["org-a", "org-b", "unit", "nobody", *(f"team-{number}" for number in range(7))]
    above = {
        "unit": "org-a",
        "nobody": "unit",
        "team-0": "unit",
        "team-1": "unit",
        "team-2": "org-a",
        "team-3": "org-b",
    }
    document = {
        "now": NOW,
        "policy": {
            "aging": {"cap_days": CAP_HOURS / 24},
            "classes": classes,
            "grants": [{"tenant": name, "classes": classes, "priority_override": True} for name in names],
            **policy,
        },
        "pools": [{"name": "gpu", "capacity": {"cpu": 512, "memory": "4Ti", GPU: 64}}],
        "tenants": [
            {"name": name, "weight": 0 if name == "nobody" else 1 + number % 3, "parent": above.get(name)}
            for number, name in enumerate(names)
        ],
        "jobs": jobs,
    }
    return read_snapshot(document)


@pytest.mark.parametrize("policy", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("of_nobody", [False, True])
def test_so_do_many_parts_of_a_large_tree(policy: PlainDocument, of_nobody: bool) -> None:
    snapshot = a_large_tree(policy, of_nobody=of_nobody)
    [planned] = order(snapshot, levels=False)
    apart = [bool(part.apart) for part in planned.pool.parts()]
    assert any(apart) == of_nobody, "who has an infinite share is told of as an object"
    assert any(len(part.apart) < len(part.jobs) for part in planned.pool.parts())
    compared = one_by_one(planned)
    assert b"".join(as_json([planned], snapshot.now)) == b"".join(as_json([compared], snapshot.now))
    assert list(as_lines([planned], snapshot)) == list(as_lines([compared], snapshot))
