import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from nats.aio.msg import Msg

from fairlead_bus import Bus, Mirror, Publisher
from fairlead_bus.connection.bus import RESTATED
from fairlead_bus.observer import NOTES_A_MINUTE, BusTally, RateLimitedNotes
from fairlead_bus.server.provision import provision
from fairlead_bus.streams.feed import SLICE
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.state import STATE, NodeState, State, encode_state, is_stated_at
from fairlead_contracts.topology import topology
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.processes.fresh_interpreter import child_running
from fairlead_testkit.timing.in_hand import beside

pytestmark = pytest.mark.integration

MIRRORED = subjects.state_filter("c1")


def node(name: str, *, epoch: int = 1, rev: int = 1, version: int = 1) -> bytes:
    made = NodeState(v=version, cluster="c1", epoch=epoch, rev=rev, name=name, allocatable={"cpu": 1000})
    return encode_state(made)


def encode_decision() -> bytes:
    return to_packed(
        Decision(pool="gpu", shard=0, owner="s1", epoch=1, turn=1, at=1, basis=None, revision={})
    )


def at(name: str) -> str:
    return subjects.state("c1", "node", name)


def a_mirror(bus: Bus, wake: asyncio.Event | None = None) -> Mirror[State]:
    return Mirror(
        bus,
        stream="state",
        filter=MIRRORED,
        codec=STATE,
        wake=wake or asyncio.Event(),
        stamp=lambda state: state.stamp,
        belongs=is_stated_at,
    )


@asynccontextmanager
async def running(mirror: Mirror[State]) -> AsyncIterator[Mirror[State]]:
    async with beside(mirror.run()):
        async with asyncio.timeout(40):
            await mirror.wait_complete()
        yield mirror


async def test_an_empty_filter_is_complete_at_once(bus: Bus) -> None:
    await bus.publish(subjects.state("elsewhere", "node", "n"), node("n"))
    async with running(a_mirror(bus)) as mirror:
        assert mirror.complete
        assert mirror.take().changed == {}


async def test_changes_are_coalesced_and_nothing_is_lost_between_takes(bus: Bus) -> None:
    await bus.publish(at("a"), node("a"))
    await bus.publish(at("b"), node("b"))
    wake = asyncio.Event()
    async with running(a_mirror(bus, wake)) as mirror:
        first = mirror.take()
        assert set(first.changed) == {at("a"), at("b")}
        assert (first.seq, first.complete) == (2, True)
        for rev in (2, 3, 4):
            await bus.publish(at("a"), node("a", rev=rev))
        await bus.publish(at("c"), node("c"))
        await Publisher(bus).delete(at("b"))
        await eventually(lambda: mirror.seq == 7, on=wake)
        then = mirror.take()
        assert {subject: value and value.rev for subject, value in then.changed.items()} == {
            at("a"): 4,
            at("b"): None,
            at("c"): 1,
        }
        assert mirror.take().changed == {}


async def test_a_lower_stamp_is_dropped(bus: Bus, tally: BusTally) -> None:
    wake = asyncio.Event()
    await bus.publish(at("a"), node("a", epoch=5, rev=2))
    async with running(a_mirror(bus, wake)) as mirror:
        # One by one: the stream keeps the last of a subject alone, so a slow reader never hears of those before it.
        await bus.publish(at("a"), node("a", epoch=4, rev=9))  # a paused leader goes on
        await eventually(lambda: mirror.seq == 2, on=wake)
        await bus.publish(at("a"), node("a", epoch=5, rev=1))  # a late duplicate
        await eventually(lambda: mirror.seq == 3, on=wake)
        assert tally.counts["mirror.stale"] == 2
        await bus.connection._client.force_reconnect()
        await eventually(lambda: mirror.rebuilds > 0 and mirror.complete, on=wake)
        assert (mirror.values[at("a")].stamp, mirror.history) == ((5, 2), 0)


