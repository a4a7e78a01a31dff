import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from fairlead_bus import (
    Bus,
    ClosedError,
    ConnectionSettings,
    Delivery,
    JetStreamNotFoundError,
    NotYetError,
    PoisonError,
    connect,
)
from fairlead_bus.observer import NOTES_A_MINUTE, BusTally
from fairlead_bus.server.provision import provision
from fairlead_bus.work.worker import FIRST_HANDED_BACK_SECONDS, HANDED_BACK_SECONDS, Handle, Worker, pause_of
from fairlead_contracts import subjects
from fairlead_contracts.messages.submissions import DEAD_LETTER
from fairlead_contracts.topology import Topology, submit_durable, topology
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand import bus_harness
from fairlead_testkit.nats_servers.streams import change_stream, nothing_waits
from fairlead_testkit.processes.fresh_interpreter import child_running

pytestmark = pytest.mark.integration

SUBJECT = subjects.submit("c1", "team-a")
DURABLE = submit_durable("c1")


def a_topology(*, ack_wait: float, max_deliver: int, max_unfinished: int = 64) -> Topology:
    whole = topology(["c1"])
    durables = [
        msgspec.structs.replace(
            durable, ack_wait_seconds=ack_wait, max_deliver=max_deliver, max_unfinished=max_unfinished
        )
        for durable in whole.durables
    ]
    return msgspec.structs.replace(whole, durables=durables)


@asynccontextmanager
async def working(bus: Bus, handle: Handle, *, parallel: int = 64) -> AsyncIterator[asyncio.Task[None]]:
    worker = Worker(bus, stream="submit", durable=DURABLE, handle=handle, parallel=parallel)
    task = asyncio.create_task(worker.run())
    try:
        yield task
    finally:
        worker.stop()
        async with asyncio.timeout(30):
            await asyncio.gather(task, return_exceptions=True)


async def test_messages_are_handled_acked_and_gone(bus: Bus) -> None:
    handled: dict[str, Delivery] = {}

    async def handle(delivery: Delivery) -> None:
        handled[delivery.payload.decode()] = delivery

    async with working(bus, handle, parallel=4):
        for i in range(50):
            await bus.publish(SUBJECT, str(i).encode(), msg_id=f"m{i}", headers={"Mine": "x"})
        await eventually(lambda: nothing_waits(bus))
    assert set(handled) == {str(i) for i in range(50)}
    seventh = handled["7"]
    assert (seventh.subject, seventh.stream_seq, seventh.deliveries) == (SUBJECT, 8, 1)
    assert (seventh.msg_id, seventh.headers["Mine"]) == ("m7", "x")
    assert seventh.at > 1_700_000_000_000_000


async def test_no_more_than_parallel_are_handled_at_once(bus: Bus) -> None:
    busy, most = 0, 0
    go = asyncio.Event()

    async def handle(delivery: Delivery) -> None:
        nonlocal busy, most
        del delivery
        busy += 1
        most = max(most, busy)
        await go.wait()
        busy -= 1

    for i in range(20):
        await bus.publish(SUBJECT, str(i).encode())
    async with working(bus, handle, parallel=3):
        await eventually(lambda: busy == 3)
        go.set()
        await eventually(lambda: nothing_waits(bus))
    assert most == 3


async def test_a_failure_is_tried_again_later_and_the_last_one_goes_to_the_dead_letters(
    bus: Bus, tally: BusTally
) -> None:
    await provision(bus, a_topology(ack_wait=5, max_deliver=3))
    seen: list[tuple[bytes, int]] = []

    async def handle(delivery: Delivery) -> None:
        seen.append((delivery.payload, delivery.deliveries))
        if delivery.payload == b"bad" or delivery.deliveries == 1:
            raise ValueError("no luck")

    async with working(bus, handle):
        await bus.publish(SUBJECT, b"bad")
        await bus.publish(SUBJECT, b"good")
        await eventually(lambda: nothing_waits(bus))
    assert sorted(seen) == [(b"bad", 1), (b"bad", 2), (b"bad", 3), (b"good", 1), (b"good", 2)]
    found = await bus.last("dead", subjects.dead(">"))
    assert found is not None
    assert found.subject == subjects.dead(SUBJECT)
    letter = DEAD_LETTER.decode(found.payload)
    assert (letter.subject, letter.stream_seq, letter.deliveries) == (SUBJECT, 1, 3)
    assert (letter.payload, letter.reason) == (b"bad", "ValueError('no luck')")
    assert tally.counts["worker.dead_letters"] == 1


