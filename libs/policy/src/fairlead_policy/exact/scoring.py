"""Start tags of tenants' jobs: cumulative sums along their own orders, of one tenant or of ten thousand at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from fairlead_contracts.messages.decisions import UnboundedBy
from fairlead_policy.exact.ranking import Flags, Floats, Ints, Multipliers, Rows, join, ratio
from fairlead_policy.exact.rounding import Fractions
from fairlead_policy.rules.jobs import PositionedJob, QueueNumbers
from fairlead_policy.rules.pool_rules import FULL, LARGEST, NOTHING, PoolRules

_NEAR = 2.0**-49
_TINY = 1e-290
_SURELY = 1 - 2.0**-30
"""Sums of floats that are so far from a bound are on their side of it exactly: no more than 2^22 roundings of 2^-53."""


class ClassWeightNumbers:
    """Numbers of the class weights that jobs have: where classes are not strict, they change keys.

    They number the weights among `multipliers`.
    """

    def __init__(self, rules: PoolRules, multipliers: Multipliers) -> None:
        self._rules = rules
        self._multipliers = multipliers
        self._known: dict[tuple[str, float | None], int] = {}

    def of(self, job: PositionedJob) -> int:
        """The number of the job's class weight."""
        found = self._known.get((job.job_class, job.override))
        if found is None:
            weight = self._rules.class_weight(job.job_class, job.override)
            found = self._known[job.job_class, job.override] = self._multipliers.number(weight)
        return found

    def divided(self, exact: Sequence[Fraction], weight_numbers: Ints) -> tuple[Ints, Floats]:
        """The number and the float of multiplier / weight, for each multiplier (columns) and weight (rows)."""
        distinct, where = np.unique(weight_numbers, return_inverse=True)
        weights = [self._multipliers.exact[one] or FULL for one in distinct.tolist()]
        table = [[multiplier / weight for multiplier in exact] for weight in weights]
        numbers = np.array([[self._multipliers.number(one) for one in row] for row in table], np.int64)
        floats = np.array([[ratio(one.numerator, one.denominator) for one in row] for row in table])
        return numbers[where], floats[where]

    def undivided(self, numbers: Ints, weight_numbers: Ints) -> Ints:
        """Numbers of the multipliers before weights divided them: the inverse of `divided`."""
        pairs, where = np.unique((numbers, weight_numbers), axis=1, return_inverse=True)
        exact = self._multipliers.exact
        products = [exact[one] * (exact[weight] or FULL) for one, weight in pairs.T.tolist()]
        found: Ints = np.array(list(map(self._multipliers.number, products)), np.int64)[where]
        return found


