"""Reserve mode of a whole admitter on a real nats-server: what is told, and when passes are taken back."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from fairlead_bus import Bus, Follower
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.messages.events import EVENT, JobReserved, LevelWritten, Reserving
from fairlead_contracts.messages.state import Phase
from fairlead_contracts.policyfile.document import Reserve
from fairlead_runtime.clock import wall_clock
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.fake_cluster import (
    CLUSTER,
    DOCUMENT,
    FakeCluster,
    FakeScorer,
    RunAdmitter,
    set_up,
)
from fairlead_testkit.inputs.builders import a_job, a_pool

pytestmark = pytest.mark.integration


GPU = "nvidia.com/gpu"
REACTION = 1.0


@pytest.fixture
async def policy(bus: Bus) -> int:
    reserve = Reserve(reaction_seconds=REACTION, grace_seconds=1, rest_seconds=60)
    return await set_up(bus, msgspec.structs.replace(DOCUMENT, mode="reserve", reserve=reserve))


@pytest.fixture
async def order(bus: Bus, cluster: FakeCluster) -> list[str]:
    """Six of eight cards are taken for ten minutes; a gang of eight waits, and a small job behind it."""
    pool = a_pool(capacity={GPU: 8}, reservable=True, rev=1_000)
    await bus.publish(subjects.state(CLUSTER, "pool", "gpu"), to_packed(pool))
    now = wall_clock()
    running = a_job("r", scope="team-a", demand={GPU: 6}, phase=Phase.RUNNING, started=now)
    await cluster.state(running, ends_by=now + 600 * SECOND)
    gang = await cluster.put("gang", demand={GPU: 8})
    return gang + await cluster.put("small", demand={GPU: 1}, run_limit=60 * SECOND)


@pytest.fixture
async def events(bus: Bus, policy: int) -> AsyncIterator[tuple[str, str]]:
    """Events of the small job, in the order of the log."""
    assert policy
    return _of_the_small_job(
        Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER), since=0)
    )


async def _of_the_small_job(follower: Follower) -> AsyncIterator[tuple[str, str]]:
    async for record in follower:
        event = EVENT.decode(record.payload)
        if isinstance(event, LevelWritten | JobReserved) and event.job == "small":
            yield (event.what, event.uid) if isinstance(event, JobReserved) else ("level", event.uid)


async def test_no_level_waits_for_what_is_told_of_it(
    cluster: FakeCluster,
    scorer: FakeScorer,
    run_admitter: RunAdmitter,
    order: list[str],
    events: AsyncIterator[tuple[str, str]],
) -> None:
    async with run_admitter():
        await scorer.decide(cluster, order)
        gang, small = order
        await eventually(lambda: cluster.order() == [small, gang], on=cluster.changed, what="the pass")
        told = [await anext(events) for _ in range(3)]
    assert told == [("level", small), ("level", small), (Reserving.PASSED, small)]


async def test_a_pass_is_taken_back_though_no_scorer_decides_any_more(
    cluster: FakeCluster,
    scorer: FakeScorer,
    run_admitter: RunAdmitter,
    order: list[str],
) -> None:
    async with run_admitter():
        await scorer.decide(cluster, order)
        gang, small = order
        await eventually(lambda: cluster.order() == [small, gang], on=cluster.changed, what="the pass")
        await scorer.claim(1)  # and does not decide: there is no order from here on
        await eventually(lambda: cluster.order() == [gang, small], on=cluster.changed, what="the withdrawal")
