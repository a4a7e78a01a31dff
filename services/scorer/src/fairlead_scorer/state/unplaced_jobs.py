"""Jobs that have not started and have no place in the order: nobody finds them in a queue, and everybody asks for them."""

from collections.abc import Iterable, Iterator

from fairlead_contracts.messages.state import JobState, Phase


class UnplacedJobs:
    """Jobs without a place, by queue."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], dict[str, JobState]] = {}
        """By cluster and queue, then by uid."""

    def replace(self, before: JobState | None, after: JobState | None) -> None:
        """The job is this now."""
        if before is not None and _is_unplaced(before):
            queue = (before.cluster, before.queue)
            del self._jobs[queue][before.uid]
            if not self._jobs[queue]:
                del self._jobs[queue]
        if after is not None and _is_unplaced(after):
            self._jobs.setdefault((after.cluster, after.queue), {})[after.uid] = after

    def within(self, queues: Iterable[tuple[str, str]]) -> Iterator[JobState]:
        """The jobs of these queues, by cluster and name."""
        return (job for queue in queues for job in self._jobs.get(queue, {}).values())


def _is_unplaced(job: JobState) -> bool:
    return job.phase is Phase.HELD or (job.phase is Phase.RUNNING and bool(job.unchecked))
