"""The ownership of a shard: our hold on one shard, from the claim until the shard is somebody else's.

Level-triggered: an owner is told that its shard is behind, never what changed. It decides from what is known then, and
what changes while a decision is on its way makes the shard behind again. So a slow publish loses no later state, and
of a burst only the newest state is published.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import NamedTuple, Protocol, Self

import msgspec

from fairlead_bus import LostOwnershipError, PayloadTooLargeError, RetryableBusError
from fairlead_runtime.waiting import wake_or_timeout
from fairlead_scorer.decide.decision import PAYLOAD_LIMIT, DecisionContent, same

_RETRY_SECONDS = 0.2
"""Seconds of rest after a publish that may succeed later: about the time of a reconnect."""
CONFIRM_SECONDS = 5.0
"""Seconds without a publish after which an owner looks whether its shard is still its own."""
CLAIMED_SECONDS = 1.0
"""Seconds from a claim to the first such look: a claim that the owner before sent while it gave up may arrive after
ours."""
_HEADER_ROOM = 4096
_SMALLEST_LIMIT = 16_384


class ShardName(NamedTuple):
    """One shard of one pool."""

    pool: str
    number: int

    def __str__(self) -> str:
        return f"{self.pool}/{self.number}"

    @classmethod
    def parse(cls, item: str) -> Self:
        """The shard that an assigned item names."""
        pool, _, number = item.rpartition("/")
        return cls(pool, int(number))


class ShardClaim(Protocol):
    """The decision subject, owned by compare-and-swap."""

    @property
    def epoch(self) -> int | None:
        """The claim's sequence; None before the claim and after the loss."""

    async def claim(self, claim: Callable[[], bytes]) -> int:
        """Takes the subject over; returns the epoch."""

    async def publish(self, payload: bytes) -> int:
        """Publishes as the owner; raises LostOwnershipError where somebody else has written."""

    async def confirm(self) -> None:
        """Raises LostOwnershipError where somebody else has written since."""


class ShardDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A content and the state that it was made from."""

    content: DecisionContent
    state_seq: int
    clusters: tuple[str, ...]


class ShardDecider(Protocol):
    """Decides for the owner of a shard."""

    def may_publish(self, shard: ShardName) -> bool:
        """Whether a decision of this shard may leave now."""

    def is_behind(self, shard: ShardName) -> bool:
        """Whether the shard changed since it was last decided."""

    def decide(self, shard: ShardName, limit: int) -> ShardDecision:
        """The shard's content now; it is not behind any more."""

    def pace(self, shard: ShardName) -> float:
        """The shortest time between two decisions of the shard now, in seconds."""

    def put_back(self, shard: ShardName) -> None:
        """Takes back a decision that did not arrive: the shard is behind again."""

    def written(self, shard: ShardName, decided: ShardDecision, epoch: int, turn: int) -> bytes:
        """The decision as it is published."""


class ShardObserver(Protocol):
    """Counts and logs what becomes of owned shards."""

    def claimed(self, shard: ShardName, epoch: int) -> None:
        """Hears that we own the shard."""

    def lost(self, shard: ShardName) -> None:
        """Hears that somebody else has claimed the shard."""

    def published(self, shard: ShardName, decided: ShardDecision) -> None:
        """Hears that a decision was acknowledged."""

    def failed(self, shard: ShardName, error: Exception) -> None:
        """Hears that a decision could not be published now."""


