"""A snapshot's queues and class values: read, written, and refused with path and value."""

import json

import msgspec
import pytest

from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_contracts.frontend.shipped import KUEUE as KUEUE_ABLE
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_contracts.snapshot.types import SnapshotClassValue, SnapshotQueue
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_testkit.inputs.documented import refused

NOW = 1_760_000_000
KUEUE: dict[str, object] = {"name": "cq-1", "frontend": "kueue", "bands_by_class": True}
OTHER: dict[str, object] = {"name": "cq-1", "frontend": "kueue", "cluster": "c2"}


def job(name: str = "j1", **changes: object) -> dict[str, object]:
    plain: dict[str, object] = {"id": name, "tenant": "team-1", "submitted": NOW, "demand": {"cpu": 1}}
    return plain | {"frontend": "kueue", "queue": "cq-1"} | changes


def snapshot(**changes: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "now": NOW,
        "policy": {"classes": ["urgent", "normal"]},
        "pools": [{"name": "gpu", "capacity": {"cpu": 8}}],
        "tenants": [{"name": "team-1", "pool": "gpu"}],
        "queues": [KUEUE],
        "class_values": [{"class": "urgent", "value": 3000}],
        "jobs": [job()],
    }
    return plain | changes


def problems_of(found: object) -> dict[str, str]:
    return {problem.field: f"{problem.value}: {problem.reason}" for problem in refused(found)}


def test_queues_and_class_values_are_read_and_what_is_left_out_is_plain() -> None:
    found = read_snapshot(snapshot())
    assert found.queues == [
        SnapshotQueue(
            name="cq-1", pool="gpu", frontend="kueue", cluster="", default_level=0, lowest_level=1,
            highest_level=1_000_000, bands_by_class=True,
        )
    ]  # fmt: skip
    assert found.class_values == [SnapshotClassValue(job_class="urgent", value=3000)]
    assert decode_snapshot(json.dumps(snapshot()).encode()) == found
    without = read_snapshot(
        {key: value for key, value in snapshot().items() if key not in ("queues", "class_values")}
    )
    assert (without.queues, without.class_values) == ([], [])


def test_they_are_written_and_read_again() -> None:
    pools = [{"name": name, "capacity": {"cpu": 8}} for name in ("gpu", "cpu")]
    queues = [
        {
            "name": "a",
            "pool": "gpu",
            "cluster": "c1",
            "default_level": -7,
            "lowest_level": -3,
            "highest_level": 2**31 - 1,
        },
        {
            "name": "a",
            "pool": "cpu",
            "cluster": "c2",
            "frontend": "slurm",
            "bands_by_class": True,
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "ties": "chance",
        },
        {
            "name": "b",
            "pool": "cpu",
            "frontend": "lsf",
            "ties": "second",
            "orders_across_queues": False,
        },
        {
            "name": "c",
            "pool": "cpu",
            "frontend": "pbs",
            "capabilities": {"needs_clearance": False, "harmless_settings": {"mode": ["off", "hold"]}},
        },
    ]
    values = [
        {"class": "urgent", "value": -5, "cluster": "c1"},
        {"class": "urgent", "value": 5, "cluster": "c2"},
    ]
    for found in (
        read_snapshot(snapshot(pools=pools, queues=queues, class_values=values, jobs=[])),
        read_snapshot(snapshot()),
    ):
        payload = encode_snapshot(found)
        assert decode_snapshot(payload) == found
        assert read_snapshot(msgspec.json.decode(payload)) == found


