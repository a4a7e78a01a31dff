"""Capabilities of a snapshot's queues: levels on paper go by them, and what the live queue stated is written."""

import msgspec
import pytest

from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_contracts.frontend.shipped import KUEUE, SLURM
from fairlead_contracts.messages.state import QueueState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotJob,
    SnapshotPool,
    SnapshotQueue,
    SnapshotTenant,
)
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.levels import PlannedLevels, plan_snapshot_levels, steering_of
from fairlead_policy.snapshot.ordering import order_snapshot
from fairlead_testkit.inputs.builders import NOW, a_document, a_job, a_pool, a_queue

OFF = {"mode": "off"}
OFF_IS_HARMLESS = Capabilities(harmless_settings={"mode": ("off",)})


def planned(**queue: object) -> PlannedLevels:
    """The levels of three jobs that stand in a queue of Kueue as the policy orders them."""
    jobs = [
        SnapshotJob(
            id=uid,
            uid=uid,
            tenant="ada",
            pool="gpu",
            job_class="normal",
            demand={"cpu": 1000},
            submitted=at * SECOND,
            queue_time=at * SECOND,
            frontend="kueue",
            queue="q",
        )
        for at, uid in enumerate("abc")
    ]
    stated = SnapshotQueue(name="q", pool="gpu", frontend="kueue")
    snapshot = Snapshot(
        now=9 * SECOND,
        policy=PolicyDocument(),
        pools=[SnapshotPool(name="gpu", capacity={"cpu": 8000})],
        tenants=[SnapshotTenant(name="ada")],
        queues=[msgspec.structs.replace(stated, **queue)],
        jobs=jobs,
    )
    [pool] = order_snapshot(snapshot)
    return plan_snapshot_levels(pool, jobs, 32, steering_of(snapshot, "gpu"))


def test_a_setting_that_the_queue_calls_harmless_keeps_no_level_back() -> None:
    assert "queue q has mode off" in planned(preemption=OFF).withheld["", "kueue"]
    assert planned(preemption=OFF, capabilities=OFF_IS_HARMLESS).withheld == {}


def test_equal_levels_are_ordered_as_the_queue_says() -> None:
    assert planned().writes == [], "first come, first served is the order already"
    by_chance = planned(capabilities=Capabilities(ties=TieRule.CHANCE))
    assert [uid for uid, _ in by_chance.writes] == ["a", "b", "c"]
    assert len(set(by_chance.levels.values())) == 3


@pytest.mark.parametrize(
    ("frontend", "stated", "written"),
    [
        ("kueue", None, None),
        ("kueue", KUEUE, None),
        (
            "slurm",
            msgspec.structs.replace(SLURM, ties=TieRule.CHANCE),
            {
                "ties": "chance",
                "judges_demand": True,
                "batch": 256,
                "labelled_ahead": 32,
                "check_command": "fairlead slurm check",
            },
        ),
        ("other", None, {}),
        ("other", OFF_IS_HARMLESS, {"harmless_settings": {"mode": ["off"]}}),
    ],
)
def test_those_are_written_that_the_name_of_the_frontend_does_not_say(
    frontend: str, stated: Capabilities | None, written: object
) -> None:
    queue = a_queue(frontend=frontend, capabilities=stated)
    heard = msgspec.msgpack.decode(msgspec.msgpack.encode(queue), type=QueueState)
    snapshot = snapshot_of({"p": a_pool(), "q": heard, "j": a_job()}, a_document(), NOW)
    payload = encode_snapshot(snapshot)
    assert msgspec.json.decode(payload)["queues"][0].get("capabilities") == written
    assert decode_snapshot(payload) == snapshot
    assert snapshot.queues[0].able == heard.able
