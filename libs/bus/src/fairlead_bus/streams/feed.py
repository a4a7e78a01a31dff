"""A single ordered replay of a stream, from a start until the first doubt.

A consumer without acks, in the server's memory. Whatever could hide a message breaks the feed: a gap, silence, a
lost connection. It is never resumed by sequence here: a delete whose tombstone expired meanwhile would be missed.

It comes in slices, as the reader asks for them, or is pushed. Trap: the server pushes up to 32 MiB ahead of its reader, and
all else on the connection stands in line behind that: acks of leases, answers, even the pongs by which the client knows
that the server lives. On a busy machine a replay of 100,000 jobs lost the connection, and began again, for ever.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import TracebackType
from typing import Self

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import API_TIMEOUT_SECONDS, ConsumerFacts, Stored
from fairlead_bus.errors import AnswerTimeoutError, ClosedError, JetStreamNotFoundError, ReplayBrokenError
from fairlead_bus.streams.delivery import is_delivery

HEARTBEAT_SECONDS = 1.0
SILENCE_SECONDS = 2.2
"""Seconds of silence that break a feed: two heartbeats and a little; noticed at most a quarter of that later."""
_LOOKS = 4
_NANO = 1_000_000_000
_PLAIN_TOKENS = 9
_ALIVE, _EXPIRED = "100", "408"
_NOT_AWAITED = float("inf")

type DeliverMsg = Callable[[Msg, int], None]
"""Takes a message and its stream sequence."""

SLICE = 256
"""Messages asked for at a time; two slices are on the way, so that the reader never waits for the next."""
_ASKED_SECONDS = 60.0
"""Seconds for which the server keeps an unanswered request."""
_GONE_SECONDS = 5.0
_UNASKED_SECONDS = 30.0
"""Seconds for which the server keeps a consumer that nobody hears, or that nobody asks for more: a reader may stand
still."""

LAST_LOOK_SECONDS = 0.5
"""Seconds between two looks at the last message while catching up: the last one known may expire before it is delivered,
and then nothing would tell that all came."""

LAST_PER_SUBJECT: Mapping[str, object] = {"deliver_policy": "last_per_subject"}
NEW: Mapping[str, object] = {"deliver_policy": "new"}


@dataclass(eq=False)
class Feed:
    """Calls `deliver` with each message in order; `broken` ends with the reason once order is in doubt."""

    bus: Bus
    _: KW_ONLY
    stream: str
    subject: str
    """Filter of its subjects."""
    deliver: DeliverMsg
    start: Mapping[str, object] = field(default_factory=lambda: LAST_PER_SUBJECT)
    """The point at which to begin, as the server's configuration of consumers says it."""
    create_seconds: float = API_TIMEOUT_SECONDS
    """Seconds that the server may take to begin."""
    sliced: bool = False
    """Asked for slice by slice. Where the stream has durables this takes the right to ask for the messages of those, too,
    and it is better pushed."""

    def __post_init__(self) -> None:
        self._outstanding = 0
        """Messages that were asked for and have not come yet."""
        self._inbox = ""
        self._name = f"feed-{secrets.token_hex(8)}"
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.seq = 0
        """Stream sequence of the last message processed."""
        self._count = 0
        self._awaited_seq: float = _NOT_AWAITED
        self._reached = asyncio.Event()
        self._heard = True
        self._quiet_looks = 0
        self._subscription: Subscription | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._forget_connection: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        self._inbox = self.bus.connection.new_inbox()
        self._forget_connection = self.bus.on_connection(
            lambda up: self.abandon("reconnected" if up else "disconnected")
        )
        self._watch_silence()
        try:
            self._subscription = await self.bus.connection.listen_inline(self._inbox, self._on_message)
            self.created = await self.bus.jetstream.create_consumer(
                self.stream, self._config(), timeout=self.create_seconds
            )
            if self.sliced:
                await self._ask_for(2 * SLICE)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The server removes the consumer when nobody listens on its inbox any more: no grant to delete is needed."""
        self._forget_connection()
        if self._timer is not None:
            self._timer.cancel()
        if self._subscription is not None:
            await self.bus.connection.unlisten(self._subscription)
        if not self.broken.done() or self.broken.cancelled():
            self.broken.cancel()
        elif (reason := self.broken.exception()) is not None:
            self.broken = asyncio.get_running_loop().create_future()
            self.broken.set_exception(type(reason)(str(reason)))
            self.broken.exception()
        # Whoever took the messages is let go: a feed ends in cycles, which Python collects seldom. The error that broke it
        # holds the frames that it was raised through, and these hold the feed. Replays that ended so kept whole clusters of
        # jobs in memory for hours.
        self._forget_connection = lambda: None
        self._timer = self._subscription = None
        self.deliver = lambda _message, _seq: None

    def _config(self) -> Mapping[str, object]:
        common: dict[str, object] = {
            "name": self._name,  # named, so that a grant can restrict the filter
            "filter_subject": self.subject,
            "ack_policy": "none",
            "max_deliver": 1,
            "replay_policy": "instant",
            "mem_storage": True,
            "num_replicas": 1,
            **self.start,
        }
        if self.sliced:
            return {**common, "inactive_threshold": int(_UNASKED_SECONDS * _NANO)}
        return {
            **common,
            "deliver_subject": self._inbox,
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_SECONDS * _NANO),
            "inactive_threshold": int(_GONE_SECONDS * _NANO),
        }

    async def _ask_for(self, more: int) -> None:
        request = {
            "batch": more,
            "expires": int(_ASKED_SECONDS * _NANO),
            "idle_heartbeat": int(HEARTBEAT_SECONDS * _NANO),
        }
        self._outstanding += more
        verb = f"$JS.API.CONSUMER.MSG.NEXT.{self.stream}.{self._name}"
        await self.bus.connection.send(verb, msgspec.json.encode(request), reply=self._inbox)

    async def position(self) -> ConsumerFacts:
        """The place at which the server stands with this feed.

        Raises:
            ReplayBrokenError: the server does not know it any more. Trap: in a cluster the server whose memory held the
                consumer may have died while ours, of which alone we hear, lives.
        """
        try:
            return await self.bus.jetstream.consumer(self.stream, self._name)
        except JetStreamNotFoundError as error:
            raise ReplayBrokenError(f"the server has lost the replay: {error}") from error

    async def reach(self, seq: int, *, within: float | None = None) -> None:
        """Returns when the message with this stream sequence, or a later one, is processed, or after `within` seconds.

        Raises:
            ReplayBrokenError: it will not be.
        """
        self._reached.clear()
        self._awaited_seq = seq
        if self.seq < seq:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._reached.wait()
        self._awaited_seq = _NOT_AWAITED
        self.check()

    async def catch_up(self) -> None:
        """Returns when everything that stood at some instant since the feed began is processed.

        The criterion: the delivered sequence, read first, is not below the last one of the filter, read after. The order of
        the two reads matters, and neither may come from a replica.

        Trap: on a busy machine an answer may take longer than anybody waits for one. It is asked for again; only the
        feed says that the replay is worth nothing any more.

        Raises:
            ReplayBrokenError: the feed broke, or the server knows it or its stream no more.
        """
        last: Stored | None = None
        while True:
            try:
                last = last or await self._last()
                if last is not None:
                    await self.reach(last.seq, within=LAST_LOOK_SECONDS)
                delivered = (await self.position()).delivered.stream_seq
                last = await self._last()
            except AnswerTimeoutError:
                self.bus.observer.count("mirror.late_answers")
                self.check()
                continue
            self.check()
            if last is None or last.seq <= delivered:
                break
        if last is not None:
            await self.reach(last.seq)

    async def _last(self) -> Stored | None:
        try:
            return await self.bus.last(self.stream, self.subject)
        except JetStreamNotFoundError as error:
            # Whether it is missing for good is judged before each replay.
            raise ReplayBrokenError(f"the stream has gone: {error}") from error

    def check(self) -> None:
        """Raises the reason once the feed is broken."""
        if self.broken.done():
            self.broken.result()

    async def until_broken(self) -> None:
        """Waits for ever, or raises the reason for which the feed broke."""
        await asyncio.shield(self.broken)

    def abandon(self, reason: str) -> None:
        """Breaks the feed."""
        if not self.broken.done():
            closed = self.bus.connection.closed.is_set()
            self.broken.set_exception(ClosedError(reason) if closed else ReplayBrokenError(reason))
            self._reached.set()

    def _on_message(self, message: Msg) -> Awaitable[None] | None:
        self._heard = True
        if self.broken.done():
            return None
        if not is_delivery(message):
            return self._on_status(message, message.headers or {})
        tokens = message.reply.split(".")
        first = 5 if len(tokens) == _PLAIN_TOKENS else 7  # as in `read_delivery`, without its cost
        self._count += 1
        # Trap: the server drops what a client cannot take, and an ordered consumer may skip. Counting shows each gap.
        if int(tokens[first + 1]) != self._count:
            self.abandon(f"a gap after message {self._count - 1} of the replay")
            return None
        seq = int(tokens[first])
        try:
            self.deliver(message, seq)
        except Exception as error:
            # Trap: an exception in a callback goes to the error callback alone, and the message would be skipped.
            self.abandon(f"message {seq} could not be taken in: {error!r}")
            raise
        self.seq = seq
        if seq >= self._awaited_seq:
            self._reached.set()
        self._outstanding -= 1
        return self._ask_for(SLICE) if self.sliced and self._outstanding == SLICE else None

    async def _on_status(self, message: Msg, headers: Mapping[str, str]) -> None:
        """Answers flow control. All messages before it are processed by then."""
        if message.reply:
            await self.bus.connection.send(message.reply)
        elif stalled := headers.get("Nats-Consumer-Stalled"):
            await self.bus.connection.send(stalled)
        sent = headers.get("Nats-Last-Consumer")
        if sent is not None and int(sent) != self._count:
            self.abandon(f"the server sent {sent} messages, {self._count} arrived")
        elif self.sliced and headers.get("Status") != _ALIVE:
            await self._request_ended(headers)

    async def _request_ended(self, headers: Mapping[str, str]) -> None:
        """Notes that a request ended before all of its messages came."""
        if headers.get("Status") != _EXPIRED:
            self.abandon(f"the server ended the replay: {headers.get('Description', headers.get('Status'))}")
            return
        self._outstanding -= int(headers.get("Nats-Pending-Messages", 0))
        while self._outstanding <= SLICE:
            await self._ask_for(SLICE)

    def _watch_silence(self) -> None:
        """Trap: a consumer lost with its server's memory is silent; only missing heartbeats tell."""
        self._quiet_looks = 0 if self._heard else self._quiet_looks + 1
        self._heard = False
        if self._quiet_looks >= _LOOKS:
            self.abandon(f"silent for {SILENCE_SECONDS} s")
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(SILENCE_SECONDS / _LOOKS, self._watch_silence)
