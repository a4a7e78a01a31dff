import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from fairlead_bus import Bucket, Bus, Follower, KeyExistsError, PublishUncertainError
from fairlead_bus.observer import BusTally
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.ownership.membership import Membership
from fairlead_bus.ownership.roster import Roster
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.messages.members import Holding, MemberLease
from fairlead_contracts.subjects import kv_subject, leader_key, member_key
from fairlead_contracts.topology import LEASE_SECONDS
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.processes.fresh_interpreter import child_running
from fairlead_testkit.timing.in_hand import beside

pytestmark = pytest.mark.integration

ALLOWED = 30.0
"""Takeover aims at 4 s; a busy machine gets more."""


def lease(replica: str) -> MemberLease:
    return MemberLease(role="scorer", replica=replica, renewed=from_seconds(time.time()))


@asynccontextmanager
async def background(*runners: "Membership | Leadership | Roster") -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(runner.run()) for runner in runners]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def led_by(leader: Leadership, wake: asyncio.Event) -> int:
    """Epoch of a leader, once it leads."""
    return await eventually(lambda: leader.epoch, on=wake, timeout=ALLOWED)


@asynccontextmanager
async def let_go(bus: Bus, key: str) -> AsyncIterator[None]:
    """The block in which a lease is taken away by who has it; nobody waits for its end.

    Told by what is written, and not by the time: a machine may stand still for as long as a lease.
    """
    written: list[Mapping[str, str]] = []
    follower = Follower(bus, stream="KV_members", filter=kv_subject("members", key))

    async def read() -> None:
        async for delivery in follower:
            written.append(delivery.headers)  # noqa: PERF401 - one after the other, and read meanwhile

    async with beside(read()):
        await follower.ready.wait()
        yield
        await eventually(lambda: any(one.get("KV-Operation") == "DEL" for one in written))


