"""Says on NATS what the cluster's file says: the leader's duties beside the truth itself.

After each election and each reconnect the state on NATS is first made equal to the truth: a server crash can bring
deleted objects back, and whatever was published meanwhile may not have arrived. Then comes the sync mark, and only
then what changes from here on.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from fairlead_bus import Bus, BusError, Leadership, Mirror, Publisher, ReplayBrokenError
from fairlead_contracts import subjects, topology
from fairlead_contracts.state import STATE, State, SyncMark, encode_state
from fairlead_runtime import wall_clock
from fairlead_sim.statements import NO_EPOCH, Statements
from fairlead_sim.store import Outgoing

RETRY_SECONDS = 0.2
REPLAY_SECONDS = 30.0


class Doors(Protocol):
    """Where requests come in: open while we lead, as another leader's must not be answered by us."""

    async def open(self) -> None:
        """Begin to answer; again changes nothing."""

    async def close(self) -> None:
        """Answer no longer; again changes nothing."""


class Announcer:
    """Publishes committed state and events while this process leads for the cluster."""

    def __init__(
        self,
        bus: Bus,
        leadership: Leadership,
        doors: Doors,
        *,
        cluster: str,
        wake: asyncio.Event,
        next_rev: Callable[[], int],
        published: Callable[[list[int]], None],
    ) -> None:
        """Say nothing yet.

        Args:
            bus: the connection.
            leadership: for the cluster; sets `wake` when it changes.
            doors: opened and closed with the leadership.
            cluster: its name.
            wake: set when there is something to do.
            next_rev: a revision above all that were given, for the mark.
            published: told which events of the outbox are acked.
        """
        self._bus = bus
        self._leadership = leadership
        self._doors = doors
        self._cluster = cluster
        self._wake = wake
        self._next_rev = next_rev
        self._published = published
        self._publisher = Publisher(bus)
        self._truth: dict[str, State] = {}
        self._unsaid: Statements = {}
        self._outbox: list[Outgoing] = []
        self._connections = 0
        self._agreed: tuple[int, int] | None = None
        """(epoch, connection) for which NATS was made equal to the truth."""
        self.reconciled = 0
        self.repaired = 0
        """Objects on NATS that a reconciliation had to put right."""

    def told(self, statements: Statements, outgoing: list[Outgoing]) -> None:
        """These were committed: say them."""
        for subject, state in statements.items():
            if state is None:
                self._truth.pop(subject, None)
            else:
                self._truth[subject] = state
        self._unsaid |= statements
        self._outbox += outgoing
        self._wake.set()

    def why_not_ready(self) -> str | None:
        """For /readyz."""
        epoch = self._leadership.epoch
        if epoch is None:
            return "does not lead for the cluster"
        if self._agreed != (epoch, self._connections):
            return "the state on NATS is not yet reconciled"
        return None

    async def run(self) -> None:
        """Until cancelled; raises only what makes the process useless."""
        forget = self._bus.on_connection(self._on_connection)
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._follow_leadership()
        finally:
            forget()
            await self._doors.close()

    async def _follow_leadership(self) -> None:
        epoch = self._leadership.epoch
        if epoch is None:
            await self._doors.close()
            return
        await self._doors.open()
        if not self._bus.connected:
            return  # the reconnect wakes us
        try:
            if self._agreed != (epoch, self._connections):
                await self._reconcile(epoch)
            await self._say(epoch)
        except BusError as error:
            # Whatever was in flight may have arrived or not: the next pass finds out by reading.
            self._agreed = None
            self._bus.observer.note("sim.announce_failed", error=repr(error))
            await asyncio.sleep(RETRY_SECONDS)
            self._wake.set()

    def _on_connection(self, up: bool) -> None:  # noqa: FBT001 - the listener's form
        del up
        self._connections += 1
        self._wake.set()

    async def _reconcile(self, epoch: int) -> None:
        connection, incarnation = self._connections, self._bus.incarnation
        found = await self._replay()
        found.pop(subjects.mark(self._cluster), None)
        # From here to the end of the comparison nothing is awaited: what changes later is said after the mark.
        self._unsaid.clear()
        unknown = [subject for subject in found if subject not in self._truth]
        differing = {
            subject: state
            for subject, state in self._truth.items()
            if (said := found.get(subject)) is None or msgspec.structs.replace(said, epoch=NO_EPOCH) != state
        }
        for subject in unknown:
            await self._bury(subject, epoch)
        for subject, state in differing.items():
            await self._put(subject, state, epoch)
        await self._publisher.flush()
        if self._leadership.epoch != epoch or self._connections != connection:
            self._wake.set()
            return
        await self._mark(epoch, incarnation)
        self._agreed = epoch, connection
        self.reconciled += 1
        self.repaired += len(unknown) + len(differing)
        self._bus.observer.note(
            "sim.reconciled",
            epoch=epoch,
            unknown=len(unknown),
            differing=len(differing),
            stands=len(self._truth),
        )

    async def _replay(self) -> dict[str, State]:
        """All that stands on NATS of this cluster."""
        mirror: Mirror[State] = Mirror(
            self._bus,
            stream=topology.STATE,
            filter=subjects.state_filter(self._cluster),
            codec=STATE,
            wake=asyncio.Event(),
        )
        async with asyncio.TaskGroup() as group:
            mirroring = group.create_task(mirror.run(), name="replay of own state")
            complete = await _completes(mirror)
            mirroring.cancel()
        if not complete:
            raise ReplayBrokenError(f"the state of {self._cluster} was not replayed in {REPLAY_SECONDS} s")
        return dict(mirror.values)

    async def _mark(self, epoch: int, incarnation: str) -> None:
        mark = SyncMark(
            cluster=self._cluster,
            epoch=epoch,
            rev=self._next_rev(),
            incarnation=incarnation,
            at=wall_clock(),
        )
        await self._publisher.put(subjects.mark(self._cluster), encode_state(mark))
        await self._publisher.flush()

    async def _say(self, epoch: int) -> None:
        if self._agreed != (epoch, self._connections):
            return
        unsaid, self._unsaid = self._unsaid, {}
        outbox, self._outbox = self._outbox, []
        try:
            for subject, state in unsaid.items():
                await (self._bury(subject, epoch) if state is None else self._put(subject, state, epoch))
            for event in outbox:
                await self._publisher.put(event.subject, event.payload, msg_id=event.msg_id)
            await self._publisher.flush()
        except BaseException:
            self._outbox = outbox + self._outbox
            raise
        if outbox:
            self._published([event.seq for event in outbox])

    async def _put(self, subject: str, state: State, epoch: int) -> None:
        await self._publisher.put(subject, encode_state(msgspec.structs.replace(state, epoch=epoch)))

    async def _bury(self, subject: str, epoch: int) -> None:
        """The tombstone's stamp is above all that the object had: a late copy of it is refused everywhere."""
        await self._publisher.delete(subject, stamp=(epoch, self._next_rev()))


async def _completes(mirror: Mirror[State]) -> bool:
    try:
        async with asyncio.timeout(REPLAY_SECONDS):
            await mirror.wait_complete()
    except TimeoutError:
        return False
    return True
