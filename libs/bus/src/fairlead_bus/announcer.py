"""Says on NATS what a cluster has: the duties of whoever owns the state of a cluster.

After each election and each reconnect the state on NATS is first made equal to the truth: a server crash can bring
deleted objects back, and whatever was published meanwhile may not have arrived. Then comes the sync mark, and only
then what changes from here on.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from fairlead_bus.bus import RESTATED, Bus
from fairlead_bus.errors import BusError, PayloadTooLargeError, ReplayBrokenError
from fairlead_bus.foreign import ForeignWrites
from fairlead_bus.leadership import Leadership
from fairlead_bus.mirror import Mirror
from fairlead_bus.observer import SparingNotes
from fairlead_bus.publisher import Publisher
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.state import STATE, State, SyncMark, encode_state, is_stated_at

RETRY_SECONDS = 0.2
REPLAY_SECONDS = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""After what others wrote was put back, the next time waits: who writes it without end makes a write now and then of us."""
QUIET_SECONDS = 60.0
"""After so long without anything to put back the first pause holds again."""
LOOK_SECONDS = 5.0
"""Between two looks whether the sync mark still stands: nobody hears of a purge."""
UNSTAMPED = 0
"""What an owner leaves to the announcer: always the epoch; the revision, too, where the owner keeps none."""

type Statements = Mapping[str, State | None]
"""By subject; None where the object is gone."""


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """One event that is to be published, at least once."""

    subject: str
    msg_id: str
    payload: bytes
    seq: int = 0
    """Its number in the outbox of an owner that keeps one."""


class Doors(Protocol):
    """Where requests come in: open while we lead, as another leader's must not be answered by us."""

    async def open(self) -> None:
        """Begin to answer; again changes nothing."""

    async def close(self) -> None:
        """Answer no longer; again changes nothing."""


class Step(NamedTuple):
    """An object as NATS has it and as it is; None where there is none."""

    subject: str
    before: State | None
    after: State | None


type Story = Callable[[Step], Iterable[Outgoing]]
"""The events that lie between the two. Told again after a failure, so their ids must be the same then."""


class NoDoors:
    """Of an owner whom nobody asks for anything."""

    async def open(self) -> None:
        """See `Doors`."""

    async def close(self) -> None:
        """See `Doors`."""


def nothing_happened(_: Step) -> Iterable[Outgoing]:
    """The story of an owner that keeps an outbox of its own."""
    return ()


def nothing_is_missing() -> str | None:
    """For an owner that knows everything as soon as it has said something."""
    return None


RESTATING: Mapping[str, str] = {RESTATED: "1"}


