"""The backlog of intake, and whether NATS has room for what each job brings: looked at every few seconds."""

import asyncio
import time
from collections.abc import Callable

import msgspec

from fairlead_admitter.intake.leader_consumers import DurableConsumer
from fairlead_bus import Bus, BusError
from fairlead_bus.streams.bucket import bucket_stream
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.instants import to_seconds
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.metrics import Metrics

LOOK_SECONDS = 2.0
MOST_FULL = 0.8
"""The part of its limit from which on NATS counts as full: facts, events and answers of jobs taken in must still
fit."""
_STREAMS = (
    topology.STATE,
    topology.DECISION,
    bucket_stream(topology.POLICY),
    bucket_stream(topology.MEMBERS),
)
"""Streams that refuse messages when they are full. The others drop their oldest."""


class IntakeBacklog:
    """Looks at the durable and at the streams; says what it found as metrics and as reasons.

    Args:
        stale_after: seconds for which nothing may be taken in although several tenants wait.
    """

    def __init__(self, bus: Bus, cluster: str, *, metrics: Metrics, stale_after: float) -> None:
        self._bus = bus
        self._cluster = cluster
        self._stale_after = stale_after
        self._full: str | None = None
        self.fullest: str | None = None
        """Store that is the fullest of those that have a limit, in words for people; None before the first look, or where none has."""
        self._progress: tuple[int, int] | None = None
        self._since = time.monotonic()
        self._stuck: str | None = None
        self.untaken = 0
        """Submissions that were published and not handled to their end, as of the last look."""
        self._pending_gauge = metrics.gauge(
            "intake_pending", "Submissions on the server that no admitter has read yet.", unit="messages"
        )
        self._unacked_gauge = metrics.gauge(
            "intake_unacked", "Submissions that were read and not settled yet.", unit="messages"
        )
        self._redelivered_gauge = metrics.gauge(
            "intake_redelivered", "Submissions not settled yet that came more than once.", unit="messages"
        )
        self._dead_gauge = metrics.gauge(
            "intake_dead_letters",
            "Submissions that were put aside, as long as they are kept.",
            unit="messages",
        )
        self._oldest_gauge = metrics.gauge(
            "intake_oldest", "Age of the oldest submission that this replica holds.", unit="seconds"
        )
        self._used_gauge = metrics.gauge(
            "nats_used", "Used part of the fullest store that refuses more when it is full.", unit="ratio"
        )

    async def run(self, consumer: DurableConsumer, leads: Callable[[], bool]) -> None:
        """Look at NATS until cancelled. What it does not say now stays as it was.

        Args:
            leads: whether this replica does so now.
        """
        while True:
            try:
                await self._look(consumer, leads=leads())
            except BusError:
                self._since = time.monotonic()  # the connection's trouble, which is told elsewhere
            await asyncio.sleep(LOOK_SECONDS)

    def full(self) -> str | None:
        """The reason for which nothing more may be taken in; None where there is room."""
        return self._full

    def stuck(self) -> str | None:
        """The reason for which this replica takes nothing in although it should; None where it does or has nothing to take.

        One tenant's trouble is no such reason: its submissions are parked or wait in a line of their own.
        """
        if self._full is not None:
            return f"submissions are refused: {self._full}"
        return self._stuck

    async def _look(self, consumer: DurableConsumer, *, leads: bool) -> None:
        self._full = await self._fullest()
        durable = topology.submit_durable(self._cluster)
        data = await self._bus.jetstream.call(f"CONSUMER.INFO.{topology.SUBMIT}.{durable}")
        found = _durable.decode(data)
        self.untaken = found.num_pending + found.num_ack_pending
        self._pending_gauge.set(found.num_pending)
        self._unacked_gauge.set(found.num_ack_pending)
        self._redelivered_gauge.set(found.num_redelivered)
        held = consumer.held
        oldest = consumer.oldest
        self._oldest_gauge.set(0 if oldest is None else max(0.0, to_seconds(wall_clock() - oldest)))
        progress = (consumer.settled, found.delivered.stream_seq)
        several = len({subjects.line_of(delivery.subject) for delivery in held}) > 1
        if progress != self._progress or not (found.num_pending or several) or not leads:
            self._progress, self._since = progress, time.monotonic()
        seconds = time.monotonic() - self._since
        self._stuck = (
            f"nothing was taken in for {seconds:.0f} s, and submissions wait"
            if seconds >= self._stale_after
            else None
        )
        pattern = subjects.dead(subjects.submit_filter(self._cluster))
        data = await self._bus.jetstream.call(f"STREAM.INFO.{topology.DEAD}", {"subjects_filter": pattern})
        self._dead_gauge.set(sum(_stream.decode(data).state.subjects.values()))

    async def _fullest(self) -> str | None:
        """Looks for the fullest store. Gives it where it is fuller than it may be, in words for people; None where none is."""
        account = _account.decode(await self._bus.jetstream.call("INFO"))
        used = [("the account", account.storage, account.limits.max_storage)]
        for name in _STREAMS:
            stream = _stream.decode(await self._bus.jetstream.call(f"STREAM.INFO.{name}"))
            used.append((f"stream {name}", stream.state.bytes, stream.config.max_bytes))
        ratios = [(amount / most, what) for what, amount, most in used if most > 0]
        ratio, what = max(ratios, default=(0.0, ""))
        self._used_gauge.set(ratio)
        self.fullest = f"{what} of NATS is {ratio:.0%} full" if what else None
        if ratio < MOST_FULL:
            return None
        return f"{self.fullest}; an operator must make room or raise its limit"


class _Position(msgspec.Struct):
    stream_seq: int = 0


class _Durable(msgspec.Struct):
    num_pending: int
    num_ack_pending: int
    num_redelivered: int
    delivered: _Position


class _StreamUse(msgspec.Struct):
    bytes: int
    subjects: dict[str, int] = {}


class _StreamConfig(msgspec.Struct):
    max_bytes: int = -1


class _StreamReply(msgspec.Struct):
    state: _StreamUse
    config: _StreamConfig


class _AccountLimits(msgspec.Struct):
    max_storage: int = -1


class _Account(msgspec.Struct):
    storage: int
    limits: _AccountLimits


_durable = msgspec.json.Decoder(_Durable)
_stream = msgspec.json.Decoder(_StreamReply)
_account = msgspec.json.Decoder(_Account)
