"""Start tags of one tenant's jobs: one cumulative sum along the tenant's own order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from fairlead_contracts.messages.decisions import UnboundedBy
from fairlead_policy.exact.multipliers import UnitShares
from fairlead_policy.exact.ranking import Flags, Floats, Ints, Multipliers, Rows, join, ratio
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import FULL, LARGEST, NOTHING, PoolRules, override_of

_NEAR = 2.0**-49
_TINY = 1e-290


class Grades:
    """What the class does to a key where classes are not strict: numbers of the weights that jobs have.

    A grade is the number of a weight among `multipliers`; 0 where classes are strict.
    """

    def __init__(self, rules: PoolRules, multipliers: Multipliers) -> None:
        self._rules = rules
        self._multipliers = multipliers
        self._known: dict[tuple[str, float | None], int] = {}

    def grade(self, job: WaitingJob) -> int:
        """The job's grade."""
        if self._rules.strict:
            return 0
        found = self._known.get((job.urgency, job.override))
        if found is None:
            weight = self._rules.class_weight(job.urgency, override_of(job.override))
            found = self._known[job.urgency, job.override] = self._multipliers.number(weight)
        return found

    def divided(self, exact: Sequence[Fraction], grades: Ints) -> tuple[Ints, Floats]:
        """For each multiplier (columns) and grade (rows), the number and the float of multiplier / weight."""
        distinct, where = np.unique(grades, return_inverse=True)
        weights = [self._multipliers.exact[grade] or FULL for grade in distinct.tolist()]
        table = [[multiplier / weight for multiplier in exact] for weight in weights]
        numbers = np.array([[self._multipliers.number(one) for one in row] for row in table], np.int64)
        floats = np.array([[ratio(one.numerator, one.denominator) for one in row] for row in table])
        return numbers[where], floats[where]


