"""Ties: how a frontend orders jobs of equal level. Kept in order, so that a plan need not look at every job.

`plan_levels` wants to know of the unlabelled jobs only the first by tie: it speaks for all behind it.
"""

from bisect import bisect_left, insort
from collections.abc import Container, Iterator

from fairlead_contracts.instants import Micros

type Tie = tuple[Micros, str]
"""(queue_time, uid): what a frontend compares between equal levels, the lower first."""

_FEW = 64
"""Up to so many insertions a sorted list moves its tail each time (5 µs at 15,000); above, one sort is cheaper."""


class TieIndex:
    """A sorted set of ties, by uid. Additions rest until somebody asks."""

    def __init__(self) -> None:
        self._ties: list[Tie] = []
        self._by_uid: dict[str, Tie] = {}
        self._added: list[Tie] = []

    def __len__(self) -> int:
        return len(self._by_uid)

    def put(self, uid: str, queue_time: Micros) -> None:
        """Add the job, or move it to another queue time."""
        tie = (queue_time, uid)
        if self._by_uid.get(uid) == tie:
            return
        self.discard(uid)
        self._by_uid[uid] = tie
        self._added.append(tie)

    def discard(self, uid: str) -> None:
        """Take the job out if it is in."""
        tie = self._by_uid.pop(uid, None)
        if tie is None:
            return
        place = bisect_left(self._ties, tie)
        if place < len(self._ties) and self._ties[place] == tie:
            del self._ties[place]
        else:
            self._added.remove(tie)

    def first_outside(self, window: Container[str]) -> Tie | None:
        """The first tie whose job is not in the window. Costs the jobs of the window that stand before it."""
        self._settle()
        return next((tie for tie in self._ties if tie[1] not in window), None)

    def in_order(self) -> Iterator[Tie]:
        """All ties, the first one first."""
        self._settle()
        return iter(self._ties)

    def _settle(self) -> None:
        if len(self._added) <= _FEW:
            for tie in self._added:
                insort(self._ties, tie)
        else:
            self._ties += self._added
            self._ties.sort()
        self._added.clear()
