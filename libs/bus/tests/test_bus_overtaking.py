"""Messages behind a flood in a stream are handled at once, however large the flood is."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest

from fairlead_bus import Bus, Delivery, Publisher
from fairlead_bus.observer import BusTally
from fairlead_bus.work.worker import READ_AHEAD_OVERTAKING
from fairlead_contracts import subjects
from fairlead_contracts.topology import submit_durable
from fairlead_testkit import eventually
from fairlead_testkit.by_hand.bus_harness import working
from fairlead_testkit.nats_servers.streams import nothing_waits

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DURABLE = submit_durable("c1")
FLOOD = 4 * READ_AHEAD_OVERTAKING
QUIET = ["team-a", "team-b", "team-c"]


async def put(bus: Bus, tenant: str, count: int) -> None:
    publisher = Publisher(bus)
    for number in range(count):
        await publisher.put(subjects.submit("c1", tenant), str(number).encode())
    await publisher.flush()


READING_AHEAD: Mapping[str, object] = {
    "parallel": 8,
    "line_of": subjects.line_of,
    "share": 2,
    "overtaking": subjects.submit_filter("c1"),
}


class OrderedHandler:
    """Handles submissions; those of the tenant `flood` wait until it is over."""

    def __init__(self) -> None:
        self.handled: dict[str, list[str]] = {}
        self.over = asyncio.Event()

    async def handle(self, delivery: Delivery) -> None:
        tenant = delivery.subject.rpartition(".")[2]
        if tenant == "flood":
            await self.over.wait()
        self.handled.setdefault(tenant, []).append(delivery.payload.decode())

    def count(self, tenant: str) -> int:
        return len(self.handled.get(tenant, ()))


async def test_it_is_handled_before_the_flood_once_and_in_its_tenants_order(
    bus: Bus, tally: BusTally
) -> None:
    them = OrderedHandler()
    await put(bus, "flood", FLOOD)
    for tenant in QUIET:
        await put(bus, tenant, 40)
    async with working(bus, them.handle, **READING_AHEAD):
        await eventually(lambda: all(them.count(tenant) == 40 for tenant in QUIET), 60)
        assert "flood" not in them.handled
        await put(bus, "team-a", 1)  # comes while the flood stands
        await eventually(lambda: them.count("team-a") == 41, 60)
        them.over.set()
        await eventually(lambda: nothing_waits(bus), 120)
    assert {tenant: len(found) for tenant, found in them.handled.items()} == {
        "flood": FLOOD,
        "team-a": 41,
        "team-b": 40,
        "team-c": 40,
    }, "each once"
    assert them.handled["team-b"] == [str(number) for number in range(40)]
    assert tally.counts["worker.overtook"] >= 121
    assert tally.counts["worker.dead_letters"] == 0


async def test_of_whom_something_was_found_lately_the_next_is_read_without_asking_who_has_any(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_bus.work.overtaking.LOOK_SECONDS", 3600.0)
    monkeypatch.setattr("fairlead_bus.work.overtaking.LATELY_SECONDS", 3600.0)
    them = OrderedHandler()
    await put(bus, "flood", FLOOD)
    await put(bus, "team-a", 1)
    async with working(bus, them.handle, **READING_AHEAD):
        for number in range(1, 6):
            await eventually(lambda number=number: them.count("team-a") == number, 60)  # type: ignore[misc]
            await put(bus, "team-a", 1)
        them.over.set()
        await eventually(lambda: nothing_waits(bus), 120)
    assert (them.count("flood"), them.count("team-a")) == (FLOOD, 6)


async def test_one_that_fails_is_tried_again_in_its_turn_and_ends_among_the_dead_letters(
    bus: Bus, tally: BusTally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_bus.work.worker._LONGEST_DELAY", 0.4)  # eight tries wait for 25 s otherwise
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
    async with working(bus, handle, **READING_AHEAD):
        await eventually(lambda: tries["team-a"] == tries["team-b"] == 1, 60)
        over.set()
        await eventually(lambda: nothing_waits(bus), 120)
    assert (tries["team-a"], tries["team-b"], tries["flood"]) == (8, 2, FLOOD)
    assert tally.counts["worker.dead_letters"] == 1


async def test_what_was_overtaken_comes_again_to_the_next_worker_and_is_not_lost(bus: Bus) -> None:
    them = OrderedHandler()
    await put(bus, "flood", FLOOD)
    await put(bus, "team-a", 3)
    async with working(bus, them.handle, **READING_AHEAD) as first:
        await eventually(lambda: them.count("team-a") == 3, 60)
        first.drop()
    them.over.set()
    async with working(bus, them.handle, **READING_AHEAD):
        await eventually(lambda: nothing_waits(bus), 120)
    assert them.count("flood") >= FLOOD
    assert them.count("team-a") >= 3


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
    async with working(bus, handle, **READING_AHEAD):
        await eventually(lambda: len(handled) == len(hostile) + 1, 60)
        over.set()
        await eventually(lambda: nothing_waits(bus), 120)
    mine = subjects.submit("c1", "team-a")
    assert handled == [(mine, b"", "1")] * len(hostile) + [(mine, b"0", None)], "each once, in their order"
    assert tally.counts["worker.overtook"] >= len(handled)
