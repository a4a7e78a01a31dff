"""The order in which a frontend starts the jobs of a queue: by their levels, and else as they came."""

from collections.abc import Iterable

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.state import JobState, Phase


def in_starting_order(jobs: Iterable[JobState]) -> list[JobState]:
    """The waiting ones of the jobs, the first to start first."""
    return sorted((job for job in jobs if job.phase is Phase.WAITING), key=starting_rank)


def starting_rank(job: JobState) -> tuple[int, Micros, str]:
    """The key by which jobs start, the least first."""
    return -job.level, job.queue_time, job.uid
