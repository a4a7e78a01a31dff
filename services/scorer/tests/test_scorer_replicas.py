"""Any number of replicas gives one order: by construction, through hand-over, take-over and churn under load."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

import msgspec
import pytest

from fairlead_bus import Follower
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.decisions import DECISION, Decision
from fairlead_contracts.messages.state import JobState, Phase
from fairlead_contracts.policyfile.document import Aging, PolicyDocument, Tenant
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_scorer import ScorerSettings, main
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.bus_harness import BusHarness
from fairlead_testkit.inputs.builders import NOW, a_job, a_pool, a_queue
from fairlead_testkit.timing.in_hand import beside

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
async def harness(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[BusHarness]:
    async with BusHarness.open(nats_server, tmp_path) as opened:
        yield opened


TAKEOVER_SECONDS = 4.0
HANDOVER_SECONDS = 0.45 * TAKEOVER_SECONDS
"""Longest handover in seconds, mostly a tenth: who waits for the end of a lease takes two seconds at least."""
ROUNDS = 5
"""Rounds of joining and leaving, until each was quick once: a busy machine makes anything slow, none quick."""
TENANTS = [f"team-{number}" for number in range(12)]


def a_policy() -> PolicyDocument:
    tenants = [Tenant(name=name, weight=1.0 + number % 3) for number, name in enumerate(TENANTS)]
    return PolicyDocument(tenants=tenants)


def some_jobs(count: int, *, seed: int = 7) -> list[JobState]:
    dice = random.Random(seed)
    return [
        a_job(
            f"job-{number}",
            scope=dice.choice(TENANTS),
            gpu=dice.choice([1, 2, 4]),
            submitted=NOW - dice.randrange(3_600_000_000),
            phase=Phase.RUNNING if dice.random() < 0.2 else Phase.WAITING,
        )
        for number in range(count)
    ]


async def set_up(harness: BusHarness, jobs: int = 300) -> None:
    await harness.policy(a_policy())
    await harness.state(a_pool(), a_queue(), *some_jobs(jobs))
    await harness.mark()


def scorer(harness: BusHarness, name: str, **settings: object) -> AbstractAsyncContextManager[Lifecycle]:
    return harness.serving(main, ScorerSettings, name, **settings)


class OrderWitness:
    """Sees each decision that the stream takes, and the merged order after each."""

    def __init__(self, harness: BusHarness) -> None:
        self._stage = harness
        self._last = {decision.shard: decision for decision in harness.shards()}
        self._seq = 0
        self.decisions: list[Decision] = []
        self.orders: list[bytes | None] = []

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Self]:
        stream = Follower(self._stage.bus, stream="decision", filter=subjects.decision_filter())

        async def watch() -> None:
            async for delivery in stream:
                decision = DECISION.decode(delivery.payload)
                self._seq = delivery.stream_seq
                self.decisions.append(decision)
                self._last[decision.shard] = decision
                self.orders.append(self._stage.merged([self._last[shard] for shard in sorted(self._last)]))

        async with beside(watch()):
            await stream.ready.wait()
            before = self._stage.decisions.seq
            yield self
            # The harness's own mirror may be ahead of this consumer.
            last = self._stage.decisions.seq
            await eventually(lambda: last == before or self._seq >= last, what="all was witnessed")


async def shared_by(harness: BusHarness, *names: str) -> float:
    """Seconds until these replicas share the shards, as the decisions' own owners say."""
    started = time.monotonic()

    def shared() -> bool:
        return {decision.owner for decision in harness.shards()} == set(names)

    await eventually(shared, 60, what=f"{names} own the decisions")
    return time.monotonic() - started


