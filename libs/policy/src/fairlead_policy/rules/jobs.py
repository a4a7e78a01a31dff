"""A waiting job, as far as its order goes."""

from typing import TYPE_CHECKING

import msgspec

from fairlead_contracts.base.instants import Micros

if TYPE_CHECKING:
    # Commands that look at a policy alone would wait for all that a snapshot holds.
    from fairlead_contracts.messages.decisions import Position
    from fairlead_contracts.snapshot.types import SnapshotJob


class JobQueue(msgspec.Struct, frozen=True, order=True, gc=False):
    """A queue as an order sees it. Its jobs that cannot start are a queue of their own: nobody waits for them."""

    cluster: str
    name: str
    apart: bool = False
    """Whether it holds the jobs that cannot start as things are."""


class WaitingJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An eligible job that waits: the facts that its position depends on, and its names."""

    uid: str
    scope: str
    id: str
    tenant: str
    job_class: str
    """Class of the job, as granted."""
    submitted: Micros
    demand: dict[str, int]
    """Demand of the whole job by resource, base units."""
    queue: JobQueue
    override: float | None = None
    """A granted number in place of its class's weight, where classes are not strict."""

    @property
    def apart(self) -> bool:
        """Whether it cannot start as things are: then it counts nothing for its tenant's jobs behind it."""
        return self.queue.apart


type PositionedJob = WaitingJob | SnapshotJob | Position
"""A job, as far as its position depends on it, and repeats it."""


class QueueNumbers:
    """Numbers of a pool's queues, so that arrays can hold them. A queue keeps its number."""

    def __init__(self) -> None:
        self.queues: list[JobQueue] = []
        self.apart: list[int] = []
        """Numbers of the queues whose jobs cannot start."""
        self._numbers: dict[JobQueue, int] = {}

    def number(self, queue: JobQueue) -> int:
        """The queue's number."""
        found = self._numbers.get(queue)
        if found is None:
            found = self._numbers[queue] = len(self.queues)
            self.queues.append(queue)
            if queue.apart:
                self.apart.append(found)
        return found