@dataclass(eq=False)
class ShardOwnership:
    """The ownership of a shard that the assignment gives us."""

    shard: ShardName
    hold: InitVar[Callable[[], ShardClaim]]
    """Makes a fresh hold on its decision subject."""
    decider: ShardDecider
    observer: ShardObserver
    _: KW_ONLY
    rest: float
    """Seconds for which a lost shard is left alone."""
    confirm_after: Callable[[], float] = lambda: CONFIRM_SECONDS
    """Gives the seconds after which a quiet hold is looked at: somebody may have claimed the shard."""
    changed_hands: Callable[[], None] = lambda: None
    """Called when we begin or cease to own the shard."""

    def __post_init__(self, hold: Callable[[], ShardClaim]) -> None:
        self.decided_seq = 0
        """The state-stream sequence that the last acknowledged decision holds for."""
        self._new_hold = hold
        self._hold = hold()
        self._turn = 0
        self.published: DecisionContent | None = None
        """The content of the last acknowledged decision; None before the first, and while it may be lost."""
        self._limit = PAYLOAD_LIMIT
        self._kept = True
        self._just_claimed = False
        self._busy = False
        self._wake = asyncio.Event()

    @property
    def owned(self) -> bool:
        """Whether we have claimed the shard and have not heard of another claim."""
        return self._kept and self._hold.epoch is not None

    @property
    def caught_up(self) -> bool:
        """Whether the last acknowledged decision holds for the state of now."""
        return self.owned and not self._busy and not self.decider.is_behind(self.shard)

    def look(self) -> None:
        """Wakes `run` if there is work for this shard now."""
        if self._has_work():
            self._wake.set()

    def give_up(self) -> None:
        """Gives the shard up, which is assigned to another: a decision on its way may arrive, no further one leaves."""
        self._kept = False
        self._wake.set()

    def doubt(self) -> None:
        """Has the next decision published in any case: the server may have lost the last one with the connection."""
        self.published = None
        self.decider.put_back(self.shard)

    async def run(self) -> None:
        """Claims the shard and keeps its decision up to date, until it is given up."""
        while self._kept:
            quiet = self.confirm_after()
            woken = await wake_or_timeout(
                self._wake, min(quiet, CLAIMED_SECONDS) if self._just_claimed else quiet
            )
            if self._has_work():
                await asyncio.sleep(await self._claim_or_publish())
            elif not woken and self.owned:
                await asyncio.sleep(await self._confirm())

    def _has_work(self) -> bool:
        behind = self._hold.epoch is None or self.decider.is_behind(self.shard)
        return self._kept and behind and self.decider.may_publish(self.shard)

    async def _claim_or_publish(self) -> float:
        """Claims or publishes once; returns how long to rest before the next time, in seconds."""
        self._busy, owned = True, self.owned
        decided = self.decider.decide(self.shard, self._limit)
        try:
            if self._hold.epoch is None:
                await self._claim(decided)
            await self._publish(decided)
        except LostOwnershipError:
            self._step_down()
            return self.rest
        except PayloadTooLargeError as error:
            # The server says its limit where the client refuses, not where the stream does.
            told = error.limit - _HEADER_ROOM if error.limit else self._limit // 2
            self._limit = max(_SMALLEST_LIMIT, min(told, self._limit // 2))
            return self._try_again(error)
        except RetryableBusError as error:
            return self._try_again(error)
        finally:
            self._busy = False
            self._wake.set()  # whatever changed meanwhile was not seen by a waiting loop
            if self.owned is not owned:
                self.changed_hands()
        self.decided_seq = decided.state_seq
        return self.decider.pace(self.shard)

    async def _confirm(self) -> float:
        """Looks whether the shard is still ours; returns how long to rest before the next time, in seconds."""
        try:
            await self._hold.confirm()
        except LostOwnershipError:
            self._step_down()
            self._wake.set()
            self.changed_hands()
            return self.rest
        except RetryableBusError as error:
            self.observer.failed(self.shard, error)
        self._just_claimed = False
        return 0.0

    async def _claim(self, decided: ShardDecision) -> None:
        """Claims the shard. The claim holds the content: a reader that starts now must not find the shard empty."""
        epoch = await self._hold.claim(lambda: self.decider.written(self.shard, decided, 0, 0))
        self._turn = 0
        self.published = None
        self._just_claimed = True
        self.observer.claimed(self.shard, epoch)

    async def _publish(self, decided: ShardDecision) -> None:
        epoch = self._hold.epoch
        if epoch is None or (self.published is not None and same(self.published, decided.content)):
            return
        self._turn += 1
        await self._hold.publish(self.decider.written(self.shard, decided, epoch, self._turn))
        self.published = decided.content
        self.observer.published(self.shard, decided)

    def _step_down(self) -> None:
        self._hold = self._new_hold()
        self.decider.put_back(self.shard)
        self.observer.lost(self.shard)

    def _try_again(self, error: Exception) -> float:
        self.decider.put_back(self.shard)
        self.observer.failed(self.shard, error)
        return _RETRY_SECONDS
