"""Jobs of top-level tenants side by side as columns, compared with one position at once.

Floats tell nearly all of them apart from it; those that are too close for floats are compared exactly.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import (
    FLOAT_DOUBT,
    Flags,
    Ints,
    aged_at,
    join,
    unaged,
)
from fairlead_policy.exact.scoring import JobColumns
from fairlead_policy.order.merging import SortKey, sort_key_at
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import LARGEST, PoolRules, counted_amount
from fairlead_policy.tenants.service_order import ServiceOrder

_TINY = 1e-290


class SideBySide:
    """The jobs of top-level tenants' sequences at one instant, as they stand to one position.

    Args:
        sequences: the tenants' whole sequences, each with jobs.
        bar: the sort key of the position.
    """

    def __init__(
        self, sequences: Sequence[ServiceOrder], bar: SortKey, rules: PoolRules, now: Micros
    ) -> None:
        self.sequences = sequences
        self.now = now
        self.bar = bar
        lengths = [len(sequence) for sequence in sequences]
        self._starts = np.cumsum([0, *lengths])
        self._part = np.repeat(np.arange(len(sequences)), lengths)
        rows = join([sequence.rows for sequence in sequences])
        self._rank = rows.rank
        aged = aged_at(rows.submitted, rules, now)
        rate, target = float(rules.rate), _float(bar[1] - now * rules.rate)
        waiting = (aged - now) * rate
        with np.errstate(over="ignore", invalid="ignore"):
            tags = unaged(rows, sequences[0].measure.multipliers) if sequences else rows.tag
            self._lead = tags + waiting - target
            self._doubt = FLOAT_DOUBT * (tags + np.abs(waiting) + abs(target)) + _TINY
        self.ahead = self._count()
        """Number of jobs of each sequence that stand before the position: tuples ascend along a sequence."""
        at = np.arange(len(self._part)) - self._starts[self._part]
        self._before: Flags = at < self.ahead[self._part]

    def _count(self) -> Ints:
        same = self._rank == self.bar[0]
        sure = (self._rank < self.bar[0]) | (same & (self._lead < -self._doubt))
        near = same & ~(np.abs(self._lead) > self._doubt)
        counts: Ints = np.bincount(self._part[sure], minlength=len(self.sequences))
        doubtful = np.bincount(self._part[near], minlength=len(self.sequences))
        for number in np.flatnonzero(doubtful).tolist():
            # Tuples ascend along a sequence, so those in doubt stand side by side.
            first = int(counts[number])
            among = range(first, first + int(doubtful[number]))
            key = partial(sort_key_at, self.sequences[number], now=self.now)
            counts[number] += bisect_left(among, self.bar, key=key)
        return counts

    def key_of(self, sequence: int, index: int) -> SortKey:
        """The sort key of a job, exact."""
        return sort_key_at(self.sequences[sequence], index, self.now)

    def last_before(self, count: int) -> list[tuple[int, int]]:
        """The (sequence, index) of few jobs among which the last `count` before the position are for certain."""
        return self._first(self._before, count, sign=-1)

    def next_behind(self, skipped: int | None, count: int) -> list[tuple[int, int]]:
        """The (sequence, index) of few jobs among which the first `count` behind the position are, its own job apart.

        Args:
            skipped: the sequence that the position is the next job of; None for another shard's.
        """
        behind = ~self._before
        if skipped is not None:
            behind[self._starts[skipped] + self.ahead[skipped]] = False
        return self._first(behind, count, sign=1)

    def foremost(self, without: int | None) -> list[tuple[int, int]]:
        """The (sequence, index) of few jobs of other sequences, the first of the position's class among them."""
        chosen = self._before & (self._rank == self.bar[0])
        if without is not None:
            chosen &= self._part != without
        return self._first(chosen, 1, sign=1)

    def higher(self, without: int | None) -> int:
        """The number of jobs of other sequences that stand before the position by their class."""
        chosen = self._rank < self.bar[0]
        if without is not None:
            chosen &= self._part != without
        return int(chosen.sum())

    def asked(self, rules: PoolRules) -> Counter[str]:
        """The demand of all jobs before the position that can start at all, by resource."""
        if not self.sequences:
            return Counter()
        counted = zip(self.sequences, self.ahead.tolist(), strict=True)
        # What jobs ask for of a resource that does not count is in no column, and has to be read from them.
        if not all(map(rules.counts, rules.resource_weights)):
            before = (sequence.job_at(at) for sequence, ahead in counted for at in range(ahead))
            return asked_in_turn(before)
        columns = JobColumns.joined([sequence.first_columns(ahead) for sequence, ahead in counted])
        return asked_in_columns(columns, rules)

    def _first(self, chosen: Flags, count: int, *, sign: int) -> list[tuple[int, int]]:
        """The first of some rows, or the last by a negative sign; with those that floats cannot tell from them."""
        found: list[int] = []
        left = np.flatnonzero(chosen)
        while len(left) and len(found) < count:
            ranks = sign * self._rank[left]
            among, left = left[ranks == ranks.min()], left[ranks > ranks.min()]
            wanted = count - len(found)
            if len(among) > wanted:
                lead = sign * self._lead[among]
                limit = np.partition(lead, wanted - 1)[wanted - 1]
                close = lead - self._doubt[among] <= limit + self._doubt[among].max()
                among = among[close]
            found += among.tolist()
        return [(int(self._part[row]), int(row - self._starts[self._part[row]])) for row in found]


def _float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def asked_in_columns(jobs: JobColumns, rules: PoolRules) -> Counter[str]:
    """The demand of jobs for each resource that counts."""
    return Counter(dict(zip(rules.resources, map(_sum, jobs.demand), strict=True)))


def _sum(column: Ints) -> int:
    """The exact sum, which 64 bits may not hold."""
    if not len(column) or int(column.max()) <= LARGEST // len(column):
        return int(column.sum())
    return sum(column.tolist())


def asked_in_turn(jobs: Iterable[WaitingJob]) -> Counter[str]:
    """The demand of jobs for every resource, without jobs that cannot start as things are."""
    asked: Counter[str] = Counter()
    for job in jobs:
        if not job.apart:
            for name, amount in job.demand.items():
                asked[name] += counted_amount(amount)
    return asked
