"""The single writer of a subject: a claim, then compare-and-swap."""

from collections.abc import Callable

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import MSG_ID
from fairlead_bus.errors import LostOwnershipError
from fairlead_bus.streams.compare_and_swap import SwapRefusedError, new_msg_id, swap


class OwnedSubject:
    """A subject that this owner alone writes, for as long as nobody else claims it.

    A lease fences nothing: its holder may be paused between its check and its publish. The claim is a compare-and-swap
    on the subject itself, its sequence is the epoch, and each publish expects the one before. From the moment of
    a newer claim, everything that the old owner still sends is refused by the server.
    """

    def __init__(self, bus: Bus, *, stream: str, subject: str, owner: str) -> None:
        self._bus = bus
        self._stream = stream
        self._subject = subject
        self._owner = owner
        self._last = 0
        self._turn = 0
        self.epoch: int | None = None
        """Sequence of our claim; None while we own nothing."""

    async def claim(self, claim: Callable[[], bytes]) -> int:
        """Takes the subject from whoever has it; returns the epoch.

        Args:
            claim: makes the payload, once the subject's last message is known to be the one to take over from.

        Raises:
            LostOwnershipError: somebody else claimed at the same time and was first.
            RetryableBusError: the claim failed or its outcome could not be found out; claim again.
        """
        self.epoch = None
        last = await self._bus.last(self._stream, self._subject)
        seq = await self._swap(claim(), new_msg_id(f"{self._owner}.claim"), last.seq if last else 0)
        self.epoch = self._last = seq
        self._turn = 0
        return seq

    async def publish(self, payload: bytes) -> int:
        """Writes the subject; returns the sequence.

        Raises:
            LostOwnershipError: the epoch is over.
            RetryableBusError: not known to be written; the next publish finds out.
        """
        if self.epoch is None:
            raise LostOwnershipError(f"{self._subject} is not ours")
        self._turn += 1
        self._last = await self._swap(payload, f"{self._ours()}{self._turn}", self._last)
        return self._last

    async def confirm(self) -> None:
        """Finds out whether the subject is still ours.

        Who has nothing to publish hears of another's claim in no other way. A claimant that took it for a moment and
        let go again would else leave the subject with nobody who minds it.

        Raises:
            LostOwnershipError: somebody else has written.
            RetryableBusError: the outcome could not be found out.
        """
        if self.epoch is None:
            raise LostOwnershipError(f"{self._subject} is not ours")
        found = await self._bus.last(self._stream, self._subject)
        if found is not None and found.headers.get(MSG_ID, "").startswith(self._ours()):
            self._last = found.seq
        elif (found.seq if found else 0) != self._last:
            self.epoch = None
            self._bus.observer.count("owner.lost")
            raise LostOwnershipError(f"{self._subject} was written by somebody else")

    def _ours(self) -> str:
        return f"{self._owner}.{self.epoch}."

    async def _swap(self, payload: bytes, msg_id: str, expected: int) -> int:
        ours = None if self.epoch is None else self._ours()
        try:
            return await swap(
                self._bus,
                stream=self._stream,
                subject=self._subject,
                payload=payload,
                expected=expected,
                msg_id=msg_id,
                is_ours=lambda found: ours is not None and found.startswith(ours),
            )
        except SwapRefusedError as error:
            self.epoch = None
            self._bus.observer.count("owner.lost")
            raise LostOwnershipError(str(error)) from error
