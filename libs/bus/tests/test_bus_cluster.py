"""Clients of three servers: what they meet that a client of one server does not."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead_bus import Bus, ConnectionSettings, Mirror, RetryableBusError, connect
from fairlead_bus.errors import ReplayBrokenError
from fairlead_bus.observer import BusTally
from fairlead_bus.server.provision import find_changes, provision
from fairlead_bus.streams.feed import Feed
from fairlead_contracts import subjects
from fairlead_contracts.topology import STATE, topology
from fairlead_testkit import eventually
from fairlead_testkit.nats_servers.nats_cluster import NatsCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

NODE = subjects.state("c1", "node", "n1")


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[NatsCluster]:
    with NatsCluster(tmp_path / "nats") as cluster:
        await cluster.quorum()
        yield cluster


@pytest.fixture
async def bus(servers: NatsCluster) -> AsyncIterator[Bus]:
    async with connect(ConnectionSettings(url=servers.url), name="ops") as opened:
        yield opened


async def test_streams_of_one_copy_get_three_and_keep_what_they_hold(bus: Bus) -> None:
    await provision(bus, topology(["c1"]), replicas=1)
    stored = await bus.publish(NODE, b"stays")
    assert await provision(bus, topology(["c1"]), replicas=3)
    assert await find_changes(bus, topology(["c1"]), replicas=3) == []
    found = await bus.last(STATE, NODE)
    assert found is not None
    assert (found.payload, found.seq) == (b"stays", stored.seq)


async def test_a_stored_message_outlives_the_leader_that_acked_it(servers: NatsCluster, bus: Bus) -> None:
    await provision(bus, topology(["c1"]), replicas=3)
    stored = await bus.publish(NODE, b"stays")
    created = (await bus.jetstream.stream(STATE)).created
    leader = await servers.stream_leader(bus, STATE)
    leader.kill()

    async def found() -> int | None:
        return await seq_of(bus)

    assert await eventually(found, 60, what="another server leads the stream") == stored.seq
    assert (
        await bus.jetstream.stream(STATE)
    ).created == created  # else every mirror would forget what it knows


async def seq_of(bus: Bus) -> int | None:
    try:
        found = await bus.last(STATE, NODE)
    except RetryableBusError:
        return None
    return found.seq if found else 0


async def test_a_replay_that_the_server_has_lost_is_begun_anew(bus: Bus) -> None:
    """The replay's consumer stands in the memory of one server, which may die while ours lives."""
    await provision(bus, topology(["c1"]), replicas=3)
    async with Feed(bus, stream=STATE, subject=subjects.state_filter("c1"), deliver=lambda *_: None) as feed:
        assert (await feed.position()).name == feed.created.name
        await bus.jetstream.call(f"CONSUMER.DELETE.{STATE}.{feed.created.name}")
        with pytest.raises(ReplayBrokenError):
            await feed.position()


async def test_a_replay_that_nobody_begins_is_asked_for_again_soon(servers: NatsCluster, bus: Bus) -> None:
    """A cluster may give it to a server that is dead or stands still, and is silent then."""
    await provision(bus, topology(["c1"]), replicas=3)
    await bus.publish(NODE, b"{}")
    leader = await servers.stream_leader(bus, STATE)
    tally = BusTally()
    async with connect(ConnectionSettings(url=leader.url), name="ops", observer=tally) as alone:
        mirror = Mirror(
            alone, stream=STATE, filter=subjects.state_filter("c1"), codec=Anything(), wake=asyncio.Event()
        )
        with servers.others(leader)[0].paused(), servers.others(leader)[1].paused():
            running = asyncio.create_task(mirror.run())
            await eventually(lambda: rebuilds(tally), 30, what="the first try is given up")
            assert "CONSUMER.CREATE" in rebuilds(tally)[0]
            assert "within 1.0 s" in rebuilds(tally)[0]
        await asyncio.wait_for(mirror.wait_complete(), 60)
        running.cancel()
    assert mirror.values == {NODE: b"{}"}


class Anything:
    def decode(self, payload: bytes) -> bytes:
        return payload


def rebuilds(tally: BusTally) -> list[str]:
    return [str(facts["reason"]) for facts in tally.said("mirror.rebuild")]


async def test_a_server_that_left_the_cluster_is_not_tried_any_more(servers: NatsCluster) -> None:
    told, *others = servers.servers
    async with connect(ConnectionSettings(url=told.url), name="ops") as bus:
        await eventually(lambda: discovered(bus) == {address(server.url) for server in others}, 30)
        others[0].kill()
        await eventually(lambda: discovered(bus) == {address(others[1].url)}, 30)


def discovered(bus: Bus) -> set[str]:
    """Addresses that the cluster told of, beside those that we were given."""
    return {server.netloc for server in bus.connection._client.discovered_servers}


def address(url: str) -> str:
    return url.removeprefix("nats://")
