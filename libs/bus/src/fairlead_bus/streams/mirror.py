"""A mirror of the last values of a stream that knows when it is complete."""

import asyncio
import random
from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Protocol

import msgspec
from nats.aio.msg import Msg

from fairlead_bus.connection.bus import DELETE, OPERATION, RESTATED, Bus
from fairlead_bus.connection.jetstream import API_TIMEOUT_SECONDS
from fairlead_bus.errors import (
    JetStreamNotFoundError,
    NotProvisionedError,
    ReplayBrokenError,
    RetryableBusError,
)
from fairlead_bus.observer import RateLimitedNotes
from fairlead_bus.streams.feed import Feed
from fairlead_bus.streams.mirrored_values import MirroredValues
from fairlead_bus.streams.tombstones import RevisionStamp
from fairlead_contracts.base.errors import ContractError, MalformedError, UnsupportedVersionError

REPLAY_SECONDS = 300.0
"""A replay that takes longer starts again: a million jobs take twelve."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 2.0
_CREATE_SECONDS = (1.0, 1.0, 1.0, API_TIMEOUT_SECONDS)
"""Seconds that a replay may take to begin, one try after the other. Trap: a cluster gives it to the memory of any of
its servers, for up to half a minute to one that has just died, too, and then says nothing. Asked again it draws
anew. Each fourth try has the time that a very large stream may need."""
ANEW_SECONDS = 5.0
"""Seconds for which a stream that was there may be missing."""
_KV_DELETES = frozenset({"DEL", "PURGE"})


class PayloadDecoder[T](Protocol):
    """Reads a payload: a contract's codec, or a reader of something else, such as the policy document."""

    def decode(self, payload: bytes) -> T:
        """The value in the payload; raises ContractError where it cannot be read."""


class MirrorChanges[T](msgspec.Struct, frozen=True):
    """Changes of a mirror since the last look."""

    changed: dict[str, T | None]
    """Changed values by subject; None for deleted."""
    seq: int
    complete: bool


