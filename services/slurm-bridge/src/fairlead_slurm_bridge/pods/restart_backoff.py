"""How long a job that has gone back is left alone: slurmd refuses one that starts again in the second in which it ended there.

slurmd was told the end of the attempt in some second, and takes every credential of the job that was made up to then for a
revoked one. slurmctld then ends the job as failed (slurm_cred_revoked, common/slurm_cred.c; agent.c).
"""

from collections.abc import Callable, Iterable

from fairlead_slurm import SlurmJob
from fairlead_slurm_bridge.gate.attempts import Attempt
from fairlead_slurm_bridge.pods.lasting import Lasting

RESTART_SECONDS = 1.5
"""The next second has begun by then, also where the clocks of the hosts differ by half of one."""


class RestartBackoff:
    """Keeps the time that Slurm needs between two attempts of a job.

    Args:
        clock: in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._waiting = Lasting(RESTART_SECONDS, clock)
        """From when each was first seen to wait: its nodes had been told by then."""

    def over(self, jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
        """The jobs of these that may start again; what is known of others is forgotten."""
        by_attempt = {Attempt(job.number, job.restarts): job for job in jobs}
        return [by_attempt[attempt] for attempt in self._waiting.lasted(by_attempt)]

    def short(self) -> bool:
        """Whether one may start again in a moment."""
        return self._waiting.some_left()