async def test_a_deleted_object_does_not_come_back_with_the_stamp_that_was_deleted(
    bus: Bus, tally: BusTally
) -> None:
    wake = asyncio.Event()
    await bus.publish(at("a"), node("a", rev=3))
    async with running(a_mirror(bus, wake)) as mirror:
        await bus.delete(at("a"))
        await eventually(lambda: mirror.seq == 2, on=wake)
        await bus.publish(at("a"), node("a", rev=3))
        await eventually(lambda: mirror.seq == 3, on=wake)
        assert at("a") not in mirror.values
        assert tally.counts["mirror.zombies"] == 1
        await bus.publish(at("a"), node("a", rev=4))  # its owner states it anew
        await eventually(lambda: at("a") in mirror.values, on=wake)


async def test_a_tombstone_tells_the_stamp_to_mirrors_that_never_saw_the_object(bus: Bus) -> None:
    wake = asyncio.Event()
    await bus.publish(at("a"), node("a", rev=3))
    await bus.delete(at("a"), stamp=(1, 3))
    async with running(a_mirror(bus, wake)) as mirror:
        await bus.publish(at("a"), node("a", rev=3))
        await bus.publish(at("b"), node("b"))
        await eventually(lambda: at("b") in mirror.values, on=wake)
        assert at("a") not in mirror.values


async def test_a_stream_made_anew_is_believed(bus: Bus) -> None:
    """The new stream's epochs and sequences begin again: what was remembered of the old one must not drop them."""
    wake = asyncio.Event()
    await bus.publish(at("a"), node("a", epoch=9, rev=9))
    async with running(a_mirror(bus, wake)) as mirror:
        await bus.jetstream.call("STREAM.DELETE.state")
        await provision(bus, topology(["c1"]))
        await bus.publish(at("a"), node("a", epoch=1, rev=1))
        await (
            bus.connection._client.force_reconnect()
        )  # rather than wait for the silence of the lost consumer
        await eventually(lambda: mirror.values[at("a")].stamp == (1, 1), on=wake)


async def test_a_stream_that_is_put_back_to_a_snapshot_is_believed(bus: Bus, nats_server: NatsServer) -> None:
    """Sequences and epochs begin again at the snapshot: who led since would drop all that the next leader says."""
    disk, wake = nats_server.directory / "store", asyncio.Event()
    await bus.publish(at("a"), node("a", epoch=1))
    with nats_server.paused():
        shutil.copytree(disk, nats_server.directory / "snapshot")
    await bus.publish(at("b"), node("b", epoch=2))
    await bus.delete(at("a"), stamp=(9, 1))
    async with running(a_mirror(bus, wake)) as mirror:
        nats_server.kill()
        shutil.rmtree(disk)
        shutil.copytree(nats_server.directory / "snapshot", disk)
        nats_server.start()
        await eventually(lambda: mirror.history == 1 and mirror.complete, on=wake)
        assert mirror.values[at("a")].epoch == 1
        await bus.publish(at("a"), node("a", epoch=2))
        await eventually(lambda: mirror.values[at("a")].epoch == 2, on=wake)


async def test_a_stream_that_was_put_back_and_has_grown_past_what_was_read_is_believed(
    bus: Bus, nats_server: NatsServer
) -> None:
    """The next leader may be back, and write, before a reader is."""
    disk, wake = nats_server.directory / "store", asyncio.Event()
    await bus.publish(at("a"), node("a", epoch=1))
    with nats_server.paused():
        shutil.copytree(disk, nats_server.directory / "snapshot")
    await bus.publish(at("a"), node("a", epoch=9))
    mirror = a_mirror(bus, wake)
    async with running(mirror):
        pass
    nats_server.kill()
    await eventually(lambda: not bus.connected)
    shutil.rmtree(disk)
    shutil.copytree(nats_server.directory / "snapshot", disk)
    nats_server.start()
    await eventually(lambda: bus.connected)
    for name in "ab":
        await bus.publish(at(name), node(name, epoch=2))
    async with running(mirror):
        await eventually(lambda: at("b") in mirror.values and mirror.complete, on=wake)
        assert (mirror.values[at("a")].epoch, mirror.history) == (2, 1)


async def test_nobody_takes_what_is_new_of_a_stream_before_it_was_put_back(bus: Bus) -> None:
    """Whoever begins anew by `history` would take an epoch of before for the highest."""
    for name in "ab":
        await bus.publish(at(name), node(name))
    wake = asyncio.Event()
    async with running(a_mirror(bus, wake)) as mirror:
        mirror.take()
        await bus.publish(at("a"), node("a", epoch=9))
        await bus.delete(at("b"))
        await eventually(lambda: mirror.seq == 4, on=wake)
        mirror.seq = 5
        await mirror._check_stream()
        assert (mirror.history, mirror.pending) == (1, {at("b"): None})
        await mirror._check_stream()  # as where the replay broke off
        assert mirror.history == 1