class Mirror[T]:
    """The last value of each subject under a filter.

    A replay is complete when the consumer's delivered sequence, read first, is not below the last sequence of the
    filter, read after, and everything up to that one is processed. Message metadata is never used for it: with one
    message per subject a rewrite moves a subject from ahead of the reader to behind any barrier fixed before.

    Each (re)connect replays from scratch and then sweeps what the replay did not show; old values stay readable
    meanwhile, and `complete` is False. A message that is known already, by its sequence and its bytes, is neither read
    again nor told as a change: after a server's restart nearly all are.

    What cannot be read never takes the place of a value: the last good one stays until its subject has another or is
    deleted. A mirror that never had one has none.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        stream: str,
        filter: str,  # noqa: A002 - the word of NATS
        codec: PayloadDecoder[T],
        wake: asyncio.Event,
        stamp: Callable[[T], RevisionStamp] | None = None,
        belongs: Callable[[str, T, int], bool] = lambda _subject, _value, _seq: True,
        repeats: Callable[[T, T], bool] | None = None,
    ) -> None:
        """Creates a mirror that is empty before `run`.

        Args:
            stamp: tells which of two values of a subject is the newer, where writers say so.
            belongs: whether a value may stand under a subject, with this stream sequence: else whoever may write one
                subject could state another's object there. By default all may.
            repeats: whether a subject's value and the one after it say the same: the later one is kept, and wakes nobody.
                By default each is news.
        """
        self._bus = bus
        self._stream = stream
        self._filter = filter
        self._decode = codec.decode
        self._wake = wake
        self._belongs = belongs
        self._repeats = repeats
        self._values = MirroredValues(stamp, bus.observer)
        self._created = ""
        self._gone_at: float | None = None
        """Monotonic seconds since which there is no such stream."""
        self._unshown: set[str] | None = None
        """The subjects that stood before a replay and that it did not show yet; None once the replay came to its end."""
        self._done = asyncio.Event()
        self._rewritten = False
        """Whether a replay showed something new under a sequence that was read already."""
        self._unreadable: dict[str, str] = {}
        self._notes = RateLimitedNotes(bus.observer)
        self._create_seconds = cycle(_CREATE_SECONDS)
        self.complete = False
        """Whether `values` holds everything that stood when the last replay ended, and all changes since."""
        self.seq = 0
        """Stream sequence that `values` has processed; stands still during a replay."""
        self.history = 0
        """Times that the stream was made anew, or put back to an earlier moment: its sequences begin again."""
        self.rebuilds = 0
        """Replays begun after the first."""
        self.setback = ""
        """Reason for which the last replay broke, behind a colon; empty once one came to its end, and before the first broke."""

    @property
    def values(self) -> Mapping[str, T]:
        """The last values, by subject."""
        return self._values.by_subject

    @property
    def pending(self) -> Mapping[str, T | None]:
        """Values changed since the last take, by subject; None for deleted."""
        return self._values.changed

    def take(self) -> MirrorChanges[T]:
        """Takes the changes since the last take; several changes of a subject are one."""
        return MirrorChanges(self._values.take(), self.seq, self.complete)

    async def wait_complete(self) -> None:
        """Returns as soon as the mirror is complete."""
        await self._done.wait()

    async def run(self) -> None:
        """Mirrors until cancelled.

        Raises:
            ClosedError: the connection is closed for good.
            NotProvisionedError: the stream is missing.
            FatalBusError: the right to read it is missing.
        """
        forget = self._bus.on_connection(self._on_connection)
        pause = _FIRST_PAUSE
        try:
            while True:
                await self._bus.connection.until_connected()
                try:
                    await self._replay_and_follow()
                except RetryableBusError as error:
                    # Not by `complete`: the loss of a connection ends that before it ends the replay.
                    pause = _FIRST_PAUSE if self._unshown is None else min(2 * pause, _LONGEST_PAUSE)
                    self._begin_again(error)
                # Jittered: a fleet that comes back in step would leave hundreds of consumers behind.
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - not a secret
        finally:
            forget()

    async def _replay_and_follow(self) -> None:
        self._unshown = self.values.keys() | self._unreadable.keys()
        await self._check_stream()
        feed = Feed(
            self._bus,
            stream=self._stream,
            subject=self._filter,
            deliver=self._take_in,
            create_seconds=next(self._create_seconds),
            sliced=True,
        )
        async with feed:
            self._create_seconds = cycle(_CREATE_SECONDS)
            try:
                async with asyncio.timeout(REPLAY_SECONDS):
                    await feed.catch_up()
            except TimeoutError as error:
                raise ReplayBrokenError(f"no end within {REPLAY_SECONDS} s") from error
            if self._rewritten:
                raise ReplayBrokenError("the stream counts again what it had counted")
            self._sweep(feed.seq)
            await feed.until_broken()

    async def _check_stream(self) -> None:
        """Forgets what was remembered of a stream that counts again what it had counted: all that comes would seem old.

        It was made anew, or put back to a snapshot, or its server lost power and what it had not synced yet. Its end may have
        passed what was read by now: whoever came back sooner has written since.
        """
        try:
            found = await self._bus.jetstream.stream(self._stream)
        except JetStreamNotFoundError as error:
            if self._may_come_back():
                raise ReplayBrokenError(f"the stream {self._stream} has gone") from error
            raise NotProvisionedError(f"stream {self._stream}") from error
        self._gone_at = None
        is_put_back = self._rewritten or found.state.last_seq < self.seq
        if self._created and (is_put_back or found.created != self._created):
            self.history += 1
            self.seq, self._rewritten = 0, False
            self._values.forget_messages()
            self._bus.observer.note("mirror.new_stream", stream=self._stream)
        self._created = found.created

    def _may_come_back(self) -> bool:
        """Whether the stream was there just now: who makes it anew deletes it first, and feeds hear of that at once."""
        now = asyncio.get_running_loop().time()
        if self._gone_at is None:
            self._gone_at = now
        return bool(self._created) and now - self._gone_at < ANEW_SECONDS

    def _sweep(self, seq: int) -> None:
        """Drops what the replay did not show, without a tombstone: its owner may state it again unchanged."""
        for subject in self._unshown or ():
            self._unreadable.pop(subject, None)
            self._values.drop(subject)
        self._unshown = None
        self.seq = seq
        self.complete = True
        self.setback = ""
        self._done.set()
        self._wake.set()

    def _begin_again(self, reason: Exception) -> None:
        self.rebuilds += 1
        self.complete = False
        self.setback = f": {reason}"
        self._done.clear()
        self._wake.set()
        self._bus.observer.count("mirror.rebuilds")
        self._bus.observer.note("mirror.rebuild", filter=self._filter, reason=str(reason))

    def _on_connection(self, up: bool) -> None:  # noqa: FBT001 - the listener's form
        if not up:
            self.complete = False
            self._done.clear()
        self._wake.set()

    def _take_in(self, message: Msg, seq: int) -> None:
        """Takes in a message of the replay or of what follows. The hot path: 100,000 of these a second."""
        subject = message.subject
        headers = message.headers
        news = True
        if headers is not None and is_deletion(headers):
            self._unreadable.pop(subject, None)
            self._values.delete(subject, headers, seq)
        else:
            # Of both: the sequence alone is none, as a server that lost power gives some again.
            fingerprint = hash((seq, message.data))
            known = self._values.fingerprint_of(subject)
            if known == fingerprint:
                self._note_readable(subject)
            else:
                if seq <= self.seq and known is not None and subject not in self._unreadable:
                    self._rewritten = True
                news = self._read(message, seq, fingerprint)
        if self._unshown is None:
            self.seq = seq
            if news:
                self._wake.set()

    def _read(self, message: Msg, seq: int, fingerprint: int) -> bool:
        """Reads a message that is not known yet; returns whether it is news."""
        subject = message.subject
        try:
            check_written(message.headers)
            value = self._decode(message.data)
            if not self._belongs(subject, value, seq):
                raise MalformedError(
                    "it speaks of another object than its subject, or of an epoch that is yet to come"
                )
        except ContractError as error:
            self._refuse(subject, error)
            return True
        self._note_readable(subject)
        before = self.values.get(subject)
        restated = message.headers is not None and RESTATED in message.headers
        if not self._values.put(subject, value, seq=seq, fingerprint=fingerprint, restated=restated):
            return True
        return self._repeats is None or before is None or not self._repeats(before, value)

    def _note_readable(self, subject: str) -> None:
        """Notes that something readable is under the subject."""
        if self._unshown is not None:
            self._unshown.discard(subject)
        if self._unreadable:
            self._unreadable.pop(subject, None)

    def _refuse(self, subject: str, error: ContractError) -> None:
        """Keeps the last good value. Tells once for as long as the subject is unreadable; counts each such message."""
        if self._unshown is not None:
            self._unshown.discard(subject)
        kind = "version" if isinstance(error, UnsupportedVersionError) else "malformed"
        if subject in self._unreadable:
            self._bus.observer.count(f"mirror.{kind}")
        else:
            kept = subject in self.values
            self._notes.note(f"mirror.{kind}", subject=subject, error=str(error), last_good_kept=kept)
        self._unreadable[subject] = str(error)


_READ_OUT_OF = "Nats-Stream"
"""The server names the stream in each message that it reads out; nobody's own message has it."""


def check_written(headers: Mapping[str, str] | None) -> None:
    """Raises where nobody wrote a message here: the server did, as its answer.

    Trap: NATS checks where a user publishes, and not where it has the answer to that sent. Whoever may have messages read out
    by direct get would write so, with the rights of the server, what he may not write himself.

    Raises:
        MalformedError: the answer is of that kind.
    """
    if headers is not None and _READ_OUT_OF in headers:
        stream = headers[_READ_OUT_OF]
        raise MalformedError(
            f"the server wrote it, for somebody who had a message of the stream {stream} read out to here"
        )


def is_deletion(headers: Mapping[str, str]) -> bool:
    """Whether a message says that its subject has no value any more.

    A tombstone of ours, a delete of a KV client, or the server's own marker of an expired message. Trap: nats-py's KV
    does not know the marker and takes an expired key for a live one with an empty value.
    """
    if _READ_OUT_OF in headers:
        return False
    return (
        headers.get(OPERATION) == DELETE
        or headers.get("KV-Operation") in _KV_DELETES
        or "Nats-Marker-Reason" in headers
    )