@pytest.mark.parametrize(
    ("stated", "able"),
    [
        ({"frontend": "kueue"}, KUEUE_ABLE),
        ({"frontend": "lsf", "capabilities": {}}, Capabilities()),
        (
            {"frontend": "kueue", "capabilities": {"ties": "chance", "harmless_settings": {"mode": ["off"]}}},
            Capabilities(ties=TieRule.CHANCE, harmless_settings={"mode": ("off",)}),
        ),
        # As older releases wrote it: one word alone, and of the others the name's.
        ({"frontend": "kueue", "ties": "chance"}, msgspec.structs.replace(KUEUE_ABLE, ties=TieRule.CHANCE)),
        (
            {"frontend": "kueue", "orders_across_queues": True},
            msgspec.structs.replace(KUEUE_ABLE, orders_across_queues=True),
        ),
        ({"frontend": "kueue", "capabilities": {}, "ties": "chance"}, Capabilities(ties=TieRule.CHANCE)),
    ],
)
def test_a_queue_has_the_capabilities_that_it_states_and_else_those_of_its_frontends_name(
    stated: dict[str, object], able: Capabilities
) -> None:
    [queue] = read_snapshot(snapshot(queues=[{"name": "q"} | stated], jobs=[])).queues
    assert queue.able == able


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"queues": [KUEUE | {"name": ""}]}, "queues[0].name", ": must be 1 to 512"),
        ({"queues": [KUEUE | {"extra": 1}]}, "queues[0].extra", "1: is not a key here"),
        ({"queues": [KUEUE, KUEUE]}, "queues[1].name", "cq-1: is named twice"),
        ({"queues": [KUEUE | {"pool": "cpu"}]}, "queues[0].pool", "cpu: is not a pool; pools are gpu"),
        ({"queues": [KUEUE | {"frontend": "lsf"}]}, "queues[0].frontend", "lsf: is not a frontend"),
        ({"queues": [KUEUE | {"ties": "fifo"}]}, "queues[0].ties", "fifo: "),
        ({"queues": [KUEUE | {"orders_across_queues": 0}]}, "queues[0].orders_across_queues", "0: "),
        ({"queues": [KUEUE | {"capabilities": []}]}, "queues[0].capabilities", "[]: must be a mapping"),
        ({"queues": [KUEUE | {"capabilities": {"tie": "second"}}]}, "queues[0].capabilities.tie", "did you mean ties?"),
        ({"queues": [KUEUE | {"capabilities": {"batch": "1"}}]}, "queues[0].capabilities.batch", "1: must be a whole"),
        (
            {"queues": [KUEUE | {"capabilities": {"harmless_settings": {"mode": "off"}}}]},
            "queues[0].capabilities.harmless_settings.mode",
            "off: must be a list",
        ),
        ({"queues": [KUEUE | {"cluster": "\n"}]}, "queues[0].cluster", "must be 1 to 512"),
        ({"queues": [KUEUE | {"default_level": 2**31}]}, "queues[0].default_level", "2147483648: must lie"),
        ({"queues": [KUEUE | {"lowest_level": -(2**40)}]}, "queues[0].lowest_level", "must lie between"),
        ({"queues": [KUEUE | {"highest_level": "9"}]}, "queues[0].highest_level", "9: "),
        ({"queues": [KUEUE | {"highest_level": 0}]}, "queues[0].highest_level", "0: must not be below lowest_level, 1"),
        ({"queues": [KUEUE | {"bands_by_class": 1}]}, "queues[0].bands_by_class", "1: "),
        ({"queues": [KUEUE | {"preemption": "Never"}]}, "queues[0].preemption", "Never: must be a mapping"),
        (
            {"queues": [KUEUE | {"preemption": {"withinClusterQueue": 1}}]},
            "queues[0].preemption.withinClusterQueue",
            "1: must be text",
        ),
        ({"class_values": [{"class": "urgent"}]}, "class_values[0].value", "is missing"),
        ({"class_values": [{"class": "urgent", "value": 2**31}]}, "class_values[0].value", "must lie between"),
        ({"class_values": [{"class": "urgnet", "value": 1}]}, "class_values[0].class", "urgnet: must be one of"),
        (
            {"class_values": [{"class": "urgent", "value": 1}, {"class": "urgent", "value": 2}]},
            "class_values[1].class",
            "urgent: is named twice",
        ),
        (
            {"class_values": [{"class": "urgent", "value": 1, "cluster": "c9"}]},
            "class_values[0].cluster",
            "c9: is not the cluster of a queue",
        ),
        ({"jobs": [job(), job("j2", queue="cq-2")]}, "jobs[1].queue", "cq-2: is not a queue of pool 'gpu'"),
        ({"jobs": [job(queue=None)]}, "jobs[0].queue", ": is not a queue of pool 'gpu'"),
        (
            {"jobs": [job(frontend=None)]},
            "jobs[0].queue",
            "cq-1: stands on cluster '' with frontend 'kueue' in `queues`, and the job on cluster '' with frontend ''",
        ),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_place(changes: dict[str, object], field: str, told: str) -> None:
    found = problems_of(snapshot(**changes))
    assert list(found) == [field]
    assert told in found[field]


def test_with_several_pools_a_queue_names_its_own() -> None:
    pools = [{"name": name, "capacity": {"cpu": 8}} for name in ("gpu", "cpu")]
    found = problems_of(snapshot(pools=pools))
    assert found == {"queues[0].pool": "None: is missing: name one of cpu, gpu"}


def test_jobs_of_a_pool_without_queues_stand_where_they_like() -> None:
    pools = [{"name": name, "capacity": {"cpu": 8}} for name in ("gpu", "cpu")]
    jobs = [job(), job("j2", pool="cpu", queue="anywhere"), job("j3", pool="cpu", queue=None)]
    found = read_snapshot(snapshot(pools=pools, queues=[KUEUE | {"pool": "gpu"}], jobs=jobs))
    assert [one.queue for one in found.jobs] == ["cq-1", "anywhere", ""]


def test_a_queue_that_cannot_be_read_is_not_told_again_at_its_jobs() -> None:
    broken = {"name": "cq-2", "highest_level": "x"}
    found = problems_of(snapshot(queues=[broken, KUEUE], jobs=[job(), job("j2", queue="cq-2")]))
    assert list(found) == ["queues[0].highest_level"]


def test_one_name_may_stand_in_two_clusters() -> None:
    found = read_snapshot(snapshot(queues=[KUEUE, OTHER], jobs=[job(), job("j2", cluster="c2")]))
    assert [queue.cluster for queue in found.queues] == ["", "c2"]
