"""Running jobs by queue and by size: how much the end of one can free at once."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from fairlead_contracts.messages.state import JobState
from fairlead_policy.levels.adherence import charges

type _Size = frozenset[tuple[str, int]]


class RunningSizes:
    """The demands of running jobs, by queue. Jobs come in few sizes: as many as there are kinds of jobs."""

    def __init__(self) -> None:
        self._sizes: dict[str, Counter[_Size]] = {}
        self._jobs: dict[str, dict[str, JobState]] = {}
        self._charged: dict[str, Counter[tuple[str, str]]] = {}

    def of(self, queue: str) -> Collection[JobState]:
        """The jobs that run by the queue's quota."""
        return self._jobs.get(queue, {}).values()

    def charged(self, queue: str) -> Mapping[tuple[str, str], int]:
        """The quota of the queue that these jobs hold: by flavor and resource, in base units."""
        return self._charged.get(queue, {})

    def put(self, job: JobState) -> None:
        """Adds a job that runs now."""
        self._charged.setdefault(job.queue, Counter()).update(charges(job))
        self._jobs.setdefault(job.queue, {})[job.uid] = job
        self._sizes.setdefault(job.queue, Counter())[frozenset(job.demand.items())] += 1

    def take(self, job: JobState) -> None:
        """Takes out a job, as it was put, that runs no more."""
        self._charged[job.queue].subtract(charges(job))
        del self._jobs[job.queue][job.uid]
        sizes = self._sizes[job.queue]
        size = frozenset(job.demand.items())
        sizes[size] -= 1
        if not sizes[size]:
            del sizes[size]

    def largest(self, queues: Iterable[str]) -> dict[str, int]:
        """The most of each resource that one running job of these queues holds, in base units."""
        largest: dict[str, int] = {}
        for queue in queues:
            for size in self._sizes.get(queue, ()):
                for resource, amount in size:
                    largest[resource] = max(largest.get(resource, 0), amount)
        return largest
