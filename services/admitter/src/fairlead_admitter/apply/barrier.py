"""Barriers before levels: earlier writes that a level could overtake, for a moment, on its way."""

from bisect import bisect_right, insort
from collections.abc import Iterable

from fairlead_admitter.decide.frontend_order import LinePlace
from fairlead_admitter.decide.steering import LevelWrite, WriteCause


class Barrier:
    """Writes of a plan that are not made, or not made yet.

    Raised jobs come front first: a later one may not pass an earlier one while that still stands where it was, unless
    it stood before it anyway. Lowered ones come back first: a later one may not fall behind an earlier one. A raised
    and a lowered job end in the wanted order, whichever of the writes comes first. One that runs stands in no order;
    but what waits may not reach it while it is not lifted yet, or it could stop it.

    Each is kept by where it stands, so that a plan of n writes costs n log n.
    """

    def __init__(self, writes: Iterable[LevelWrite] = ()) -> None:
        self._raised: list[LinePlace] = []
        self._lowered: list[LinePlace] = []
        self._unlifted: int | None = None
        """The lowest level of those that run and wait for their lift."""
        for write in writes:
            self.add(write)

    def add(self, write: LevelWrite) -> None:
        """Adds a write that is not made."""
        if write.cause is WriteCause.PROTECT:
            self._unlifted = write.before if self._unlifted is None else min(self._unlifted, write.before)
        else:
            insort(self._raised if _is_raised(write) else self._lowered, _stand(write, write.before))

    def stops(self, write: LevelWrite) -> bool:
        """Whether this one could turn a pair round if it took effect before one of those."""
        if write.cause is WriteCause.PROTECT:
            return False
        raised = _is_raised(write)
        reaches = self._unlifted is not None and write.level >= self._unlifted
        if reaches and (raised or write.cause is WriteCause.WAKE):
            return True
        front, back = sorted((_stand(write, write.before), _stand(write, write.level)))
        line = self._raised if raised else self._lowered
        first = bisect_right(line, front)
        return first < len(line) and line[first] < back


def _is_raised(write: LevelWrite) -> bool:
    return write.level > write.before


def _stand(write: LevelWrite, level: int) -> LinePlace:
    return -level, write.tie
