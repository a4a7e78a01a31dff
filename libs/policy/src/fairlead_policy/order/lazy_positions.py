"""Places that are made when somebody looks at them, some together while one reads on."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import overload

from fairlead_contracts.messages.decisions import Place
from fairlead_policy.exact.ranking import Ints

AT_ONCE = 1024
"""Places that are made together while one reads on: few enough to stay in a processor's cache meanwhile."""


class LazyPositions(Sequence[Place]):
    """First job first.

    Args:
        order: numbers of the jobs, in order.
        oversized: whether some job may ask for more than the pool has.
    """

    def __init__(self, order: Ints, *, oversized: bool) -> None:
        self.oversized = oversized
        """Whether some job may ask for more than the pool has."""
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Place]:
        for numbers in self._together():
            yield from self._made(numbers)

    @overload
    def __getitem__(self, at: int) -> Place: ...

    @overload
    def __getitem__(self, at: slice) -> list[Place]: ...

    def __getitem__(self, at: int | slice) -> Place | list[Place]:
        if isinstance(at, slice):
            return self._made(self._order[at])
        return self._made(self._order[[at]])[0]

    def _together(self) -> Iterator[Ints]:
        for start in range(0, len(self), AT_ONCE):
            yield self._order[start : start + AT_ONCE]

    @abstractmethod
    def _made(self, numbers: Ints) -> list[Place]:
        """The places of some jobs."""
