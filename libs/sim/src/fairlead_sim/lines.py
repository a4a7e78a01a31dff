"""The line of waiting jobs of one queue: who is next, given what is free.

Two strategies, named after Kueue's ClusterQueue.queueingStrategy. `strict`: the head blocks until it fits.
`best-effort`: what does not fit is passed over. Both take levels, which may change while a job waits: an entry of a
heap is dead once its job no longer stands at that place, and is dropped when it comes to the top.
"""

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from fairlead_contracts.messages.state import Phase
from fairlead_sim.jobs import JobShapeKey, SimJob, shape_of

type QueueStrategy = Literal["best-effort", "strict"]

_SPARE = 64
"""Dead entries that a heap may hold beside as many as it has live ones, before it is built anew."""


class LevelledLine:
    """Waiting jobs by place, with levels that may change."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str, SimJob]] = []
        self.live = 0

    def stand(self, job: SimJob) -> None:
        """Puts the job at its present place; called again after its level changed."""
        heapq.heappush(self._heap, (*job.place, job))
        if len(self._heap) > 2 * self.live + _SPARE:
            standing = {entry[3].uid: entry[3] for entry in self._heap if entry[3].phase is Phase.WAITING}
            self._heap = [(*one.place, one) for one in standing.values()]
            heapq.heapify(self._heap)

    def head(self) -> SimJob | None:
        """The job that is next, or None."""
        heap = self._heap
        while heap:
            level, _, _, job = heap[0]
            if job.phase is Phase.WAITING and -level == job.level:
                return job
            heapq.heappop(heap)
        return None


def fits(demand: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Whether the demand fits into what is free. A resource that the pool does not have has nothing free."""
    return all(not amount or amount <= free.get(resource, 0) for resource, amount in demand.items())


class StrictLine:
    """The waiting line of a queue in which only the head may start."""

    def __init__(self) -> None:
        self._lane = LevelledLine()

    def join(self, job: SimJob) -> None:
        """Adds a job that begins to wait."""
        self._lane.live += 1
        self._lane.stand(job)

    def relevel(self, job: SimJob) -> None:
        """Moves a waiting job whose level changed."""
        self._lane.stand(job)

    def leave(self, job: SimJob) -> None:
        """Removes a job that no longer waits: its phase has changed already."""
        del job
        self._lane.live -= 1

    def lanes(self, free: Mapping[str, int], *, grown: bool) -> Iterator[LevelledLine]:
        """Lanes whose head may start. `grown`: more is free than when this was asked last.

        A changed level or a withdrawn head may have put another job first, so always the lane.
        """
        del free, grown
        yield self._lane

    def hopeless(self, free: Mapping[str, int]) -> bool:
        """Whether it is plain at a glance that nobody fits."""
        del free
        return not self._lane.live


class BestEffortLine:
    """A lane for each shape of demand: jobs of one shape fit alike, so only heads need a look.

    Shapes are also sorted by each resource: a look goes only to those that fit by the resource that lets the fewest
    pass. In a full pool these are few. An event that sets free much at once costs time in the number of shapes
    that fit by then: a third of a millisecond at 500, but 50 ms at 15,000 different ones.
    """

    def __init__(self, resources: Iterable[str]) -> None:
        """Make an empty line. `resources` are the pool's; a job that asks for another one never starts."""
        self._lanes: dict[JobShapeKey, LevelledLine] = {}
        self._fresh: set[JobShapeKey] = set()
        self._sorted: dict[str, list[tuple[int, JobShapeKey]]] = {resource: [] for resource in resources}

    def join(self, job: SimJob) -> None:
        """See `StrictLine`."""
        shape = shape_of(job.demand)
        lane = self._lanes.get(shape)
        if lane is None:
            lane = self._open(shape)
        self._fresh.add(shape)
        lane.live += 1
        lane.stand(job)

    def relevel(self, job: SimJob) -> None:
        """See `StrictLine`."""
        self._lanes[shape_of(job.demand)].stand(job)

    def leave(self, job: SimJob) -> None:
        """See `StrictLine`."""
        shape = shape_of(job.demand)
        self._lanes[shape].live -= 1
        if not self._lanes[shape].live:
            self._close(shape)

    def lanes(self, free: Mapping[str, int], *, grown: bool) -> Iterator[LevelledLine]:
        """See `StrictLine`. Whoever did not fit before still does not, unless more is free: then only new shapes count."""
        shapes = self._likely(free) if grown else [shape for shape in self._fresh if shape in self._lanes]
        self._fresh.clear()
        for shape in shapes:
            yield self._lanes[shape]

    def hopeless(self, free: Mapping[str, int]) -> bool:
        """See `StrictLine`."""
        return any(
            not amounts or amounts[0][0] > max(free.get(name, 0), 0) for name, amounts in self._sorted.items()
        )

    def _likely(self, free: Mapping[str, int]) -> list[JobShapeKey]:
        """The shapes that fit by one resource at least: the one that leaves the fewest."""
        best: list[tuple[int, JobShapeKey]] = []
        fewest = None
        for resource, amounts in self._sorted.items():
            count = bisect_right(amounts, max(free.get(resource, 0), 0), key=lambda entry: entry[0])
            if fewest is None or count < fewest:
                best, fewest = amounts, count
        return [shape for _, shape in best[: fewest or 0]]

    def _open(self, shape: JobShapeKey) -> LevelledLine:
        lane = self._lanes[shape] = LevelledLine()
        asked = dict(shape)
        if asked.keys() <= self._sorted.keys():
            for resource, amounts in self._sorted.items():
                insort(amounts, (asked.get(resource, 0), shape))
        return lane

    def _close(self, shape: JobShapeKey) -> None:
        del self._lanes[shape]
        asked = dict(shape)
        if asked.keys() <= self._sorted.keys():
            for resource, amounts in self._sorted.items():
                del amounts[bisect_left(amounts, (asked.get(resource, 0), shape))]


type QueueLine = StrictLine | BestEffortLine
"""The waiting jobs of one queue."""


def line_of(strategy: QueueStrategy, resources: Iterable[str]) -> QueueLine:
    """An empty line of that strategy, in a pool with these resources."""
    return StrictLine() if strategy == "strict" else BestEffortLine(resources)
