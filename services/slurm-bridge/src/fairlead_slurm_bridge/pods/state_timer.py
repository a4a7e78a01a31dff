"""Durations of attempts' states: how long nobody has asked here for one, or how long it has been back in the queue."""

import time
from collections.abc import Callable, Iterable

from fairlead_slurm import SlurmJob
from fairlead_slurm_bridge.gate.attempts import Attempt

RESTART_SECONDS = 1.5
"""Seconds after which the next second has begun, also where the hosts' clocks differ by half of one.

slurmd refuses a job that starts again in the second in which it ended there: it was told the end of the attempt in some
second, and takes every credential of the job that was made up to then for a revoked one. slurmctld then ends the job as
failed (slurm_cred_revoked, common/slurm_cred.c; agent.c).
"""


class StateTimer:
    """A timer of one state of attempts: it knows at which look each was first found in it, nothing of the time between two looks.

    Args:
        seconds: time in the state after which an attempt's time has elapsed.
        clock: monotonic seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[Attempt, float] = {}

    def elapsed(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The attempts that were in the state at each look for the whole time; those not given are forgotten.

        Args:
            attempts: all attempts in the state now.
        """
        now = self._clock()
        self._since = {attempt: self._since.get(attempt, now) for attempt in attempts}
        return [attempt for attempt, since in self._since.items() if now - since >= self._seconds]

    def some_pending(self) -> bool:
        """Whether the time of some attempt in the state has not elapsed yet."""
        now = self._clock()
        return any(now - since < self._seconds for since in self._since.values())

    def reset(self) -> None:
        """Start all times anew, as nobody could look: this bridge does not lead, or slurmctld or Kubernetes is away."""
        self._since.clear()


class RestartBackoff:
    """The time that Slurm needs between two attempts of a job.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._waiting = StateTimer(RESTART_SECONDS, clock)
        """Attempts since they were first seen to wait: their nodes had been told of the end by then."""

    def ready(self, jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
        """The jobs of these that may start again; all others are forgotten."""
        by_attempt = {Attempt(job.number, job.restarts): job for job in jobs}
        return [by_attempt[attempt] for attempt in self._waiting.elapsed(by_attempt)]

    def some_soon(self) -> bool:
        """Whether some job that may not start again yet may in a moment."""
        return self._waiting.some_pending()
