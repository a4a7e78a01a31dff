"""Barriers before levels: earlier writes that a later one must not overtake, not even for a moment."""

from bisect import bisect_right, insort
from collections.abc import Iterable

from fairlead_admitter.decide.frontend_order import LinePosition
from fairlead_admitter.decide.steering import LevelWrite, WriteCause


class Barrier:
    """Writes of a plan that are not made, or not made yet.

    Raised jobs come front first: a later one may not pass an earlier one while that still stands where it was, unless
    it stood before it anyway. Lowered ones come back first: a later one may not fall behind an earlier one. A raised
    and a lowered job end in the wanted order, whichever of the writes comes first. A running job has no position in the
    order. But no waiting job may reach its level before it is lifted: the frontend could stop the running one for it.

    Writes are kept sorted by where their jobs stand, so a plan of n writes costs n log n.
    """

    def __init__(self, writes: Iterable[LevelWrite] = ()) -> None:
        self._raised: list[LinePosition] = []
        self._lowered: list[LinePosition] = []
        self._unlifted: int | None = None
        """The lowest level of a running job whose lift is not written yet."""
        for write in writes:
            self.add(write)

    def add(self, write: LevelWrite) -> None:
        """Adds a write that is not made yet, or was not made."""
        if write.cause is WriteCause.PROTECT:
            self._unlifted = write.before if self._unlifted is None else min(self._unlifted, write.before)
        elif not write.of_running:
            insort(self._raised if _is_raised(write) else self._lowered, _line_position(write, write.before))

    def stops(self, write: LevelWrite) -> bool:
        """Whether the write could turn a pair of jobs round if it took effect before one of these."""
        if write.of_running:
            return False
        raised = _is_raised(write)
        reaches = self._unlifted is not None and write.level >= self._unlifted
        if reaches and (raised or write.cause is WriteCause.WAKE):
            return True
        high, low = sorted((_line_position(write, write.before), _line_position(write, write.level)))
        line = self._raised if raised else self._lowered
        first = bisect_right(line, high)
        return first < len(line) and line[first] < low


def _is_raised(write: LevelWrite) -> bool:
    return write.level > write.before


def _line_position(write: LevelWrite, level: int) -> LinePosition:
    return -level, write.tie
