"""Durations of attempts' states: how long nobody has asked here for one, or how long it has been back in the queue."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fairlead_slurm_bridge.gate.attempts import Attempt

RESTART_SECONDS = 1.5
"""Seconds after which the next second has begun, also where the hosts' clocks differ by half of one.

slurmd refuses a job that starts again in the second in which it ended there: it was told the end of the attempt in some
second, and takes every credential of the job that was made up to then for a revoked one. slurmctld then ends the job as
failed (slurm_cred_revoked, common/slurm_cred.c; agent.c).
"""


@dataclass(eq=False)
class StateTimer:
    """A timer of one state of attempts: it knows at which look each was first found in it, nothing of the time between two looks."""

    seconds: float
    """Time in the state after which an attempt's time has elapsed."""
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    _since: dict[Attempt, float] = field(default_factory=dict, init=False)

    def elapsed(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The attempts that were in the state at each look for the whole time; those not given are forgotten.

        Args:
            attempts: all attempts in the state now.
        """
        now = self.clock()
        self._since = {attempt: self._since.get(attempt, now) for attempt in attempts}
        return [attempt for attempt, since in self._since.items() if now - since >= self.seconds]

    def some_pending(self) -> bool:
        """Whether the time of some attempt in the state has not elapsed yet."""
        now = self.clock()
        return any(now - since < self.seconds for since in self._since.values())

    def reset(self) -> None:
        """Start all times anew, as nobody could look: this bridge does not lead, or slurmctld or Kubernetes is away."""
        self._since.clear()