async def test_poison_is_put_aside_at_once_even_where_it_is_too_large_for_its_letter(bus: Bus) -> None:
    async def handle(delivery: Delivery) -> None:
        raise PoisonError(f"{len(delivery.payload)} bytes of nonsense")

    async with working(bus, handle):
        await bus.publish(SUBJECT, b"x" * 1_000_000)  # as base64 in JSON it exceeds the server's limit
        await eventually(lambda: nothing_waits(bus))
    found = await bus.last("dead", subjects.dead(SUBJECT))
    assert found is not None
    letter = DEAD_LETTER.decode(found.payload)
    assert letter.deliveries == 1
    assert "1000000 bytes, cut" in letter.reason


@pytest.mark.timeout(120)
async def test_a_slow_handler_keeps_its_message(bus: Bus) -> None:
    await provision(bus, a_topology(ack_wait=2.0, max_deliver=5))
    deliveries: list[int] = []
    clock = asyncio.get_running_loop().time

    async def handle(delivery: Delivery) -> None:
        deliveries.append(delivery.deliveries)
        until = clock() + 5.0  # more than twice the ack wait
        await eventually(lambda: clock() > until)

    async def kept() -> bool:
        """A machine that stands still for the ack wait says nothing meanwhile: then another message has to show it."""
        deliveries.clear()
        await bus.publish(SUBJECT, b"slow")
        await eventually(lambda: nothing_waits(bus), 40)
        return deliveries == [1]

    async with working(bus, handle):
        await eventually(kept, 60)


CHILD = """
import asyncio, sys
from fairlead_bus import ConnectionSettings, connect
from fairlead_bus.work.worker import Worker
async def handle(delivery):
    print(delivery.deliveries, flush=True)
    await asyncio.Event().wait()
async def main():
    async with connect(ConnectionSettings(url=sys.argv[1]), name="ops") as bus:
        await Worker(bus, stream="submit", durable=sys.argv[2], handle=handle).run()
asyncio.run(main())
"""


async def killed_while_handling(server: NatsServer) -> int:
    """Starts a worker in a process, kills it over its first message; returns which delivery that was."""
    async with child_running(CHILD, server.url, DURABLE) as (_, told), asyncio.timeout(40):
        return int(await told.readline())


async def test_what_a_killed_worker_had_in_hand_is_handled_by_another(
    nats_server: NatsServer, bus: Bus
) -> None:
    await provision(bus, a_topology(ack_wait=1.5, max_deliver=5))
    await bus.publish(SUBJECT, b"job")
    assert await killed_while_handling(nats_server) == 1
    deliveries: list[int] = []

    async def handle(delivery: Delivery) -> None:
        deliveries.append(delivery.deliveries)

    async with working(bus, handle):
        await eventually(lambda: nothing_waits(bus))
    [again] = deliveries
    assert again > 1


@pytest.mark.timeout(240)
async def test_what_was_handed_back_many_times_has_all_its_attempts(
    nats_server: NatsServer, bus: Bus
) -> None:
    """A worker that was killed, or lost the right to work, says nothing of the message."""
    await provision(bus, a_topology(ack_wait=1.0, max_deliver=2))
    await bus.publish(SUBJECT, b"job")
    # One by one, or more where the machine stood still for the ack wait before the kill.
    before = [await killed_while_handling(nats_server) for _ in range(3)]
    assert before == sorted(set(before))
    deliveries: list[int] = []

    async def handle(delivery: Delivery) -> None:
        deliveries.append(delivery.deliveries)
        if len(deliveries) == 1:
            raise ValueError("no luck")

    async with working(bus, handle):
        await eventually(lambda: nothing_waits(bus))
    assert len(deliveries) == 2
    assert before[-1] < deliveries[0] < deliveries[1]
    assert await bus.last("dead", subjects.dead(">")) is None


