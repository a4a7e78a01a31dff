"""The leader of each role and cluster, one at a time, by compare-and-swap on one key."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import MSG_ID
from fairlead_bus.errors import BusError, RetryableBusError, not_kept
from fairlead_bus.streams.bucket import KV_DELETE, bucket_stream
from fairlead_bus.streams.compare_and_swap import SwapRefusedError, new_msg_id, swap
from fairlead_bus.streams.mirror import Mirror, is_deletion
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.messages.members import LEADER_LEASE, RENEW_SECONDS, LeaderLease
from fairlead_contracts.subjects import kv_subject, leader_key
from fairlead_contracts.topology import LEASE_SECONDS, MEMBERS

TRUSTED_SECONDS = LEASE_SECONDS * 2 / 3
"""Seconds for which a leader trusts a renewal: it stops well before the server lets anybody else in."""
_RETRY_SECONDS = 0.2
_STEP_DOWN_SECONDS = 1.0


@dataclass(eq=False)
class Leadership:
    """Stands for election for as long as it runs.

    The epoch is the sequence of the write that took the key; it only grows. Two may hold the key's value in memory, as
    one may be paused; two are never trusted at once, as each is trusted for two thirds of the lease from before its
    last acked renewal was sent. What leaders write to NATS is fenced by their epoch all the same.

    `describe` puts into the lease, at each renewal, what whoever leads says of itself and of the cluster.
    """

    bus: Bus
    _: KW_ONLY
    role: str
    cluster: str
    replica: str
    wake: asyncio.Event
    describe: Callable[[LeaderLease], LeaderLease] = lambda lease: lease

    def __post_init__(self) -> None:
        self._stream = bucket_stream(MEMBERS)
        self._subject = kv_subject(MEMBERS, leader_key(self.role, self.cluster))
        self._seen = asyncio.Event()
        self._key: Mirror[LeaderLease] = Mirror(
            self.bus, stream=self._stream, filter=self._subject, codec=LEADER_LEASE, wake=self._seen
        )
        self._held: int | None = None
        self._overtaken: int | None = None
        self._last = 0
        self._trusted_until = 0.0
        self._missed = ""
        self._lapse: asyncio.TimerHandle | None = None

    def trouble(self) -> str | None:
        """The reason for which the lead can be neither taken nor kept; None where NATS says who has it."""
        return self._missed or None

    @property
    def epoch(self) -> int | None:
        """The epoch of our leadership while we lead and may trust it; None otherwise. Read it again before each write."""
        return self._held if time.monotonic() < self._trusted_until else None

    @property
    def another_leads(self) -> bool:
        """Whether somebody else leads, as far as NATS has told: it is not known while NATS is away."""
        return self._held is None and self._key.complete and bool(self._key.values)

    def overtaken(self, epoch: int) -> None:
        """Has the lead of this epoch given up, and taken anew if nobody else leads: somebody obeyed a later leader.

        Where nobody leads since, the stream was put back, as from a backup: whoever remembers more than it listens to a later
        epoch alone.
        """
        self._overtaken = epoch

    async def is_confirmed(self) -> bool:
        """Whether the key is ours by the server's word, not by our memory alone.

        Raises:
            RetryableBusError: the leader could not be found out.
        """
        found = await self.bus.last(self._stream, self._subject)
        held = self._held
        if held is None or found is None or is_deletion(found.headers):
            return False
        return found.seq == held or found.headers.get(MSG_ID, "").startswith(f"{self.replica}.{held}.")

    async def run(self) -> None:
        """Takes the key when it is free, renews it, and gives it back when cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._key.run(), name=f"leader key of {self.cluster}")
                group.create_task(self._contend(), name=f"leadership of {self.cluster}")
        finally:
            await self._step_down()

    async def _contend(self) -> None:
        while True:
            self._seen.clear()
            led = self.epoch
            pause, missed = RENEW_SECONDS, ""
            if self._held is not None and self._held == self._overtaken:
                self.bus.observer.note("leadership.overtaken", cluster=self.cluster, epoch=self._held)
                await self._step_down()
            try:
                await (self._acquire() if self._held is None else self._renew())
            except SwapRefusedError:
                self._lose()
            except RetryableBusError as error:
                pause = _RETRY_SECONDS
                missed = not_kept(f"the lease of {self.role} {self.replica}", error)
                self.bus.observer.note("leadership.missed", cluster=self.cluster, error=str(error))
            self._missed = missed
            if self.epoch != led:
                self.wake.set()
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        """A leader sleeps to its next renewal; others wait for a word of the key, and ask now and then."""
        if self._held is not None:
            await asyncio.sleep(seconds)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._seen.wait()
        except TimeoutError:
            return

    async def _acquire(self) -> None:
        """Takes the key where it is absent, deleted or expired: always expecting exactly what was seen."""
        found = await self.bus.last(self._stream, self._subject)
        if found is not None and not is_deletion(found.headers):
            return
        sent = time.monotonic()
        seq = await self._swap(self._lease(0), found.seq if found else 0)
        self._held = self._last = seq
        self._trust(sent)
        self.bus.observer.note("leadership.gained", cluster=self.cluster, epoch=seq)

    async def _renew(self) -> None:
        """Renews the lease. Where the swap succeeds, nobody else has led since our last write: the epoch goes on."""
        sent = time.monotonic()
        self._last = await self._swap(self._lease(self._held or 0), self._last)
        self._trust(sent)

    def _trust(self, sent: float) -> None:
        """Trusts the lease until two thirds of it after a write that was sent at `sent`; whoever depends on it is woken then."""
        lapsed = self.epoch is None
        self._trusted_until = sent + TRUSTED_SECONDS
        if lapsed and self.epoch is not None:
            self.wake.set()  # the trust may have lapsed while the renewal was on its way
        if self._lapse is not None:
            self._lapse.cancel()
        wait = self._trusted_until - time.monotonic()
        self._lapse = asyncio.get_running_loop().call_later(wait, self.wake.set)

    def _lose(self) -> None:
        if self._held is not None:
            self.bus.observer.note("leadership.lost", cluster=self.cluster, epoch=self._held)
        self._held = None
        self._trusted_until = 0.0

    async def _step_down(self) -> None:
        """Deletes our own lease, and only ours, so that the next leader need not wait for it to expire."""
        held, self._held = self._held, None
        self._trusted_until = 0.0
        if self._lapse is not None:
            self._lapse.cancel()
        self.wake.set()
        if held is None:
            return
        try:
            await self.bus.publish(
                self._subject, b"", headers=KV_DELETE, expect_last=self._last, timeout=_STEP_DOWN_SECONDS
            )
        except BusError as error:
            self.bus.observer.note("leadership.not_released", cluster=self.cluster, error=str(error))

    def _lease(self, epoch: int) -> bytes:
        lease = LeaderLease(
            role=self.role,
            cluster=self.cluster,
            replica=self.replica,
            epoch=epoch,
            renewed=from_seconds(time.time()),
        )
        return to_json(self.describe(lease))

    async def _swap(self, payload: bytes, expected: int) -> int:
        """Writes the key. A renewal whose outcome we never learnt counts as ours: its Msg-Id carries our epoch."""
        ours = None if self._held is None else f"{self.replica}.{self._held}."
        return await swap(
            self.bus,
            stream=self._stream,
            subject=self._subject,
            payload=payload,
            expected=expected,
            msg_id=new_msg_id(ours.removesuffix(".") if ours else self.replica),
            is_ours=lambda found: ours is not None and found.startswith(ours),
        )