async def test_the_memory_of_deletes_is_bounded_and_says_when_it_forgets(
    bus: Bus, tally: BusTally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_bus.streams.mirrored_values.REMEMBERED_DELETES", 2)
    wake = asyncio.Event()
    async with running(a_mirror(bus, wake)) as mirror:
        for name in "abc":
            await bus.publish(at(name), node(name))
            await bus.delete(at(name))
        await eventually(lambda: mirror.seq == 6, on=wake)
    assert tally.counts["mirror.forgotten_deletes"] == 1


UNREADABLE = {
    "no message": b"\xc1 no message",
    "an answer of the server": b'{"stream":"submit","seq":7}',
    "a newer version": node("a", version=2),
    "of another type": encode_decision(),
    "nothing at all": b"",
    "oversize": b"\xdd" + b"\xff" * 900_000,
    "of another object": node("b", epoch=9),
    "of another cluster": encode_state(NodeState(cluster="c2", epoch=1, rev=2, name="a", allocatable={})),
}


async def test_what_the_server_read_out_to_a_subject_is_no_value_of_it(bus: Bus, tally: BusTally) -> None:
    """Readers of a message name where it is read out to: with the server's rights, to where they may not write themselves."""
    await bus.publish(at("a"), node("a"))
    wake = asyncio.Event()
    async with running(a_mirror(bus, wake)) as mirror:
        mirror.take()
        ack = await bus.publish(subjects.answer("team-a", "s1"), node("a", rev=2))
        await bus.connection.send("$JS.API.DIRECT.GET.answer", b'{"seq": %d}' % ack.seq, reply=at("a"))
        await eventually(lambda: mirror.seq == 2, on=wake)
        assert mirror.take().changed == {}
        assert mirror.values[at("a")].stamp == (1, 1)
        assert tally.counts["mirror.malformed"] == 1


@pytest.mark.parametrize("what", UNREADABLE)
async def test_what_cannot_be_read_never_takes_the_place_of_the_last_good_value(
    bus: Bus, tally: BusTally, what: str
) -> None:
    await bus.publish(at("a"), node("a"))
    wake = asyncio.Event()
    async with running(a_mirror(bus, wake)) as mirror:
        mirror.take()
        for turn in range(3):
            await bus.publish(at("a"), UNREADABLE[what])
            await eventually(lambda seq=turn + 2: mirror.seq == seq, on=wake)  # type: ignore[misc] # one of its own each
        assert mirror.take().changed == {}
        assert set(mirror._unreadable) == {at("a")}
        await bus.connection._client.force_reconnect()
        await eventually(lambda: mirror.rebuilds > 0 and mirror.complete, on=wake)
        assert mirror.values[at("a")].stamp == (1, 1)  # a replay that shows nothing else sweeps nothing
        assert mirror.history == 0
        assert mirror.take().changed == {}
        kind = "mirror.version" if what == "a newer version" else "mirror.malformed"
        [told] = tally.said(kind)  # once, however often it is written and replayed
        assert (told["subject"], told["last_good_kept"]) == (at("a"), True)
        assert tally.counts[kind] >= 3
        await bus.publish(at("a"), node("a", rev=2))
        await eventually(lambda: mirror.values[at("a")].stamp == (1, 2), on=wake)
        assert mirror._unreadable == {}
        await bus.publish(at("a"), UNREADABLE[what])
        await bus.delete(at("a"))
        await eventually(lambda: mirror.values == {} and mirror._unreadable == {}, on=wake)


async def test_what_stands_as_before_is_no_change_after_a_reconnect(bus: Bus) -> None:
    """Jobs that stand as before are nearly all of 100,000 after a server's restart: nobody shall take them in anew."""
    wake = asyncio.Event()
    for name in ("a", "b", "c"):
        await bus.publish(at(name), node(name, rev=3))
    async with running(a_mirror(bus, wake)) as mirror:
        before = mirror.values[at("a")]
        assert set(mirror.take().changed) == {at("a"), at("b"), at("c")}
        await bus.connection._client.force_reconnect()
        await eventually(lambda: mirror.rebuilds > 0 and mirror.complete, on=wake)
        assert mirror.take().changed == {}
        assert mirror.values[at("a")] is before
        await bus.publish(at("b"), node("b", rev=2))  # stamps are known as before
        await bus.publish(at("c"), node("c", rev=4))
        await eventually(lambda: at("c") in mirror.pending, on=wake)
        assert set(mirror.take().changed) == {at("c")}


async def test_what_was_never_readable_counts_as_absent_and_harms_no_other(bus: Bus) -> None:
    await bus.publish(at("bad"), b"\xc1 no message")
    await bus.publish(at("newer"), node("newer", version=2))
    await bus.publish(at("good"), node("good"))
    async with running(a_mirror(bus)) as mirror:
        assert set(mirror.values) == {at("good")}
        assert set(mirror._unreadable) == {at("bad"), at("newer")}
        assert "reads version 1" in mirror._unreadable[at("newer")]


async def test_what_its_owner_puts_back_is_taken_over_a_stamp_and_a_delete_that_were_not_its_own(
    bus: Bus,
) -> None:
    wake = asyncio.Event()
    await bus.publish(at("a"), node("a", epoch=5, rev=2))
    async with running(a_mirror(bus, wake)) as mirror:
        await bus.publish(at("a"), node("a", epoch=2**40))
        await eventually(lambda: mirror.seq == 2, on=wake)
        await bus.publish(at("a"), node("a", epoch=5, rev=3))
        await eventually(lambda: mirror.seq == 3, on=wake)
        assert mirror.values[at("a")].stamp == (2**40, 1)
        await bus.publish(at("a"), node("a", epoch=5, rev=3), headers={RESTATED: "1"})
        await eventually(lambda: mirror.values[at("a")].stamp == (5, 3), on=wake)
        await bus.delete(at("a"), stamp=(2**40, 9))
        await eventually(lambda: at("a") not in mirror.values, on=wake)
        await bus.publish(at("a"), node("a", epoch=5, rev=3), headers={RESTATED: "1"})
        await eventually(lambda: at("a") in mirror.values, on=wake)


def test_whoever_can_cause_notes_cannot_cause_a_flood_of_them() -> None:
    tally, now = BusTally(), 100.0
    notes = RateLimitedNotes(tally, clock=lambda: now)
    for number in range(1000):
        notes.note("mirror.malformed", number=number)
    assert len(tally.notes) == NOTES_A_MINUTE
    assert tally.counts["mirror.malformed"] == 1000
    now += 61
    notes.note("mirror.malformed", number=1001)
    assert tally.notes[-1][1] == {"number": 1001, "held_back": 1000 - NOTES_A_MINUTE}


async def test_a_reconnect_rebuilds_and_sweeps_while_old_values_stay_readable(
    nats_server: NatsServer, bus: Bus, tally: BusTally
) -> None:
    for name in "abc":
        await bus.publish(at(name), node(name))
    wake = asyncio.Event()
    async with running(a_mirror(bus, wake)) as mirror:
        mirror.take()
        nats_server.kill()
        await eventually(lambda: not mirror.complete, on=wake)
        assert set(mirror.values) == {at("a"), at("b"), at("c")}
        nats_server.start()
        await eventually(lambda: bus.connected, on=tally.heard)
        # Gone without a word that a mirror could hear: as a tombstone that expired while it was away.
        await bus.jetstream.call("STREAM.PURGE.state", {"filter": at("b")})
        await eventually(lambda: mirror.complete and mirror.rebuilds > 0, on=wake)
        await bus.publish(at("d"), node("d"))
        await eventually(lambda: at("d") in mirror.values, on=wake)
        if at("b") in mirror.values:  # it was rebuilt before the purge: the next rebuild sweeps
            await bus.connection._client.force_reconnect()
            await eventually(lambda: at("b") not in mirror.values, on=wake)
        changed = mirror.take().changed
        assert changed[at("b")] is None
        assert set(mirror.values) == {at("a"), at("c"), at("d")}


async def in_step(publisher: Publisher, mirror: Mirror[State], wake: asyncio.Event) -> None:
    """Returns when the mirror has taken in all that was published."""
    last = await publisher.put(at("last"), node("last"))
    await publisher.flush()
    seq = last.result().seq
    await eventually(lambda: mirror.seq >= seq, on=wake)


async def test_objects_that_a_killed_server_brings_back_stay_dead(nats_server: NatsServer, bus: Bus) -> None:
    """kill -9 under churn with tombstones that expire revives deleted objects (nats-server #8505).

    The mirror remembers what it saw deleted. Whether the server revives any in this run is up to it; that none shows
    is not.
    """
    wake = asyncio.Event()
    alive = {at("last")}
    deleted: set[str] = set()
    async with running(a_mirror(bus, wake)) as mirror:
        publisher = Publisher(bus)
        for i in range(1500):
            await publisher.put(at(f"n{i}"), node(f"n{i}"))
            if (
                i % 100 == 0
            ):  # so that it sees each tombstone before that expires, however slow the machine is
                await in_step(publisher, mirror, wake)
            if i % 2:
                # The mirror may never see what is overwritten at once: half of the tombstones tell its stamp.
                tombstone = {"Fairlead-Op": "DEL"} | ({"Fairlead-Stamp": "1.1"} if i % 4 == 1 else {})
                await publisher.put(at(f"n{i}"), b"", headers=tombstone, ttl_seconds=1)
            (deleted if i % 2 else alive).add(at(f"n{i}"))
        await publisher.flush()
        await eventually(lambda: set(mirror.values) == alive, on=wake)

        async def expired() -> bool:
            return await bus.last("state", at("n1499")) is None

        await eventually(expired)
        await asyncio.to_thread(nats_server.restart)
        await eventually(lambda: mirror.complete and mirror.rebuilds > 0, on=wake)
        assert not deleted & set(mirror.values)
        assert alive == set(mirror.values)
        # A duplicate of a deleted object, delayed until now.
        await bus.publish(at("n1"), node("n1"))
        await bus.publish(at("end"), node("end"))
        await eventually(lambda: at("end") in mirror.values, on=wake)
        assert at("n1") not in mirror.values


async def test_a_consumer_that_the_server_lost_is_replaced(bus: Bus, tally: BusTally) -> None:
    wake = asyncio.Event()
    async with running(a_mirror(bus, wake)) as mirror:
        listed = msgspec.json.decode(await bus.jetstream.call("CONSUMER.NAMES.state"))
        for name in listed["consumers"]:
            await bus.jetstream.call(f"CONSUMER.DELETE.state.{name}")
        await bus.publish(at("a"), node("a"))
        await eventually(lambda: at("a") in mirror.values, on=wake)
        # More than one where the machine stood still for as long as a feed may be silent.
        assert mirror.rebuilds == tally.counts["mirror.rebuilds"] > 0


class SlowReader:
    """Takes its time for each: a busy machine, or a hundred times as many messages."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.count = 0

    def decode(self, payload: bytes) -> bytes:
        time.sleep(self._seconds)
        self.count += 1
        return payload


@asynccontextmanager
async def slowly(bus: Bus, reader: SlowReader, messages: int) -> AsyncIterator[Mirror[bytes]]:
    """A replay of so many that has begun, and must come to its end at the first try."""
    publisher = Publisher(bus)
    for number in range(messages):
        await publisher.put(at(f"n{number}"), b"x")
    await publisher.flush()
    mirror = Mirror(bus, stream="state", filter=MIRRORED, codec=reader, wake=asyncio.Event())
    following = asyncio.create_task(mirror.run())
    yield mirror
    await asyncio.wait_for(mirror.wait_complete(), 60)
    following.cancel()
    assert len(mirror.values) == messages
    assert mirror.rebuilds == 0


async def test_nobody_waits_behind_a_replay(bus: Bus) -> None:
    """Leases, answers and the pongs of the server come over the same connection: a slice or two may be before them."""
    reader = SlowReader(0.001)
    waited = []
    async with slowly(bus, reader, 6000) as mirror:
        while not mirror.complete:
            before = reader.count
            await bus.jetstream.call("STREAM.INFO.state", timeout=60.0)  # no clock judges here
            waited.append(reader.count - before)
    # Some two slices; more where the server's answer is slow.
    assert max(waited) < 3000 > 8 * SLICE


async def test_answers_that_come_late_do_not_break_a_replay(
    bus: Bus, tally: BusTally, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = SlowReader(0.001)
    async with slowly(bus, reader, 3000):
        await eventually(lambda: reader.count)
        monkeypatch.setattr("fairlead_bus.connection.jetstream.READ_TIMEOUT_SECONDS", 0.0)
        await eventually(lambda: tally.counts["mirror.late_answers"], on=tally.heard)
        monkeypatch.undo()


async def test_a_gap_is_noticed(bus: Bus, tally: BusTally) -> None:
    wake = asyncio.Event()
    async with running(a_mirror(bus, wake)) as mirror:
        # Swallow one message between the socket and the mirror.
        sinks = bus.connection._client._sinks
        sid = max(sinks)
        real, swallowed = sinks[sid], asyncio.Event()

        def leaky(message: Msg) -> object:
            if message.data and not swallowed.is_set():  # a heartbeat is no loss
                swallowed.set()
                return None
            return real(message)

        sinks[sid] = leaky  # type: ignore[assignment] # as above
        await bus.publish(at("a"), node("a"))
        await swallowed.wait()
        await bus.publish(at("b"), node("b"))
        await eventually(lambda: set(mirror.values) == {at("a"), at("b")}, on=wake)
    assert any("gap" in str(note["reason"]) for note in tally.said("mirror.rebuild"))


REWRITER = """
import asyncio, random, sys
from fairlead_bus import ConnectionSettings, Publisher, connect
from fairlead_contracts import subjects
from fairlead_contracts.messages.state import NodeState, encode_state
async def main():
    rng, keys = random.Random(7), int(sys.argv[2])
    payload = [
        encode_state(NodeState(cluster="c1", epoch=1, rev=1, name=f"k{i}", allocatable={"cpu": 1000}))
        for i in range(keys)
    ]
    async with connect(ConnectionSettings(url=sys.argv[1]), name="ops") as bus:
        publisher = Publisher(bus)
        for i in range(keys):
            await publisher.put(subjects.state("c1", "node", f"k{i}"), payload[i])
        await publisher.flush()
        print("all stand", flush=True)
        while True:
            for _ in range(rng.choice([1, 20, 200])):
                i = rng.randrange(keys)
                await publisher.put(subjects.state("c1", "node", f"k{i}"), payload[i])
            await asyncio.sleep(0.005)
asyncio.run(main())
"""


async def torture(bus: Bus, server: NatsServer, *, keys: int, rounds: int) -> list[int]:
    """Replays while another process rewrites keys without pause; returns how many keys each replay missed at its end.

    No key is ever deleted, so a complete replay has all of them. Every criterion but the one in use failed here: the
    messages' own metadata in 97 of 758 runs, a barrier fixed before the replay in more than half of them.
    """
    missing: list[int] = []
    async with child_running(REWRITER, server.url, str(keys)) as (_, told):
        assert await told.readline() == b"all stand\n"
        for _ in range(rounds):
            async with running(a_mirror(bus)) as mirror:
                missing.append(keys - len(mirror.values))
    return missing


@pytest.mark.timeout(240)
async def test_a_replay_is_complete_when_it_says_so_however_fast_keys_are_rewritten(
    nats_server: NatsServer, bus: Bus
) -> None:
    assert await torture(bus, nats_server, keys=4000, rounds=15) == [0] * 15


@pytest.mark.deep
@pytest.mark.timeout(600)
async def test_a_replay_is_complete_in_hundreds_of_runs(nats_server: NatsServer, bus: Bus) -> None:
    assert await torture(bus, nats_server, keys=8000, rounds=300) == [0] * 300


async def test_reconnects_one_after_the_other_do_not_slow_each_other_down(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause before a replay grows with replays that fail, not with connections that were lost."""
    monkeypatch.setattr(
        "fairlead_bus.streams.mirror._LONGEST_PAUSE", 600.0
    )  # thirteen that double take more than a minute
    async with running(a_mirror(bus)) as mirror, asyncio.timeout(40):
        for rebuilds in range(1, 14):
            bus.connection._tell(up=False)
            assert not mirror.complete
            bus.connection._tell(up=True)
            await mirror.wait_complete()
            assert mirror.rebuilds >= rebuilds
