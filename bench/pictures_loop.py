"""A closed loop for the pictures of docs/policy.md: jobs are submitted, ordered by the real core, started, ended.

One pool of cards, one card a job, no randomness: run times are uneven by a fixed pattern, so that cards come free one
by one, as in life.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from operator import itemgetter

from fairlead_contracts.instants import HOUR, SECOND, Micros
from fairlead_policy import PoolOrder, PoolRules, WaitingJob

CARDS = 24
MINUTE = 60 * SECOND
_PATTERN = (18, 27, 21, 33, 24, 30, 15, 36)
"""Minutes that jobs run, one after the other."""
_QUEUE = ("cluster", "queue")


@dataclass(frozen=True)
class Submission:
    """Jobs that a tenant submits at an instant."""

    at: Micros
    tenant: str
    jobs: int


@dataclass
class Course:
    """What happened."""

    held: list[tuple[Micros, Mapping[str, int]]] = field(default_factory=list)
    """Cards by tenant, from each instant on."""
    waits: dict[str, list[Micros]] = field(default_factory=dict)
    """By tenant, how long each job waited that started."""
    backlogged: list[bool] = field(default_factory=list)
    """Beside `held`: whether all tenants had jobs waiting."""

    def share_at(self, tenant: str, instant: Micros, span: Micros) -> float:
        """The tenant's mean part of the pool over the `span` up to an instant."""
        total, begin = 0, instant - span
        ends = [at for at, _ in self.held[1:]] + [instant]
        for (at, held), end in zip(self.held, ends, strict=True):
            total += held.get(tenant, 0) * max(0, min(end, instant) - max(at, begin))
        return total / span / CARDS

    def mean_share(self, tenant: str) -> float:
        """Its mean part of the pool while all tenants had jobs waiting."""
        total = length = 0
        for (at, held), (end, _), all_wait in zip(self.held, self.held[1:], self.backlogged, strict=False):
            if all_wait:
                total += held.get(tenant, 0) * (end - at)
                length += end - at
        return total / length / CARDS if length else 0.0


def rules(weights: Mapping[str, int], *, share_per_hour: Fraction, cap_hours: int | None = 336) -> PoolRules:
    """One pool of cards."""
    return PoolRules(
        capacity={"gpu": CARDS},
        classes=("normal",),
        rate=share_per_hour / HOUR,
        cap=None if cap_hours is None else cap_hours * HOUR,
        entitlements={tenant: Fraction(weight) for tenant, weight in weights.items()},
    )


def run(
    scored_by: PoolRules,
    submissions: Iterable[Submission],
    until: Micros,
    changes: Sequence[tuple[Micros, Mapping[str, int]]] = (),
) -> Course:
    """Plays submissions until an instant; `changes` are new weights, each from its instant on."""
    loop = _Loop(scored_by)
    events = [(one.at, one) for one in submissions] + [(at, weights) for at, weights in changes]
    for at, together in groupby(sorted(events, key=itemgetter(0)), key=itemgetter(0)):
        loop.advance(at)
        for _, event in together:
            if isinstance(event, Submission):
                loop.submit(event)
            else:
                loop.reweigh(event)
        loop.start()
    loop.advance(until)
    return loop.course


class _Loop:
    def __init__(self, scored_by: PoolRules) -> None:
        self.course = Course(waits={tenant: [] for tenant in scored_by.entitlements})
        self._order = PoolOrder(scored_by)
        self._now: Micros = 0
        self._held: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._ends: list[tuple[Micros, str, str]] = []
        self._count = 0

    def submit(self, one: Submission) -> None:
        for _ in range(one.jobs):
            self._count += 1
            uid = f"{self._count:06d}"
            self._order.wait(
                WaitingJob(
                    uid=uid,
                    scope=one.tenant,
                    id=uid,
                    tenant=one.tenant,
                    urgency="normal",
                    submitted=one.at,
                    demand={"gpu": 1},
                    queue=_QUEUE,
                )
            )
        self._waiting[one.tenant] += one.jobs

    def reweigh(self, weights: Mapping[str, int]) -> None:
        exact = {tenant: Fraction(weight) for tenant, weight in weights.items()}
        self._order.set_rules(replace(self._order.rules, entitlements=exact))

    def start(self) -> None:
        """Starts the first of the order while a card is free."""
        while self._held.total() < CARDS and self._waiting.total():
            place = self._order.front(self._now, 1)[_QUEUE][0]
            self._order.run(place.uid, place.tenant, place.demand)
            self._held[place.tenant] += 1
            self._waiting[place.tenant] -= 1
            self.course.waits[place.tenant].append(self._now - place.submitted)
            lasts = _PATTERN[int(place.uid) % len(_PATTERN)] * MINUTE
            heapq.heappush(self._ends, (self._now + lasts, place.uid, place.tenant))
        self.course.held.append((self._now, dict(self._held)))
        self.course.backlogged.append(all(self._waiting[tenant] for tenant in self.course.waits))

    def advance(self, until: Micros) -> None:
        """Lets jobs end, and others start, up to an instant."""
        while self._ends and self._ends[0][0] <= until:
            self._now, uid, tenant = heapq.heappop(self._ends)
            self._order.forget(uid)
            self._held[tenant] -= 1
            self.start()
        self._now = until
