"""A contended pool in virtual time: tenants keep backlogs, slots come free one by one, an order says who starts.

`ByFormula` is that order by its definition, exact: it imports nothing that orders jobs, so that the core can be
held to it start for start (`contention_by_core`). One resource, its slots; job lengths follow a fixed pattern, so
nothing depends on chance.

Source of the rule: Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, with weights (section 4.3), shares counted
in entitlements, and linear aging: key = held / (slots * entitlement) + rate * submitted, lower goes first.
"""

import heapq
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from operator import itemgetter
from typing import NamedTuple, Protocol

from fairlead_contracts.base.instants import DAY, HOUR, Micros

ENDLESS: Micros = 10**6 * DAY
"""Run time of a job that does not end in any test."""


class ContendingJob(NamedTuple):
    """A job that waits or runs."""

    submitted: Micros
    uid: str
    tenant: str
    size: int
    """Number of slots that the job takes."""
    lasts: Micros | None
    """Run time of the job; None for the next length of the pool's pattern."""


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """Jobs that a tenant submits at an instant."""

    at: Micros = 0
    tenant: str
    jobs: int = 1
    size: int = 1
    lasts: Micros | None = None


class ContentionOrder(Protocol):
    """An order: who goes first of those that wait."""

    def wait(self, job: ContendingJob) -> None:
        """Adds a waiting job."""

    def start(self, job: ContendingJob) -> None:
        """Starts the waiting job."""

    def end(self, job: ContendingJob) -> None:
        """Ends the running job."""

    def in_order(self, now: Micros) -> Iterator[ContendingJob]:
        """The waiting jobs, the first to start first."""


class ByFormula:
    """The order by its definition: of the tenants' first jobs, the one of the smallest (key, submitted, uid) goes first.

    Args:
        entitlements: part of the pool of each tenant; they need not add up to 1.
        rate: parts that a microsecond of waiting is worth.
    """

    def __init__(self, slots: int, entitlements: Mapping[str, Fraction], rate: Fraction) -> None:
        parts = {tenant: 1 / (slots * part) for tenant, part in entitlements.items()}
        # Exact all the same, and several times as fast: each as an integer over a common denominator.
        common = lcm(rate.denominator, *(part.denominator for part in parts.values()))
        self._parts_a_slot = {tenant: int(part * common) for tenant, part in parts.items()}
        self._rate = int(rate * common)
        self._held: Counter[str] = Counter()
        self._queues: dict[str, list[ContendingJob]] = {tenant: [] for tenant in entitlements}

    def wait(self, job: ContendingJob) -> None:
        """Adds a waiting job to its tenant's own order: by submission, then by uid."""
        insort(self._queues[job.tenant], job)

    def start(self, job: ContendingJob) -> None:
        """Starts the waiting job: its slots count as its tenant's."""
        self._queues[job.tenant].remove(job)
        self._held[job.tenant] += job.size

    def end(self, job: ContendingJob) -> None:
        """Ends the running job: its slots count no more."""
        self._held[job.tenant] -= job.size

    def in_order(self, now: Micros) -> Iterator[ContendingJob]:
        """Progressive filling: whoever goes counts as having started."""
        del now  # without a cap time alone changes no order
        heads = [self._scored(queue[0], 0, 0) for queue in self._queues.values() if queue]
        if not heads:
            return
        yield min(heads)[1]  # who starts jobs one by one asks for no more
        counted = Counter(self._held)
        heapq.heapify(heads)
        while heads:
            _, job, number = heads[0]
            counted[job.tenant] += job.size
            queue = self._queues[job.tenant]
            if number + 1 < len(queue):
                ahead = counted[job.tenant] - self._held[job.tenant]
                heapq.heapreplace(heads, self._scored(queue[number + 1], number + 1, ahead))
            else:
                heapq.heappop(heads)
            if heads:
                yield heads[0][1]

    def _scored(self, job: ContendingJob, number: int, ahead: int) -> tuple[int, ContendingJob, int]:
        tag = (self._held[job.tenant] + ahead) * self._parts_a_slot[job.tenant]
        return tag + self._rate * job.submitted, job, number


def entitlements_of(weights: Mapping[str, int | Fraction]) -> dict[str, Fraction]:
    """Entitlements by tenant: each one's weight over the sum of the weights."""
    total = Fraction(sum(weights.values()))
    return {tenant: Fraction(weight) / total for tenant, weight in weights.items()}


