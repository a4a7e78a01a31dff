"""Handling the messages of a durable, each one to its end."""

import asyncio
import itertools
import random
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from nats.aio.msg import Msg

from fairlead_bus.connection.bus import Bus
from fairlead_bus.errors import (
    BusError,
    FatalBusError,
    NotYetError,
    PayloadTooLargeError,
    PoisonError,
    RetryableBusError,
)
from fairlead_bus.observer import RateLimitedNotes
from fairlead_bus.streams.delivery import Delivery
from fairlead_bus.work.ack_batcher import ACK_SECONDS, AckBatcher
from fairlead_bus.work.attempts import Attempts
from fairlead_bus.work.fair_queue import FairQueue, LineConcurrency, QueuedMessage
from fairlead_bus.work.overtaking import Overtaking
from fairlead_bus.work.pull_request import SILENCE_SECONDS, PullRequest
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.submissions import DeadLetter

MAX_DELIVER = "fairlead-max-deliver"
"""Key of the limit in the consumer's metadata; the server's own limit is off, see `Worker`."""
DEFAULT_MAX_DELIVER = 8
MAX_UNFINISHED = "fairlead-max-unfinished"
DEFAULT_MAX_UNFINISHED = 64

MOST_PARKED = 1024
"""Messages that a worker keeps without handling them. More are given back for a while."""
FIRST_HANDED_BACK_SECONDS = 2.0
HANDED_BACK_SECONDS = 60.0
"""Seconds at most for which a message is handed back. The time doubles with each hand-back, as each costs a
delivery."""

READ_AHEAD = 8192
"""Messages that wait in their lines beside those that are handled: reading on finds whoever comes behind a flood. What
does not fit stays on the server. Giving it back for a while was tried: the server brings it again before what is new,
and a lone tenant's 20,000 took six times as long."""
READ_AHEAD_OVERTAKING = 512
"""Messages read ahead where there is overtaking: that finds one behind them, however many stand before it."""
MOST_BYTES = 64 * 1024 * 1024
PULL_BATCH = 256
PULL_BATCH_OVERTAKING = 64
"""Messages in one request with overtaking: reading takes time, too, and a neighbour's answer waits for the end of a
batch."""

_FIRST_DELAY, _LONGEST_DELAY = 0.2, 30.0
LONGEST_TROUBLE_SECONDS = 5.0
"""Seconds at most between two tries of a message that its handler cannot finish for NATS: a full stream, no leader."""
_NANO = 1_000_000_000
_CUT_BYTES = 64 * 1024

type Handle = Callable[[Delivery], Awaitable[None]]
type LineOf = Callable[[str], str]


