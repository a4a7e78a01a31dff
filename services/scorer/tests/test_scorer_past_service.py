"""Past use on a real server, by real processes: kills, restarts and old news leave the integers that they were."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Follower
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json, to_packed
from fairlead_contracts.base.instants import HOUR, SECOND, Micros, to_datetime
from fairlead_contracts.messages.decisions import DECISION, Decision, KeptPast
from fairlead_contracts.messages.events import JobEvicted, Run
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_policy.usage.past import Decay, PastUse, tick_of
from fairlead_runtime.clock import wall_clock
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.bus_harness import BusHarness
from fairlead_testkit.inputs.builders import a_decision, a_job, a_pool, a_queue

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

type Shards = dict[int, dict[int, list[Micros]]]
"""Instants of decisions by tick and shard."""
POOL = "c1/gpu"
GPU = "nvidia.com/gpu"
MINUTE = 60 * SECOND
TENANTS = ("team-a", "team-b", "team-c")
TICK = tick_of(MINUTE)
"""A second: the shortest half-life that a policy may have."""
POLICY = PolicyDocument(tenants=[Tenant(name=name) for name in TENANTS], half_life_hours=MINUTE / HOUR)


class Truth:
    """The use of each tenant, counted apart from all services: from what was kept at first, and all runs."""

    def __init__(self, harness: BusHarness) -> None:
        self.harness = harness
        self.begun = wall_clock() // TICK - 30
        self.kept = {"team-c": {GPU: 7000 * 2**32 + 12345}}
        self._runs: dict[tuple[str, Micros], tuple[str, Micros | None, dict[str, int]]] = {}

    async def leave_to_scorers(self) -> None:
        """State the cluster, and decisions as an owner of half a minute ago left them."""
        await self.harness.policy(POLICY)
        await self.harness.state(a_pool(), a_queue())
        await self.harness.mark()
        for shard in range(POLICY.shards):
            kept = {name: {res: str(n) for res, n in of.items()} for name, of in self.kept.items()}
            left = KeptPast(at=self.begun * TICK, half_life=MINUTE, tenants=kept)
            decision = a_decision(
                pool=POOL, shard=shard, owner="gone", queue_heads=[], standings=[], kept=left
            )
            await self.harness.bus.publish(subjects.decision(POOL, shard), to_packed(decision))

    async def starts(self, name: str, tenant: str, gpus: int) -> JobState:
        job = a_job(
            name, scope=tenant, demand={GPU: 1000 * gpus}, phase=Phase.RUNNING, started=wall_clock(), rev=2
        )
        self._runs[job.uid, job.started or 0] = (tenant, None, job.demand)
        await self.harness.state(job)
        return job

    async def is_put_back(self, job: JobState, *, told: int = 1) -> None:
        """Has the job's frontend stop it and put it back into its queue; the event alone says until when it ran."""
        at = wall_clock()
        await self.tell(job, at, times=told)
        await self.harness.state(msgspec.structs.replace(job, phase=Phase.WAITING, started=None, rev=3))

    async def is_deleted(self, job: JobState) -> None:
        await self.tell(job, wall_clock())
        await self.harness.delete(job)

    async def ends(self, job: JobState) -> None:
        """Ends the job, which stays stated for a while; nobody tells an event of it."""
        at = self._over(job, wall_clock())
        await self.harness.state(msgspec.structs.replace(job, phase=Phase.ENDED, ended=at, rev=3))

    async def tell(self, job: JobState, at: Micros, *, times: int = 1) -> None:
        started = job.started or 0
        self._over(job, at)
        event = JobEvicted(
            id=f"{job.uid}-evicted-{started}",
            at=to_datetime(at),
            cluster=job.cluster,
            tenant=job.scope,
            scope=job.scope,
            job=job.id,
            uid=job.uid,
            ran_seconds=(at - started) / SECOND,
            reason="Preempted",
            run=Run(queue=job.queue, started=started, ended=at, demand=job.demand),
        )
        for _ in range(times):  # without an id, so that the server does not drop a copy
            await self.harness.bus.publish(subjects.event(job.scope, job.cluster, job.id), to_json(event))

    def _over(self, job: JobState, at: Micros) -> Micros:
        tenant, ended, demand = self._runs[job.uid, job.started or 0]
        self._runs[job.uid, job.started or 0] = (tenant, ended or at, demand)
        return at

    def at(self, tick: int) -> dict[str, dict[str, int]]:
        past = PastUse(Decay(MINUTE, TICK))
        past.begin(self.begun, self.kept)
        for (uid, started), (tenant, ended, demand) in self._runs.items():
            if ended is None:
                past.run((uid, started), tenant, demand)
            else:
                past.end((uid, started), tenant, ended, demand)
        past.advance(tick)
        return {tenant: past.of(tenant) for tenant in TENANTS if past.of(tenant)}

    async def shows(self, *owners: str) -> int:
        """Wait until decisions of these owners, of a tick that begins now or later, say exactly this; gives the tick."""
        since = wall_clock() // TICK + 1

        def right() -> int:
            shards = self.harness.shards(POOL)
            ticks = {decision.basis.past for decision in shards if decision.basis is not None}
            if {one.owner for one in shards} != set(owners) or len(ticks) != 1 or min(ticks) < since:
                return 0
            [tick] = ticks
            return tick if said(shards) == self.at(tick) else 0

        return await eventually(right, 60, on=self.harness.changed, what=f"{owners} say what was used")