class Announcer:
    """Publishes state and events of one cluster while this process leads for it."""

    def __init__(
        self,
        bus: Bus,
        leadership: Leadership,
        *,
        cluster: str,
        wake: asyncio.Event,
        next_rev: Callable[[], int],
        clock: Callable[[], Micros],
        doors: Doors | None = None,
        story: Story = nothing_happened,
        missing: Callable[[], str | None] = nothing_is_missing,
        published: Callable[[list[int]], None] | None = None,
    ) -> None:
        """Say nothing yet, and nothing before the first `told`.

        Args:
            bus: the connection.
            leadership: for the cluster; sets `wake` when it changes.
            cluster: its name.
            wake: set when there is something to do.
            next_rev: a revision above all that were given: for the mark, for deletes and for unstamped statements.
            clock: now, for the mark.
            doors: opened and closed with the leadership.
            story: the events between what NATS has and what is. They are acked before the state that hides
                the transition is sent, so that one is told even if this process dies in between.
            missing: why what was told is not all there is. Without all, nothing is reconciled and no mark given.
            published: told which events of the outbox are acked.
        """
        self._bus, self._leadership, self._cluster, self._wake = bus, leadership, cluster, wake
        self._next_rev, self._clock = next_rev, clock
        self._doors: Doors = doors or NoDoors()
        self._story, self._missing, self._published = story, missing, published
        self._foreign = ForeignWrites(
            bus, stream=topology.STATE, filter=subjects.state_filter(cluster), wake=wake
        )
        self._publisher = Publisher(bus, acked=self._foreign.wrote)
        self._events = Publisher(bus)
        self._notes = SparingNotes(bus.observer)
        self._overwritten: set[str] = set()
        """Subjects that somebody else wrote and that are not put back yet."""
        self._pause = FIRST_PAUSE
        self._put_back_at = -QUIET_SECONDS
        """Monotonic seconds, of the last time."""
        self._looked_at = 0.0
        """Monotonic seconds, when the mark was last seen or written."""
        self._told = False
        self._truth: dict[str, State] = {}
        self._said: dict[str, State] = {}
        """What NATS has acked to us, by what was true; of use while nobody else leads."""
        self._said_in: int | None = None
        """The epoch of `_said`."""
        self._unsaid: set[str] = set()
        self._outbox: list[Outgoing] = []
        self._too_large: dict[str, State] = {}
        """What no server takes, as it was when somebody was told so."""
        self._connections = 0
        self._agreed: tuple[int, int] | None = None
        """(epoch, connection) for which NATS was made equal to the truth."""
        self.reconciled = 0
        self.repaired = 0
        """Objects on NATS that a reconciliation had to put right."""
        self.put_back = 0
        """Times that an object was stated again because somebody else had written its subject."""

    def told(self, statements: Statements, outgoing: Collection[Outgoing] = ()) -> None:
        """This is so now, and these happened: say it."""
        for subject, state in statements.items():
            if state is None:
                self._truth.pop(subject, None)
            else:
                self._truth[subject] = state
        self._told = True
        self._unsaid |= statements.keys()
        self._outbox += outgoing
        self._wake.set()

    def why_not_ready(self) -> str | None:
        """For /readyz, of an owner without a standby."""
        if self._leadership.epoch is None:
            return "does not lead for the cluster"
        return self.why_not_agreed()

    def why_not_agreed(self) -> str | None:
        """Why what NATS says may differ from what is; None, too, for whoever does not lead."""
        epoch = self._leadership.epoch
        if epoch is None or self._agreed == (epoch, self._connections):
            return None
        return "the state on NATS is not yet reconciled"

    async def run(self) -> None:
        """Until cancelled; raises only what makes the process useless."""
        forget = self._bus.on_connection(self._on_connection)
        listening = asyncio.create_task(self._foreign.run(), name=f"own subjects of {self._cluster}")
        listening.add_done_callback(lambda _: self._wake.set())
        try:
            while not listening.done():
                await self._woken()
                await self._follow_leadership()
            await listening
        finally:
            forget()
            listening.cancel()
            await self._doors.close()

    async def _woken(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._wake.wait()
        self._wake.clear()

    async def _follow_leadership(self) -> None:
        epoch = self._leadership.epoch
        if epoch is None:
            await self._doors.close()
            # A standby need not remember for days what changed: whoever leads again compares everything first. That
            # holds for a short lapse of trust in the same epoch, too.
            self._unsaid.clear()
            self._foreign.end()
            self._overwritten.clear()
            self._agreed = None
            return
        await self._doors.open()
        if not self._bus.connected:
            return  # the reconnect wakes us
        try:
            if self._agreed == (epoch, self._connections):
                await self._say(epoch)
                await self._put_back_others(epoch)
                await self._look_for_a_purge()
            elif self._told and self._missing() is None:
                await self._reconcile(epoch)
        except BusError as error:
            # Whatever was in flight may have arrived or not: the next pass finds out by reading.
            self._agreed = None
            self._bus.observer.note("announcer.failed", error=repr(error))
            await asyncio.sleep(RETRY_SECONDS)
            self._wake.set()

    def _on_connection(self, up: bool) -> None:  # noqa: FBT001 - the listener's form
        del up
        self._connections += 1
        self._wake.set()

    async def _reconcile(self, epoch: int) -> None:
        connection, incarnation = self._connections, self._bus.incarnation
        replayed = await self._replay()
        found = dict(replayed.values)
        found.pop(subjects.mark(self._cluster), None)
        # From here to the end of the comparison nothing is awaited: what changes later is said after the mark.
        self._unsaid.clear()
        self._foreign.begin(replayed.seq)
        self._overwritten.clear()
        # Of a later epoch than ours nothing can be: mirrors would keep it for ever.
        forged = {subject for subject, state in found.items() if state.epoch > epoch} | set(
            replayed.unreadable
        )
        forged.discard(subjects.mark(self._cluster))
        outbox, self._outbox = self._outbox, []
        if self._said_in != epoch:
            self._said, self._said_in = found, epoch
        wrong = _differing(found, self._truth)
        # An object that is right on NATS may have a step untold: what was acked to us is the measure of that.
        wrong |= _differing(self._said, self._truth) | forged
        await self._tell(wrong, outbox, epoch, restated=forged)
        if self._leadership.epoch != epoch or self._connections != connection:
            self._wake.set()
            return
        await self._mark(epoch, incarnation)
        self._agreed = epoch, connection
        self.reconciled += 1
        self.repaired += len(wrong)
        self._bus.observer.note(
            "announcer.reconciled",
            epoch=epoch,
            found=len(found),
            repaired=len(wrong),
            stands=len(self._truth),
        )

    async def _say(self, epoch: int) -> None:
        unsaid, self._unsaid = self._unsaid, set()
        outbox, self._outbox = self._outbox, []
        if unsaid or outbox:
            await self._tell(unsaid, outbox, epoch)

    async def _put_back_others(self, epoch: int) -> None:
        """Says again what somebody else wrote over, deleted or added, once it is sure that we are who says it.

        A leader that lost its lease without knowing would else put its word over that of the next one.
        """
        self._overwritten |= self._foreign.take()  # all of ours is acked: `_say` has flushed
        if not self._overwritten:
            return
        loop = asyncio.get_running_loop()
        since = loop.time() - self._put_back_at
        if since < self._pause:
            loop.call_later(self._pause - since, self._wake.set)
            return
        if not await self._leadership.is_confirmed():
            return
        changed, self._overwritten = self._overwritten, set()
        self._notes.note(
            "announcer.overwritten", subject=min(changed), subjects=len(changed), cluster=self._cluster
        )
        mark = subjects.mark(self._cluster)
        await self._tell(changed - {mark}, [], epoch, restated=changed)
        if mark in changed:
            await self._mark(epoch, self._bus.incarnation, RESTATING)
        self.put_back += len(changed)
        self._bus.observer.count("announcer.put_back", len(changed))
        self._pause = FIRST_PAUSE if since > QUIET_SECONDS else min(2 * self._pause, LONGEST_PAUSE)
        self._put_back_at = loop.time()

    async def _look_for_a_purge(self) -> None:
        """Whatever takes all of a cluster's state away takes its mark away, too."""
        now = asyncio.get_running_loop().time()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        if await self._bus.last(topology.STATE, subjects.mark(self._cluster)) is None:
            self._bus.observer.count("announcer.purged")
            self._notes.note("announcer.purged", cluster=self._cluster)
            self._agreed = None
            self._wake.set()

    async def _tell(
        self,
        changed: Collection[str],
        outbox: list[Outgoing],
        epoch: int,
        *,
        restated: Collection[str] = frozenset(),
    ) -> None:
        """The events first: once the state is said, nobody could know any more that they are due."""
        steps = [Step(subject, self._said.get(subject), self._truth.get(subject)) for subject in changed]
        try:
            news = [event for step in steps for event in self._story(step)]
            for event in (*outbox, *news):
                await self._events.put(event.subject, event.payload, msg_id=event.msg_id)
            if news:
                await self._events.flush()
            for step in steps:
                await self._state(step, epoch, RESTATING if step.subject in restated else None)
            await self._publisher.flush()
            await self._events.flush()
        except BaseException:
            self._outbox = outbox + self._outbox
            raise
        self._acked(steps)
        if outbox and self._published is not None:
            self._published([event.seq for event in outbox])

    def _acked(self, steps: Iterable[Step]) -> None:
        for subject, _, after in steps:
            if after is None:
                self._said.pop(subject, None)
            else:
                self._said[subject] = after

    async def _state(self, step: Step, epoch: int, headers: Mapping[str, str] | None) -> None:
        if step.after is None:
            self._too_large.pop(step.subject, None)
            # The tombstone's stamp is above all that the object had: a late copy of it is refused everywhere.
            await self._publisher.delete(step.subject, stamp=(epoch, self._next_rev()), headers=headers)
            return
        rev = self._next_rev() if step.after.rev == UNSTAMPED else step.after.rev
        stamped = msgspec.structs.replace(step.after, epoch=epoch, rev=rev)
        try:
            await self._publisher.put(step.subject, encode_state(stamped), headers=headers)
        except PayloadTooLargeError as error:
            self._leave_out(step.subject, step.after, error)
        else:
            self._too_large.pop(step.subject, None)

    def _leave_out(self, subject: str, state: State, error: PayloadTooLargeError) -> None:
        """One object must not keep a whole cluster from being stated: what stands of it on NATS is left as it is."""
        if self._too_large.get(subject) == state:
            return
        self._too_large[subject] = state
        self._bus.observer.count("announcer.too_large")
        self._bus.observer.note("announcer.too_large", subject=subject, error=str(error))

    async def _replay(self) -> Mirror[State]:
        """All that stands on NATS of this cluster."""
        mirror: Mirror[State] = Mirror(
            self._bus,
            stream=topology.STATE,
            filter=subjects.state_filter(self._cluster),
            codec=STATE,
            belongs=is_stated_at,
            wake=asyncio.Event(),
        )
        async with asyncio.TaskGroup() as group:
            mirroring = group.create_task(mirror.run(), name="replay of own state")
            complete = await _completes(mirror)
            mirroring.cancel()
        if not complete:
            raise ReplayBrokenError(f"the state of {self._cluster} was not replayed in {REPLAY_SECONDS} s")
        return mirror

    async def _mark(self, epoch: int, incarnation: str, headers: Mapping[str, str] | None = None) -> None:
        mark = SyncMark(
            cluster=self._cluster,
            epoch=epoch,
            rev=self._next_rev(),
            incarnation=incarnation,
            at=self._clock(),
        )
        await self._publisher.put(subjects.mark(self._cluster), encode_state(mark), headers=headers)
        await self._publisher.flush()


def _differing(found: Mapping[str, State], truth: Mapping[str, State]) -> set[str]:
    """Subjects that say something else than the truth, or that one of both lacks."""
    unknown = found.keys() - truth.keys()
    return unknown | {subject for subject, state in truth.items() if not _says(found.get(subject), state)}


def _says(found: State | None, truth: State) -> bool:
    """Whether they are the same but for what the announcer itself puts in."""
    if found is None:
        return False
    if found is truth:
        return True
    rev = UNSTAMPED if truth.rev == UNSTAMPED else found.rev
    return msgspec.structs.replace(found, epoch=UNSTAMPED, rev=rev) == truth


async def _completes(mirror: Mirror[State]) -> bool:
    try:
        async with asyncio.timeout(REPLAY_SECONDS):
            await mirror.wait_complete()
    except TimeoutError:
        return False
    return True
