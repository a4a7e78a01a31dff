"""Says on NATS what a cluster has: the duties of whoever owns the state of a cluster.

After each election and each reconnect the state on NATS is first made equal to the truth: a server crash can bring
deleted objects back, and whatever was published meanwhile may not have arrived. Then comes the sync mark, and only
then what changes from here on.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

import msgspec

from fairlead_bus.connection.bus import RESTATED, Bus
from fairlead_bus.errors import BusError, NotProvisionedError, PayloadTooLargeError
from fairlead_bus.facts.comparison import UNSTAMPED, Comparison, differing
from fairlead_bus.facts.repair import Repair
from fairlead_bus.observer import RateLimitedNotes
from fairlead_bus.ownership.leadership import Leadership
from fairlead_bus.streams.publisher import Publisher
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.state import State, SyncMark, encode_state

RETRY_SECONDS = 0.2
AT_ONCE = 256
"""Statements sent before others of this process have their turn."""
LOOK_SECONDS = 5.0
"""Seconds between two looks whether the sync mark still stands: nobody hears of a purge."""

type Statements = dict[str, State | None]
"""Statements of objects by subject; None where the object is gone."""


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is to be published, at least once."""

    subject: str
    msg_id: str
    payload: bytes
    seq: int = 0
    """The event's number in the outbox of an owner that keeps one."""


class Revisions:
    """Revisions that only grow, over restarts as well, without a file: the clock's, counted on where it stands still or goes back.

    Readers compare a writer's epoch first, so a successor whose clock is behind is believed all the same.
    """

    def __init__(self, clock: Callable[[], Micros]) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> int:
        """The next revision, above all that were given."""
        self._last = max(self._last + 1, self._clock())
        return self._last


class RequestEndpoints(Protocol):
    """The endpoints where requests come in: open while we lead, as another leader's must not be answered by us."""

    async def open(self) -> None:
        """Begins to answer; a second call changes nothing."""

    async def close(self) -> None:
        """Answers no longer; a second call changes nothing."""


class StateChange(NamedTuple):
    """An object as NATS has it and as it is; None where there is none."""

    subject: str
    before: State | None
    after: State | None


type EventsBetween = Callable[[StateChange], Iterable[Outgoing]]
"""Makes the events of a change of state. It is called again after a failure, so their ids must be the same then."""


