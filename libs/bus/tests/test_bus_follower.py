import asyncio
import gc
import weakref

import pytest
from nats.aio.msg import Msg

from fairlead_bus import Bus, Delivery, Follower
from fairlead_bus.errors import ReplayBrokenError
from fairlead_bus.streams.feed import Feed
from fairlead_contracts import subjects
from fairlead_testkit import NatsServer, eventually

pytestmark = pytest.mark.integration

MINE = subjects.answer_filter("team-a")


class FollowerReader:
    """Reads a follower in the background."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.read: list[Delivery] = []
        self.more = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for delivery in self.follower:
            self.read.append(delivery)
            self.more.set()

    async def payloads(self, number: int) -> list[bytes]:
        await eventually(lambda: len(self.read) >= number, on=self.more)
        return [delivery.payload for delivery in self.read]

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def answer(bus: Bus, tenant: str, text: bytes) -> int:
    return (await bus.publish(subjects.answer(tenant, "s1"), text)).seq


async def test_it_gives_what_comes_from_now_on_over_a_killed_server(
    nats_server: NatsServer, bus: Bus
) -> None:
    await answer(bus, "team-a", b"before")
    reader = FollowerReader(Follower(bus, stream="answer", filter=MINE))
    await reader.follower.ready.wait()
    await answer(bus, "team-b", b"another's")
    seq = await answer(bus, "team-a", b"1")
    assert await reader.payloads(1) == [b"1"]
    assert reader.read[0].stream_seq == seq
    await asyncio.to_thread(nats_server.restart)
    await bus.connection.until_connected()
    for text in (b"2", b"3"):
        await answer(bus, "team-a", text)
    assert await reader.payloads(3) == [b"1", b"2", b"3"]
    await reader.stop()


async def test_a_break_before_the_first_message_loses_none(nats_server: NatsServer, bus: Bus) -> None:
    reader = FollowerReader(Follower(bus, stream="answer", filter=MINE))
    await reader.follower.ready.wait()
    reader.task.cancel()  # the process pauses: its feed is gone while messages arrive
    await asyncio.gather(reader.task, return_exceptions=True)
    await answer(bus, "team-a", b"meanwhile")
    again = FollowerReader(reader.follower)
    assert await again.payloads(1) == [b"meanwhile"]
    await again.stop()
    del nats_server


async def test_it_gives_what_came_since_an_instant(bus: Bus) -> None:
    await answer(bus, "team-a", b"too early")
    await answer(bus, "team-a", b"1")
    found = await bus.last("answer", MINE)
    assert found is not None
    await answer(bus, "team-a", b"2")
    reader = FollowerReader(Follower(bus, stream="answer", filter=MINE, since=found.at))
    assert await reader.payloads(2) == [b"1", b"2"]
    await reader.stop()


async def test_a_reader_slower_than_the_stream_gets_every_message_once_and_in_order(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_bus.streams.follower.BACKLOG", 8)
    for number in range(50):
        await answer(bus, "team-a", b"%d" % number)
    reader = FollowerReader(Follower(bus, stream="answer", filter=MINE, since=0))
    assert await reader.payloads(50) == [b"%d" % number for number in range(50)]
    await reader.stop()


class IdleTaker:
    """Takes a replay's messages."""

    def take(self, message: Msg, seq: int) -> None:
        """Takes a message."""


async def broken_replay(bus: Bus, taker: IdleTaker) -> None:
    try:
        async with Feed(bus, stream="answer", subject=MINE, deliver=taker.take) as feed:
            feed.abandon("enough")
            await feed.until_broken()
    except ReplayBrokenError:
        return


async def test_a_replay_that_broke_lets_go_of_its_reader_without_a_search_for_garbage(bus: Bus) -> None:
    taker = IdleTaker()
    dead = weakref.ref(taker)
    gc.disable()
    try:
        await broken_replay(bus, taker)
        del taker
        await eventually(lambda: dead() is None, what="nothing holds the reader")
    finally:
        gc.enable()