@dataclass
class Course:
    """The course of a pool: which jobs started, and what ran and waited from when on."""

    slots: int
    starts: list[tuple[Micros, ContendingJob]] = field(default_factory=list)
    held: list[tuple[Micros, Mapping[str, int]]] = field(default_factory=list)
    """Slots by tenant, from each instant on."""
    waiting: list[Mapping[str, int]] = field(default_factory=list)
    """Number of waiting jobs by tenant, for each entry of `held`."""

    def share(self, tenant: str, begin: Micros, end: Micros) -> Fraction:
        """The tenant's mean part of the pool between two instants."""
        total = 0
        first, last = (bisect_right(self.held, instant, key=itemgetter(0)) for instant in (begin, end))
        during = self.held[max(0, first - 1) : last]
        ends = [at for at, _ in during[1:]] + [end]
        for (at, held), until in zip(during, ends, strict=True):
            total += held.get(tenant, 0) * (until - max(at, begin))
        return Fraction(total, (end - begin) * self.slots)

    def shares(self, tenants: Iterable[str], begin: Micros, end: Micros) -> dict[str, Fraction]:
        """The share of each of these tenants."""
        return {tenant: self.share(tenant, begin, end) for tenant in tenants}

    def waits(self, tenant: str, begin: Micros = 0) -> list[Micros]:
        """Waiting times of the tenant's jobs that started at an instant or later."""
        return [at - job.submitted for at, job in self.starts if job.tenant == tenant and at >= begin]


class Contention:
    """A pool that runs.

    Args:
        strict: whether a job that does not fit holds up those behind it.
    """

    def __init__(
        self,
        slots: int,
        order: ContentionOrder,
        *,
        lengths: Sequence[Micros] = (HOUR,),
        strict: bool = True,
    ) -> None:
        self.course = Course(slots)
        self.now: Micros = 0
        self._order = order
        self._lengths, self._strict = lengths, strict
        self._kept: dict[str, Arrival] = {}
        self._held: Counter[str] = Counter()
        self._free = slots
        self._waiting: Counter[str] = Counter()
        self._ends: list[tuple[Micros, ContendingJob]] = []
        self._count = 0

    def play(self, until: Micros, arrivals: Iterable[Arrival] = ()) -> Course:
        """Lets time go on until an instant; what arrives, and ends, at one instant is known before anybody starts."""
        self._start_all()
        coming = sorted(arrivals, key=lambda one: one.at, reverse=True)
        while (at := self._next(coming)) <= until:
            self.now = at
            while coming and coming[-1].at <= at:
                self.submit(coming.pop())
            while self._ends and self._ends[0][0] <= at:
                ended = heapq.heappop(self._ends)[1]
                self._held[ended.tenant] -= ended.size
                self._free += ended.size
                self._order.end(ended)
            self._start_all()
        self.now = until
        return self.course

    def keep(self, tenant: str, jobs: int, size: int = 1) -> None:
        """Keeps so many jobs of the tenant waiting from now on: it answers each start with a submission."""
        self._kept[tenant] = Arrival(tenant=tenant, jobs=jobs, size=size)
        self._top_up(tenant)

    def submit(self, arrival: Arrival) -> None:
        """Adds waiting jobs of this instant."""
        self._submit(arrival, arrival.jobs)

    def _submit(self, arrival: Arrival, jobs: int) -> None:
        for _ in range(jobs):
            self._count += 1
            self._order.wait(
                ContendingJob(self.now, f"{self._count:07d}", arrival.tenant, arrival.size, arrival.lasts)
            )
        self._waiting[arrival.tenant] += jobs

    def _next(self, coming: Sequence[Arrival]) -> Micros:
        ends = self._ends[0][0] if self._ends else ENDLESS
        return min(ends, max(coming[-1].at, self.now)) if coming else ends

    def _top_up(self, tenant: str) -> None:
        kept = self._kept.get(tenant)
        if kept is not None and kept.jobs > self._waiting[tenant]:
            self._submit(kept, kept.jobs - self._waiting[tenant])

    def _start_all(self) -> None:
        while self._start_one():
            pass
        self.course.held.append((self.now, dict(self._held)))
        self.course.waiting.append(dict(self._waiting))

    def _start_one(self) -> bool:
        free = self._free
        if not free:
            return False
        for job in self._order.in_order(self.now):
            if job.size <= free:
                self._start(job)
                return True
            if self._strict:
                return False
        return False

    def _start(self, job: ContendingJob) -> None:
        self._order.start(job)
        self._held[job.tenant] += job.size
        self._free -= job.size
        self._waiting[job.tenant] -= 1
        lasts = job.lasts
        if lasts is None:
            count = len(self.course.starts)
            lasts = self._lengths[count % len(self._lengths)]
            # The first jobs end one by one, and so do those that take their slots: no tide of ends for ever.
            if self.course.slots - self._free == count + job.size <= self.course.slots:
                lasts = lasts * (count + 1) // self.course.slots
        heapq.heappush(self._ends, (self.now + lasts, job))
        self.course.starts.append((self.now, job))
        self._top_up(job.tenant)
