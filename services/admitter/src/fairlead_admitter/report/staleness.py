"""The time for which pools have lacked an order that may be followed, and when to say so."""

import time
from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from fairlead_admitter.observe.decision_gate import Unsettled


class StalenessObserver(Protocol):
    """Hears of pools that lose their order, and get one again."""

    def unsettled(self, pool: str, found: Unsettled) -> None:
        """Hears that a pool has no decision; nothing is written."""

    def stale(self, pool: str, found: Unsettled, seconds: float) -> None:
        """Hears that the pool has had no decision for too long."""

    def settled(self, pool: str, seconds: float) -> None:
        """Hears that the pool has an order again, after so many seconds."""

    def forget_pool(self, pool: str) -> None:
        """Hears that the pool is nobody's concern now."""


class _Lack(msgspec.Struct):
    since: float
    found: Unsettled
    said: bool = False


class Staleness:
    """Says once that a pool is stale, when it has been unsettled for longer than `stale_after` seconds."""

    def __init__(
        self, observer: StalenessObserver, stale_after: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._observer = observer
        self._stale_after = stale_after
        self._clock = clock
        self._lacks: dict[str, _Lack] = {}

    def lack(self, pool: str, found: Unsettled) -> None:
        """Notes that the pool has no order that may be followed now."""
        now = self._clock()
        lack = self._lacks.get(pool)
        if lack is None:
            lack = self._lacks[pool] = _Lack(now, found)
            self._observer.unsettled(pool, found)
        lack.found = found
        if now - lack.since > self._stale_after and not lack.said:
            lack.said = True
            self._observer.stale(pool, found, now - lack.since)

    def satisfy(self, pool: str) -> None:
        """Notes that the pool has an order."""
        lack = self._lacks.pop(pool, None)
        if lack is not None:
            self._observer.settled(pool, self._clock() - lack.since)

    def excuse(self, pool: str) -> None:
        """Notes that the pool needs no order now: it is paused or released, or another replica leads."""
        if self._lacks.pop(pool, None) is not None:
            self._observer.forget_pool(pool)

    def keep(self, pools: Collection[str]) -> None:
        """Excuses the lack of pools that are not there any more."""
        for pool in self._lacks.keys() - set(pools):
            self.excuse(pool)

    def stale(self) -> str | None:
        """The stale pools and why, for people; None if there are none."""
        told = [
            f"{pool}: {lack.found.doubt.value}"
            + (f" (shard {lack.found.shard})" if lack.found.shard is not None else "")
            + f" for {self._clock() - lack.since:.0f} s"
            for pool, lack in sorted(self._lacks.items())
            if lack.said
        ]
        return "; ".join(told) or None
