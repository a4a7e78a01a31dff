"""Lines that are served in turn: whoever has much waiting delays the others by one turn, not by all that it has."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nats.aio.msg import Msg

from fairlead_bus.streams.delivery import Delivery


class QueuedMessage(NamedTuple):
    """A message that waits for its turn."""

    line: str
    message: Msg
    delivery: Delivery


class Turns:
    """Messages by line, each line in the order of arrival."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[QueuedMessage]] = {}
        """In the order of their turns; none is empty."""
        self._count = 0
        self.bytes = 0
        """Of all payloads together."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedMessage]:
        for line in self._lines.values():
            yield from line

    @property
    def lines(self) -> list[str]:
        """The lines with somebody in them."""
        return list(self._lines)

    def waiting_in(self, line: str) -> int:
        """How many wait in this line."""
        return len(self._lines.get(line, ()))

    def put(self, waiting: QueuedMessage) -> None:
        """Stand in line."""
        self._lines.setdefault(waiting.line, deque()).append(waiting)
        self._count += 1
        self.bytes += len(waiting.delivery.payload)

    def take(self, may: Callable[[str], bool]) -> QueuedMessage | None:
        """The first of the next line that may be served; the line's next turn comes after all others'."""
        name = next((name for name in self._lines if may(name)), None)
        if name is None:
            return None
        line = self._lines.pop(name)
        waiting = line.popleft()
        if line:
            self._lines[name] = line
        self._count -= 1
        self.bytes -= len(waiting.delivery.payload)
        return waiting

    def clear(self) -> list[QueuedMessage]:
        """Send everybody away."""
        gone = list(self)
        self._lines.clear()
        self._count = self.bytes = 0
        return gone
