"""A whole flat pool put in order at once: from columns of numbers to ranks, with no object a job or a tenant.

What a `PoolOrder` does tenant queue by tenant queue is done here for all tenants in one pass: one sort by (tenant, class, submitted, uid),
one cumulative sum a resource, one sort by the tuple. For pools with strict classes and no tree; elsewhere, and where a
sum is larger than 64 bits count, `PoolOrder` serves. Both give the same order to the last tie.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Flags, Floats, Ints, Ranking, Rows, ratio
from fairlead_policy.exact.scoring import Measure
from fairlead_policy.rules.pool_rules import LARGEST, NOTHING, PoolRules

_KEY_BITS = 63
_SURELY = 1 - 2.0**-30
"""Sums of floats that are so far from a bound are on their side of it exactly: no more than 2^22 roundings of 2^-53."""


@dataclass(frozen=True, slots=True)
class PoolColumns:
    """The waiting jobs of one pool, as equal columns in any order."""

    tenant: Ints
    """Number of the job's tenant among the holdings."""
    urgency: Ints
    """Position of the class; one more than the last for a class that the policy does not know."""
    submitted: Ints
    """Microseconds, within what rules.FARTHEST allows."""
    demand: Ints
    """(resources, jobs), base units between 0 and rules.LARGEST; the resources are those of the rules."""
    lacking: Flags | None = None
    """Whether the job asks for a resource of which the pool has none; None where no job does."""

    def __len__(self) -> int:
        return len(self.tenant)


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the tenants of the jobs have before any of these starts, tenant by tenant."""

    entitlements: Sequence[Fraction]
    use: Ints
    """(resources, tenants), base units: what runs, and past use."""
    lacking: Flags
    """Whether that takes in a resource of which the pool has none."""


class TagMultipliers:
    """`v_r / c_r / e` by number, exact where somebody asks. Number 0 is zero, as everywhere.

    Args:
        units: `v_r / c_r` of each resource.
        entitlements: distinct ones; one of 0 has no multipliers.
    """

    def __init__(self, units: Sequence[Fraction], entitlements: Sequence[Fraction]) -> None:
        self.units = units
        self.entitlements = entitlements
        self.exact = _Exact(self)

    def term(self, number: int) -> tuple[int, int]:
        """Numerator and denominator, in lowest terms."""
        if not number:
            return 0, 1
        at, resource = divmod(number - 1, len(self.units))
        unit, part = self.units[resource], self.entitlements[at]
        over, under = unit.numerator * part.denominator, unit.denominator * part.numerator
        divisor = gcd(over, under)
        return over // divisor, under // divisor

    def floats(self) -> Floats:
        """All of them, each the float nearest to it; 0 for those of an entitlement of 0."""
        found = [0.0]
        for part in self.entitlements:
            over, under = part.denominator, part.numerator
            found += [
                ratio(unit.numerator * over, unit.denominator * under) if under else 0.0
                for unit in self.units
            ]
        return np.array(found)


class _Exact:
    """The multipliers as fractions, made when asked for."""

    def __init__(self, multipliers: TagMultipliers) -> None:
        self._multipliers = multipliers

    def __getitem__(self, number: int) -> Fraction:
        return Fraction(*self._multipliers.term(number))

    def __iter__(self) -> Iterator[Fraction]:
        return map(
            self.__getitem__, range(1 + len(self._multipliers.units) * len(self._multipliers.entitlements))
        )


@dataclass(frozen=True)
class BatchOrder:
    """A pool in order. Its arrays but `order` go by the jobs' line: tenant by tenant, in the tenants' own orders."""

    line: Ints
    """Numbers of the jobs."""
    order: Ints
    """Positions in the line, first job first."""
    rows: Rows
    dominant: Ints
    """Position of the dominant resource in the pool's resources."""
    use: Ints
    """Of it: what the tenant has and asks for before the job, base units; counted also where the share is infinite."""
    lacking: Flags
    """Whether that takes in a resource of which the pool has none."""
    multipliers: TagMultipliers

    @cached_property
    def jobs(self) -> Ints:
        """The jobs' numbers in order."""
        return self.line[self.order]

    @cached_property
    def ranks(self) -> Ints:
        """Each job's rank, from 0."""
        ranks = np.empty_like(self.order)
        ranks[self.jobs] = np.arange(len(ranks))
        return ranks


def can_order_batch(rules: PoolRules) -> bool:
    """Whether pools of such rules may be put in order at once."""
    return rules.strict and not rules.parents and not rules.rescaled