class Worker:
    """Pulls from a durable, handles up to `parallel` messages at once, acks each after its effect.

    At least once: `handle` must be idempotent by a name of its own, as a message may come again after its effect (a lost
    ack, a killed worker, a killed server).

    An exception puts the message back with a growing delay; after its last attempt, or with `PoisonError` at once, it
    goes to its dead-letter subject and is taken out of the stream. With `NotYetError` it is parked: it takes none of
    the `parallel` places, stays in progress, and is handled again later. Where too many are parked, it is handed back for a
    while. Neither counts as an attempt. A retryable error of the bus counts as `NotYetError`: a full stream or a server
    that is away is no fault of the message.

    Messages wait in lines, which are served in turn. The worker reads ahead of what it handles, so that who stands behind a
    flood in the stream does not wait for all of it; with `overtaking` it need not even read it.

    Trap: after the server's `max_deliver` a message stays in the stream for ever, told by an advisory alone, which is
    lost when nobody listens. So the server's limit is off, and the worker counts by itself (see `attempts`). A message
    that was delivered often and never finished, because its workers died over it, comes once more and is put aside
    unhandled.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        stream: str,
        durable: str,
        handle: Handle,
        parallel: int = 64,
        line_of: LineOf = lambda _: "",
        share: int | None = None,
        overtaking: str | None = None,
        concerns: Callable[[Delivery], bool] | None = None,
    ) -> None:
        """Creates a worker that has fetched nothing.

        Args:
            parallel: number of messages that are handled at once.
            line_of: the line that a subject's messages stand in; by default there is one for all.
            share: number of one line's messages that are handled at once; by default all. A crowded line has less while
                somebody stands in a short one; see `LineConcurrency`.
            overtaking: pattern of what the durable delivers, where those behind a flood shall be found; see `Overtaking`.
                It takes the rights to a stream's information and to its messages by number.
            concerns: whether `handle` has anything to do with a message; else it is acked as it is read. By default it
                has.
        """
        self._bus = bus
        self._stream = stream
        self._durable = durable
        self._handle = handle
        self._parallel = parallel
        self._line_of = line_of
        self._concerns = concerns
        self._queue = FairQueue(LineConcurrency(share or parallel))
        self._config = _DurableConfig()
        self._attempts = Attempts()
        self._notes = RateLimitedNotes(bus.observer)
        self._acks = AckBatcher(bus)
        self._overtaking = Overtaking(bus, stream=stream, pattern=overtaking) if overtaking else None
        self._read_ahead, self._batch = (
            (READ_AHEAD_OVERTAKING, PULL_BATCH_OVERTAKING) if overtaking else (READ_AHEAD, PULL_BATCH)
        )
        self._crowded = asyncio.Event()
        self._pull = PullRequest(bus.connection, stream=stream, durable=durable)
        self._busy: dict[asyncio.Task[None], QueuedMessage] = {}
        self._parked: dict[asyncio.Task[None], QueuedMessage] = {}
        self._returning: deque[tuple[asyncio.Task[None], asyncio.Future[None]]] = deque()
        """Parked messages whose time has come, and that wait for a place."""
        self._turn = asyncio.Event()
        self._stopping = False
        self._group: asyncio.TaskGroup | None = None

    @property
    def parked(self) -> int:
        """Number of messages that the worker keeps until they can be handled."""
        return len(self._parked)

    @property
    def held(self) -> list[Delivery]:
        """The deliveries that wait in line or are being handled; those that are parked are not among them."""
        return [waiting.delivery for waiting in [*self._busy.values(), *self._queue]]

    @property
    def oldest(self) -> Micros | None:
        """The instant at which the oldest message in hand was stored, parked ones too; None where none is."""
        held = [*self._busy.values(), *self._parked.values(), *self._queue]
        return min((waiting.delivery.at for waiting in held), default=None)

    def stop(self) -> None:
        """Pulls no more; `run` returns when what is being handled is finished."""
        self._stopping = True
        self._turn.set()

    def drop(self) -> None:
        """Stops at once: what is being handled is cancelled, unacked, and comes again to another worker."""
        self.stop()
        for task in (*self._busy, *self._parked):
            task.cancel()

    async def run(self) -> None:
        """Works until stopped. When cancelled, what is being handled may still finish within the ack wait.

        Raises:
            NotProvisionedError: there is no such durable.
            DeniedError: we may not pull from the durable.
            ExceptionGroup: of a ClosedError, once the connection is closed for good.
        """
        forget = self._bus.on_connection(lambda _: self._forget_pull())
        try:
            await self._learn_limits()
            async with asyncio.TaskGroup() as group:
                self._group = group
                aides = [
                    group.create_task(self._say_in_progress(), name=f"in progress of {self._durable}"),
                    group.create_task(self._acks.run(), name=f"settling of {self._durable}"),
                ]
                if self._overtaking is not None:
                    looking = self._overtake(self._overtaking)
                    aides.append(group.create_task(looking, name=f"overtaking of {self._durable}"))
                try:
                    await self._pull_and_handle()
                finally:
                    await self._finish()
                    for aide in aides:
                        aide.cancel()
        finally:
            forget()

    async def _learn_limits(self) -> None:
        while True:
            await self._bus.connection.until_connected()
            try:
                facts = await self._bus.jetstream.durable(self._stream, self._durable)
            except RetryableBusError:
                await asyncio.sleep(0.2)
                continue
            self._config = msgspec.convert(facts.config, _DurableConfig, strict=False)
            if self._overtaking is not None:
                self._overtaking.read_to = facts.delivered.stream_seq
            return

    # --- pulling

    async def _pull_and_handle(self) -> None:
        """Asks for as many messages as may wait in line, and again once that request is over or is given up."""
        while not self._stopping:
            # Trap: a loop that swallows errors on a closed connection never yields. This one ends.
            self._bus.connection.check_open()
            self._turn.clear()
            room = self._read_ahead - len(self._queue) if self._queue.bytes < MOST_BYTES else 0
            if self._pull.is_silent:
                self._bus.observer.count("worker.silent")
                self._forget_pull()
            if self._pull.is_over and room >= self._batch and self._bus.connected:
                with suppress(RetryableBusError):  # disconnected just now: the reconnect gives the next turn
                    await self._pull.send(self._batch, self._on_message)
            with suppress(TimeoutError):
                async with asyncio.timeout(SILENCE_SECONDS):
                    await self._turn.wait()

    def _forget_pull(self) -> None:
        """Forgets an open request, whose messages may never come: the next pull starts afresh."""
        subscription = self._pull.forget()
        if subscription is not None and self._group is not None:
            self._group.create_task(self._bus.connection.unlisten(subscription))
        self._turn.set()

    def _on_message(self, message: Msg) -> None:
        delivery = self._pull.take_in(message)
        # While stopping, a message comes again after the ack wait, to somebody else.
        if delivery is not None and not self._stopping and self._group is not None:
            if not self._was_overtaken(delivery, message):
                self._line_up(delivery, message)
                self._fill_places()
            if self._is_crowded:
                self._crowded.set()
        if self._pull.is_over:
            self._turn.set()

    def _line_up(self, delivery: Delivery, message: Msg) -> None:
        if self._concerns is not None and not self._concerns(delivery):
            self._acks.put(message.reply, b"+ACK")
            return
        if self._overtaking is not None:
            self._overtaking.hold(delivery.subject)
        self._queue.put(QueuedMessage(self._line_of(delivery.subject), message, delivery))

    # --- overtaking

    def _was_overtaken(self, delivery: Delivery, message: Msg) -> bool:
        """Whether a message that the durable brings was read before. Where its verdict is known, says that, too."""
        if self._overtaking is None:
            return False
        taken, verdict = self._overtaking.note_brought(delivery, message)
        if verdict is not None:
            self._acks.put(message.reply, verdict)
        return taken

    @property
    def _is_crowded(self) -> bool:
        """Whether messages may stand behind what was read, and would have to wait for it."""
        waits = len(self._queue)
        return waits >= self._batch and (self._pull.behind > 0 or waits > self._read_ahead - self._batch)

    async def _overtake(self, overtaking: Overtaking) -> None:
        """Takes messages that stand behind what was read, of lines in which few wait, as long as there are any."""
        while True:
            await self._crowded.wait()
            if not self._is_crowded or self._stopping:
                self._crowded.clear()
                continue
            try:
                found = await overtaking.look(self._waits_enough, self._take_ahead)
            except RetryableBusError:
                found = 0
            except FatalBusError as error:
                self._bus.observer.note("worker.cannot_overtake", stream=self._stream, error=str(error))
                return  # it works as well as without
            if not found:
                await asyncio.sleep(overtaking.pause)

    def _take_ahead(self, delivery: Delivery) -> None:
        message = Msg(_client=None, subject=delivery.subject, data=delivery.payload)  # type: ignore[arg-type] # says nothing
        self._queue.put(QueuedMessage(self._line_of(delivery.subject), message, delivery))
        self._bus.observer.count("worker.overtook")
        self._fill_places()

    def _waits_enough(self, subject: str) -> bool:
        return self._queue.waits_enough(self._line_of(subject))

    def _serve_next(self) -> bool:
        """Begins to handle the first message of the line whose turn it is."""
        waiting = self._queue.serve_next()
        if waiting is None or self._group is None:
            return False
        task = self._group.create_task(self._work_on(waiting), name=f"delivery of {waiting.delivery.subject}")
        self._busy[task] = waiting
        task.add_done_callback(self._finished)
        return True

    def _finished(self, task: asyncio.Task[None]) -> None:
        waiting = self._busy.pop(task, None)
        if waiting is not None:
            self._queue.served(waiting.line)
        else:
            waiting = self._parked.pop(task, None)
        if waiting is not None and waiting.message.reply and self._overtaking is not None:
            self._overtaking.release(waiting.delivery.subject)
        self._fill_places()

    async def _finish(self) -> None:
        """Waits for what is being handled; the rest comes again elsewhere after the ack wait."""
        if (subscription := self._pull.forget()) is not None:
            await self._bus.connection.unlisten(subscription)
        self._stopping = True
        for waiting in self._queue.clear():
            self._send_verdict(waiting.message, waiting.delivery, b"-NAK")
        for task in self._parked:
            task.cancel()
        if self._busy:
            await asyncio.wait(list(self._busy), timeout=self._config.ack_seconds)
        for task in self._busy:
            task.cancel()
        await self._acks.finish(ACK_SECONDS)

    # --- one message

    async def _work_on(self, waiting: QueuedMessage) -> None:
        _, message, delivery = waiting
        try:
            if not delivery.is_named_in_text:
                await self._put_aside(
                    message, delivery, "its subject is no text: nobody could hear an answer"
                )
                return
            unfinished = self._attempts.unfinished(delivery)
            if unfinished >= self._config.metadata.max_unfinished:
                await self._put_aside(message, delivery, f"{unfinished} deliveries were never finished")
                return
            for before in itertools.count():
                not_yet = await self._handle_once(message, delivery, before)
                if not_yet is None:
                    return
                if len(self._parked) >= MOST_PARKED:
                    if not_yet.sooner is not None:
                        not_yet.sooner.cancel()
                    self._hand_back(message, delivery)
                    return
                await self._park(waiting, not_yet)
        except BusError as error:
            # Nothing is lost: without an ack it comes again after the ack wait.
            self._bus.observer.note("worker.unsettled", subject=delivery.subject, error=str(error))

    async def _park(self, waiting: QueuedMessage, not_yet: NotYetError) -> None:
        """Parks a message: others have its place meanwhile. Messages that come back go before those that are pulled."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 # a coroutine runs in a task
        del self._busy[task]
        self._parked[task] = waiting
        self._queue.served(waiting.line)
        self._fill_places()
        await _until_due(not_yet)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._returning.append((task, place))
        self._fill_places()
        await place

    def _fill_places(self) -> None:
        """Fills free places: with parked messages that come back, then with those whose line has its turn."""
        while self._returning and len(self._busy) < self._parallel:
            task, place = self._returning.popleft()
            if not place.done():
                waiting = self._busy[task] = self._parked.pop(task)
                self._queue.serve_again(waiting.line)
                place.set_result(None)
        while not self._stopping and len(self._busy) < self._parallel and self._serve_next():
            pass
        if self._pull.is_over:
            self._turn.set()

    def _hand_back(self, message: Msg, delivery: Delivery) -> None:
        before = self._attempts.handed_back(delivery)
        self._bus.observer.count("worker.handed_back")
        self._put_back(message, delivery, pause_of(before) * random.uniform(0.8, 1.2))  # noqa: S311 - jitter

    async def _handle_once(self, message: Msg, delivery: Delivery, before: int) -> NotYetError | None:
        """Handles a message once, after so many tries; returns when to try again, None where it is settled."""
        try:
            await self._handle(delivery)
        except NotYetError as error:
            return error
        except RetryableBusError as error:
            self._notes.note("worker.hindered", subject=delivery.subject, error=repr(error))
            return NotYetError(str(error), seconds=_doubled(before, LONGEST_TROUBLE_SECONDS))
        except PoisonError as error:
            await self._put_aside(message, delivery, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, the message must be settled
            self._bus.observer.note(
                "worker.failed",
                subject=delivery.subject,
                deliveries=delivery.deliveries,
                error=repr(error),
            )
            failures = self._attempts.failed(delivery)
            if failures >= self._config.metadata.max_deliver:
                await self._put_aside(message, delivery, repr(error))
            else:
                self._put_back(message, delivery, _doubled(failures - 1, _LONGEST_DELAY))
        else:
            self._send_verdict(message, delivery, b"+ACK")
            self._attempts.over(delivery)
            self._bus.observer.count("worker.handled")
        return None

    def _send_verdict(self, message: Msg, delivery: Delivery, verdict: bytes) -> None:
        reply = message.reply
        if not reply and self._overtaking is not None:
            reply = self._overtaking.note_verdict(delivery, verdict)
        if reply:
            self._acks.put(reply, verdict)

    def _put_back(self, message: Msg, delivery: Delivery, seconds: float) -> None:
        self._send_verdict(message, delivery, b'-NAK {"delay": %d}' % int(seconds * _NANO))

    async def _put_aside(self, message: Msg, delivery: Delivery, reason: str) -> None:
        """Publishes the dead letter, then ends the message. Killed in between, it does both again, under one Msg-Id."""
        try:
            await self._publish_dead(delivery, delivery.payload, reason)
        except PayloadTooLargeError:
            cut = f"{reason} (payload of {len(delivery.payload)} bytes, cut)"
            await self._publish_dead(delivery, delivery.payload[:_CUT_BYTES], cut)
        self._send_verdict(message, delivery, b"+TERM")
        self._attempts.over(delivery)
        self._bus.observer.count("worker.dead_letters")
        self._bus.observer.note("worker.dead_letter", subject=delivery.subject, reason=reason)

    async def _publish_dead(self, delivery: Delivery, payload: bytes, reason: str) -> None:
        letter = DeadLetter(
            subject=delivery.subject,
            stream_seq=delivery.stream_seq,
            deliveries=delivery.deliveries,
            reason=reason,
            payload=payload,
            at=datetime.now(UTC),
        )
        await self._bus.publish(
            subjects.dead(delivery.subject),
            to_json(letter),
            msg_id=f"dead.{self._stream}.{delivery.stream_seq}",
        )

    async def _say_in_progress(self) -> None:
        """Tells the server that slow messages are in progress: else it would give them to another worker."""
        while True:
            await asyncio.sleep(self._config.ack_seconds / 3)
            for waiting in [*self._busy.values(), *self._parked.values(), *self._queue]:
                reply = waiting.message.reply
                if not reply and self._overtaking is not None:
                    reply = self._overtaking.reply_of(waiting.delivery)
                if not reply:
                    continue  # the durable has not brought it yet: no time runs
                try:
                    await self._bus.connection.send(reply, b"+WPI")
                except RetryableBusError:
                    break


def _doubled(before: int, longest: float) -> float:
    """Seconds until the next try, after so many before; jittered, so that many do not come back at once."""
    return min(_FIRST_DELAY * 2.0 ** min(before, 16), longest) * random.uniform(0.8, 1.2)  # noqa: S311 - no secret


def pause_of(before: int) -> float:
    """Seconds for which to hand a message back that came back so often before."""
    return min(FIRST_HANDED_BACK_SECONDS * 2.0 ** min(before, 16), HANDED_BACK_SECONDS)


async def _until_due(not_yet: NotYetError) -> None:
    """Returns when the message is to be handled again, and cancels `sooner`."""
    if not_yet.sooner is None:
        await asyncio.sleep(not_yet.seconds)
        return
    try:
        await asyncio.wait([not_yet.sooner], timeout=not_yet.seconds)
    finally:
        not_yet.sooner.cancel()


class _Limits(
    msgspec.Struct,
    frozen=True,
    rename={"max_deliver": MAX_DELIVER, "max_unfinished": MAX_UNFINISHED},
):
    """The limits that we keep in a consumer's metadata, where all values are texts."""

    max_deliver: int = DEFAULT_MAX_DELIVER
    max_unfinished: int = DEFAULT_MAX_UNFINISHED


class _DurableConfig(msgspec.Struct, frozen=True):
    """The part of a consumer's configuration that a worker goes by."""

    ack_wait: int = 30 * _NANO
    metadata: _Limits = _Limits()

    @property
    def ack_seconds(self) -> float:
        """Seconds after which the server gives a message to another worker, unless it hears of it."""
        return self.ack_wait / _NANO
