"""Real processes on a real nats-server: who used much lately waits for who did not, and everybody is told why."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairlead_bus import Bus, Follower
from fairlead_cli.ordering.taking import taken
from fairlead_contracts import subjects, topology
from fairlead_contracts.codec import to_json
from fairlead_contracts.decisions import DECISION
from fairlead_contracts.document import Aging, PolicyDocument, Pool, Tenant
from fairlead_contracts.events import EVENT, AnyEvent, JobEnded, JobStarted, LevelWritten
from fairlead_contracts.questions import EXPLAIN_REPLY, TENANTS_REPLY, ExplainQuestion, TenantsQuestion
from fairlead_policy import order_snapshot
from fairlead_testkit import eventually
from fairlead_testkit.fleet import CLUSTER, Fleet, equal_jobs, submit_all, whole_queue

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

GPU = "nvidia.com/gpu"
TENANTS = ("busy", "calm", "blocker")
POLICY = PolicyDocument(
    aging=Aging(share_per_hour=0.06),
    half_life_hours=1 / 60,
    pools=[Pool(name="gpu", members=[f"{CLUSTER}/gpu"])],
    tenants=[Tenant(name=name) for name in TENANTS],
)
CONFIG = {
    "nodes": [{"name": "node", "count": 1, "allocatable": {GPU: 4}}],
    "queues": [{"name": "main"}],
    "accounts": dict.fromkeys(TENANTS, "main"),
}


async def events_until(bus: Bus, ended: str) -> list[AnyEvent]:
    """The events from the first on, in their order, until a job ended."""
    follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER), since=0)
    found: list[AnyEvent] = []
    async for delivery in follower:
        event = EVENT.decode(delivery.payload)
        found.append(event)
        if isinstance(event, JobEnded) and event.job == ended:
            break
    return found


async def tick_of_shards(bus: Bus) -> int:
    """The last tick that all shards were decided for."""
    stored = [
        await bus.last(topology.DECISION, subjects.decision("gpu", shard)) for shard in range(POLICY.shards)
    ]
    decisions = [DECISION.decode(one.payload) for one in stored if one is not None]
    return min(one.basis.past for one in decisions if one.basis is not None)


async def test_who_used_much_lately_waits_for_who_did_not(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, cluster_config=CONFIG)
    async with fleet.running() as bus:
        await submit_all(bus, "busy", equal_jobs("past", 4, run_seconds=4))
        await submit_all(bus, "blocker", equal_jobs("block", 1, run_seconds=20, gpus=4))
        async with asyncio.timeout(60):
            await events_until(bus, "past-0003")
        # The busy tenant asks first; by what runs now alone, it would go first.
        await submit_all(bus, "busy", equal_jobs("busy", 2, run_seconds=1, gpus=2))
        await submit_all(bus, "calm", equal_jobs("calm", 2, run_seconds=1, gpus=2))

        async def all_wait() -> bool:
            return (await whole_queue(bus, "gpu")).waiting == 4

        await eventually(all_wait, 30, what="four jobs wait")
        question = to_json(TenantsQuestion(pool="gpu"))
        reply = TENANTS_REPLY.decode(await bus.request(subjects.ask("tenants"), question, timeout=5.0))
        past = {line.standing.tenant: line.standing.past for line in reply.pools[0].tenants}
        assert 0 < past["busy"][GPU] < 4000, "some of four GPUs"
        assert past["calm"] == {}
        asked = to_json(ExplainQuestion(job="busy-0000"))
        found = EXPLAIN_REPLY.decode(await bus.request(subjects.ask("explain"), asked, timeout=5.0)).found
        assert any("of past use" in reason for reason in found[0].reasons), found[0].reasons
        snapshot = await taken(bus, "gpu")
        assert {one.name: bool(one.past_use) for one in snapshot.tenants}["busy"]
        [pool] = order_snapshot(snapshot)
        assert [place.id for place in pool.places] == ["calm-0000", "busy-0000", "calm-0001", "busy-0001"]
        since, begun = datetime.now(UTC), await tick_of_shards(bus)

        async def ticks_pass() -> bool:
            return await tick_of_shards(bus) > begun + 3

        await eventually(ticks_pass, 30, what="past use fades, and the order stays")
        until = datetime.now(UTC)
        async with asyncio.timeout(60):
            events = await events_until(bus, "busy-0001")
        order = [event.job for event in events if isinstance(event, JobStarted)]
        rest = order[order.index("block-0000") + 1 :]
        assert rest.index("calm-0000") < rest.index("busy-0000"), rest
        assert rest.index("calm-0001") < rest.index("busy-0001"), rest
        writes = [event.at for event in events if isinstance(event, LevelWritten)]
        assert [at for at in writes if since < at < until] == []