async def test_who_is_acknowledged_nothing_says_where_to_look(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the server's disk is full: it answers all else as before, and says why in its own log alone."""

    async def unacknowledged(subject: str, *_: object, **__: object) -> None:
        raise PublishUncertainError(f"no ack for {subject}")

    wake = asyncio.Event()
    roster = Roster(bus, wake=wake)
    member = Membership(bus, roster, role="scorer", replica="a", describe=lambda: lease("a"))
    leader = Leadership(bus, role="admitter", cluster="c1", replica="a", wake=wake)
    async with background(roster, member, leader):
        await eventually(lambda: member.trusted and leader.epoch)
        assert member.trouble() is leader.trouble() is None
        with monkeypatch.context() as disk:
            disk.setattr(bus, "publish", unacknowledged)
            for trouble in (member.trouble, leader.trouble):
                assert "`no space left on device`" in await eventually(trouble)
            with monkeypatch.context() as early:
                early.setattr(Membership, "trusted", True)
                assert member.trouble() is None, "one renewal is missed, and others count it in still"
        await eventually(lambda: member.trouble() is leader.trouble() is None)
        with monkeypatch.context() as busy:
            busy.setattr(Membership, "trusted", False)
            assert member.trouble() is None, (
                "a renewal that is late now says nothing of one that was refused before"
            )


async def test_a_member_appears_is_trusted_and_leaves_cleanly(bus: Bus) -> None:
    wake = asyncio.Event()
    roster = Roster(bus, wake=wake)
    member = Membership(bus, roster, role="scorer", replica="a.b c", describe=lambda: lease("a.b c"))
    async with background(roster):
        await eventually(lambda: roster.complete, on=wake)
        async with let_go(bus, member_key("scorer", "a.b c")), background(member):
            await eventually(lambda: "a.b c" in roster.members("scorer"), on=wake)
            await eventually(lambda: member.trusted and member.visible)
            assert roster.members("admitter") == {}
        await eventually(lambda: not roster.members("scorer"), on=wake)
        assert not member.trusted


async def test_who_spares_renewals_is_woken_by_what_a_lease_says_alone(bus: Bus) -> None:
    wake = asyncio.Event()
    roster = Roster(bus, wake=wake, each_renewal=False)
    key = kv_subject("members", member_key("scorer", "r1"))

    async def show(more: MemberLease) -> None:
        await bus.publish(key, to_json(more))
        await eventually(lambda: roster.members("scorer").get("r1") == more)

    async def renewed_quietly() -> bool:
        """Tried again where a machine stood still for as long as a lease."""
        await show(lease("r1"))
        wake.clear()
        await show(lease("r1"))
        return not wake.is_set()

    async with background(roster):
        await eventually(lambda: roster.complete, on=wake)
        await eventually(renewed_quietly)
        wake.clear()
        held = msgspec.structs.replace(lease("r1"), holdings=[Holding(pool="gpu", shards=[0], current=True)])
        await show(held)
        assert wake.is_set()
        await eventually(lambda: not roster.members("scorer"), on=wake, timeout=ALLOWED)


async def test_a_lease_that_nobody_renews_expires_for_all_who_watch_and_is_free_to_take(
    bus: Bus, tally: BusTally
) -> None:
    """The end of the lease is heard by the server's expiry markers: without them nobody would hear of it."""
    wake = asyncio.Event()
    roster = Roster(bus, wake=wake)
    bucket, key = Bucket(bus, "members"), leader_key("sim", "c1")
    async with background(roster):
        await bus.publish(kv_subject("members", member_key("scorer", "dead")), b"not a lease")
        await bucket.create(key, b"not a lease either")
        with pytest.raises(KeyExistsError):
            await bucket.create(key, b"second")

        async def shown() -> bool:
            """Renewed until it was seen: a machine may stand still for as long as a lease."""
            await bus.publish(kv_subject("members", member_key("scorer", "r1")), to_json(lease("r1")))
            return "r1" in roster.members("scorer")

        await eventually(shown)
        await eventually(lambda: not roster.members("scorer"), on=wake, timeout=ALLOWED)

    async def marker() -> bool:
        found = await bus.last("KV_members", kv_subject("members", key))
        return found is not None and "Nats-Marker-Reason" in found.headers

    await eventually(marker)
    assert await bucket.get(key) is None  # nats-py's KV gives an entry with an empty value here
    await bucket.create(key, b"second")  # and refuses this
    assert tally.counts["mirror.malformed"] == 2  # the garbage; markers are understood


async def test_leadership_is_taken_kept_and_handed_over(bus: Bus) -> None:
    wake_one, wake_two = asyncio.Event(), asyncio.Event()
    one = Leadership(bus, role="sim", cluster="c1", replica="one", wake=wake_one)
    two = Leadership(bus, role="sim", cluster="c1", replica="two", wake=wake_two)
    async with background(one) as (task,):
        first = await led_by(one, wake_one)
        async with background(two):
            await eventually(lambda: two.another_leads, on=two._seen)
            assert two.epoch is None
            assert not one.another_leads
            wake = asyncio.Event()
            roster = Roster(bus, wake=wake)
            async with background(roster):
                # The first renewal tells the epoch; a lease that is renewed stays.
                await eventually(lambda: _told_epoch(roster) == ("one", first), on=wake)
            epoch = await led_by(one, wake_one)
            assert epoch == first
            async with let_go(bus, leader_key("sim", "c1")):
                task.cancel()
            following = await led_by(two, wake_two)
            assert following > epoch
            assert one.epoch is None


CHILD_LEADER = """
import asyncio, sys
from fairlead_bus import ConnectionSettings, connect
from fairlead_bus.ownership.leadership import Leadership
async def main():
    async with connect(ConnectionSettings(url=sys.argv[1]), name="ops") as bus:
        wake = asyncio.Event()
        leadership = Leadership(bus, role="sim", cluster="c1", replica="child", wake=wake)
        async with asyncio.TaskGroup() as group:
            group.create_task(leadership.run())
            while True:
                wake.clear()
                print(leadership.epoch or 0, flush=True)
                await wake.wait()
asyncio.run(main())
"""


@asynccontextmanager
async def a_leading_child(server: NatsServer) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    async with child_running(CHILD_LEADER, server.url) as (child, told):
        async with asyncio.timeout(40):
            while (epoch := int(await told.readline())) == 0:
                pass
        yield child, epoch


async def test_a_paused_leader_is_followed_and_does_not_trust_itself_when_it_goes_on(
    nats_server: NatsServer, bus: Bus
) -> None:
    wake = asyncio.Event()
    standby = Leadership(bus, role="sim", cluster="c1", replica="standby", wake=wake)
    async with a_leading_child(nats_server) as (child, epoch), background(standby):
        await eventually(lambda: standby._key.values, on=standby._seen)
        os.kill(child.pid, signal.SIGSTOP)
        following = await led_by(standby, wake)
        assert following > epoch
        os.kill(child.pid, signal.SIGCONT)
        assert child.stdout is not None
        async with asyncio.timeout(40):
            # Its own clock says that the trust is over, before any word of the new leader has reached it.
            assert int(await child.stdout.readline()) == 0
        assert await led_by(standby, wake) >= following


async def test_a_leader_that_cannot_renew_stops_trusting_itself_before_the_lease_ends(
    nats_server: NatsServer, bus: Bus
) -> None:
    wake = asyncio.Event()
    leader = Leadership(bus, role="sim", cluster="c1", replica="one", wake=wake)
    async with background(leader):
        epoch = await led_by(leader, wake)
        renewals = leader._last
        await eventually(lambda: leader._last > renewals)  # from here on, at least a second of trust is left
        cut = time.monotonic()
        with nats_server.paused():
            await eventually(lambda: leader.epoch is None, on=wake)  # woken, not polled
            assert leader._trusted_until < cut + LEASE_SECONDS
        # Nobody else took the key in between: either the same epoch goes on or a later one begins.
        assert await led_by(leader, wake) >= epoch


async def test_two_leaders_are_never_trusted_at_once(
    nats_server: NatsServer, tally: BusTally, bus: Bus
) -> None:
    """The leader, of three candidates, is stopped rudely (its task ends without a release) or cleanly in turn."""
    wake = asyncio.Event()
    epochs: list[int] = []

    def candidate(name: str) -> Leadership:
        return Leadership(bus, role="sim", cluster="c1", replica=name, wake=wake)

    candidates = [candidate(name) for name in "abc"]
    async with background(*candidates) as tasks:
        for _ in range(2):
            found = await eventually(
                lambda: [(one, epoch) for one in candidates if (epoch := one.epoch)], on=wake, timeout=ALLOWED
            )
            [(leader, epoch)] = found
            epochs.append(epoch)
            tasks[candidates.index(leader)].cancel()
            await asyncio.wait([tasks[candidates.index(leader)]])
            assert leader.epoch is None
    assert epochs == sorted(set(epochs))
    del nats_server, tally


def _told_epoch(roster: Roster) -> tuple[str, int]:
    known = roster.leader("sim", "c1")
    return (known.replica, known.epoch) if known else ("", 0)


async def test_a_lapse_of_trust_wakes_and_so_does_its_end(bus: Bus, nats_server: NatsServer) -> None:
    wake = asyncio.Event()
    leader = Leadership(bus, role="sim", cluster="c1", replica="a", wake=wake)
    async with background(leader):
        await led_by(leader, wake)
        with nats_server.paused():
            await eventually(lambda: leader.epoch is None, timeout=ALLOWED)
            wake.clear()
        await eventually(lambda: leader.epoch is not None, timeout=ALLOWED)
        assert wake.is_set()


async def test_who_leads_is_not_known_while_nats_is_away(bus: Bus, nats_server: NatsServer) -> None:
    wake = asyncio.Event()
    leader = Leadership(bus, role="sim", cluster="c1", replica="a", wake=wake)
    standby = Leadership(bus, role="sim", cluster="c1", replica="b", wake=wake)
    async with background(leader):
        await led_by(leader, wake)
        async with background(standby):
            await eventually(lambda: standby.another_leads)
            nats_server.kill()
            await eventually(lambda: not standby.another_leads)