class NoEndpoints:
    """No endpoints: for an owner whom nobody asks for anything."""

    async def open(self) -> None:
        """See `RequestEndpoints`."""

    async def close(self) -> None:
        """See `RequestEndpoints`."""


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
        endpoints: RequestEndpoints | None = None,
        events_between: EventsBetween = lambda _: (),
        missing: Callable[[], str | None] = lambda: None,
        published: Callable[[list[int]], None] = lambda _: None,
        taken_over: Callable[[Mapping[str, State]], None] = lambda _: None,
    ) -> None:
        """Creates an announcer; it publishes after the first `update`.

        Args:
            leadership: our leadership for the cluster; sets `wake` when it changes.
            wake: set when there is something to do.
            next_rev: a revision above all that were given: for the mark, for deletes and for unstamped statements.
            clock: the time now, for the mark.
            endpoints: opened and closed with the leadership.
            events_between: the events between what NATS has and what is. They are acked before the state that hides
                the transition is sent, so that one is told even if this process dies in between. By default there are
                none: of an owner that keeps an outbox of its own.
            missing: the reason for which not all there is was told. Without all, nothing is reconciled and no mark given.
                By default nothing is missing: of an owner that knows everything as soon as it has said something.
            published: told which events of the outbox are acked.
            taken_over: told once in each epoch what stood on NATS when it began.
        """
        self._bus, self._leadership, self._cluster, self._wake = bus, leadership, cluster, wake
        self._next_rev, self._clock = next_rev, clock
        self._endpoints: RequestEndpoints = endpoints or NoEndpoints()
        self._events_between, self._missing = events_between, missing
        self._published, self._taken_over = published, taken_over
        self._repair = Repair(bus, leadership, cluster=cluster, wake=wake, said=self._should_stand)
        self._publisher = Publisher(bus, acked=self._repair.foreign.wrote)
        self._events = Publisher(bus)
        self._notes = RateLimitedNotes(bus.observer)
        # An alert sees no increase in a series that begins at one.
        bus.observer.count("announcer.too_large", 0)
        self._mark_looked_at = 0.0
        """Monotonic seconds at which the mark was last looked for."""
        self._has_truth = False
        self._truth: dict[str, State] = {}
        self._acked_states: dict[str, State] = {}
        """State that NATS has acked to us, by subject, as it was true then; of use while nobody else leads."""
        self._acked_epoch: int | None = None
        """Epoch in which `_acked_states` were acked."""
        self._changed: set[str] = set()
        self._outbox: list[Outgoing] = []
        self._too_large: dict[str, State] = {}
        """States that are too large for the server, as they were when somebody was told so."""
        self._connections = 0
        self._reconciled_for: tuple[int, int] | None = None
        """(epoch, connection) for which NATS was made equal to the truth."""
        self.reconciled = 0
        self.repaired = 0
        """Objects on NATS that a reconciliation had to put right."""

    @property
    def put_back(self) -> int:
        """Times that an object was stated again because somebody else had written its subject."""
        return self._repair.put_back

    def update(self, statements: Statements, outgoing: Collection[Outgoing] = ()) -> None:
        """Takes in the objects as they are now, and the events of what happened, to say both."""
        for subject, state in statements.items():
            if state is None:
                self._truth.pop(subject, None)
            else:
                self._truth[subject] = state
        self._has_truth = True
        self._changed |= statements.keys()
        self._outbox += outgoing
        self._wake.set()

    def why_not_ready(self) -> str | None:
        """The reason not to be ready, for an owner without a standby."""
        if self._leadership.epoch is None:
            return self._leadership.trouble() or "does not lead for the cluster"
        return self.why_not_reconciled()

    def why_not_reconciled(self) -> str | None:
        """The reason for which NATS may differ from the truth; None where it does not, and where somebody else may lead."""
        epoch = self._leadership.epoch
        if epoch is None:
            return self._leadership.trouble()
        if self._reconciled_for == (epoch, self._connections):
            return None
        return "the state on NATS is not yet reconciled"

    async def run(self) -> None:
        """Runs until cancelled; raises only what makes the process useless."""
        forget = self._bus.on_connection(self._on_connection)
        listening = asyncio.create_task(self._repair.run(), name=f"putting back of {self._cluster}")
        listening.add_done_callback(self._listening_ended)
        try:
            while not listening.done():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._wake.wait()
                self._wake.clear()
                await self._follow_leadership()
            await listening
        finally:
            forget()
            listening.cancel()
            await self._endpoints.close()

    def _listening_ended(self, listening: asyncio.Task[None]) -> None:
        """Wakes `run`, which raises the task's error. Takes the error in any case: else asyncio complains of it."""
        if not listening.cancelled():
            listening.exception()
        self._wake.set()

    async def _follow_leadership(self) -> None:
        epoch = self._leadership.epoch
        if epoch is None:
            await self._endpoints.close()
            # A standby need not remember for days what changed: whoever leads again compares everything first. That
            # holds for a short lapse of trust in the same epoch, too.
            self._changed.clear()
            self._repair.end()
            self._reconciled_for = None
            return
        await self._endpoints.open()
        if not self._bus.connected:
            return  # the reconnect wakes us
        try:
            if self._reconciled_for == (epoch, self._connections):
                await self._publish_changes(epoch)
                await self._restate_overwritten(epoch)
                await self._look_for_a_purge()
            elif self._has_truth and self._missing() is None:
                await self._reconcile(epoch)
        except NotProvisionedError:
            raise
        except BusError as error:
            # Whatever was in flight may have arrived or not: the next pass finds out by reading.
            self._reconciled_for = None
            self._bus.observer.note("announcer.failed", error=repr(error))
            await asyncio.sleep(RETRY_SECONDS)
            self._wake.set()

    def _on_connection(self, up: bool) -> None:  # noqa: FBT001 - the listener's form
        del up
        self._connections += 1
        self._wake.set()

    async def _reconcile(self, epoch: int) -> None:
        connection, incarnation = self._connections, self._bus.incarnation
        self._changed.clear()
        compared = Comparison(self._bus, self._cluster, self._truth, epoch)
        await compared.run()
        self._repair.begin(compared.seq)
        stood = len(compared.found)
        outbox, self._outbox = self._outbox, []
        if self._acked_epoch != epoch:
            self._acked_states, self._acked_epoch = compared.found, epoch
            self._taken_over(compared.found)
        # An object may be right on NATS while an event of it is missing: what was acked to us tells.
        wrong = compared.wrong | self._changed | differing(self._acked_states, self._truth)
        self._changed.clear()
        await self._publish_steps(wrong, outbox, epoch, restated=compared.forged)
        if self._leadership.epoch != epoch or self._connections != connection:
            self._wake.set()
            return
        await self._publish_mark(epoch, incarnation)
        self._reconciled_for = epoch, connection
        self.reconciled += 1
        self.repaired += len(wrong)
        self._bus.observer.note(
            "announcer.reconciled",
            epoch=epoch,
            found=stood,
            repaired=len(wrong),
            stands=len(self._truth),
        )

    async def _publish_changes(self, epoch: int) -> None:
        changed, self._changed = self._changed, set()
        outbox, self._outbox = self._outbox, []
        if changed or outbox:
            await self._publish_steps(changed, outbox, epoch)

    async def _restate_overwritten(self, epoch: int) -> None:
        """States again what others wrote over, deleted or added. `_publish_changes` has flushed all of ours."""
        changed = await self._repair.due()
        if not changed:
            return
        mark = subjects.mark(self._cluster)
        await self._publish_steps(changed - {mark}, [], epoch, restated=changed)
        if mark in changed:
            await self._publish_mark(epoch, self._bus.incarnation, RESTATING)
        self._repair.done(len(changed))

    def _should_stand(self) -> AbstractSet[str]:
        agreed = self._reconciled_for == (self._leadership.epoch, self._connections)
        return self._acked_states.keys() - self._too_large.keys() if agreed else frozenset()

    async def _look_for_a_purge(self) -> None:
        """Looks whether the state was purged: whatever takes all of a cluster's state away takes its mark away, too."""
        now = asyncio.get_running_loop().time()
        if now - self._mark_looked_at < LOOK_SECONDS:
            return
        self._mark_looked_at = now
        if await self._bus.last(topology.STATE, subjects.mark(self._cluster)) is None:
            self._notes.note("announcer.purged", cluster=self._cluster)
            self._reconciled_for = None
            self._wake.set()

    async def _publish_steps(
        self,
        changed: Collection[str],
        outbox: list[Outgoing],
        epoch: int,
        *,
        restated: Collection[str] = frozenset(),
    ) -> None:
        """Publishes events, then states: once a state is stored, nobody could know any more that its events are due."""
        steps = [
            StateChange(subject, self._acked_states.get(subject), self._truth.get(subject))
            for subject in changed
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
            await self._publisher.flush()
            await self._events.flush()
        except BaseException:
            self._outbox = outbox + self._outbox
            raise
        self._note_acked(steps)
        if outbox:
            self._published([event.seq for event in outbox])

    async def _publish_event(self, event: Outgoing) -> None:
        """Publishes an event. One that is too large is left out and told: what else happened is said all the same."""
        try:
            await self._events.put(event.subject, event.payload, msg_id=event.msg_id)
        except PayloadTooLargeError as error:
            self._note_too_large(event.subject, error)

    def _note_acked(self, steps: Iterable[StateChange]) -> None:
        for subject, _, after in steps:
            if after is None:
                self._acked_states.pop(subject, None)
            else:
                self._acked_states[subject] = after

    async def _publish_state(self, step: StateChange, epoch: int, headers: Mapping[str, str] | None) -> None:
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
            # Told once as it is now. NATS keeps what it has of it, and the others are stated.
            if self._too_large.get(step.subject) != step.after:
                self._too_large[step.subject] = step.after
                self._note_too_large(step.subject, error)
        else:
            self._too_large.pop(step.subject, None)

    def _note_too_large(self, subject: str, error: PayloadTooLargeError) -> None:
        self._notes.note("announcer.too_large", subject=subject, error=str(error))

    async def _publish_mark(
        self, epoch: int, incarnation: str, headers: Mapping[str, str] | None = None
    ) -> None:
        mark = SyncMark(
            cluster=self._cluster,
            epoch=epoch,
            rev=self._next_rev(),
            incarnation=incarnation,
            at=self._clock(),
        )
        await self._publisher.put(subjects.mark(self._cluster), encode_state(mark), headers=headers)
        await self._publisher.flush()
