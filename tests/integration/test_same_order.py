"""Orders of one, two and four scorers are the same to the byte, and so are those of scorers that take over from dead ones."""

import asyncio
import contextlib
import random
import sqlite3
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.decisions import DECISION
from fairlead_contracts.messages.questions import PoolQueue
from fairlead_contracts.messages.state import Phase
from fairlead_contracts.policyfile.document import Grant
from fairlead_sim.jobs import SimJob
from fairlead_testkit.fleets.fleet import Fleet, one_pool, submit_all, whole_queue
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(360)]

TENANTS = [f"team-{number}" for number in range(12)]
JOBS = 25
POLICY = one_pool(
    {name: 1 + number % 3 for number, name in enumerate(TENANTS)},
    grants=[Grant(tenant=name, classes=["urgent"]) for name in TENANTS[:3]],
)
CONFIG = {
    "nodes": [{"name": "node", "count": 2, "allocatable": {"nvidia.com/gpu": 8, "cpu": 64}}],
    "queues": [{"name": "main"}, {"name": "other"}],
    "accounts": {name: "other" if number % 4 == 0 else "main" for number, name in enumerate(TENANTS)},
}


async def flood(bus: Bus) -> None:
    """Submits many unequal jobs that outlive the test."""
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


def waiting(store: Path) -> set[str]:
    """The uids of the jobs that the simulated cluster did not start, once it has made all; empty before.

    It starts all that fits in the same moment in which it makes them, and nothing ends: these wait for good.
    """
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT body FROM jobs").fetchall()
    jobs = [msgspec.msgpack.decode(body, type=SimJob) for (body,) in rows]
    made = len(jobs) == JOBS * len(TENANTS)
    return {job.uid for job in jobs if job.phase is Phase.WAITING} if made else set()


async def settled(bus: Bus, fleet: Fleet) -> PoolQueue:
    """The order once all submissions wait or run, every shard answers, and the scorers know who runs."""

    async def complete() -> PoolQueue | None:
        wanted = await asyncio.to_thread(waiting, fleet.store)
        found = await whole_queue(bus, "gpu")
        known = {ranked.position.uid for ranked in found.positions}
        return found if wanted and known == wanted and not found.silent_shards else None

    order = await eventually(complete, 60, what="the order has all that wait, and no more")
    assert order.waiting == len(order.positions)
    return order


async def owners(bus: Bus) -> set[str]:
    """Owners of the pool's shards, by their last decisions."""
    found = set()
    for shard in range(POLICY.shards):
        stored = await bus.last(topology.DECISION, subjects.decision("gpu", shard))
        if stored is not None:
            found.add(DECISION.decode(stored.payload).owner)
    return found


async def test_the_order_is_the_same_to_the_byte_with_one_two_and_four_scorers(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, cluster_config=CONFIG, scorers=1)
    async with fleet.running() as bus:
        await flood(bus)
        alone = msgspec.json.encode(await settled(bus, fleet))
        for count in (2, 4):
            while len(fleet.named("scorer")) < count:
                await fleet.another("scorer")

            async def all_own(count: int = count) -> bool:
                return len(await owners(bus)) == count

            await eventually(all_own, 60, what=f"{count} scorers own shards")
            assert msgspec.json.encode(await settled(bus, fleet)) == alone
        for victim in fleet.named("scorer")[1:]:
            victim.kill()

        async def one_owns() -> bool:
            return len(await owners(bus)) == 1

        await eventually(one_owns, 60, what="the last scorer owns every shard")
        assert msgspec.json.encode(await settled(bus, fleet)) == alone
