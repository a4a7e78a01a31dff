"""Being one of the live replicas of a role."""

import asyncio
import time
from collections.abc import Callable

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import Ack
from fairlead_bus.errors import BusError, RetryableBusError, WrongLastSequenceError, not_kept
from fairlead_bus.ownership.roster import Roster
from fairlead_bus.streams.bucket import KV_DELETE, bucket_stream
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.members import RENEW_SECONDS, MemberLease
from fairlead_contracts.subjects import kv_subject, member_key
from fairlead_contracts.topology import LEASE_SECONDS, MEMBERS

_LEAVE_SECONDS = 1.0


class Membership:
    """Renews one replica's lease each second, and takes it away on the way out.

    The key is unique to the process. Each renewal names the one that it is written over, so that nobody can have the server
    store an old one once more and so keep the lease of a replica that is gone (see `Bucket`).
    """

    def __init__(
        self, bus: Bus, roster: Roster, *, role: str, replica: str, describe: Callable[[], MemberLease]
    ) -> None:
        self._bus = bus
        self._roster = roster
        self._role = role
        self._replica = replica
        self._subject = kv_subject(MEMBERS, member_key(role, replica))
        self._describe = describe
        self._renewed: float | None = None
        self._missed = ""
        self._last = 0
        """Sequence of what we wrote last."""
        self._renew_now = asyncio.Event()

    @property
    def trusted(self) -> bool:
        """Whether others still count us in, judged by our own clock: from before our last acked renewal was sent."""
        return self._renewed is not None and time.monotonic() - self._renewed < LEASE_SECONDS

    def trouble(self) -> str | None:
        """The reason for which others may not count us in any more; None while they do, and before they did."""
        return None if self.trusted else self._missed or None

    @property
    def visible(self) -> bool:
        """Whether the roster shows us."""
        return self._roster.member(self._role, self._replica) is not None

    def renew_soon(self) -> None:
        """Has the lease renewed now instead of within the second: what `describe` says has changed."""
        self._renew_now.set()

    async def run(self) -> None:
        """Renews until cancelled, then leaves."""
        # After a reconnect the lease is renewed at once, not within its second.
        forget = self._bus.on_connection(lambda _: self._renew_now.set())
        try:
            while True:
                self._renew_now.clear()
                await self._renew()
                try:
                    async with asyncio.timeout(RENEW_SECONDS):
                        await self._renew_now.wait()
                except TimeoutError:
                    continue
        finally:
            forget()
            self._renewed = None
            await self._leave()

    async def _renew(self) -> None:
        sent = time.monotonic()
        try:
            await self._put(to_json(self._describe()))
        except (RetryableBusError, WrongLastSequenceError) as error:
            self._missed = not_kept(f"the lease of {self._role} {self._replica}", error)
            self._bus.observer.note("membership.missed", error=str(error))
        else:
            self._renewed, self._missed = sent, ""

    async def _put(self, payload: bytes) -> None:
        try:
            self._last = (await self._publish(payload)).seq
        except WrongLastSequenceError:
            # The lease had expired, or the ack of the renewal before was lost.
            found = await self._bus.last(bucket_stream(MEMBERS), self._subject)
            self._last = found.seq if found else 0
            self._last = (await self._publish(payload)).seq

    async def _publish(self, payload: bytes) -> Ack:
        return await self._bus.publish(self._subject, payload, expect_last=self._last, timeout=RENEW_SECONDS)

    async def _leave(self) -> None:
        """Gives the lease back: the others take over at once instead of when it expires."""
        try:
            await self._bus.publish(self._subject, b"", headers=KV_DELETE, timeout=_LEAVE_SECONDS)
        except BusError as error:
            self._bus.observer.note("membership.not_left", error=str(error))
