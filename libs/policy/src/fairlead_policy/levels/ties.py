"""Ties: how a frontend orders jobs of equal level. Kept in order, so that a plan need not look at every job.

`plan_levels` wants to know of the unlabelled jobs only the first by tie: it speaks for all behind it. Which rule a
frontend has, it states (see `Capabilities`).
"""

import re
from bisect import bisect_left, insort
from collections.abc import Iterator

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.capabilities import Capabilities, TieRule

type Tie = tuple[Micros, str]
"""Terms that a frontend compares between equal levels, the lower first: the queue time, then the uid, or a
text that is unlike any other's and goes as the frontend's own last tie does."""

type TiedJob = tuple[Tie, str]
"""A tie, and the uid of the job whose it is."""

_SECOND = 1_000_000
_JOB_ID = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,10}))?(?![0-9])")
_NO_TASK = 0xFFFF_FFFE
"""Slurm's NO_VAL: what is left of an array stands behind its tasks."""
CHANCE = "?"
"""Name in place of a queue's: its jobs have no order at equal levels. No queue is called so."""
_NO_INSTANT = 0
_NO_NUMBER = "~"
"""Text behind all digits, for an id without a number."""


def tie_of(rule: TieRule, queue_time: Micros, *, name: str, uid: str) -> Tie:
    """The tie of a job as its frontend breaks it.

    Args:
        queue_time: the queue time, as stated.
        name: the frontend's own id of the job; where numbers count, `<job>` or `<job>_<task>`.
    """
    match rule:
        case TieRule.INSTANT:
            return queue_time, uid
        case TieRule.SECOND:
            return queue_time - queue_time % _SECOND, uid
        case TieRule.JOB_NUMBER:
            return queue_time - queue_time % _SECOND, f"{_job_number(name)} {uid}"
        case TieRule.CHANCE:
            return _NO_INSTANT, uid


def tied_within(able: Capabilities, queue: str) -> str:
    """The queue, or set of queues, within which a job's tie counts.

    Returns:
        The queue, where the frontend has no order between jobs of one instant in two of them; CHANCE where it has none
        at all; else nothing.
    """
    if able.ties is TieRule.CHANCE:
        return CHANCE
    return "" if able.orders_across_queues else queue


def _job_number(name: str) -> str:
    """The numbers of a job and of its task, as text that sorts as they do."""
    found = _JOB_ID.match(name)
    if found is None:
        return _NO_NUMBER
    job, task = found.groups()
    return f"{int(job):010d} {_NO_TASK if task is None else int(task):010d}"


_FEW = 64
"""Largest number of jobs inserted one by one (5 µs each at 15,000); above, one sort is cheaper."""


class TieIndex:
    """Jobs in the order of their ties. Additions rest until somebody asks."""

    def __init__(self) -> None:
        self._sorted: list[TiedJob] = []
        self._by_uid: dict[str, Tie] = {}
        self._added: list[TiedJob] = []

    def __len__(self) -> int:
        return len(self._by_uid)

    def put(self, uid: str, tie: Tie) -> None:
        """Add the job, or give it another tie."""
        if self._by_uid.get(uid) == tie:
            return
        self.discard(uid)
        self._by_uid[uid] = tie
        self._added.append((tie, uid))

    def discard(self, uid: str) -> None:
        """Take the job out if it is in."""
        tie = self._by_uid.pop(uid, None)
        if tie is None:
            return
        at = bisect_left(self._sorted, (tie, uid))
        if at < len(self._sorted) and self._sorted[at] == (tie, uid):
            del self._sorted[at]
        else:
            self._added.remove((tie, uid))

    def in_order(self) -> Iterator[TiedJob]:
        """All jobs with their ties, the first one first."""
        self._settle()
        return iter(self._sorted)

    def _settle(self) -> None:
        if len(self._added) <= _FEW:
            for job in self._added:
                insort(self._sorted, job)
        else:
            self._sorted += self._added
            self._sorted.sort()
        self._added.clear()
