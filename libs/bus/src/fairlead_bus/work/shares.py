"""How many messages of one line are handled at once."""

import time
from collections import OrderedDict
from collections.abc import Callable

CALM_SECONDS = 2.0
"""For so long after its last turn somebody with little to do still counts: others keep the way short for it."""
BESIDE_CALM = 4
"""A crowded line beside a calm one has a share that is so many times smaller. What is handled at once makes the round of the
worker's loop long, and who waits for eight answers of a server waits for some ten such rounds."""


class Shares:
    """Shares of lines: the same for all, but a crowded line has less while somebody stands in a short one.

    Args:
        most: of one line.
        clock: monotonic seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        """Of any line."""
        self._beside_calm = max(1, most // BESIDE_CALM)
        self._clock = clock
        self._calm: OrderedDict[str, float] = OrderedDict()
        """Lines that nobody waited in behind who was served, and when; the last one at the end."""

    def served(self, line: str, behind: int) -> None:
        """One of the line has its turn, with so many behind it."""
        if behind >= self.most:
            self._calm.pop(line, None)
            return
        now = self._clock()
        self._calm[line] = now
        self._calm.move_to_end(line)
        while next(iter(self._calm.values())) < now - CALM_SECONDS:
            self._calm.popitem(last=False)

    def of(self, line: str, waiting: int) -> int:
        """How many of a line may be handled at once in which so many wait."""
        if waiting < self.most or not self._is_another_calm(line):
            return self.most
        return self._beside_calm

    def _is_another_calm(self, line: str) -> bool:
        since = self._clock() - CALM_SECONDS
        for other in reversed(self._calm):
            if other != line:
                return self._calm[other] >= since
        return False
