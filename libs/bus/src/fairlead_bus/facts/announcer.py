"""Says on NATS what a cluster has: the duties of whoever owns the state of a cluster.

After each election and each reconnect the state on NATS is first made equal to the truth: a server crash can bring
deleted objects back, and whatever was published meanwhile may not have arrived. Then comes the sync mark, and only
then what changes from here on.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import BusError, NotProvisionedError
from fairlead_bus.facts.comparison import Comparison, differing
from fairlead_bus.facts.repair import LOOK_SECONDS, Repair
from fairlead_bus.facts.statement_publisher import (
    RESTATING,
    EventsBetween,
    OutgoingEvent,
    StatementPublisher,
)
from fairlead_bus.ownership.leadership import Leadership
from fairlead_contracts import subjects
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.state import State

RETRY_SECONDS = 0.2

type Statements = dict[str, State | None]
"""Statements of objects by subject; None where the object is gone."""


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


class NoEndpoints:
    """No endpoints: for an owner whom nobody asks for anything."""

    async def open(self) -> None:
        """See `RequestEndpoints`."""

    async def close(self) -> None:
        """See `RequestEndpoints`."""


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
            next_rev: a revision above all that were given: for the mark, for deletes and for unstamped statements.
            endpoints: opened and closed with the leadership.
            events_between: the events between what NATS has and what is. They are acked before the state that hides
                the transition is sent, so that one is told even if this process dies in between. By default there are
                none: of an owner that keeps an outbox of its own.
            missing: why the owner does not know everything yet. Until it does, nothing is reconciled and no mark is given.
                By default it does as soon as it has said something.
            published: told which events of the outbox are acked.
            taken_over: told once in each epoch what stood on NATS when it began.
        """
        self._bus, self._leadership, self._cluster, self._wake = bus, leadership, cluster, wake
        self._endpoints: RequestEndpoints = endpoints or NoEndpoints()
        self._missing, self._taken_over = missing, taken_over
        self._repair = Repair(bus, leadership, cluster=cluster, wake=wake, said=self._should_stand)
        self._truth: dict[str, State] = {}
        self._publisher = StatementPublisher(
            bus,
            self._truth,
            cluster=cluster,
            next_rev=next_rev,
            clock=clock,
            events_between=events_between,
            published=published,
            wrote=self._repair.foreign.wrote,
        )
        self._has_truth = False
        self._changed: set[str] = set()
        self._connections = 0
        self._reconciled_for: tuple[int, int] | None = None
        """(epoch, connection) for which NATS was made equal to the truth."""

    @property
    def put_back(self) -> int:
        """Times that an object was stated again because somebody else had written its subject."""
        return self._repair.put_back

    def update(self, statements: Statements, outgoing: Collection[OutgoingEvent] = ()) -> None:
        """Takes in the objects as they are now, and the events of what happened, to say both."""
        for subject, state in statements.items():
            if state is None:
                self._truth.pop(subject, None)
            else:
                self._truth[subject] = state
        self._has_truth = True
        self._changed |= statements.keys()
        self._publisher.outbox += outgoing
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
                if await self._repair.was_purged():
                    self._reconciled_for = None
                    self._wake.set()
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
        if self._publisher.begin(epoch, compared.found):
            self._taken_over(compared.found)
        # An object may be right on NATS while an event of it is missing: what was acked to us tells.
        wrong = compared.wrong | self._changed | differing(self._publisher.acked, self._truth)
        self._changed.clear()
        await self._publisher.publish(wrong, epoch, restated=compared.forged)
        if self._leadership.epoch != epoch or self._connections != connection:
            self._wake.set()
            return
        await self._publisher.publish_mark(epoch, incarnation)
        self._reconciled_for = epoch, connection
        self._bus.observer.note(
            "announcer.reconciled",
            epoch=epoch,
            found=stood,
            repaired=len(wrong),
            stands=len(self._truth),
        )

    async def _publish_changes(self, epoch: int) -> None:
        changed, self._changed = self._changed, set()
        if changed or self._publisher.outbox:
            await self._publisher.publish(changed, epoch)

    async def _restate_overwritten(self, epoch: int) -> None:
        """States again what others wrote over, deleted or added. `_publish_changes` has flushed all of ours."""
        changed = await self._repair.due()
        if not changed:
            return
        mark = subjects.mark(self._cluster)
        await self._publisher.publish(changed - {mark}, epoch, restated=changed)
        if mark in changed:
            await self._publisher.publish_mark(epoch, self._bus.incarnation, RESTATING)
        self._repair.done(len(changed))

    def _should_stand(self) -> AbstractSet[str]:
        agreed = self._reconciled_for == (self._leadership.epoch, self._connections)
        return self._publisher.stored if agreed else frozenset()
