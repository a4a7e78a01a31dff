"""Ties: how a frontend orders jobs of equal level. Kept in order, so that a plan need not look at every job.

`plan_levels` wants to know of the unlabelled jobs only the first by tie: it speaks for all behind it.

- Kueue: the queue-order timestamp, in the whole seconds that Kubernetes writes, then the UID
  (`baseCompareFunc`, pkg/cache/queue/cluster_queue.go). Between the heads of two ClusterQueues the timestamp is the
  last that is compared (`entryOrdering.Less`, pkg/scheduler/scheduler.go): then it is chance.
- Slurm: the submit time, a `time_t`, then the job id and the number of the array's task, both as numbers
  (`sort_job_queue2`, src/slurmctld/job_scheduler.c).
- The simulated cluster: the queue time to the microsecond, then the uid.
"""

import re
from bisect import bisect_left, insort
from collections.abc import Container, Iterator

from fairlead_contracts.base.instants import Micros

type Tie = tuple[Micros, str]
"""What a frontend compares between equal levels, the lower first: the queue time, then the uid, or a text that is unlike
any other's and goes as the frontend's own last tie does."""

_SECOND = 1_000_000
_SLURM_ID = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,10}))?(?![0-9])")
_NO_TASK = 0xFFFF_FFFE
"""Slurm's NO_VAL: what is left of an array stands behind its tasks."""
_NO_NUMBER = "~"
"""Behind all digits: an id that is none of Slurm's."""


def tie_of(frontend: str, queue_time: Micros, *, name: str, uid: str) -> Tie:
    """The tie of a job as its frontend breaks it.

    Args:
        frontend: `kueue`, `slurm`, or any other for one that goes by instant and uid.
        queue_time: as stated.
        name: the frontend's own id of the job; in Slurm `<job>` or `<job>_<task>`.
        uid: of the job.
    """
    if frontend == "kueue":
        return queue_time - queue_time % _SECOND, uid
    if frontend == "slurm":
        return queue_time - queue_time % _SECOND, f"{_slurm_number(name)} {uid}"
    return queue_time, uid


def tied_within(frontend: str, queue: str) -> str:
    """The queue, where the frontend has no order between jobs of one instant in two of them; else empty."""
    return queue if frontend == "kueue" else ""


def _slurm_number(name: str) -> str:
    """The numbers of a Slurm job, as text that sorts as they do."""
    found = _SLURM_ID.match(name)
    if found is None:
        return _NO_NUMBER
    job, task = found.groups()
    return f"{int(job):010d} {_NO_TASK if task is None else int(task):010d}"


_FEW = 64
"""Up to so many insertions a sorted list moves its tail each time (5 µs at 15,000); above, one sort is cheaper."""


class TieIndex:
    """A sorted set of ties, by uid. Additions rest until somebody asks."""

    def __init__(self) -> None:
        self._ties: list[Tie] = []
        self._by_uid: dict[str, Tie] = {}
        self._added: list[Tie] = []

    def __len__(self) -> int:
        return len(self._by_uid)

    def put(self, uid: str, queue_time: Micros) -> None:
        """Add the job, or move it to another queue time."""
        tie = (queue_time, uid)
        if self._by_uid.get(uid) == tie:
            return
        self.discard(uid)
        self._by_uid[uid] = tie
        self._added.append(tie)

    def discard(self, uid: str) -> None:
        """Take the job out if it is in."""
        tie = self._by_uid.pop(uid, None)
        if tie is None:
            return
        place = bisect_left(self._ties, tie)
        if place < len(self._ties) and self._ties[place] == tie:
            del self._ties[place]
        else:
            self._added.remove(tie)

    def first_outside(self, window: Container[str]) -> Tie | None:
        """The first tie whose job is not in the window. Costs the jobs of the window that stand before it."""
        self._settle()
        return next((tie for tie in self._ties if tie[1] not in window), None)

    def in_order(self) -> Iterator[Tie]:
        """All ties, the first one first."""
        self._settle()
        return iter(self._ties)

    def _settle(self) -> None:
        if len(self._added) <= _FEW:
            for tie in self._added:
                insort(self._ties, tie)
        else:
            self._ties += self._added
            self._ties.sort()
        self._added.clear()
