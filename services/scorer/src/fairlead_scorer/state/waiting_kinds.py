"""Whether the jobs that wait in a queue are all alike to its frontend."""

from collections import Counter
from collections.abc import Iterable

from fairlead_contracts.messages.state import JobState, Phase

type _Kind = tuple[int, str, tuple[tuple[str, int], ...]]
"""The level of its class, what its frontend tries as one, and what it asks for by resource."""


class WaitingKinds:
    """How many jobs of each kind wait, by queue."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], Counter[_Kind]] = {}
        """By cluster and queue."""

    def replace(self, before: JobState | None, after: JobState | None) -> None:
        """The job is this now."""
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