def said(shards: Iterable[Decision]) -> dict[str, dict[str, int]]:
    return {one.tenant: one.past for decision in shards for one in decision.standings if one.past}


@pytest.fixture
async def truth(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Truth]:
    async with BusHarness.open(nats_server, tmp_path) as harness:
        found = Truth(harness)
        await found.leave_to_scorers()
        yield found


async def test_it_is_kept_to_the_byte_when_owners_are_killed_and_when_all_are(truth: Truth) -> None:
    harness = truth.harness
    with harness.process("scorer", "s1") as first, harness.process("scorer", "s2") as second:
        await truth.shows("s1", "s2")
        runs = [await truth.starts(f"r{number}", tenant, 2 + number) for number, tenant in enumerate(TENANTS)]
        await truth.shows("s1", "s2")
        first.kill()
        await truth.is_put_back(runs[0], told=3)
        await truth.shows("s2")
        second.kill()
    # Nobody listens: one job ends and is stated no more, one is put back and starts again.
    await truth.is_deleted(runs[1])
    await truth.is_put_back(runs[2])
    await truth.starts("r2", "team-c", 4)
    with harness.process("scorer", "s3"):
        tick = await truth.shows("s3")
        assert set(truth.at(tick)) == set(TENANTS)


async def test_a_restart_of_nats_and_old_news_change_nothing(truth: Truth, nats_server: NatsServer) -> None:
    harness = truth.harness
    with harness.process("scorer", "s1"), harness.process("scorer", "s2"):
        await truth.shows("s1", "s2")
        one, other = await truth.starts("r1", "team-a", 3), await truth.starts("r2", "team-b", 5)
        await truth.shows("s1", "s2")
        await truth.ends(one)
        before = harness.bus.incarnation
        nats_server.kill()
        nats_server.start()
        await eventually(
            lambda: harness.bus.connected and harness.bus.incarnation != before,
            what="connected to the new server",
        )
        await harness.mark()
        await truth.is_deleted(other)
        # Said again, and later than it was: by who watches the cluster, after a crash.
        await truth.tell(one, wall_clock())
        await truth.tell(other, wall_clock() + SECOND)
        await truth.shows("s1", "s2")


def whole_ticks(seen: Shards) -> list[dict[int, list[Micros]]]:
    """The ticks that every shard was decided for, without the first and the last."""
    inner = [seen[tick] for tick in sorted(seen)[1:-1]]
    return [shards for shards in inner if len(shards) == POLICY.shards]


async def test_all_shards_tick_over_together_and_write_once_a_tick(truth: Truth) -> None:
    harness = truth.harness
    with harness.process("scorer", "s1"), harness.process("scorer", "s2"):
        await truth.shows("s1", "s2")
        await truth.starts("r1", "team-a", 3)
        await truth.shows("s1", "s2")
        seen: Shards = {}
        async with asyncio.timeout(90):
            async for delivery in Follower(harness.bus, stream="decision", filter=subjects.decision_filter()):
                decision = DECISION.decode(delivery.payload)
                assert decision.basis is not None
                seen.setdefault(decision.basis.past, {}).setdefault(decision.shard, []).append(delivery.at)
                # The first one may have been under way, and the last one is.
                if len(whole_ticks(seen)) == 6:
                    break
    whole = whole_ticks(seen)
    # Who stands still for a second on a busy machine leaves its ticks out, and takes the next one.
    assert 2 * len(whole) > len(seen) - 2, "every shard has every tick"
    assert all(len(times) == 1 for shards in whole for times in shards.values()), "and says it once"
    apart = sorted(max(map(max, shards.values())) - min(map(min, shards.values())) for shards in whole)
    print("a pool was between two ticks for", [one / SECOND for one in apart], "s")  # noqa: T201 # a figure for people
    assert apart[len(apart) // 2] < TICK, "the pool is settled in between"