@pytest.mark.parametrize("replicas", [1, 2, 4])
async def test_one_two_and_four_scorers_give_the_same_order_to_the_byte(
    harness: BusHarness, replicas: int
) -> None:
    await set_up(harness)
    names = [f"s{number}" for number in range(replicas)]
    async with AsyncExitStack() as stack:
        for name in names:
            await stack.enter_async_context(scorer(harness, name))
        await harness.owned_by(*names)
        await harness.settled()

        def evenly() -> bool:
            owners = list(harness.owners().values())
            return [owners.count(name) for name in names] == [16 // replicas] * replicas

        # All have some before all have as many.
        await eventually(evenly, 60, on=harness.changed, what="each has as many")
        await harness.settled()


async def test_an_empty_shard_publishes_one_empty_decision(harness: BusHarness) -> None:
    await harness.policy(a_policy())
    await harness.state(a_pool(), a_queue())
    await harness.mark()
    async with scorer(harness, "s1"):
        await harness.settled()
        assert [(decision.queue_heads, decision.standings) for decision in harness.shards()] == [
            ([], [])
        ] * 16


async def newest_decision(harness: BusHarness) -> int:
    """The sequence of the newest decision on the stream, once all that is stated by now was decided from."""
    stated = await harness.bus.last(topology.STATE, subjects.state_filter())
    assert stated is not None

    def decided() -> bool:
        return any(lease.state_seq >= stated.seq for lease in harness.members.values.values())

    await eventually(decided, what="the lease says that the newest state was decided from")
    found = await harness.bus.last(topology.DECISION, subjects.decision_filter())
    assert found is not None
    return found.seq


async def test_what_changes_nothing_publishes_nothing(harness: BusHarness) -> None:
    await set_up(harness, jobs=10)
    async with scorer(harness, "s1"):
        await harness.owned_by("s1")
        await harness.settled()
        before = await newest_decision(harness)
        await harness.state(a_job("held", phase=Phase.HELD))
        assert await newest_decision(harness) == before


async def test_joining_and_leaving_hand_shards_over_quickly_and_never_change_the_order(
    harness: BusHarness,
) -> None:
    await set_up(harness)
    async with scorer(harness, "s1"):
        await harness.settled()
        joined: list[float] = []
        left: list[float] = []
        async with OrderWitness(harness).watching() as seen:
            while not joined or (max(min(joined), min(left)) >= HANDOVER_SECONDS and len(joined) < ROUNDS):
                async with scorer(harness, "s2") as leaving:
                    joined.append(await shared_by(harness, "s1", "s2"))
                    leaving.ask_stop("it leaves")
                    left.append(await shared_by(harness, "s1"))
        assert set(seen.orders) == {harness.expected()}
        assert min(joined) < HANDOVER_SECONDS, joined
        assert min(left) < HANDOVER_SECONDS, left


async def test_a_killed_scorers_shards_are_taken_over_and_the_order_stays(harness: BusHarness) -> None:
    await set_up(harness)
    with harness.process("scorer", "s1") as doomed:
        await shared_by(harness, "s1")
        async with scorer(harness, "s2"):
            await shared_by(harness, "s1", "s2")
            await harness.settled()
            async with OrderWitness(harness).watching() as seen:
                doomed.kill()
                took = await shared_by(harness, "s2")
            assert set(seen.orders) == {harness.expected()}
            assert took < 3 * TAKEOVER_SECONDS


async def test_replicas_come_and_go_under_load_and_the_order_is_the_one_from_scratch(
    harness: BusHarness,
) -> None:
    await set_up(harness)
    jobs = some_jobs(1500, seed=11)
    with harness.process("scorer", "p1") as first, harness.process("scorer", "p2") as second:
        await shared_by(harness, "p1", "p2")

        async def load() -> None:
            for number in range(0, len(jobs), 25):
                await harness.state(
                    *(msgspec.structs.replace(job, rev=2) for job in jobs[number : number + 25])
                )
                await asyncio.sleep(0.02)

        async with asyncio.TaskGroup() as group:
            loading = group.create_task(load())
            async with scorer(harness, "s3"):
                await shared_by(harness, "p1", "p2", "s3")
                first.kill()
            await second.stop()
            second.start()
            async with scorer(harness, "s4"):
                await shared_by(harness, "p2", "s4")
                await loading
                await harness.settled()
        await harness.settled()


async def test_a_paused_owner_is_refused_when_it_goes_on_and_steps_down(harness: BusHarness) -> None:
    await set_up(harness)
    with harness.process("scorer", "paused") as paused:
        await shared_by(harness, "paused")
        async with scorer(harness, "s2"):
            await shared_by(harness, "paused", "s2")
            paused.pause()
            await shared_by(harness, "s2")
            claimed = {decision.shard: decision.epoch for decision in harness.shards()}
            # Something to publish for every shard of the one that is about to go on.
            await harness.state(*some_jobs(400, seed=3))
            await harness.settled()
            async with OrderWitness(harness).watching() as seen:
                paused.resume()
                await paused.logged("lost ownership, stepping down")
                await shared_by(harness, "paused", "s2")
                await harness.settled()
            assert seen.decisions
            for decision in seen.decisions:
                assert decision.epoch == 0 or decision.epoch >= claimed[decision.shard], decision.owner


async def test_after_a_killed_server_the_order_waits_for_the_mark_of_the_new_one(
    harness: BusHarness, nats_server: NatsServer
) -> None:
    await set_up(harness)
    async with scorer(harness, "s1"):
        await harness.settled()
        order = harness.order()
        before = harness.bus.incarnation
        nats_server.restart()
        await eventually(lambda: harness.bus.incarnation != before and harness.decisions.complete)
        await harness.state(*some_jobs(320))

        def withheld() -> bool:
            return any(
                not holding.current for lease in harness.members.values.values() for holding in lease.holdings
            )

        await eventually(withheld, what="the lease says that the decisions stand still")
        assert harness.order() == order
        await harness.mark()
        await harness.settled()


async def test_aging_alone_reorders_a_shard_at_its_instant(harness: BusHarness) -> None:
    """A job beyond the cap ages no more, so a younger one with a lower tag passes it, without any event."""
    hour = 3_600_000_000
    await harness.policy(
        PolicyDocument(
            tenants=[Tenant(name=name) for name in TENANTS],
            shards=1,
            aging=Aging(entitlement_per_day=24.0 * len(TENANTS), cap_days=1 / 24),
        )
    )
    await harness.state(
        a_pool(),
        a_queue(),
        a_job("use", scope="team-0", gpu=2, phase=Phase.RUNNING),
        a_job("old", scope="team-0", gpu=1, submitted=time.time_ns() // 1000 - 5 * hour),
    )
    await harness.mark()

    def heads() -> list[str]:
        return [
            position.id
            for decision in harness.shards()
            for queue in decision.queue_heads
            for position in queue.positions
        ]

    async with scorer(harness, "s1"):
        await eventually(lambda: heads() == ["old"], 60, on=harness.changed)
        # team-0 holds 1/8 of the pool, worth 7.5 min of waiting; its job is far beyond the cap. team-1's job passes it 52.5 minutes after the
        # instant at which it would stand level uncapped: cap + submitted - tag / rate, put five seconds ahead of now.
        submitted = time.time_ns() // 1000 + 5_000_000 - hour + hour // 8
        await harness.state(a_job("new", scope="team-1", gpu=1, submitted=submitted))
        await eventually(lambda: heads() == ["old", "new"], on=harness.changed)
        await eventually(lambda: heads() == ["new", "old"], 60, on=harness.changed)
        assert time.time_ns() // 1000 >= submitted + hour - hour // 8
