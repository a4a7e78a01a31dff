"""Time from a state change to the level that it caused."""

import time
from collections import deque

_KEPT = 4096


class Arrivals:
    """The last looks that brought job changes, by the state sequence that they reached."""

    def __init__(self) -> None:
        self._looks: deque[tuple[int, float]] = deque(maxlen=_KEPT)
        self._measured = 0

    def note(self, seq: int, at: float) -> None:
        """Notes that a look brought job changes up to this sequence, at this monotonic second."""
        if self._looks and seq < self._looks[-1][0]:
            self._looks.clear()  # the state stream was made anew
            self._measured = 0
        self._looks.append((seq, at))

    def measure(self, revision: int) -> float | None:
        """Seconds from the newest look that a decision of this state revision knew until now.

        None where no new change stands behind the decision (a policy did, or the passing of time), or where it knew
        of changes before this process did.
        """
        if revision <= self._measured:
            return None
        self._measured = revision
        latest: float | None = None
        while self._looks and self._looks[0][0] <= revision:
            latest = self._looks.popleft()[1]
        return None if latest is None else time.monotonic() - latest
