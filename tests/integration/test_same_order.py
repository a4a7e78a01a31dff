"""One, two and four scorers give the same order, to the byte, and so do those that take over from dead ones."""

import random
import time
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.decisions import DECISION
from fairlead_contracts.document import Grant, PolicyDocument, Pool, Tenant
from fairlead_contracts.questions import PoolQueue
from fairlead_testkit.awaiting import eventually
from fairlead_testkit.fleet import CLUSTER, Fleet, submit_all, whole_queue

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TENANTS = [f"team-{number}" for number in range(12)]
JOBS = 25
RESTS_SECONDS = 1.5
POLICY = PolicyDocument(
    pools=[Pool(name="gpu", members=[f"{CLUSTER}/gpu"])],
    tenants=[Tenant(name=name, weight=1 + number % 3) for number, name in enumerate(TENANTS)],
    grants=[Grant(tenant=name, classes=["urgent"]) for name in TENANTS[:3]],
)
CONFIG = {
    "nodes": [{"name": "node", "count": 2, "allocatable": {"nvidia.com/gpu": 8, "cpu": 64}}],
    "queues": [{"name": "main"}, {"name": "other"}],
    "accounts": {name: "other" if number % 4 == 0 else "main" for number, name in enumerate(TENANTS)},
}


async def flood(bus: Bus) -> int:
    """Many unequal jobs that outlive the test; gives how many wait."""
    rng = random.Random(7)
    for tenant in TENANTS:
        bodies = [
            {
                "id": f"{tenant}-{number}",
                "demand": {"nvidia.com/gpu": rng.randint(1, 8), "cpu": rng.randint(1, 32)},
                "run_seconds": 3600,
                "class": "urgent" if tenant in TENANTS[:3] and number % 5 == 0 else "normal",
            }
            for number in range(JOBS)
        ]
        await submit_all(bus, tenant, bodies)
    return len(TENANTS) * JOBS


async def settled(bus: Bus, submitted: int) -> PoolQueue:
    """The order once all submissions are queued or run and every shard answers."""

    stood: tuple[bytes, float] = (b"", 0.0)

    async def quiet() -> PoolQueue | None:
        nonlocal stood
        found = await whole_queue(bus, "gpu")
        if found.silent_shards or found.waiting != len(found.places) or found.waiting < submitted - 16:
            return None
        now, told = time.monotonic(), msgspec.json.encode(found)
        if told != stood[0]:
            stood = told, now
        # Jobs are still started one by one when the first answers are alike.
        return found if now - stood[1] >= RESTS_SECONDS else None

    order = await eventually(quiet, 60, what="the order comes to rest")
    assert order is not None
    return order


async def owners(bus: Bus) -> set[str]:
    """Who owns the shards of the pool, by their last decisions."""
    found = set()
    for shard in range(POLICY.shards):
        stored = await bus.last(topology.DECISION, subjects.decision("gpu", shard))
        if stored is not None:
            found.add(DECISION.decode(stored.payload).owner)
    return found


async def test_the_order_is_the_same_to_the_byte_with_one_two_and_four_scorers(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, cluster_config=CONFIG, scorers=1)
    async with fleet.running() as bus:
        alone = msgspec.json.encode(await settled(bus, await flood(bus)))
        for count in (2, 4):
            while len(fleet.named("scorer")) < count:
                await fleet.another_scorer()

            async def all_own(count: int = count) -> bool:
                return len(await owners(bus)) == count

            await eventually(all_own, 30, what=f"{count} scorers own shards")
            assert msgspec.json.encode(await settled(bus, 0)) == alone
        for victim in fleet.named("scorer")[1:]:
            victim.kill()

        async def one_owns() -> bool:
            return len(await owners(bus)) == 1

        await eventually(one_owns, 30, what="the last scorer owns every shard")
        assert msgspec.json.encode(await settled(bus, 0)) == alone