@pytest.mark.timeout(120)
async def test_what_cannot_be_handled_yet_keeps_nobody_from_their_place(bus: Bus, tally: BusTally) -> None:
    await provision(bus, a_topology(ack_wait=2.0, max_deliver=2))
    opened = False
    seen: list[tuple[bytes, int]] = []
    clock = asyncio.get_running_loop().time

    async def handle(delivery: Delivery) -> None:
        seen.append((delivery.payload, delivery.deliveries))
        if delivery.payload != b"other" and not opened:
            raise NotYetError("its place is closed", seconds=0.05)

    async def stayed() -> bool:
        """Whether nothing came a second time; where all stood still for the ack wait, others have to show it."""
        nonlocal opened
        opened = False
        seen.clear()
        for number in range(20):
            await bus.publish(SUBJECT, b"%d" % number)
        await bus.publish(SUBJECT, b"other")
        await eventually(lambda: any(payload == b"other" for payload, _ in seen))
        # Far more often than it may fail, and longer than the ack wait.
        until = clock() + 4.5
        await eventually(lambda: [payload for payload, _ in seen].count(b"0") > 10 and clock() > until)
        opened = True
        await eventually(lambda: nothing_waits(bus))
        return all(deliveries == 1 for _, deliveries in seen)

    async with working(bus, handle, parallel=2):
        await eventually(stayed, 60)
    assert tally.counts["worker.dead_letters"] == 0


async def test_what_is_parked_is_handled_as_soon_as_it_can_be(bus: Bus) -> None:
    await provision(bus, a_topology(ack_wait=60, max_deliver=1))  # nothing is to come by itself
    line: list[asyncio.Future[None]] = []
    tries = 0

    async def handle(delivery: Delivery) -> None:
        nonlocal tries
        assert delivery.deliveries == 1
        tries += 1
        if tries <= 2:
            line.append(asyncio.get_running_loop().create_future())
            raise NotYetError("not now", seconds=600.0 if tries == 1 else 0.01, sooner=line[-1])

    await bus.publish(SUBJECT, b"job")
    async with working(bus, handle, parallel=1):
        await eventually(lambda: line)
        line[0].set_result(None)
        await eventually(lambda: nothing_waits(bus))
    assert tries == 3
    assert line[1].cancelled(), "nobody waits for it any more"


async def test_a_full_stream_is_no_attempt_of_what_is_handled(bus: Bus, tally: BusTally) -> None:
    """A full stream would otherwise make dead letters of all that is handled meanwhile."""
    await provision(bus, a_topology(ack_wait=60, max_deliver=1))
    full = await a_full_stream(bus, "answer", subjects.answer("team-a", "first"))
    deliveries: list[int] = []

    async def handle(delivery: Delivery) -> None:
        deliveries.append(delivery.deliveries)
        await bus.publish(subjects.answer("team-a", "second"), delivery.payload)

    await bus.publish(SUBJECT, b"job")
    async with working(bus, handle):
        await eventually(lambda: tally.counts["worker.hindered"] >= 3)
        assert not await nothing_waits(bus)
        await bus.jetstream.call("STREAM.UPDATE.answer", full)
        await eventually(lambda: nothing_waits(bus))
    assert set(deliveries) == {1}
    assert await bus.last("dead", subjects.dead(">")) is None
    assert len(tally.said("worker.hindered")) <= NOTES_A_MINUTE


async def a_full_stream(bus: Bus, stream: str, subject: str) -> dict[str, object]:
    """Lets the stream take one message, and gives it that; returns the configuration that it had."""
    before = await change_stream(
        bus, stream, max_msgs=1, max_msgs_per_subject=-1, discard="new", discard_new_per_subject=False
    )
    await bus.publish(subject, b"full")
    return before


def test_what_is_handed_back_again_and_again_comes_less_and_less_often() -> None:
    pauses = [pause_of(before) for before in range(64)]
    assert pauses[0] == FIRST_HANDED_BACK_SECONDS
    assert pauses == sorted(pauses)
    assert pauses[-1] == HANDED_BACK_SECONDS


async def test_a_worker_that_stops_leaves_what_it_parked_to_another(bus: Bus) -> None:
    await provision(bus, a_topology(ack_wait=2.0, max_deliver=1))
    parked, handled = asyncio.Event(), asyncio.Event()

    async def hold(delivery: Delivery) -> None:
        del delivery
        parked.set()
        raise NotYetError("not now", seconds=600.0)

    async def handle(delivery: Delivery) -> None:
        assert delivery.deliveries > 1
        handled.set()

    await bus.publish(SUBJECT, b"job")
    async with working(bus, hold):
        await parked.wait()
    async with working(bus, handle):
        await eventually(handled.is_set)