class ShareMeasure:
    """The pool's measure of use: the resources that count, and which of them dominates. Shared by its tenants.

    What a tenant is entitled to divides all its resources alike, so the dominant resource does not depend on it.

    Args:
        queues: numbers that queues have already.
    """

    def __init__(self, rules: PoolRules, queues: QueueNumbers | None = None) -> None:
        self.rules = rules
        self.queues = QueueNumbers() if queues is None else queues
        self.multipliers = Multipliers()
        self.weight_numbers = ClassWeightNumbers(rules, self.multipliers)
        self.fractions = Fractions(self.multipliers.exact)
        self.unit_floats = np.array([float(share) for share in rules.unit_shares], np.float64)
        self.denominator = lcm(*(share.denominator for share in rules.unit_shares))
        self.numerators = [int(share * self.denominator) for share in rules.unit_shares]
        """Numerators of the unit shares over one denominator."""
        divisor = gcd(*self.numerators) or 1
        self._integers = [scale // divisor for scale in self.numerators]
        self._scales: dict[tuple[int, int], TagScale] = {}
        """Scales by entitlement, which is two integers here: fractions take four times as long to look up."""

    def scale_of(self, tenant: str) -> "TagScale":
        """The scale that a tenant is scored by; tenants of one entitlement share it."""
        return self.scales_of((tenant,))[0]

    def scales_of(self, tenants: Iterable[str]) -> "list[TagScale]":
        """The scales of some tenants."""
        known, entitlements, unlisted = self._scales, self.rules.entitlements, self.rules.unlisted_entitlement
        found = []
        for tenant in tenants:
            entitled = entitlements.get(tenant, unlisted)
            key = entitled.numerator, entitled.denominator
            scale = known.get(key)
            if scale is None:
                scale = known[key] = TagScale(self, entitled)
            found.append(scale)
        return found

    @cached_property
    def uncapped(self) -> "ShareMeasure":
        """The measure without a cap on aging."""
        return self._with_aging_of(replace(self.rules, cap=None))

    @cached_property
    def ageless(self) -> "ShareMeasure":
        """The measure without aging."""
        return self._with_aging_of(replace(self.rules, cap=None, rate=NOTHING))

    def _with_aging_of(self, rules: PoolRules) -> "ShareMeasure":
        """A measure with these numbers under rules that age otherwise."""
        other = ShareMeasure(rules, self.queues)
        other.multipliers, other.weight_numbers = self.multipliers, self.weight_numbers
        return other

    def dominant_of(self, use: Ints) -> Ints:
        """The position of the dominant resource of each job of (resources, jobs); the first of equal ones."""
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
        """The dominant resource in integers over the shares' common denominator; of 64 bits where they fit."""
        # A scale counts by itself, too: of what nobody uses it may still be larger than 64 bits hold.
        most = (max(int(column.max()), 1) for column in use.T)
        largest = max(amount * scale for amount, scale in zip(most, self._integers, strict=True))
        kind = np.int64 if largest <= LARGEST else np.object_
        exact = use.astype(kind) * np.array(self._integers, kind)
        position: Ints = exact.argmax(axis=1)
        return position


@dataclass(frozen=True, slots=True)
class Scores:
    """The first jobs of one tenant in its own order, scored."""

    rows: Rows
    dominant: Ints
    """Position of the dominant resource in the pool's resources."""
    use: Ints
    """Use of the dominant resource, base units: the tenant's own and that of its jobs before this one."""
    lacking: Flags
    """Whether that use takes in a resource of which the pool has none."""

    exact: tuple[Fraction | None, ...] | None = None
    """The tags, where they are not made from `use` alone."""

    @property
    def finite(self) -> Flags:
        """Whether the shares are finite, and nothing in them is of a resource that the pool has none of."""
        found: Flags = (self.rows.rank & 1 == 0) & ~self.lacking
        return found

    def share_at(self, row: int) -> str:
        """The exact tag as a fraction; empty where it is made from `use` alone."""
        exact = None if self.exact is None else self.exact[row]
        return "" if exact is None else str(exact)

    def shares_at(self, rows: Ints) -> list[str]:
        """The exact tags of some rows as fractions; empty where they are made from `use` alone."""
        return [""] * len(rows) if self.exact is None else list(map(self.share_at, rows.tolist()))

    def first(self, count: int) -> "Scores":
        """The scores of the first jobs."""
        if len(self.rows) == count:
            return self
        return self.take(slice(count))

    def take(self, rows: Ints | slice) -> "Scores":
        """The scores of some jobs."""
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
    """The cause of an infinite tag of a tenant of this entitlement before a row of its sequence; None where it is finite."""
    if not scores.rows.rank.item(row) & 1:
        return None
    if not entitled:
        return "weight"
    if not scores.lacking[row]:
        return "beyond"
    return "held"


NUMBERS = 4
"""The rows of the array before those of the demand."""


class JobColumns(NamedTuple):
    """Waiting jobs as equal columns."""

    rank: Ints
    """Twice the class position, one beyond the last of a class that the policy does not know; plus one where blocked."""
    submitted: Ints
    """Submit instant in microseconds, within what rules.FARTHEST allows."""
    queue: Ints
    """Number of the job's queue; 0 where nobody asks for the first of a queue."""
    weight_number: Ints
    """Number of the class's weight, of `ClassWeightNumbers`; 0 where classes are strict."""
    demand: Ints
    """Demand as (resources, jobs), base units between 0 and LARGEST; the resources are those of the rules. It counts for
    the jobs behind, so it is 0 of jobs that cannot start: these would take what they never hold."""

    @classmethod
    def of(cls, numbers: Ints) -> "JobColumns":
        """The jobs of one array, (what each is, jobs): the columns as above, and from there on a row for each resource."""
        rank, submitted, queue, weight_number = numbers[:NUMBERS]
        return cls(rank, submitted, queue, weight_number, numbers[NUMBERS:])

    def numbers(self) -> Ints:
        """The jobs as one array, as `of` takes it."""
        *stated, demand = self
        return np.concatenate((stated, demand))

    @classmethod
    def joined(cls, parts: "Sequence[JobColumns]") -> "JobColumns":
        """The jobs of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))

    def take(self, rows: Ints | slice) -> "JobColumns":
        """The jobs at these positions, in that order."""
        return JobColumns(*(column[..., rows] for column in self))


class Tenants(NamedTuple):
    """The tenants that serve jobs, and what each has before any of them starts."""

    starts: Ints
    """Position of each tenant's first job; all have some."""
    use: Ints
    """Use before any job starts, (resources, tenants), base units: what runs, and past use."""
    lacking: Flags
    """Whether each tenant's use takes in a resource of which the pool has none."""
    scale: Ints
    """Number of each one's scale."""
    scales: "Sequence[TagScale]"

    @classmethod
    def single(cls, scale: "TagScale", use: Sequence[int], *, lacking: bool) -> "Tenants":
        """A single tenant."""
        held = np.array(use, np.int64)[:, np.newaxis]
        first = np.zeros(1, np.int64)
        return cls(first, held, np.array([lacking]), first, [scale])


class TagScale:
    """Factors that turn use into start tags, for tenants of one entitlement: the pool's unit shares over it."""

    def __init__(self, measure: ShareMeasure, entitled: Fraction) -> None:
        self.measure = measure
        self.unbounded = entitled == 0
        shares = measure.rules.unit_shares
        self.exact = [share / entitled if entitled else NOTHING for share in shares]
        self.numbers = np.array([measure.multipliers.number(exact) for exact in self.exact], np.int64)
        self.floats = np.array([ratio(m.numerator, m.denominator) for m in self.exact], np.float64)


def score(jobs: JobColumns, tenants: Tenants, measure: ShareMeasure) -> Scores:
    """The start tags of jobs: one cumulative sum a resource along each tenant's.

    They stand tenant after tenant, each one's in the order in which it serves them.
    """
    count = len(jobs.rank)
    if not count:
        empty = np.empty(0, np.int64)
        return Scores(join([]), empty, empty, np.empty(0, np.bool_))
    lengths = _lengths(tenants.starts, count)
    before, beyond = _sums_before(jobs.demand, tenants, lengths)
    lacking: Flags = np.repeat(tenants.lacking, lengths)
    dominant = use = np.zeros(count, np.int64)
    if len(before):
        dominant = measure.dominant_of(before)
        use = before[dominant, np.arange(count)]
    # An infinite share is a flag, never a number in a sum: such jobs go by class and submit alone.
    infinite: Flags = beyond | lacking
    scale = _job_by_job(tenants.scale, lengths)
    if any(one.unbounded for one in tenants.scales):
        infinite |= np.array([one.unbounded for one in tenants.scales])[scale]
    counted = np.where(infinite, 0, use) if infinite.any() else use
    multiplier, unit = _units(jobs.weight_number, tenants.scales, scale, dominant, measure)
    with np.errstate(over="ignore"):
        tag = counted * unit
    offset = jobs.weight_number if measure.rules.class_mode == "additive" else None
    multiplier = np.where(counted > 0, multiplier, 0)
    rows = Rows(jobs.rank * 2 + infinite, counted, multiplier, tag, jobs.submitted, offset)
    return Scores(rows, dominant, use, lacking)


def _units(
    weight_number: Ints, scales: Sequence[TagScale], scale: Ints, dominant: Ints, measure: ShareMeasure
) -> tuple[Ints, Floats]:
    """The key that a base unit of each job's dominant resource adds: number of the multiplier, and the float."""
    resources = len(measure.unit_floats)
    if not resources:
        return np.zeros(len(dominant), np.int64), np.zeros(len(dominant))
    if measure.rules.class_mode != "multiplicative":
        at = scale * resources + dominant if len(scales) > 1 else dominant
        numbers = np.concatenate([one.numbers for one in scales])
        floats = np.concatenate([one.floats for one in scales])
        return numbers[at], floats[at]
    found, unit = np.zeros(len(dominant), np.int64), np.zeros(len(dominant))
    for number, one in enumerate(scales):
        which = np.flatnonzero(np.broadcast_to(scale == number, found.shape))
        divided, quotients = measure.weight_numbers.divided(one.exact, weight_number[which])
        each = np.arange(len(which))
        found[which], unit[which] = divided[each, dominant[which]], quotients[each, dominant[which]]
    return found, unit


def _sums_before(demand: Ints, tenants: Tenants, lengths: Ints) -> tuple[Ints, Flags]:
    """Use of each resource before each job, (resources, jobs), and whether it is larger than can be counted.

    Sums over all tenants may pass 64 bits: they wrap, and differences within a tenant are right again.
    """
    before, beyond = np.empty_like(demand), np.zeros(demand.shape[1], np.bool_)
    starts = tenants.starts
    before[:, 0] = 0
    demand[:, :-1].cumsum(axis=1, out=before[:, 1:])
    for sums, held in zip(before, tenants.use, strict=True):
        np.add(sums, _job_by_job(held - sums[starts], lengths), out=sums)
    large = np.add.reduceat(demand, starts, axis=1, dtype=np.float64) + tenants.use > LARGEST * _SURELY
    for number in np.flatnonzero(large.any(axis=0)).tolist():
        some = slice(starts[number], starts[number] + lengths[number])
        before[:, some], beyond[some] = _large_sums(demand[:, some], tenants.use[:, number])
    return before, beyond


def _lengths(starts: Ints, count: int) -> Ints:
    """The number of jobs of each tenant."""
    lengths = np.empty_like(starts)
    lengths[-1] = count
    lengths[:-1] = starts[1:]
    lengths -= starts
    return lengths


def _job_by_job(values: Ints, lengths: Ints) -> Ints:
    """The tenants' amounts, job by job; of a single tenant one number, as that is every job's."""
    return values if len(lengths) == 1 else np.repeat(values, lengths)


def _large_sums(demand: Ints, use: Ints) -> tuple[Ints, Flags]:
    """`_sums_before` of one tenant in Python integers, capped at LARGEST."""
    steps = np.column_stack((use, demand[:, :-1])).astype(np.object_)
    sums = np.cumsum(steps, axis=1)
    over: Flags = (sums > LARGEST).any(axis=0)
    return np.minimum(sums, LARGEST).astype(np.int64), over


def lacking_of(demand: Mapping[str, int], rules: PoolRules) -> str | None:
    """The first resource by name that is asked for and that the pool has none of."""
    if demand.keys() <= rules.unit_share_by_name.keys():
        return None  # nearly always
    return min((name for name, amount in demand.items() if amount > 0 and rules.lacks(name)), default=None)