def order_batch(
    columns: PoolColumns, holdings: Holdings, measure: Measure, now: Micros, uid_of: Callable[[int], str]
) -> BatchOrder | None:
    """The pool in order; None where some tenant's sums may be larger than can be counted.

    Args:
        columns: of all waiting jobs.
        holdings: of their tenants.
        measure: of the pool.
        now: what the aging cap is measured from.
        uid_of: the uid of a job by its number; asked only where it decides.
    """
    if not can_order_batch(measure.rules):
        return None
    line = _line(columns, len(holdings.entitlements), uid_of)
    tenant = columns.tenant[line]
    starts = _starts(tenant)
    before = _sums(columns.demand, holdings.use, line, tenant, starts)
    if before is None:
        return None
    lacking = _lacks(columns, holdings, line, tenant, starts)
    dominant = measure.dominant_of(before)
    use = _picked(before, dominant)
    del before
    rank = columns.urgency[line] * 4
    rows, multipliers = _rows(
        holdings, measure, _Line(tenant, rank, columns.submitted[line]), (dominant, use, lacking)
    )
    ranking = Ranking(rows, measure.rules, multipliers, now)
    order = ranking.order(lambda at: (uid_of(line.item(at)), 0))
    return BatchOrder(line, order, rows, dominant, use, lacking, multipliers)


@dataclass(frozen=True, slots=True)
class _Line:
    tenant: Ints
    rank: Ints
    submitted: Ints


def _line(columns: PoolColumns, tenants: int, uid_of: Callable[[int], str]) -> Ints:
    """The jobs by (tenant, class, submitted, uid)."""
    count = len(columns)
    if not count:
        return np.empty(0, np.int64)
    classes = int(columns.urgency.max()) + 1
    first = int(columns.submitted.min())
    span = (int(columns.submitted.max()) - first).bit_length()
    if span + (tenants * classes).bit_length() <= _KEY_BITS:
        packed = (columns.tenant * classes + columns.urgency << span) + (columns.submitted - first)
        line: Ints = np.argsort(packed)
        ordered = packed[line]
        same = ordered[1:] == ordered[:-1]
    else:
        line = np.lexsort((columns.submitted, columns.urgency, columns.tenant))
        same = np.ones(count - 1, np.bool_)
        for column in (columns.tenant, columns.urgency, columns.submitted):
            same &= column[line[1:]] == column[line[:-1]]
    if same.any():
        _by_uid(line, same, uid_of)
    return line


def _by_uid(line: Ints, same: Flags, uid_of: Callable[[int], str]) -> None:
    """Sorts each run of jobs that are alike but for their uids, in place."""
    tied = np.append(same, False)
    starts = np.flatnonzero(tied & ~np.insert(same, 0, False)).tolist()
    ends = (np.flatnonzero(~tied & np.insert(same, 0, False)) + 1).tolist()
    for start, end in zip(starts, ends, strict=True):
        line[start:end] = sorted(line[start:end].tolist(), key=uid_of)


def _starts(tenant: Ints) -> Ints:
    """Where each tenant's jobs begin in the line."""
    if not len(tenant):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.append(True, tenant[1:] != tenant[:-1]))


def _sums(demand: Ints, use: Ints, line: Ints, tenant: Ints, starts: Ints) -> Ints | None:
    """Use of each resource before each job of the line, (resources, jobs); None where one may be beyond counting.

    Sums over all tenants may pass 64 bits: they wrap, and differences within a tenant are right again.
    """
    before = np.empty((len(demand), len(line)), np.int64)
    if not len(line):
        return before
    lengths = np.diff(np.append(starts, len(line)))
    for row, (asked, held) in enumerate(zip(demand, use, strict=True)):
        ordered = asked[line]
        total = np.add.reduceat(ordered.astype(np.float64), starts) + held[tenant[starts]]
        if total.max() > LARGEST * _SURELY:
            return None
        sums = before[row]
        sums[0] = 0
        np.cumsum(ordered[:-1], out=sums[1:])
        sums += np.repeat(held[tenant[starts]] - sums[starts], lengths)
    return before


def _lacks(columns: PoolColumns, holdings: Holdings, line: Ints, tenant: Ints, starts: Ints) -> Flags:
    """Whether the use before each job takes in what the pool has not."""
    held: Flags = holdings.lacking[tenant]
    if columns.lacking is None or not len(line):
        return held
    asked = columns.lacking[line]
    counts = np.cumsum(asked) - asked
    found: Flags = held | (counts > np.repeat(counts[starts], np.diff(np.append(starts, len(line)))))
    return found


def _picked(before: Ints, dominant: Ints) -> Ints:
    """The use of each job's dominant resource."""
    if not len(before):
        return np.zeros(len(dominant), np.int64)
    found: Ints = before[dominant, np.arange(len(dominant))]
    return found


def _rows(
    holdings: Holdings, measure: Measure, line: _Line, scored: tuple[Ints, Ints, Flags]
) -> tuple[Rows, TagMultipliers]:
    dominant, use, lacking = scored
    numbers: dict[Fraction, int] = {}
    part = np.array([numbers.setdefault(one, len(numbers)) for one in holdings.entitlements], np.int64)
    multipliers = TagMultipliers(measure.rules.unit_shares, list(numbers))
    last = np.array([one == NOTHING for one in holdings.entitlements], np.bool_)
    infinite: Flags = lacking | last[line.tenant] if last.any() else lacking
    counted = np.where(infinite, 0, use) if infinite.any() else use
    number = part[line.tenant] * len(multipliers.units) + dominant + 1
    number[counted == 0] = 0
    with np.errstate(over="ignore"):
        tag = counted * multipliers.floats()[number]
    return Rows(line.rank + infinite, counted, number, tag, line.submitted), multipliers
