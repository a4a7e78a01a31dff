"""The least of values that come, change and go."""

from heapq import heapify, heappop, heappush

_SPARE = 16


class Least[T]:
    """The least of values by number; of equal ones that of the lowest number. Each change costs O(log).

    A heap in which what is out of date stays until it comes to the top.
    """

    __slots__ = ("_heap", "_values")

    def __init__(self) -> None:
        self._values: dict[int, T] = {}
        self._heap: list[tuple[T, int]] = []

    def __len__(self) -> int:
        return len(self._values)

    def put(self, number: int, value: T) -> None:
        """Sets the number's value."""
        self._values[number] = value
        heappush(self._heap, (value, number))
        if len(self._heap) > 2 * len(self._values) + _SPARE:
            self._heap = [(value, number) for number, value in self._values.items()]
            heapify(self._heap)

    def drop(self, number: int) -> None:
        """Removes the number's value."""
        self._values.pop(number, None)

    def first(self) -> tuple[T, int] | None:
        """The least value, and whose it is; None where there is none."""
        heap, values = self._heap, self._values
        while heap:
            value, number = heap[0]
            if values.get(number) is value:
                return heap[0]
            heappop(heap)
        return None

    def copy(self) -> "Least[T]":
        """A copy with the same values."""
        other = Least[T]()
        other._values, other._heap = self._values.copy(), self._heap.copy()
        return other
