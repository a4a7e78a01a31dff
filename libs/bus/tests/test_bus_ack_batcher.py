"""Verdicts on messages are told to the server many at a time, and none of them is lost."""

import asyncio

import pytest

from fairlead_bus import Bus, Delivery, Publisher
from fairlead_bus.observer import BusTally
from fairlead_bus.work.ack_batcher import ACK_SECONDS, AckBatcher
from fairlead_bus.work.worker import Worker
from fairlead_contracts import subjects
from fairlead_contracts.topology import submit_durable
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.nats_servers.streams import nothing_waits, submissions_left
from fairlead_testkit.timing.in_hand import beside

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DURABLE = submit_durable("c1")
MESSAGES = 600


async def fill(bus: Bus) -> None:
    publisher = Publisher(bus)
    for _ in range(MESSAGES):
        await publisher.put(subjects.submit("c1", "team-a"), b"x")
    await publisher.flush()


async def test_a_worker_that_ends_has_told_of_all_that_it_handled(bus: Bus) -> None:
    await fill(bus)
    handled = 0
    done = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        nonlocal handled
        del delivery
        handled += 1
        if handled == MESSAGES // 2:
            done.set()

    worker = Worker(bus, stream="submit", durable=DURABLE, handle=handle, parallel=8)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await done.wait()
        worker.stop()
    assert await submissions_left(bus) == MESSAGES - handled


async def test_verdicts_outlive_a_lost_connection(bus: Bus, nats_server: NatsServer, tally: BusTally) -> None:
    await fill(bus)
    handled = 0

    async def handle(delivery: Delivery) -> None:
        nonlocal handled
        del delivery
        handled += 1

    worker = Worker(bus, stream="submit", durable=DURABLE, handle=handle, parallel=64)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await eventually(lambda: handled > 50)
        nats_server.kill()
        await eventually(lambda: not bus.connected)
        nats_server.start()
        await eventually(lambda: bus.connected)
        await eventually(lambda: nothing_waits(bus), 60)
        worker.stop()
    assert handled >= MESSAGES
    assert tally.counts["worker.failed"] == 0


async def test_one_answer_confirms_many(bus: Bus) -> None:
    acks = AckBatcher(bus)
    replies = []
    for number in range(100):
        acks.put(f"$JS.ACK.submit.{DURABLE}.1.{number}.{number}.1000.0", b"+ACK")
    confirmed = await bus.connection.listen_inline(
        f"$JS.ACK.submit.{DURABLE}.>", lambda message: replies.append(message.reply)
    )
    async with beside(acks.run()):
        await acks.finish(ACK_SECONDS)
        await eventually(lambda: len(replies) == 100)
    await bus.connection.unlisten(confirmed)
    assert sum(map(bool, replies)) == 1


async def test_what_comes_one_by_one_within_a_moment_is_confirmed_together(bus: Bus) -> None:
    acks = AckBatcher(bus)
    replies = []
    confirmed = await bus.connection.listen_inline(
        f"$JS.ACK.submit.{DURABLE}.>", lambda message: replies.append(message.reply)
    )
    async with beside(acks.run()):
        for number in range(100):
            acks.put(f"$JS.ACK.submit.{DURABLE}.1.{number}.{number}.1000.0", b"+ACK")
            await asyncio.sleep(0)
        await eventually(lambda: len(replies) == 100)
    await bus.connection.unlisten(confirmed)
    assert sum(map(bool, replies)) < 10
