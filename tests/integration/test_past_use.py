"""Real processes on a real nats-server: who used much lately waits for who did not, and everybody is told why."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_cli.paper.snapshot_taking import taken
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.decisions import DECISION
from fairlead_contracts.messages.events import JobStarted, LevelWritten
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    TENANTS_REPLY,
    ExplainQuestion,
    TenantsQuestion,
)
from fairlead_contracts.policyfile.document import Aging
from fairlead_policy.snapshot.ordering import order_snapshot
from fairlead_testkit import eventually
from fairlead_testkit.chaos.audit import history
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, all_wait, equal_jobs, one_pool, submit_all

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

GPU = "nvidia.com/gpu"
TENANTS = ("busy", "calm", "blocker")
POLICY = one_pool(TENANTS, aging=Aging(entitlement_per_day=1.44), half_life_hours=1 / 60)


async def tick_of_shards(bus: Bus) -> int:
    """The last tick that all shards were decided for."""
    stored = [
        await bus.last(topology.DECISION, subjects.decision("gpu", shard)) for shard in range(POLICY.shards)
    ]
    decisions = [DECISION.decode(one.payload) for one in stored if one is not None]
    return min(one.basis.past for one in decisions if one.basis is not None)


async def ticks_pass(bus: Bus) -> tuple[datetime, datetime]:
    """Waits for some ticks of past use; returns when the first of them began and the last was decided for."""
    since, begun = datetime.now(UTC), await tick_of_shards(bus)

    async def passed() -> bool:
        return await tick_of_shards(bus) > begun + 2

    await eventually(passed, 30, what="past use fades")
    return since, datetime.now(UTC)


async def test_who_used_much_lately_waits_for_who_did_not(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, gpus=4)
    async with fleet.running() as bus:
        past_jobs = equal_jobs("past", 4, run_seconds=4)
        names = await submit_all(bus, "busy", past_jobs)
        await history(bus, CLUSTER, names, JobStarted)  # or the blocker might be made before the last of them
        [blocker] = await submit_all(bus, "blocker", equal_jobs("block", 1, run_seconds=3600, gpus=4))
        await history(bus, CLUSTER, names)
        # The busy tenant asks first; by what runs now alone, it would go first.
        await submit_all(bus, "busy", equal_jobs("busy", 2, run_seconds=1, gpus=2))
        await submit_all(bus, "calm", equal_jobs("calm", 2, run_seconds=1, gpus=2))
        await all_wait(bus, "gpu", 4)
        question = to_json(TenantsQuestion(pool="gpu"))

        async def told() -> Mapping[str, Mapping[str, int]]:
            """Past use of the tenants, once the tick is over in which the jobs ended."""
            reply = TENANTS_REPLY.decode(await bus.request(subjects.ask("tenants"), question, timeout=30.0))
            found = {line.standing.tenant: line.standing.past for line in reply.pools[0].tenants}
            return found if found.get("busy") else {}

        past = await eventually(told, 30, what="past use is told")
        assert 0 < past["busy"][GPU] < 4000, "some of four GPUs"
        assert past["calm"] == {}
        asked = to_json(ExplainQuestion(job="busy-0000"))
        found = EXPLAIN_REPLY.decode(await bus.request(subjects.ask("explain"), asked, timeout=30.0)).found
        assert any("of past use" in reason for reason in found[0].reasons), found[0].reasons
        snapshot = await taken(bus, "gpu")
        assert {one.name: bool(one.past_use) for one in snapshot.tenants}["busy"]
        [pool] = order_snapshot(snapshot)
        assert [position.id for position in pool.positions] == [
            "calm-0000",
            "busy-0000",
            "calm-0001",
            "busy-0001",
        ]
        spans = [await ticks_pass(bus) for _ in range(3)]
        await submit_all(bus, "blocker", [{"id": blocker, "cancel": True}])
        events = await history(bus, CLUSTER, ["calm-0001", "busy-0001"])
        order = [event.job for event in events if isinstance(event, JobStarted)]
        rest = order[order.index("block-0000") + 1 :]
        assert rest.index("calm-0000") < rest.index("busy-0000"), rest
        assert rest.index("calm-0001") < rest.index("busy-0001"), rest
        writes = [event.at for event in events if isinstance(event, LevelWritten)]
        # The first writes may come late where the machine stands still.
        quiet = [not any(since < at < until for at in writes) for since, until in spans]
        assert any(quiet), (spans, writes)
