"""A pool of a simulated cluster: its capacity, what is free, and which waiting jobs start."""

import heapq
from collections.abc import Iterator, Mapping

from fairlead_sim.jobs import SimJob
from fairlead_sim.lines import LevelledLine, QueueLine, fits


class SimNode:
    """A node; it is always ready."""

    def __init__(self, name: str, allocatable: dict[str, int], labels: dict[str, str]) -> None:
        self.name = name
        self.allocatable = allocatable
        self.labels = labels
        self.rev = 0


class SimPool:
    """Capacity that the jobs of some queues compete for.

    A job is admitted when its demand fits into the pool's free quota, as Kueue admits. Nodes are not packed: whether
    the pods of a gang find room on single nodes is not modelled.
    """

    def __init__(self, name: str, capacity: Mapping[str, int]) -> None:
        self.name = name
        self.rev = 0
        self.lines: list[QueueLine] = []
        self.capacity = dict(capacity)
        self.free = dict(capacity)
        """Free amounts; negative where a cluster was restarted with less than runs on it."""
        self._grown = True

    def take(self, demand: Mapping[str, int]) -> None:
        """Takes the capacity of a job that runs from now on."""
        for resource, amount in demand.items():
            self.free[resource] = self.free.get(resource, 0) - amount

    def give_back(self, demand: Mapping[str, int]) -> None:
        """Gives back the capacity of a job that runs no more."""
        for resource, amount in demand.items():
            self.free[resource] = self.free.get(resource, 0) + amount
        self._grown = True

    def startable(self) -> Iterator[SimJob]:
        """The waiting jobs that start now, one after another.

        The caller starts each (its phase changes, its demand is taken) before it asks for the next.
        """
        heads: list[tuple[tuple[int, int, str], SimJob, LevelledLine]] = []
        for line in self.lines:
            for lane in line.lanes(self.free, grown=self._grown):
                self._offer(heads, lane)
        self._grown = False
        while heads:
            _, job, lane = heapq.heappop(heads)
            # Others were started since: what fitted may fit no longer, and then nothing of this lane does.
            if fits(job.demand, self.free):
                yield job
                self._offer(heads, lane)
                if all(line.hopeless(self.free) for line in self.lines):
                    return

    def _offer(
        self, heads: list[tuple[tuple[int, int, str], SimJob, LevelledLine]], lane: LevelledLine
    ) -> None:
        job = lane.head()
        if job is not None and fits(job.demand, self.free):
            heapq.heappush(heads, (job.place, job, lane))
