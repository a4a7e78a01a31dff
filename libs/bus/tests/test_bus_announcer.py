"""An owner's state on NATS: made equal to the truth first, then followed; steps are told before they are hidden."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bucket, Bus, ConnectionSettings, Follower, connect
from fairlead_bus.facts.announcer import Announcer
from fairlead_bus.facts.mirrors import state_mirror
from fairlead_bus.facts.repair import FIRST_PAUSE
from fairlead_bus.facts.statement_publisher import OutgoingEvent, StateChange
from fairlead_bus.observer import BusTally
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.server.accounts import AccountLayout
from fairlead_bus.server.provision import provision
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.state import (
    ClassState,
    PoolState,
    State,
    SyncMark,
    encode_state,
    subject_of,
)
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.nats_servers.guarded import guarded_server
from fairlead_testkit.timing.in_hand import beside

pytestmark = pytest.mark.integration

CLUSTER = "c1"


def a_class(name: str, value: int, *, epoch: int = 0, rev: int = 0) -> ClassState:
    return ClassState(cluster=CLUSTER, epoch=epoch, rev=rev, name=name, value=value)


def stated(*classes: ClassState) -> dict[str, State | None]:
    return {subject_of(one): one for one in classes}


def gone(name: str) -> dict[str, State | None]:
    return {subject_of(a_class(name, 0)): None}


def value_of(state: State | None) -> int | None:
    return state.value if isinstance(state, ClassState) else None


def events_between(step: StateChange) -> Iterable[OutgoingEvent]:
    before, after = value_of(step.before), value_of(step.after)
    if before != after:
        name = subjects.parse_state(step.subject).name
        text = f"{name}:{before}->{after}"
        yield OutgoingEvent(subject=subjects.event("t", CLUSTER, name), msg_id=text, payload=text.encode())


class Lapsing(Leadership):
    """A leadership whose trust in itself can lapse for a while, as it does when a renewal is acked late."""

    lapsed = False

    @property
    def epoch(self) -> int | None:
        return None if self.lapsed else super().epoch

    def lapse(self, *, lapsed: bool) -> None:
        self.lapsed = lapsed
        self.wake.set()


class ToggledEndpoints:
    """Endpoints of which one sees whether they are open."""

    def __init__(self) -> None:
        self.is_open = False

    async def open(self) -> None:
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False


class LedAnnouncer:
    """An announcer with its leadership, over one connection."""

    def __init__(self, bus: Bus, replica: str, first_rev: int = 1) -> None:
        self.wake = asyncio.Event()
        self.missing: str | None = None
        revs = count(first_rev)
        self.endpoints = ToggledEndpoints()
        self.leadership = Lapsing(bus, role="watcher", cluster=CLUSTER, replica=replica, wake=self.wake)
        self.announcer = Announcer(
            bus,
            self.leadership,
            cluster=CLUSTER,
            wake=self.wake,
            next_rev=lambda: next(revs),
            clock=lambda: 7,
            endpoints=self.endpoints,
            events_between=events_between,
            missing=lambda: self.missing,
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.leadership.run())
            group.create_task(self.announcer.run())

    def agreed(self) -> bool:
        return self.announcer.why_not_ready() is None


def repaired_in(tally: BusTally) -> int:
    """Objects on NATS that reconciliations had to put right."""
    return sum(int(str(told["repaired"])) for told in tally.said("announcer.reconciled"))


class Audience:
    """A reader of what is stated and told."""

    def __init__(self, bus: Bus) -> None:
        self.mirror = state_mirror(bus, CLUSTER)
        self.follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER), since=0)
        self.news: list[str] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.mirror.run())
            group.create_task(self._listen())

    async def _listen(self) -> None:
        async for delivery in self.follower:
            self.news.append(delivery.payload.decode())

    def values(self) -> dict[str, int]:
        return {one.name: one.value for one in self.mirror.values.values() if isinstance(one, ClassState)}

    def mark(self) -> SyncMark | None:
        found = self.mirror.values.get(subjects.mark(CLUSTER))
        return found if isinstance(found, SyncMark) else None


def running(*parts: LedAnnouncer | Audience) -> AbstractAsyncContextManager[None]:
    return beside(*(part.run() for part in parts))


async def test_what_nats_says_is_made_equal_to_the_truth_and_only_then_marked(
    bus: Bus, tally: BusTally
) -> None:
    right, wrong, unknown = (
        a_class("right", 1, rev=5),
        a_class("wrong", 9, rev=5),
        a_class("unknown", 9, rev=5),
    )
    for one in (right, wrong, unknown):
        await bus.publish(subject_of(one), encode_state(one))
    owner, audience = LedAnnouncer(bus, "a", first_rev=100), Audience(bus)
    owner.announcer.update(stated(a_class("right", 1), a_class("wrong", 2), a_class("new", 3)))
    async with running(owner, audience):
        mark = await eventually(audience.mark)
        assert audience.values() == {"right": 1, "wrong": 2, "new": 3}
        assert (mark.incarnation, mark.at) == (bus.incarnation, 7)
        await eventually(owner.agreed)  # the mark may be heard before its writer has the ack
        assert repaired_in(tally) == 3
        kept = audience.mirror.values[subject_of(right)]
        assert (kept.epoch, kept.rev) == (0, 5), "what is right already is left alone"
        repaired = audience.mirror.values[subject_of(wrong)]
        assert (repaired.epoch, repaired.rev > 5) == (mark.epoch, True)
        await eventually(lambda: len(audience.news) == 3)
        assert sorted(audience.news) == ["new:None->3", "unknown:9->None", "wrong:9->2"]


async def test_what_changes_later_is_said_with_its_story(bus: Bus) -> None:
    owner, audience = LedAnnouncer(bus, "a"), Audience(bus)
    owner.announcer.update({})
    async with running(owner, audience):
        await eventually(owner.agreed)
        owner.announcer.update(stated(a_class("x", 1)))
        await eventually(lambda: audience.values() == {"x": 1})
        owner.announcer.update(stated(a_class("x", 2)))
        await eventually(lambda: audience.values() == {"x": 2})
        owner.announcer.update(gone("x"))
        await eventually(lambda: audience.values() == {})
        # They are acked before the state is, but come by a feed of their own.
        await eventually(lambda: len(audience.news) == 3)
        assert audience.news == ["x:None->1", "x:1->2", "x:2->None"]


async def test_nothing_is_reconciled_or_marked_while_the_owner_lacks_something(bus: Bus) -> None:
    stands = a_class("stands", 1, rev=1)
    await bus.publish(subject_of(stands), encode_state(stands))
    owner, audience = LedAnnouncer(bus, "a", first_rev=2), Audience(bus)
    owner.missing = "the nodes"
    owner.announcer.update({})
    async with running(owner, audience):
        await eventually(lambda: owner.leadership.epoch)
        await eventually(lambda: audience.mirror.complete)
        # Whatever the announcer did on these words is on the stream before the next one of ours.
        owner.announcer.update(stated(a_class("other", 1)))
        await bus.publish(subjects.state(CLUSTER, "class", "ours"), encode_state(a_class("ours", 4)))
        await eventually(lambda: "ours" in audience.values())
        assert audience.values() == {"stands": 1, "ours": 4}
        assert audience.mark() is None
        owner.missing = None
        owner.announcer.update({})
        await eventually(audience.mark)
        assert audience.values() == {"other": 1}


async def test_a_step_during_a_change_of_leader_is_told_by_the_next(
    bus: Bus, settings: ConnectionSettings
) -> None:
    audience = Audience(bus)
    first = LedAnnouncer(bus, "a")
    first.announcer.update(stated(a_class("x", 1), a_class("y", 1)))
    async with running(audience):
        async with running(first):
            await eventually(first.agreed)
        async with connect(settings, name="other") as line:
            second = LedAnnouncer(line, "b")
            second.announcer.update(stated(a_class("x", 5)))
            async with running(second):
                await eventually(second.agreed)
        await eventually(lambda: len(audience.news) == 4)
        assert sorted(audience.news) == ["x:1->5", "x:None->1", "y:1->None", "y:None->1"]


async def test_after_a_restart_of_the_server_old_values_are_put_right_and_no_step_is_told_twice(
    bus: Bus, nats_server: NatsServer, tally: BusTally
) -> None:
    owner, audience = LedAnnouncer(bus, "a"), Audience(bus)
    owner.announcer.update(stated(a_class("x", 1)))
    async with running(owner, audience):
        await eventually(owner.agreed)
        owner.announcer.update(stated(a_class("x", 2)))
        await eventually(lambda: audience.values() == {"x": 2})
        nats_server.kill()
        await eventually(lambda: not bus.connected, on=tally.heard)
        owner.announcer.update(stated(a_class("z", 3)))
        nats_server.start()
        await eventually(owner.agreed)
        repaired = repaired_in(tally)
        # As a server crash does: an old value comes back under the nose of its owner.
        zombie = msgspec.structs.replace(a_class("x", 1), rev=1)
        await bus.publish(subject_of(zombie), encode_state(zombie))
        nats_server.kill()
        await eventually(lambda: not bus.connected, on=tally.heard)
        nats_server.start()
        await eventually(owner.agreed)
        await eventually(lambda: audience.values() == {"x": 2, "z": 3})
        assert audience.mark() is not None
        # Whether it was found before the server went down or after it came up again.
        assert repaired_in(tally) + owner.announcer.put_back >= repaired + 1
        # The audience's feeds begin again each by itself: the events may come after the state.
        await eventually(lambda: set(audience.news) == {"x:None->1", "x:1->2", "z:None->3"})


async def test_what_was_told_while_trust_lapsed_is_said_when_it_is_back_in_the_same_epoch(bus: Bus) -> None:
    owner, audience = LedAnnouncer(bus, "a"), Audience(bus)
    owner.announcer.update(stated(a_class("x", 1), a_class("y", 1)))
    async with running(owner, audience):
        await eventually(owner.agreed)
        await eventually(lambda: audience.values() == {"x": 1, "y": 1})
        epoch = owner.leadership.epoch
        owner.leadership.lapse(lapsed=True)
        await eventually(lambda: not owner.endpoints.is_open)
        owner.announcer.update(gone("x") | stated(a_class("y", 2)))
        await eventually(lambda: not owner.wake.is_set())
        owner.leadership.lapse(lapsed=False)
        await eventually(lambda: audience.values() == {"y": 2})
        assert owner.leadership.epoch == epoch
        await eventually(lambda: sorted(audience.news)[-2:] == ["y:1->2", "y:None->1"])
        assert sorted(audience.news)[:2] == ["x:1->None", "x:None->1"]


async def test_a_statement_that_no_server_takes_is_left_out_and_told_once(bus: Bus, tally: BusTally) -> None:
    size = bus.connection._client.max_payload
    huge = PoolState(cluster=CLUSTER, epoch=0, rev=0, name="p", capacity={}, enforcement_why="x" * size)
    owner, audience = LedAnnouncer(bus, "a"), Audience(bus)
    assert tally.counts.get("announcer.too_large") == 0, "an alert sees no increase of what begins at one"
    owner.announcer.update({subject_of(huge): huge, **stated(a_class("x", 1))})
    async with running(owner, audience):
        await eventually(owner.agreed)
        await eventually(lambda: audience.values() == {"x": 1})
        owner.announcer.update({subject_of(huge): huge, **stated(a_class("x", 2))})
        await eventually(lambda: audience.values() == {"x": 2})
        assert tally.counts["announcer.reconciled"] == 1, "the cluster does not stand still over it"
        [told] = tally.said("announcer.too_large")
        assert told["subject"] == subject_of(huge)
        assert tally.counts["announcer.too_large"] == 1
        # Another content is another matter: of one that is too large again, too, and of one that is not.
        still = msgspec.structs.replace(huge, enforcement_why="y" * size)
        owner.announcer.update({subject_of(huge): still})
        await eventually(lambda: tally.counts["announcer.too_large"] == 2)
        owner.announcer.update({subject_of(huge): msgspec.structs.replace(huge, enforcement_why="")})
        await eventually(lambda: subject_of(huge) in audience.mirror.values)
        assert tally.counts["announcer.reconciled"] == 1


async def test_an_event_that_no_server_takes_is_left_out_and_told_and_all_else_is_said(
    bus: Bus, tally: BusTally
) -> None:
    """A job that asks for thousands of resources: what it asks for fits into its state, and not into the event of it."""
    huge = OutgoingEvent(
        subject=subjects.event("t", CLUSTER, "h"),
        msg_id="h",
        payload=b"x" * bus.connection._client.max_payload,
    )
    owner, audience = LedAnnouncer(bus, "a"), Audience(bus)
    owner.announcer.update(stated(a_class("x", 1)), [huge])
    async with running(owner, audience):
        await eventually(owner.agreed)
        await eventually(lambda: audience.values() == {"x": 1})
        owner.announcer.update(stated(a_class("x", 2)), [huge])
        await eventually(lambda: audience.values() == {"x": 2})
        await eventually(lambda: audience.news == ["x:None->1", "x:1->2"])
        assert tally.counts["announcer.reconciled"] == 1
        assert [told["subject"] for told in tally.said("announcer.too_large")] == [huge.subject] * 2


AT_X = subject_of(a_class("x", 0))
FORGED = 2**60

type Overwriting = Callable[[Bus], Awaitable[object]]


def over_x(payload: bytes) -> Overwriting:
    return lambda bus: bus.publish(AT_X, payload)


OVERWRITINGS: dict[str, Overwriting] = {
    "a value": over_x(encode_state(a_class("x", 9, epoch=1, rev=1))),
    "a value that is always the newest": over_x(encode_state(a_class("x", 9, epoch=FORGED, rev=FORGED))),
    "an answer of the server": over_x(b'{"stream":"submit","seq":7}'),
    "nothing": over_x(b""),
    "a delete": lambda bus: bus.delete(AT_X),
    "a delete that is always the newest": lambda bus: bus.delete(AT_X, stamp=(FORGED, FORGED)),
    "an object that is none": lambda bus: bus.publish(
        subject_of(a_class("y", 0)), encode_state(a_class("y", 9, epoch=FORGED, rev=FORGED))
    ),
    "the mark": lambda bus: bus.publish(subjects.mark(CLUSTER), b"x"),
    "no mark": lambda bus: bus.delete(subjects.mark(CLUSTER), stamp=(FORGED, FORGED)),
}


@pytest.mark.parametrize("what", OVERWRITINGS)
async def test_what_somebody_else_wrote_is_put_back_promptly_counted_and_told(
    bus: Bus, settings: ConnectionSettings, tally: BusTally, what: str
) -> None:
    owner, audience = LedAnnouncer(bus, "a"), Audience(bus)
    owner.announcer.update(stated(a_class("x", 1)))
    async with running(owner, audience), connect(settings, name="foreigner") as foreigner:
        await eventually(owner.agreed)
        await eventually(audience.mark)
        await eventually(lambda: len(audience.news) == 1)
        await OVERWRITINGS[what](foreigner)
        await eventually(lambda: owner.announcer.put_back == 1, on=tally.heard)
        await eventually(lambda: audience.values() == {"x": 1})
        await eventually(audience.mark)
        [told] = tally.said("announcer.overwritten")
        assert (told["cluster"], told["subjects"]) == (CLUSTER, 1)
        assert tally.counts["announcer.put_back"] == 1
        # What is stated later is taken, too, whatever stamp was forged.
        owner.announcer.update(stated(a_class("x", 2), a_class("y", 3)))
        await eventually(lambda: audience.values() == {"x": 2, "y": 3})
        assert tally.counts["announcer.reconciled"] == 1
        await eventually(lambda: len(audience.news) == 3)
        assert sorted(audience.news) == ["x:1->2", "x:None->1", "y:None->3"]
        assert owner.announcer.put_back == 1, "what is its own is not taken for another's"


async def test_what_was_forged_while_nobody_owned_it_is_put_right_by_the_next(bus: Bus) -> None:
    owner, audience = LedAnnouncer(bus, "a"), Audience(bus)
    owner.announcer.update(stated(a_class("x", 1), a_class("gone", 1), a_class("y", 1)))
    async with running(audience):
        async with running(owner):
            await eventually(owner.agreed)
            await eventually(lambda: audience.values() == {"x": 1, "gone": 1, "y": 1})
        await bus.publish(AT_X, encode_state(a_class("x", 1, epoch=FORGED)))
        for name in ("gone", "y"):
            await bus.publish(subject_of(a_class(name, 0)), b"x")
        await eventually(lambda: audience.mirror.values[AT_X].epoch == FORGED)
        next_owner = LedAnnouncer(bus, "b")
        next_owner.announcer.update(stated(a_class("x", 1), a_class("y", 1)))
        async with running(next_owner):
            await eventually(next_owner.agreed)
            await eventually(lambda: audience.values() == {"x": 1, "y": 1})
            next_owner.announcer.update(stated(a_class("x", 2)))
            await eventually(lambda: audience.values() == {"x": 2, "y": 1})


async def test_who_writes_without_end_makes_a_few_writes_of_the_owner_and_has_not_the_last_word(
    bus: Bus, settings: ConnectionSettings, tally: BusTally
) -> None:
    owner, audience = LedAnnouncer(bus, "a"), Audience(bus)
    owner.announcer.update(stated(a_class("x", 1)))
    async with running(owner, audience), connect(settings, name="foreigner") as foreigner:
        await eventually(owner.agreed)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while loop.time() - begun < 1.5:
            await foreigner.publish(AT_X, encode_state(a_class("x", 9, epoch=FORGED)))
        await eventually(lambda: audience.values() == {"x": 1})
        # Pauses of 0.1, 0.2, 0.4 and so on: as many as the time has room for, and one.
        assert owner.announcer.put_back <= 2 + math.log2((loop.time() - begun) / FIRST_PAUSE)
        assert len(tally.said("announcer.overwritten")) <= 10


class Deluded(Leadership):
    """A leadership that never hears that it lost the key."""

    believed: int | None = None

    @property
    def epoch(self) -> int | None:
        self.believed = self.believed or super().epoch
        return self.believed


async def test_an_owner_that_lost_its_lease_unawares_fights_nobody(
    bus: Bus, settings: ConnectionSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "Lapsing", Deluded)
    first, audience = LedAnnouncer(bus, "a"), Audience(bus)
    monkeypatch.undo()
    first.announcer.update(stated(a_class("x", 1)))
    async with running(first, audience), connect(settings, name="other") as line:
        await eventually(first.agreed)
        await Bucket(bus, topology.MEMBERS).delete(subjects.leader_key("watcher", CLUSTER))
        second = LedAnnouncer(line, "b", first_rev=1000)
        second.announcer.update(stated(a_class("x", 5)))
        async with running(second):
            await eventually(second.agreed)
            await eventually(lambda: audience.values() == {"x": 5})
            # It hears what the other says, and has had every chance to say its own over it.
            first.announcer.update({})
            second.announcer.update(stated(a_class("z", 6)))
            await eventually(lambda: audience.values() == {"x": 5, "z": 6})
            assert first.announcer.put_back == 0
            first.announcer.update(stated(a_class("x", 2), a_class("late", 2)))
            await eventually(lambda: second.announcer.put_back >= 2)
            await eventually(lambda: audience.values() == {"x": 5, "z": 6})
            assert first.announcer.put_back == 0


async def test_a_purge_is_found_by_the_missing_mark(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("announcer", "repair"):
        monkeypatch.setattr(f"fairlead_bus.facts.{module}.LOOK_SECONDS", 0.2)
    owner = LedAnnouncer(bus, "a")
    owner.announcer.update(stated(a_class("x", 1)))
    async with running(owner):
        await eventually(owner.agreed)
        await bus.jetstream.call("STREAM.PURGE.state", {"filter": subjects.state_filter(CLUSTER)})

        async def stands_again() -> bool:
            found = await bus.last(topology.STATE, AT_X)
            return found is not None and await bus.last(topology.STATE, subjects.mark(CLUSTER)) is not None

        await eventually(stands_again)


async def test_a_single_subject_that_was_purged_is_found_by_an_audit(
    bus: Bus, tally: BusTally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_bus.facts.repair.AUDIT_SECONDS", 0.2)
    owner = LedAnnouncer(bus, "a")
    owner.announcer.update(stated(a_class("x", 1), a_class("y", 1)))
    async with running(owner):
        await eventually(owner.agreed)
        await bus.jetstream.call("STREAM.PURGE.state", {"filter": AT_X})
        await eventually(lambda: bus.last(topology.STATE, AT_X))
        await eventually(lambda: owner.announcer.put_back)
        assert tally.counts["announcer.reconciled"] == 1
        assert tally.counts["announcer.purged"] > 0
        await asyncio.sleep(0.5)  # an audit that began before may find the same
        put_back = owner.announcer.put_back
        owner.announcer.update(gone("y"))
        await asyncio.sleep(1.0)  # some audits: they take nothing for missing that is not
        assert owner.announcer.put_back == put_back


async def test_the_shipped_grants_let_a_watcher_put_its_state_back(tmp_path: Path) -> None:
    with guarded_server(
        tmp_path, AccountLayout(clusters=[CLUSTER], groups={}, operators=[]).accounts
    ) as guarded:
        async with connect(guarded.root, name="ops") as root:
            await provision(root, topology.topology([CLUSTER]))
            tally = BusTally()
            user = f"watcher.{CLUSTER}"
            async with connect(guarded.settings(user), name=user, observer=tally) as bus:
                owner = LedAnnouncer(bus, "a")
                owner.announcer.update(stated(a_class("x", 1)))
                async with running(owner):
                    await eventually(owner.agreed)
                    await root.publish(AT_X, b"x")
                    await eventually(lambda: owner.announcer.put_back == 1, on=tally.heard)
                    assert tally.counts["bus.denied"] == 0