async def test_a_message_that_kills_its_worker_on_its_last_delivery_is_put_aside(
    nats_server: NatsServer, bus: Bus
) -> None:
    """The server's own limit would leave it in the stream for ever, with an advisory that nobody heard."""
    await provision(bus, a_topology(ack_wait=1.0, max_deliver=8, max_unfinished=1))
    await bus.publish(SUBJECT, b"deadly")
    assert await killed_while_handling(nats_server) == 1
    handled: list[Delivery] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery)

    async with working(bus, handle):
        await eventually(lambda: nothing_waits(bus))
    assert handled == []
    found = await bus.last("dead", subjects.dead(SUBJECT))
    assert found is not None
    assert "never finished" in DEAD_LETTER.decode(found.payload).reason


async def test_work_goes_on_after_the_server_was_killed(nats_server: NatsServer, bus: Bus) -> None:
    handled: set[bytes] = set()

    async def handle(delivery: Delivery) -> None:
        handled.add(delivery.payload)

    async with working(bus, handle):
        await bus.publish(SUBJECT, b"before")
        await eventually(lambda: nothing_waits(bus))
        await asyncio.to_thread(nats_server.restart)
        await bus.connection.until_connected()
        await bus.publish(SUBJECT, b"after")
        await eventually(lambda: nothing_waits(bus))
    assert handled == {b"before", b"after"}


async def test_a_stopped_worker_finishes_what_it_has_in_hand(bus: Bus) -> None:
    started, go = asyncio.Event(), asyncio.Event()
    finished: list[bytes] = []

    async def handle(delivery: Delivery) -> None:
        started.set()
        await go.wait()
        finished.append(delivery.payload)

    await bus.publish(SUBJECT, b"in hand")
    async with working(bus, handle) as task:
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        go.set()
    assert task.cancelled()
    assert finished == [b"in hand"]
    assert await nothing_waits(bus)


async def test_a_dropped_worker_leaves_what_it_has_in_hand_to_another(bus: Bus) -> None:
    await provision(bus, a_topology(ack_wait=1.0, max_deliver=5))
    started = asyncio.Event()
    deliveries: list[int] = []

    async def hang(delivery: Delivery) -> None:
        del delivery
        started.set()
        await asyncio.Event().wait()

    async def handle(delivery: Delivery) -> None:
        deliveries.append(delivery.deliveries)

    await bus.publish(SUBJECT, b"in hand")
    worker = Worker(bus, stream="submit", durable=DURABLE, handle=hang)
    running = asyncio.create_task(worker.run())
    await started.wait()
    worker.drop()
    async with asyncio.timeout(30):
        await running
    async with working(bus, handle):
        await eventually(lambda: nothing_waits(bus))
    [again] = deliveries
    assert again > 1


async def test_a_stop_during_an_outage_ends_the_worker(
    nats_server: NatsServer, bus: Bus, tally: BusTally
) -> None:
    worker = Worker(bus, stream="submit", durable=DURABLE, handle=_nothing)
    running = asyncio.create_task(worker.run())
    await eventually(lambda: not worker._pull.is_over)
    nats_server.kill()
    await eventually(lambda: not bus.connected, on=tally.heard)
    worker.stop()
    async with asyncio.timeout(30):
        await running


async def test_a_worker_on_a_closed_connection_ends_instead_of_spinning(
    settings: ConnectionSettings, bus: Bus
) -> None:
    async with connect(settings, name="ops") as own:
        worker = Worker(own, stream="submit", durable=DURABLE, handle=_nothing)
        task = asyncio.create_task(worker.run())
        await eventually(lambda: not worker._pull.is_over)
        await own.connection.close()
        async with asyncio.timeout(30):  # a loop that never yields would keep this from firing, too
            with pytest.raises(ExceptionGroup) as ended:
                await task
        assert ended.group_contains(ClosedError)
    del bus


async def test_a_missing_durable_is_an_error_at_once(bus: Bus) -> None:
    with pytest.raises(JetStreamNotFoundError):
        await Worker(bus, stream="submit", durable="nobody", handle=_nothing).run()


async def _nothing(delivery: Delivery) -> None:
    del delivery


async def test_what_does_not_concern_the_handler_is_acked_unhandled(bus: Bus) -> None:
    handled: list[bytes] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.payload)

    for number in range(600):  # more than one pull
        await bus.publish(SUBJECT, str(number).encode())
    async with bus_harness.working(bus, handle, concerns=lambda delivery: len(delivery.payload) == 1):
        await eventually(lambda: nothing_waits(bus))
    assert sorted(handled) == [str(number).encode() for number in range(10)]