class Measure:
    """How the pool measures use: the resources that count, and which of them dominates. Shared by its tenants.

    What a tenant is entitled to divides all its resources alike, so the dominant resource does not depend on it.
    """

    def __init__(self, rules: PoolRules) -> None:
        self.rules = rules
        self.multipliers = Multipliers()
        self.grades = Grades(rules, self.multipliers)
        self.units = UnitShares(rules)
        self.unit_floats = np.array([float(share) for share in rules.unit_shares], np.float64)
        self.denominator = lcm(*(share.denominator for share in rules.unit_shares))
        self.numerators = [int(share * self.denominator) for share in rules.unit_shares]
        """Of the unit shares, over one denominator."""
        divisor = gcd(*self.numerators) or 1
        self._scales = [scale // divisor for scale in self.numerators]

    @cached_property
    def uncapped(self) -> "Measure":
        """The same without a cap on aging."""
        return self._otherwise(replace(self.rules, cap=None))

    @cached_property
    def ageless(self) -> "Measure":
        """The same without aging."""
        return self._otherwise(replace(self.rules, cap=None, rate=NOTHING))

    def _otherwise(self, rules: PoolRules) -> "Measure":
        """The same numbers under rules that age otherwise."""
        other = Measure(rules)
        other.multipliers, other.grades = self.multipliers, self.grades
        return other

    def dominant(self, use: Ints) -> Ints:
        """The position of the dominant resource of each row of (jobs, resources); the first of equal ones."""
        return self.dominant_of(use.T)

    def dominant_of(self, use: Ints) -> Ints:
        """The same of (resources, jobs): resource after resource, as that is how they lie in memory."""
        jobs = use.shape[1]
        best = np.zeros(jobs, np.int64)
        if len(use) <= 1:
            return best
        top, second = use[0] * self.unit_floats[0], np.zeros(jobs)
        for position in range(1, len(use)):
            shares = use[position] * self.unit_floats[position]
            best[shares > top] = position
            np.maximum(second, np.minimum(shares, top), out=second)
            np.maximum(top, shares, out=top)
        near = second >= top * (1 - _NEAR) - _TINY
        if near.any():
            best[near] = self._exactly_dominant(use[:, near].T)
        return best

    def _exactly_dominant(self, use: Ints) -> Ints:
        """As integers over the shares' common denominator; of 64 bits where they fit."""
        # A scale counts by itself, too: of what nobody uses it may still be larger than 64 bits hold.
        most = (max(int(column.max()), 1) for column in use.T)
        largest = max(amount * scale for amount, scale in zip(most, self._scales, strict=True))
        kind = np.int64 if largest <= LARGEST else np.object_
        exact = use.astype(kind) * np.array(self._scales, kind)
        position: Ints = exact.argmax(axis=1)
        return position


@dataclass(frozen=True, slots=True)
class Scores:
    """The first jobs of one tenant in its own order, scored."""

    rows: Rows
    dominant: Ints
    """Position of the dominant resource in the pool's resources."""
    use: Ints
    """Of the dominant resource: the tenant's use and its jobs before this one, base units."""
    lacking: Flags
    """Whether that use takes in a resource of which the pool has none."""

    exact: tuple[Fraction | None, ...] | None = None
    """The tags, where they are not made from `use` alone."""

    @property
    def finite(self) -> Flags:
        """Whether the shares are, and nothing in them is of a resource that the pool has none of."""
        found: Flags = (self.rows.rank & 1 == 0) & ~self.lacking
        return found

    def share_at(self, row: int) -> str:
        """The exact tag as a fraction; empty where it is made from `use` alone."""
        exact = None if self.exact is None else self.exact[row]
        return "" if exact is None else str(exact)

    def first(self, count: int) -> "Scores":
        """Those of the first jobs."""
        if len(self.rows) == count:
            return self
        return self.take(slice(count))

    def take(self, rows: Ints | slice) -> "Scores":
        """Those of some jobs."""
        exact = self.exact
        if exact is not None:
            exact = exact[rows] if isinstance(rows, slice) else tuple(exact[row] for row in rows.tolist())
        return Scores(self.rows.take(rows), self.dominant[rows], self.use[rows], self.lacking[rows], exact)


def join_scores(parts: Sequence[Scores]) -> Scores:
    """The scores of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    empty = np.empty(0, np.int64)
    exact = None
    if any(part.exact is not None for part in parts):
        exact = tuple(chain.from_iterable(part.exact or (None,) * len(part.use) for part in parts))
    return Scores(
        join([part.rows for part in parts]),
        np.concatenate([empty, *(part.dominant for part in parts)]),
        np.concatenate([empty, *(part.use for part in parts)]),
        np.concatenate([np.empty(0, np.bool_), *(part.lacking for part in parts)]),
        exact,
    )


def unbounded_by(scores: Scores, row: int, entitled: Fraction) -> UnboundedBy | None:
    """What makes the tag of a tenant of this entitlement infinite before a row of its sequence; None where it is finite."""
    if not scores.rows.rank.item(row) & 1:
        return None
    if not entitled:
        return "weight"
    if not scores.lacking[row]:
        return "beyond"
    return "held" if scores.lacking[0] else "asked"


class Facing(NamedTuple):
    """What of jobs counts beside their tenant's use: columns of equal length."""

    rank: Ints
    """Twice the class position, plus one where the job is blocked."""
    submitted: Ints
    """Microseconds."""
    grade: Ints
    """Of the job's class."""


class Scale:
    """One tenant's measure: the pool's, divided by what the tenant is entitled to."""

    def __init__(self, measure: Measure, entitled: Fraction) -> None:
        self.measure = measure
        self.unbounded = entitled == 0
        self.exact = [share / entitled for share in measure.rules.unit_shares] if entitled else []
        self._numbers = np.array([measure.multipliers.number(exact) for exact in self.exact], np.int64)
        self._floats = np.array([ratio(m.numerator, m.denominator) for m in self.exact], np.float64)

    def score(self, jobs: Facing, before: Ints, beyond: Flags, lacking: Flags) -> Scores:
        """Scores jobs.

        Args:
            jobs: in the order in which their tenant serves them.
            before: use of each resource before each job starts, (jobs, resources), base units.
            beyond: whether that use is larger than can be counted, (jobs,).
            lacking: whether it takes in a resource of which the pool has none, (jobs,).
        """
        dominant = use = np.zeros(len(lacking), np.int64)
        if len(self.measure.unit_floats):
            dominant = self.measure.dominant(before)
            use = before[np.arange(len(dominant)), dominant]
        # An infinite share is a flag, never a number in a sum: such jobs go by class and submit alone.
        infinite: Flags = beyond | lacking
        if self.unbounded:
            infinite = np.ones(len(lacking), np.bool_)
        counted = np.where(infinite, 0, use)
        multiplier, tag = self._tags(counted, dominant, jobs.grade)
        offset = jobs.grade if self.measure.rules.class_mode == "additive" else None
        rows = Rows(jobs.rank * 2 + infinite, counted, multiplier, tag, jobs.submitted, offset)
        return Scores(rows, dominant, use, lacking)

    def _tags(self, counted: Ints, dominant: Ints, grade: Ints) -> tuple[Ints, Floats]:
        """What the dominant resource's use adds to the key: number of the multiplier, and the product."""
        if self.unbounded or not len(self._numbers):
            return np.zeros(len(counted), np.int64), np.zeros(len(counted), np.float64)
        if self.measure.rules.class_mode == "multiplicative":
            numbers, floats = self.measure.grades.divided(self.exact, grade)
            each = np.arange(len(counted))
            number, unit = numbers[each, dominant], floats[each, dominant]
        else:
            number, unit = self._numbers[dominant], self._floats[dominant]
        with np.errstate(over="ignore"):
            return np.where(counted > 0, number, 0), counted * unit


def sums_before(demand: Ints, use: list[int], bound: int) -> tuple[Ints, Flags]:
    """Exclusive cumulative sums along a tenant's jobs, and whether each went beyond what can be counted.

    Args:
        demand: (jobs, resources), base units.
        use: what runs, by resource.
        bound: no sum is larger than this.
    """
    if bound <= LARGEST:
        sums = np.empty_like(demand)
        if len(sums):
            sums[0] = use
            np.cumsum(demand[:-1], axis=0, out=sums[1:])
            sums[1:] += sums[0]
        return sums, np.zeros(len(demand), np.bool_)
    large = np.cumsum(np.vstack((np.array([use], np.object_), demand[:-1].astype(np.object_))), axis=0)
    over: Flags = (large > LARGEST).any(axis=1)
    return np.minimum(large, LARGEST).astype(np.int64), over


def lacking_of(demand: Mapping[str, int], rules: PoolRules) -> str | None:
    """The first resource by name that is asked for and that the pool has none of."""
    if demand.keys() <= rules.unit_share_by_name.keys():
        return None  # nearly always
    return min((name for name, amount in demand.items() if amount > 0 and rules.lacks(name)), default=None)
