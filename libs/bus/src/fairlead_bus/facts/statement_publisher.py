"""Publishing what a cluster's owner states: events first, then states, each with its stamp, and the sync mark."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from fairlead_bus.connection.bus import RESTATED, Bus
from fairlead_bus.connection.jetstream import Ack
from fairlead_bus.errors import PayloadTooLargeError
from fairlead_bus.facts.comparison import UNSTAMPED
from fairlead_bus.observer import RateLimitedNotes
from fairlead_bus.streams.publisher import Publisher
from fairlead_contracts import subjects
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.state import State, SyncMark, encode_state

AT_ONCE = 256
"""Statements sent before others of this process have their turn."""
RESTATING: Mapping[str, str] = {RESTATED: "1"}


class OutgoingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is to be published, at least once."""

    subject: str
    msg_id: str
    payload: bytes
    seq: int = 0
    """The event's number in the outbox of an owner that keeps one."""


class StateChange(NamedTuple):
    """An object as NATS has it and as it is; None where there is none."""

    subject: str
    before: State | None
    after: State | None


type EventsBetween = Callable[[StateChange], Iterable[OutgoingEvent]]
"""Makes the events of a change of state. It is called again after a failure, so their ids must be the same then."""


class StatementPublisher:
    """Publishes one cluster's statements, and knows which of them NATS has acked.

    Args:
        truth: the owner's objects by subject, as they are at each moment.
        next_rev, clock, events_between, published: see `Announcer`.
        wrote: hears the ack of each write of a statement.
    """

    def __init__(
        self,
        bus: Bus,
        truth: Mapping[str, State],
        *,
        cluster: str,
        next_rev: Callable[[], int],
        clock: Callable[[], Micros],
        events_between: EventsBetween,
        published: Callable[[list[int]], None],
        wrote: Callable[[Ack], None],
    ) -> None:
        self._truth = truth
        self._cluster = cluster
        self._next_rev, self._clock = next_rev, clock
        self._events_between, self._published = events_between, published
        self._states = Publisher(bus, acked=wrote)
        self._events = Publisher(bus)
        self._notes = RateLimitedNotes(bus.observer)
        # An alert sees no increase in a series that begins at one.
        bus.observer.count("announcer.too_large", 0)
        self._too_large: dict[str, State] = {}
        """States that are too large for the server, as they were when somebody was told so."""
        self._epoch: int | None = None
        self._acked: dict[str, State] = {}
        self.outbox: list[OutgoingEvent] = []
        """Events that are published with the next change."""

    @property
    def acked(self) -> Mapping[str, State]:
        """State that NATS has acked to us in this epoch, by subject, as it was true then; of use while nobody else leads."""
        return self._acked

    @property
    def stored(self) -> AbstractSet[str]:
        """Subjects whose state NATS has: those that were too large are acked, and not stored."""
        return self._acked.keys() - self._too_large.keys()

    def begin(self, epoch: int, found: dict[str, State]) -> bool:
        """Takes what stood on NATS as acked when an epoch begins; returns whether this one began just now."""
        begins = self._epoch != epoch
        if begins:
            self._acked, self._epoch = found, epoch
        return begins

    async def publish(
        self, changed: Collection[str], epoch: int, restated: Collection[str] = frozenset()
    ) -> None:
        """Publishes events, then states: once a state is stored, nobody could know any more that its events are due.

        Args:
            changed: the subjects to state.
            restated: those of them that are put right over whatever stamp stands there.

        Raises:
            BusError: not all is acked; the outbox stays as it is.
        """
        outbox, self.outbox = self.outbox, []
        steps = [
            StateChange(subject, self._acked.get(subject), self._truth.get(subject)) for subject in changed
        ]
        try:
            news = [event for step in steps for event in self._events_between(step)]
            for event in (*outbox, *news):
                await self._publish_event(event)
            if news:
                await self._events.flush()
            for number, step in enumerate(steps, start=1):
                await self._publish_state(step, epoch, RESTATING if step.subject in restated else None)
                if number % AT_ONCE == 0:
                    # A whole cluster is stated for seconds: leases are renewed meanwhile.
                    await asyncio.sleep(0)
            await self._states.flush()
            await self._events.flush()
        except BaseException:
            self.outbox = outbox + self.outbox
            raise
        for subject, _, after in steps:
            if after is None:
                self._acked.pop(subject, None)
            else:
                self._acked[subject] = after
        if outbox:
            self._published([event.seq for event in outbox])

    async def _publish_event(self, event: OutgoingEvent) -> None:
        """Publishes an event. One that is too large is left out and told: what else happened is said all the same."""
        try:
            await self._events.put(event.subject, event.payload, msg_id=event.msg_id)
        except PayloadTooLargeError as error:
            self._note_too_large(event.subject, error)

    async def _publish_state(self, step: StateChange, epoch: int, headers: Mapping[str, str] | None) -> None:
        if step.after is None:
            self._too_large.pop(step.subject, None)
            # The tombstone's stamp is above all that the object had: a late copy of it is refused everywhere.
            await self._states.delete(step.subject, stamp=(epoch, self._next_rev()), headers=headers)
            return
        rev = self._next_rev() if step.after.rev == UNSTAMPED else step.after.rev
        stamped = msgspec.structs.replace(step.after, epoch=epoch, rev=rev)
        try:
            await self._states.put(step.subject, encode_state(stamped), headers=headers)
        except PayloadTooLargeError as error:
            # Told once as it is now. NATS keeps what it has of it, and the others are stated.
            if self._too_large.get(step.subject) != step.after:
                self._too_large[step.subject] = step.after
                self._note_too_large(step.subject, error)
        else:
            self._too_large.pop(step.subject, None)

    def _note_too_large(self, subject: str, error: PayloadTooLargeError) -> None:
        self._notes.note("announcer.too_large", subject=subject, error=str(error))

    async def publish_mark(
        self, epoch: int, incarnation: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Publishes the sync mark: all that this connection's incarnation stated before it is stored."""
        rev, at = self._next_rev(), self._clock()
        mark = SyncMark(cluster=self._cluster, epoch=epoch, rev=rev, incarnation=incarnation, at=at)
        await self._states.put(subjects.mark(self._cluster), encode_state(mark), headers=headers)
        await self._states.flush()
