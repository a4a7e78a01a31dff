"""Turns between the tenants of one stream: a flood of one delays the others by its turn, not by all that it has."""

import asyncio
from collections import Counter

import pytest
from nats.aio.msg import Msg

from fairlead_bus import Bus, Delivery, Publisher
from fairlead_bus.observer import BusTally
from fairlead_bus.streams.delivery import read_delivery
from fairlead_bus.work.fair_queue import CALM_SECONDS, FairQueue, LineConcurrency, QueuedMessage
from fairlead_bus.work.worker import READ_AHEAD, Worker
from fairlead_contracts import subjects
from fairlead_contracts.topology import submit_durable
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.bus_harness import working
from fairlead_testkit.timing.in_hand import ManualClock

FLOOD = READ_AHEAD // 2
DURABLE = submit_durable("c1")


def waiting(line: str, number: int, size: int = 1) -> QueuedMessage:
    message = Msg(
        _client=None,  # type: ignore[arg-type] # nothing is sent
        subject=subjects.submit("c1", line),
        reply=f"$JS.ACK.submit.{DURABLE}.1.{number}.{number}.1000.0",
        data=b"x" * size,
    )
    return QueuedMessage(line, message, read_delivery(message))


def served(turns: FairQueue) -> list[int]:
    found = []
    while (next_one := turns.serve_next()) is not None:
        found.append(next_one.delivery.stream_seq)
    return found


def test_lines_are_served_in_turn() -> None:
    turns = FairQueue(LineConcurrency(16))
    for number, line in enumerate("aaaabbc"):
        turns.put(waiting(line, number))
    assert served(turns) == [0, 4, 6, 1, 5, 2, 3]
    assert len(turns) == 0


def test_who_is_served_enough_is_passed_over() -> None:
    turns = FairQueue(LineConcurrency(1))
    for number, line in enumerate("aaab"):
        turns.put(waiting(line, number))
    assert served(turns) == [0, 3]
    assert len(turns) == 2
    turns.served("a")
    assert served(turns) == [1]
    turns.served("a")
    turns.serve_again("a")
    assert served(turns) == [], "one that came back has the place"


def test_all_can_be_sent_away() -> None:
    turns = FairQueue(LineConcurrency(16))
    for number, line in enumerate("aab"):
        turns.put(waiting(line, number, size=5))
    assert turns.bytes == 15
    assert [one.delivery.stream_seq for one in turns.clear()] == [0, 1, 2]
    assert (len(turns), turns.bytes, turns._lines) == (0, 0, {})


@pytest.mark.integration
async def test_a_message_behind_a_flood_is_handled_before_it(bus: Bus, tally: BusTally) -> None:
    handled: Counter[str] = Counter()
    served = asyncio.Event()
    publisher = Publisher(bus)
    for _ in range(FLOOD):
        await publisher.put(subjects.submit("c1", "flood"), b"x")
    await publisher.put(subjects.submit("c1", "neighbour"), b"x")
    await publisher.flush()

    async def handle(delivery: Delivery) -> None:
        if delivery.subject.endswith("neighbour"):
            served.set()
        await served.wait()  # nothing of the flood is ever done before
        handled[delivery.subject] += 1

    async with working(bus, handle, parallel=8, line_of=subjects.line_of, share=4):
        await eventually(lambda: handled.total() == FLOOD + 1, 60)
    assert handled[subjects.submit("c1", "flood")] == FLOOD, "each is handled once"
    assert tally.counts["worker.dead_letters"] == 0


@pytest.mark.integration
async def test_what_a_stopped_worker_has_read_ahead_comes_again_at_once(bus: Bus) -> None:
    for _ in range(20):
        await bus.publish(subjects.submit("c1", "team-a"), b"x")
    hanging = asyncio.Event()

    async def hang(delivery: Delivery) -> None:
        del delivery
        hanging.set()
        await asyncio.sleep(0.05)

    handled: list[Delivery] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery)

    first = Worker(bus, stream="submit", durable=DURABLE, handle=hang, parallel=1)
    second = Worker(bus, stream="submit", durable=DURABLE, handle=handle)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(first.run())
        await eventually(lambda: len(first.held) == 20)
        first.stop()
        await running
        begun = asyncio.get_running_loop().time()
        group.create_task(second.run())
        await eventually(lambda: len(handled) == 19)
        assert asyncio.get_running_loop().time() - begun < 8, "it waited for the ack wait, ten seconds"
        second.stop()


def test_a_crowded_line_has_less_while_somebody_stands_in_a_short_one() -> None:
    clock = ManualClock()
    concurrency = LineConcurrency(16, clock)
    concurrency.served("flood", 400)
    assert concurrency.of("flood", 400) == 16, "alone it has all"
    concurrency.served("team-b", 0)
    assert concurrency.of("flood", 400) == 4
    assert concurrency.of("flood", 15) == 16, "crowded no more"
    assert concurrency.of("team-b", 1) == 16
    clock.now += CALM_SECONDS + 0.1
    assert concurrency.of("flood", 400) == 16, "it is long gone"
    concurrency.served("flood", 3)
    assert concurrency.of("flood", 400) == 16, "its own calm counts for nothing"
    concurrency.served("team-b", 30)
    assert concurrency.of("flood", 400) == 16, "two floods leave nobody waiting"


@pytest.mark.integration
async def test_a_flood_is_handled_a_few_at_a_time_beside_one_that_comes_now_and_then(bus: Bus) -> None:
    serving: Counter[str] = Counter()
    most: Counter[str] = Counter()
    calm = 0

    async def handle(delivery: Delivery) -> None:
        nonlocal calm
        line = subjects.line_of(delivery.subject)
        serving[line] += 1
        most[line] = max(most[line], serving[line])
        await asyncio.sleep(0.01)
        serving[line] -= 1
        calm += line == "calm"

    publisher = Publisher(bus)
    for number in range(600):
        await publisher.put(subjects.submit("c1", "flood"), str(number).encode())
    await publisher.flush()
    overtaking = subjects.submit_filter("c1")
    async with working(bus, handle, parallel=32, line_of=subjects.line_of, share=16, overtaking=overtaking):
        for number in range(5):
            await bus.publish(subjects.submit("c1", "calm"), str(number).encode())
            await eventually(lambda: calm > number, 30)  # noqa: B023 # asked for within its round
            if not number:
                most.clear()  # what was begun before it came
    assert 0 < most["flood"] <= 4
