"""Lines that are served in turn: whoever has much waiting delays the others by one turn, not by all that it has.

`LineConcurrency` says how many messages of one line are handled at once, `FairQueue` counts them.
"""

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nats.aio.msg import Msg

from fairlead_bus.streams.delivery import Delivery

CALM_SECONDS = 2.0
"""Seconds for which a calm line, one with few messages, still counts after its last turn: crowded lines make way for
it."""
BESIDE_CALM = 4
"""A crowded line beside a calm one has a share that is so many times smaller. What is handled at once makes the round of the
worker's loop long, and who waits for eight answers of a server waits for some ten such rounds."""


class QueuedMessage(NamedTuple):
    """A message that waits for its turn."""

    line: str
    message: Msg
    delivery: Delivery


def uncount(counts: Counter[str], name: str) -> None:
    """Counts one less of a name, and forgets a name of which none is left."""
    counts[name] -= 1
    if not counts[name]:
        del counts[name]


class LineConcurrency:
    """The number of messages that are handled at once of each line: fewer of a crowded one while a short one waits.

    Args:
        most: number of one line's messages that may be handled at once.
        clock: monotonic seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        """Number of messages of any line that are handled at once at most."""
        self._beside_calm = max(1, most // BESIDE_CALM)
        self._clock = clock
        self._calm: OrderedDict[str, float] = OrderedDict()
        """Calm lines, and when each had its last turn; the last one at the end."""

    def served(self, line: str, behind: int) -> None:
        """Notes a turn of the line, with so many messages behind it."""
        if behind >= self.most:
            self._calm.pop(line, None)
            return
        now = self._clock()
        self._calm[line] = now
        self._calm.move_to_end(line)
        while next(iter(self._calm.values())) < now - CALM_SECONDS:
            self._calm.popitem(last=False)

    def of(self, line: str, waiting: int) -> int:
        """Number of messages of the line that may be handled at once while so many wait in it."""
        if waiting < self.most or not self._is_another_calm(line):
            return self.most
        return self._beside_calm

    def _is_another_calm(self, line: str) -> bool:
        since = self._clock() - CALM_SECONDS
        for other in reversed(self._calm):
            if other != line:
                return self._calm[other] >= since
        return False


class FairQueue:
    """Messages that wait by line: the lines take turns, each in the order of arrival, as far as its concurrency allows."""

    def __init__(self, concurrency: LineConcurrency) -> None:
        self._concurrency = concurrency
        self._lines: dict[str, deque[QueuedMessage]] = {}
        """Waiting messages by line, the lines in the order of their turns; none is empty."""
        self._serving: Counter[str] = Counter()
        """Number of messages that are being handled, by line."""
        self._count = 0
        self.bytes = 0
        """Bytes of all payloads together."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedMessage]:
        for line in self._lines.values():
            yield from line

    def waits_enough(self, line: str) -> bool:
        """Whether as many messages wait in this line as may be handled at once."""
        return self._waiting_in(line) >= self._concurrency.most

    def put(self, waiting: QueuedMessage) -> None:
        """Puts a message at the end of its line."""
        self._lines.setdefault(waiting.line, deque()).append(waiting)
        self._count += 1
        self.bytes += len(waiting.delivery.payload)

    def serve_next(self) -> QueuedMessage | None:
        """Takes the first message of the next line that may be served; the line's next turn comes after all others'."""
        name = next(filter(self._may_be_served, self._lines), None)
        if name is None:
            return None
        line = self._lines.pop(name)
        waiting = line.popleft()
        if line:
            self._lines[name] = line
        self._count -= 1
        self.bytes -= len(waiting.delivery.payload)
        self._concurrency.served(name, len(line))
        self.serve_again(name)
        return waiting

    def serve_again(self, line: str) -> None:
        """Counts a message of the line as being handled: one that was served before and comes back."""
        self._serving[line] += 1

    def served(self, line: str) -> None:
        """Counts a message of the line as handled no longer."""
        uncount(self._serving, line)

    def clear(self) -> list[QueuedMessage]:
        """Empties all lines; returns the messages that waited."""
        gone = list(self)
        self._lines.clear()
        self._count = self.bytes = 0
        return gone

    def _waiting_in(self, line: str) -> int:
        return len(self._lines.get(line, ()))

    def _may_be_served(self, line: str) -> bool:
        serving, concurrency = self._serving[line], self._concurrency
        return serving < concurrency.most and serving < concurrency.of(line, self._waiting_in(line))
