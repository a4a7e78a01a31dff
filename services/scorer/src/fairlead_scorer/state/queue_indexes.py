"""Indexes of jobs by queue: those without a position in the order, and the kinds of those that wait."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from fairlead_contracts.frontend.marks import GANG_FIT
from fairlead_contracts.messages.state import JobArray, JobState, Phase, State

type _Kind = tuple[int, str, tuple[tuple[str, int], ...]]
"""Kind of a waiting job: the level of its class, what its frontend tries as one, and what it asks for by resource."""


class WaitingKinds:
    """Numbers of waiting jobs of each kind, by queue."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], Counter[_Kind]] = {}
        """Numbers of jobs of each kind, by cluster and queue."""

    def replace(self, before: JobState | None, after: JobState | None) -> None:
        """Takes in the job as it is now."""
        if before is not None and before.phase is Phase.WAITING:
            queue = (before.cluster, before.queue)
            kinds, kind = self._kinds[queue], _kind(before)
            kinds[kind] -= 1
            if not kinds[kind]:
                del kinds[kind]
            if not kinds:
                del self._kinds[queue]
        if after is not None and after.phase is Phase.WAITING:
            self._kinds.setdefault((after.cluster, after.queue), Counter())[_kind(after)] += 1

    def differ(self, queues: Iterable[tuple[str, str]]) -> bool:
        """Whether jobs of more than one kind wait in these together."""
        return len({kind for queue in queues for kind in self._kinds.get(queue, ())}) > 1


def _kind(job: JobState) -> _Kind:
    return job.base, job.equivalence, tuple(sorted(job.demand.items()))


class UnrankedJobs:
    """Jobs that have not started and have no position in the order: nobody finds them in a queue, everybody asks for them."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], dict[str, JobState]] = {}
        """Jobs by cluster and queue, then by uid."""
        self._gangs: Counter[tuple[str, str]] = Counter()
        """Number of these jobs that wait for the check of gangs, by cluster and queue."""

    def replace(self, before: JobState | None, after: JobState | None) -> None:
        """Takes in the job as it is now."""
        if before is not None and _is_unranked(before):
            queue = (before.cluster, before.queue)
            del self._jobs[queue][before.uid]
            if awaits_gang_fit(before):
                self._gangs[queue] -= 1
            if not self._jobs[queue]:
                del self._jobs[queue]
        if after is not None and _is_unranked(after):
            queue = (after.cluster, after.queue)
            self._jobs.setdefault(queue, {})[after.uid] = after
            if awaits_gang_fit(after):
                self._gangs[queue] += 1

    def queues(self) -> list[tuple[str, str]]:
        """The queues in which they stand, by cluster and name."""
        return list(self._jobs)

    def within(self, queues: Iterable[tuple[str, str]]) -> Iterator[JobState]:
        """The jobs of these queues, by cluster and name."""
        return (job for queue in queues for job in self._jobs.get(queue, {}).values())

    def awaiting_gang_fit(self, queues: Iterable[tuple[str, str]]) -> int:
        """The number of jobs of these queues that have their quota and wait for the check of gangs."""
        return sum(self._gangs[queue] for queue in queues)


def array_rest(subject: str, stated: State | None) -> JobState | None:
    """The rest of an array, as one job: the tasks behind those that are stated one by one. None where there are none.

    Args:
        subject: the statement's, which becomes the uid: two statements of one array may hold for a moment.
        stated: the object that is stated there.
    """
    if (
        not isinstance(stated, JobState)
        or stated.array is None
        or stated.phase not in (Phase.WAITING, Phase.HELD)
    ):
        return None
    tasks = stated.array.tasks - len(stated.array.window)
    return (
        msgspec.structs.replace(stated, uid=subject, array=JobArray(tasks=tasks, window=[]))
        if tasks > 0
        else None
    )


def awaits_gang_fit(job: JobState) -> bool:
    """Whether a job has its quota and waits for the check of gangs."""
    return GANG_FIT in (job.open_checks or ())


def _is_unranked(job: JobState) -> bool:
    if job.array is not None or job.phase is Phase.HELD:
        return True
    return job.phase is Phase.RUNNING and bool(job.unchecked)
