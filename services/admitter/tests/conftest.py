"""A nats-server with the streams of cluster c1, a cluster played by hand, and admitters in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count

import pytest

from fairlead_admitter.app import main
from fairlead_admitter.settings import AdmitterSettings
from fairlead_bus import Asked, Bus, ConnectionSettings, connect
from fairlead_contracts import subjects
from fairlead_contracts.submissions import ANSWER, AnyAnswer
from fairlead_runtime import Lifecycle
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.stage import CLUSTER, HandPlayedCluster, HandPlayedScorer, set_up

type RunAdmitter = Callable[..., AbstractAsyncContextManager[Lifecycle]]


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        yield bus


@pytest.fixture
async def policy(bus: Bus) -> int:
    return await set_up(bus)


@pytest.fixture
async def cluster(bus: Bus, policy: int) -> AsyncIterator[HandPlayedCluster]:
    assert policy
    cluster = HandPlayedCluster(bus)
    await cluster.come_up()
    await cluster.declare()
    yield cluster
    cluster.hold_replies.set()
    await cluster.go_down()


@pytest.fixture
async def scorer(bus: Bus, policy: int) -> AsyncIterator[HandPlayedScorer]:
    async with HandPlayedScorer(bus, "scorer-1", policy).alive() as scorer:
        yield scorer


@pytest.fixture
async def answers(bus: Bus, policy: int) -> AsyncIterator[list[AnyAnswer]]:
    """Every answer from now on, in the order of their publishing."""
    assert policy
    heard: list[AnyAnswer] = []

    async def hear(asked: Asked) -> None:
        heard.append(ANSWER.decode(asked.payload))

    stop = await bus.subscribe_core(subjects.answer_filter(), hear)
    yield heard
    await stop()


@pytest.fixture
def run_admitter(nats_server: NatsServer) -> RunAdmitter:
    """Runs an admitter in this process while the block lasts, and ends it cleanly."""
    numbers = count(1)

    @asynccontextmanager
    async def run(**changes: object) -> AsyncIterator[Lifecycle]:
        given: dict[str, object] = {
            "cluster": CLUSTER,
            "nats_url": nats_server.url,
            "tick_seconds": 0.2,
        } | changes
        settings = AdmitterSettings(**given)  # type: ignore[arg-type] # names of settings, by the tests
        lifecycle = Lifecycle("admitter", f"admitter-{next(numbers)}")
        async with asyncio.TaskGroup() as group:
            group.create_task(_life(settings, lifecycle))
            try:
                await eventually(lambda: "connection" not in lifecycle.readiness.reasons())
                yield lifecycle
            finally:
                lifecycle.ask_stop("the test is over")

    return run


async def _life(settings: AdmitterSettings, lifecycle: Lifecycle) -> None:
    await main(settings, lifecycle)
