"""Which tasks of an array have a place: the first few of those that wait. Pure.

Slurm keeps one record for what is left of an array. A task that gets a level is split off into a record of its own; the
rest stays unlabelled below every level, and so cannot start past those. A new task moves up when one has started.
"""

from collections import Counter
from collections.abc import Iterable

from fairlead_slurm import SlurmJob


def placed(jobs: Iterable[SlurmJob], window: int) -> list[SlurmJob]:
    """The jobs, without those tasks of arrays that stand behind the window.

    Args:
        jobs: all, as read.
        window: how many waiting tasks of one array have a place.
    """
    found: list[SlurmJob] = []
    listed = list(jobs)
    sharing = Counter(job.number for job in listed)
    rests: dict[int, list[SlurmJob]] = {}
    split: Counter[int] = Counter()
    for job in listed:
        array, task = numbers(job.id)
        if task is None or job.state != "PENDING":
            found.append(job)
        elif sharing[job.number] > 1:
            rests.setdefault(array, []).append(job)
        else:
            split[array] += 1
            found.append(job)
    for array, tasks in rests.items():
        tasks.sort(key=lambda job: numbers(job.id))
        found += tasks[: max(0, window - split[array])]
    return found


def numbers(job: str) -> tuple[int, int | None]:
    """The numbers of a job, or array, and of its task."""
    array, underscore, task = job.partition("_")
    return int(array), int(task) if underscore else None
