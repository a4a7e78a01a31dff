"""Durations for which attempts have been as they are: without anybody who asks here, or back in the queue."""

import time
from collections.abc import Callable, Iterable

from fairlead_slurm_bridge.gate.attempts import Attempt


class Lasting:
    """Counts from look to look: of what happens while nobody looks, nothing is known.

    Args:
        seconds: after which it has lasted.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[Attempt, float] = {}

    def lasted(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The attempts that were so at each look for so long; what is known of all others is forgotten.

        Args:
            attempts: all that are so now.
        """
        now = self._clock()
        self._since = {attempt: self._since.get(attempt, now) for attempt in attempts}
        return [attempt for attempt, since in self._since.items() if now - since >= self._seconds]

    def some_left(self) -> bool:
        """Whether one of them has not lasted yet."""
        now = self._clock()
        return any(now - since < self._seconds for since in self._since.values())

    def interrupted(self) -> None:
        """Notes that it could not be looked: this bridge does not lead, or slurmctld or Kubernetes is away."""
        self._since.clear()
