"""Messages that stand behind a flood, taken before their turn in the stream.

A durable gives what its stream holds in the order of the stream. A work queue has no room for a durable for each tenant
beside the one of all: their filters would overlap, which the server refuses. So while a worker has more ahead of it than
it reads, it asks the stream which other subjects hold messages, and reads the first ones of these by their number. A
subject in which it found some lately is read without asking. Such a message is handled as any other. The durable still
brings it when its turn comes; by then the worker knows it, and acks it.

Nothing depends on that memory but work saved. Who begins without it handles a message twice, which handlers allow.
"""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from itertools import islice

import msgspec
from nats.aio.msg import Msg

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import Stored
from fairlead_bus.streams.delivery import Delivery
from fairlead_bus.work.fair_queue import uncount

LOOK_SECONDS = 0.01
"""Seconds between two questions which subjects hold messages, while some stand behind what was read: by so much is a
sender delayed who comes behind a flood for the first time in a while."""
PEEK_SECONDS = 0.002
"""Seconds between two reads of subjects where something was found lately: one takes a single call with a small
answer."""
LATELY_SECONDS = 2.0
MOST_PEEKED = 8
"""Subjects that are read without being asked for, the latest ones: each costs a call."""
MOST_SUBJECTS = 32
"""Subjects that are read at a time."""
MOST_OF_A_SUBJECT = 64
"""Messages of one subject that one call reads: one by one, a busy worker read a dozen a second, each at the end of a
round of its loop."""
MOST_BYTES_OF_A_SUBJECT = 1024 * 1024
"""Bytes that one call reads at most; one message at least, however large."""
MOST_TAKEN = 65_536
"""Messages that are remembered until the durable brings them; no more are taken beyond that."""


class _Taken(msgspec.Struct):
    """A message that was read before the durable brought it."""

    subject: str
    brought: Msg | None = None
    """The message as the durable brought it meanwhile."""
    settled: bytes | None = None
    """The verdict on the message; None while there is none."""


class _StreamState(msgspec.Struct):
    subjects: dict[str, int] = {}


class _Stream(msgspec.Struct):
    state: _StreamState


_stream = msgspec.json.Decoder(_Stream)


class Overtaking:
    """Reads messages that stand behind a flood, before the durable brings them; the pattern is that of the durable's subjects."""

    def __init__(self, bus: Bus, *, stream: str, pattern: str) -> None:
        self._bus = bus
        self._stream = stream
        self._pattern = pattern
        self._look_due = 0.0
        self._lately: OrderedDict[str, float] = OrderedDict()
        """Subjects in which something was found, and when last; the latest at the end."""
        self._held: Counter[str] = Counter()
        """Number of messages that the durable brought and that the worker still has, by subject."""
        self._taken: dict[int, _Taken] = {}
        self._counts: Counter[str] = Counter()
        """Number of messages that were taken and that the durable has not brought yet, by subject."""
        self._last_taken: dict[str, int] = {}
        """The sequence last taken, by subject: no message is taken twice, even one that was given back meanwhile."""
        self.read_to = 0
        """Stream sequence up to which the durable has delivered."""

    @property
    def pause(self) -> float:
        """Seconds from a look that found nothing to the next."""
        return PEEK_SECONDS if self._lately else LOOK_SECONDS

    async def look(self, passed_over: Callable[[str], bool], found: Callable[[Delivery], None]) -> int:
        """Takes the first messages of each subject that stand behind what was read; returns how many.

        Args:
            passed_over: whether enough messages of a subject wait already.
            found: takes each as it is read.

        Raises:
            BusError: the stream does not say now, or never will.
        """
        if len(self._taken) >= MOST_TAKEN:
            return 0
        now = time.monotonic()
        while self._lately and next(iter(self._lately.values())) < now - LATELY_SECONDS:
            self._lately.popitem(last=False)
        if now < self._look_due:
            reading = dict.fromkeys(reversed(self._lately), MOST_OF_A_SUBJECT)
            most = MOST_PEEKED
        else:
            reading = await self._unread()
            most = MOST_SUBJECTS
            self._look_due = time.monotonic() + LOOK_SECONDS
        wanted = islice((subject for subject in reading if not passed_over(subject)), most)
        return sum(
            await asyncio.gather(*(self._read(subject, reading[subject], found) for subject in wanted))
        )

    async def _unread(self) -> dict[str, int]:
        """The number of messages that nobody here has read, by subject."""
        self._last_taken = {
            subject: last for subject, last in self._last_taken.items() if last > self.read_to
        }
        asked = {"subjects_filter": self._pattern}
        counts = _stream.decode(await self._bus.jetstream.call(f"STREAM.INFO.{self._stream}", asked)).state
        return {
            subject: min(unread, MOST_OF_A_SUBJECT)
            for subject, count in counts.subjects.items()
            if (unread := count - self._held[subject] - self._counts[subject]) > 0
        }

    async def _read(self, subject: str, most: int, found: Callable[[Delivery], None]) -> int:
        after = max(self.read_to, self._last_taken.get(subject, 0))
        several = await self._bus.jetstream.next_several(
            self._stream, subject, after + 1, most, most_bytes=MOST_BYTES_OF_A_SUBJECT
        )
        count = 0
        for stored in several:
            if stored.seq <= max(self.read_to, self._last_taken.get(subject, 0)):
                continue  # the durable brought it while it was asked for
            self._taken[stored.seq] = _Taken(subject)
            self._counts[subject] += 1
            self._last_taken[subject] = stored.seq
            count += 1
            found(_as_delivery(stored))
        if count:
            self._lately[subject] = time.monotonic()
            self._lately.move_to_end(subject)
        return count

    def hold(self, subject: str) -> None:
        """Counts a message that the durable brought and that the worker keeps for now."""
        self._held[subject] += 1

    def release(self, subject: str) -> None:
        """Counts a message that the worker held as gone."""
        uncount(self._held, subject)

    def note_brought(self, delivery: Delivery, message: Msg) -> tuple[bool, bytes | None]:
        """Notes a message that the durable delivers; returns whether it was taken before, with the verdict if known."""
        self.read_to = max(self.read_to, delivery.stream_seq)
        taken = self._taken.get(delivery.stream_seq)
        if taken is None:
            return False, None
        taken.brought = message
        if taken.settled is not None:
            self._forget(delivery.stream_seq)
        return True, taken.settled

    def note_verdict(self, delivery: Delivery, verdict: bytes) -> str:
        """Notes the verdict on a taken message; returns where to say it, empty until the durable brings the message."""
        taken = self._taken.get(delivery.stream_seq)
        if taken is None:
            return ""
        if taken.brought is not None:
            self._forget(delivery.stream_seq)
            return str(taken.brought.reply)
        if verdict.startswith(b"-NAK"):
            self._forget(delivery.stream_seq)  # the durable brings it in its turn
        else:
            taken.settled = verdict
        return ""

    def reply_of(self, delivery: Delivery) -> str:
        """The subject on which the server hears of a message that was taken; empty until the durable brings it."""
        taken = self._taken.get(delivery.stream_seq)
        return "" if taken is None or taken.brought is None else str(taken.brought.reply)

    def _forget(self, seq: int) -> None:
        uncount(self._counts, self._taken.pop(seq).subject)


def _as_delivery(stored: Stored) -> Delivery:
    return Delivery(
        subject=stored.subject,
        payload=stored.payload,
        headers=stored.headers,
        stream_seq=stored.seq,
        deliveries=1,
        at=stored.at,
    )
