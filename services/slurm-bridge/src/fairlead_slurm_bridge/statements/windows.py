"""The window of an array: the first few of its waiting tasks, which have a position. Pure.

Slurm keeps one record for what is left of an array. A task that gets a level is split off into a record of its own; the
rest stays unlabelled below every level, and so cannot start past those. A new task moves up when one has started.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from fairlead_slurm import SlurmJob

_PENDING = "PENDING"


class ArrayRemainder(msgspec.Struct, frozen=True, kw_only=True):
    """An array's remainder: waiting tasks that share a record."""

    tasks: int
    first: SlurmJob
    """First of the tasks, which are alike but for their numbers."""
    window: tuple[SlurmJob, ...]
    """Tasks that have a position, in their order; empty where as many were split off already."""


class WindowedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that are told one by one, and the remainders of arrays."""

    alone: list[SlurmJob]
    rests: list[ArrayRemainder]


def positioned(jobs: Sequence[SlurmJob], window: int) -> WindowedJobs:
    """Divide jobs into those told one by one and the remainders of arrays, each with its window.

    Args:
        jobs: all jobs of the queue.
        window: number of an array's waiting tasks that have a position.
    """
    sharing = Counter(job.number for job in jobs)
    alone: list[SlurmJob] = []
    rests: dict[int, list[SlurmJob]] = {}
    split: Counter[int] = Counter()
    for job in jobs:
        if job.task is not None and job.state == _PENDING:
            if sharing[job.number] > 1:
                rests.setdefault(job.array, []).append(job)
                continue
            split[job.array] += 1
        alone.append(job)
    remainders = []
    for array, tasks in rests.items():
        tasks.sort(key=lambda job: job.task or 0)
        head = tuple(tasks[: max(0, window - split[array])])
        remainders.append(ArrayRemainder(tasks=len(tasks), first=tasks[0], window=head))
    return WindowedJobs(alone=alone, rests=remainders)
