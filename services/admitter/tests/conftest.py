"""A nats-server with the streams of cluster c1, a cluster played by hand, and admitters in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import msgspec
import pytest

from fairlead_admitter.app import main
from fairlead_admitter.settings import AdmitterSettings
from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_contracts.messages.submissions import AnyAnswer
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.bus_harness import serving
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, FakeCluster, FakeScorer, RunAdmitter, set_up
from fairlead_testkit.by_hand.people import hear_answers


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        yield bus


@pytest.fixture
async def policy(bus: Bus) -> int:
    return await set_up(bus)


@pytest.fixture
async def cluster(bus: Bus, policy: int) -> AsyncIterator[FakeCluster]:
    assert policy
    cluster = FakeCluster(bus)
    await cluster.come_up()
    await cluster.declare()
    yield cluster
    cluster.hold_replies.set()
    for heard in cluster.deaf_to.values():  # of a test that failed: its creations would hang for good
        heard.set()
    await cluster.go_down()


@pytest.fixture
async def scorer(bus: Bus, policy: int) -> AsyncIterator[FakeScorer]:
    async with FakeScorer(bus, "scorer-1", policy).alive() as scorer:
        yield scorer


@pytest.fixture
async def answers(bus: Bus, policy: int) -> AsyncIterator[list[AnyAnswer]]:
    """Every answer from now on, in the order of their publishing."""
    assert policy
    heard: list[AnyAnswer] = []
    stop = await hear_answers(bus, heard.append)
    yield heard
    await stop()


@pytest.fixture
def run_admitter(nats_server: NatsServer) -> RunAdmitter:
    """Runs an admitter in this process while the block lasts, and ends it cleanly."""
    numbers = count(1)

    @asynccontextmanager
    async def run(**changes: object) -> AsyncIterator[Lifecycle]:
        given = {"cluster": CLUSTER, "nats_url": nats_server.url, "tick_seconds": 0.2} | changes
        settings = msgspec.convert(given, AdmitterSettings)
        async with serving(main, settings, f"admitter-{next(numbers)}") as lifecycle:
            await eventually(lambda: "connection" not in lifecycle.readiness.reasons())
            yield lifecycle

    return run
