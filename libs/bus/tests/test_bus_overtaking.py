"""Who stands behind a flood in a stream is handled at once, however large the flood is."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from fairlead_bus import Bus, BusTally, Delivery, Publisher
from fairlead_bus.work.worker import READ_AHEAD_OVERTAKING, Worker
from fairlead_contracts import subjects
from fairlead_contracts.topology import submit_durable
from fairlead_testkit import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DURABLE = submit_durable("c1")
FLOOD = 4 * READ_AHEAD_OVERTAKING
QUIET = ["team-a", "team-b", "team-c"]


async def put(bus: Bus, tenant: str, count: int) -> None:
    publisher = Publisher(bus)
    for number in range(count):
        await publisher.put(subjects.submit("c1", tenant), str(number).encode())
    await publisher.flush()


@asynccontextmanager
async def working(bus: Bus, handle: Callable[[Delivery], Awaitable[None]]) -> AsyncIterator[None]:
    worker = Worker(
        bus,
        stream="submit",
        durable=DURABLE,
        handle=handle,
        parallel=8,
        line_of=subjects.line_of,
        share=2,
        overtaking=subjects.submit_filter("c1"),
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(worker.run())
        yield
        worker.stop()
        await running


async def none_left(bus: Bus) -> bool:
    return bool(msgspec.json.decode(await bus.jetstream.call("STREAM.INFO.submit"))["state"]["messages"] == 0)


async def test_it_is_handled_before_the_flood_once_and_in_its_tenants_order(
    bus: Bus, tally: BusTally
) -> None:
    handled: dict[str, list[str]] = {}
    over = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        tenant = delivery.subject.rpartition(".")[2]
        if tenant == "flood":
            await over.wait()
        handled.setdefault(tenant, []).append(delivery.payload.decode())

    await put(bus, "flood", FLOOD)
    for tenant in QUIET:
        await put(bus, tenant, 40)
    async with working(bus, handle):
        await eventually(lambda: all(len(handled.get(tenant, ())) == 40 for tenant in QUIET), 60)
        assert "flood" not in handled
        await put(bus, "team-a", 1)  # comes while the flood stands
        await eventually(lambda: len(handled["team-a"]) == 41, 60)
        over.set()
        await eventually(lambda: none_left(bus), 120)
    assert {tenant: len(found) for tenant, found in handled.items()} == {
        "flood": FLOOD,
        "team-a": 41,
        "team-b": 40,
        "team-c": 40,
    }, "each once"
    assert handled["team-b"] == [str(number) for number in range(40)]
    assert tally.counts["worker.overtook"] >= 121
    assert tally.counts["worker.dead_letters"] == 0


async def test_of_whom_something_was_found_lately_the_next_is_read_without_asking_who_has_any(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_bus.work.overtaking.LOOK_SECONDS", 3600.0)
    monkeypatch.setattr("fairlead_bus.work.overtaking.LATELY_SECONDS", 3600.0)
    handled: Counter[str] = Counter()
    over = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        tenant = delivery.subject.rpartition(".")[2]
        if tenant == "flood":
            await over.wait()
        handled[tenant] += 1

    await put(bus, "flood", FLOOD)
    await put(bus, "team-a", 1)
    async with working(bus, handle):
        for number in range(1, 6):
            await eventually(lambda number=number: handled["team-a"] == number, 60)  # type: ignore[misc]
            await put(bus, "team-a", 1)
        over.set()
        await eventually(lambda: none_left(bus), 120)
    assert handled == {"flood": FLOOD, "team-a": 6}


async def test_one_that_fails_is_tried_again_in_its_turn_and_ends_among_the_dead_letters(
    bus: Bus, tally: BusTally
) -> None:
    tries: Counter[str] = Counter()
    over = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        tenant = delivery.subject.rpartition(".")[2]
        tries[tenant] += 1
        if tenant == "flood":
            await over.wait()
        elif tenant == "team-a" or tries[tenant] == 1:
            raise ValueError("no luck")

    await put(bus, "flood", FLOOD)
    for tenant in QUIET[:2]:
        await put(bus, tenant, 1)
    async with working(bus, handle):
        await eventually(lambda: tries["team-a"] == tries["team-b"] == 1, 60)
        over.set()
        await eventually(lambda: none_left(bus), 120)
    assert (tries["team-a"], tries["team-b"], tries["flood"]) == (8, 2, FLOOD)
    assert tally.counts["worker.dead_letters"] == 1


async def test_what_was_overtaken_comes_again_to_the_next_worker_and_is_not_lost(bus: Bus) -> None:
    handled: Counter[str] = Counter()
    over = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        tenant = delivery.subject.rpartition(".")[2]
        if tenant == "flood":
            await over.wait()
        handled[tenant] += 1

    await put(bus, "flood", FLOOD)
    await put(bus, "team-a", 3)
    async with asyncio.TaskGroup() as group:
        first = Worker(
            bus,
            stream="submit",
            durable=DURABLE,
            handle=handle,
            parallel=8,
            line_of=subjects.line_of,
            share=2,
            overtaking=subjects.submit_filter("c1"),
        )
        running = group.create_task(first.run())
        await eventually(lambda: handled["team-a"] == 3, 60)
        first.drop()
        await running
    over.set()
    async with working(bus, handle):
        await eventually(lambda: none_left(bus), 120)
    assert handled["flood"] >= FLOOD
    assert handled["team-a"] >= 3


async def test_headers_that_a_publisher_chose_hide_nothing_of_what_is_read_ahead(
    bus: Bus, tally: BusTally
) -> None:
    handled: list[tuple[str, bytes, str | None]] = []
    over = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        if delivery.subject.endswith(".flood"):
            await over.wait()
        else:
            handled.append((delivery.subject, delivery.payload, delivery.headers.get("own")))

    await put(bus, "flood", FLOOD)
    hostile = [
        {"Status": "204", "Description": "EOB"},
        {"Nats-Sequence": "1", "Nats-Subject": subjects.submit("c1", "team-b")},
        {"nats-sequence": "x", "Nats-Time-Stamp": "never", "Nats-Num-Pending": "0"},
        {"Nats-Stream": "state", "Status": "503"},
    ]
    for headers in hostile:
        await bus.publish(subjects.submit("c1", "team-a"), b"", headers={"own": "1", **headers})
    await put(bus, "team-a", 1)
    async with working(bus, handle):
        await eventually(lambda: len(handled) == len(hostile) + 1, 60)
        over.set()
        await eventually(lambda: none_left(bus), 120)
    mine = subjects.submit("c1", "team-a")
    assert handled == [(mine, b"", "1")] * len(hostile) + [(mine, b"0", None)], "each once, in their order"
    assert tally.counts["worker.overtook"] >= len(handled)
