"""Lines that are served in turn: whoever has much waiting delays the others by one turn, not by all that it has."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nats.aio.msg import Msg

from fairlead_bus.delivery import Delivery


class Waiting(NamedTuple):
    """A message that waits for its turn."""

    line: str
    message: Msg
    delivery: Delivery


class Turns:
    """Messages by line, each line in the order of arrival.

    Args:
        longest: messages of one line.
        most_bytes: of all payloads together.
    """

    def __init__(self, *, longest: int, most_bytes: int) -> None:
        self._longest = longest
        self._most_bytes = most_bytes
        self._lines: dict[str, deque[Waiting]] = {}
        """In the order of their turns; none is empty."""
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Waiting]:
        for line in self._lines.values():
            yield from line

    @property
    def lines(self) -> list[str]:
        """The lines with somebody in them."""
        return list(self._lines)

    def put(self, waiting: Waiting) -> bool:
        """Stand in line; False where there is no room for it."""
        line = self._lines.get(waiting.line)
        size = len(waiting.delivery.payload)
        if (line is not None and len(line) >= self._longest) or (
            self._count and self._bytes + size > self._most_bytes
        ):
            return False
        self._lines.setdefault(waiting.line, deque()).append(waiting)
        self._count += 1
        self._bytes += size
        return True

    def take(self, may: Callable[[str], bool]) -> Waiting | None:
        """The first of the next line that may be served; the line's next turn comes after all others'."""
        name = next((name for name in self._lines if may(name)), None)
        if name is None:
            return None
        line = self._lines.pop(name)
        waiting = line.popleft()
        if line:
            self._lines[name] = line
        self._count -= 1
        self._bytes -= len(waiting.delivery.payload)
        return waiting

    def clear(self) -> list[Waiting]:
        """Send everybody away."""
        gone = list(self)
        self._lines.clear()
        self._count = self._bytes = 0
        return gone
