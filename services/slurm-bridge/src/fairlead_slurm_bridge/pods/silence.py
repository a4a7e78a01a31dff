"""For how long nobody has asked here on behalf of jobs that hold nodes."""

import time
from collections.abc import Callable, Iterable

from fairlead_slurm_bridge.gate.attempts import Attempt


class Silence:
    """Counts from look to look: while nobody looks nobody could have asked either.

    Args:
        seconds: after which an attempt is lost.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[Attempt, float] = {}

    def lost(self, silent: Iterable[Attempt]) -> list[Attempt]:
        """Those that have been silent at each look for too long.

        Args:
            silent: all for which nobody asks now.
        """
        now = self._clock()
        self._since = {attempt: self._since.get(attempt, now) for attempt in silent}
        return [attempt for attempt, since in self._since.items() if now - since > self._seconds]

    def interrupted(self) -> None:
        """It could not be looked: this bridge does not lead, or slurmctld or Kubernetes is away."""
        self._since.clear()
