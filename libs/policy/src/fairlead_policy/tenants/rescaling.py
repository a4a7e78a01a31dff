"""H-DRF: what a node with children counts to hold, along the sequence in which it serves its jobs.

Plain DRF in a tree sums what the children hold: a child that holds much of one resource then starves its sibling that
wants another. H-DRF counts each child that still waits for something to be had as if it stood at the lowest share among
these (Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter Workloads", SoCC 2013). Here, with weights:

- A child is *live* while one of its jobs waits that asks for no saturated resource. Its use is scaled by
  lowest share / own share; a child of weight 0 has no share and counts in full.
- Any other child counts in full, but not for saturated resources: what it holds of these nobody could have instead.
- The lowest share is that of the live children that use something, or of all that are live (`minimum` of the policy).
  With all of them a fresh tenant without use sets its whole organisation back to nothing, once for each such tenant: who
  makes empty tenants goes first. With those that use something it does not, but a single child that holds much makes the
  share of its organisation until its resource is saturated.
- Rescaled use with a denominator beyond 2^64 is rounded to parts of 2^-64 of the pool: sums of many fractions would have
  denominators without end.

A node's share may fall as well as rise, so the running maximum is what its order goes by. All of it is exact and the same
on every machine, given the saturated resources. It is counted job by job: some 20 µs for each job and level.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd
from typing import NamedTuple

import numpy as np

from fairlead_policy.exact.ranking import Ints, Rows, ratio
from fairlead_policy.exact.scoring import Measure, Scores
from fairlead_policy.rules.pool_rules import FULL, LARGEST, NOTHING, PoolRules
from fairlead_policy.tenants.least import Least
from fairlead_policy.tenants.merging import Field, Node, Stretch

GRID = 2**64

type Vector = list[Fraction]
"""By resource of the pool, the part that is held, times the resource's weight."""


def parts_of(total: Sequence[int], rules: PoolRules) -> Vector:
    """The parts of the pool that use comes to, by resource of the pool."""
    return [amount * unit for amount, unit in zip(total, rules.unit_shares, strict=True)]


type Pair = tuple[int, int]
"""Numerator and denominator, not always in lowest terms: sums of these are three times as fast as those of fractions."""

_ZERO: Pair = (0, 1)
_LONG = 2**512


def bounded(over: int, under: int) -> Pair:
    """The part as it counts further up. Looked for in lowest terms only where it may have to be rounded."""
    if under <= GRID:
        return over, under
    divisor = gcd(over, under)
    over, under = over // divisor, under // divisor
    if under <= GRID:
        return over, under
    whole, left = divmod(over * GRID, under)
    up = 2 * left > under or (2 * left == under and whole & 1)  # half to even
    return whole + up, GRID


class ExactFraction:
    """A fraction that is compared and nothing else."""

    __slots__ = ("over", "under")

    def __init__(self, over: int, under: int) -> None:
        self.over, self.under = over, under

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactFraction) and self.over * other.under == other.over * self.under

    def __lt__(self, other: "ExactFraction") -> bool:
        return self.over * other.under < other.over * self.under

    __hash__ = None  # type: ignore[assignment] # equal ones may be written in many ways


class Holding(NamedTuple):
    """What a tenant counts to hold, by resource of the pool."""

    parts: Sequence[Pair]
    most: Pair
    """The largest of them."""

    @classmethod
    def of(cls, parts: Sequence[Pair]) -> "Holding":
        """Of a node, as its children make it."""
        most = _ZERO
        for over, under in parts:
            if over * most[1] > most[0] * under:
                most = over, under
        return cls(parts, most)


class Kin:
    """The children of a node, and what it counts to hold by them. An event changes one of them.

    Args:
        entitlements: of the children, by number.
        own: past use of the node itself.
        rules: of the pool.
    """

    def __init__(self, entitlements: Sequence[Fraction], own: Vector, rules: PoolRules) -> None:
        self.live = 0
        """How many of them are."""
        self._entitlements = entitlements
        self._rules = rules
        self._standing: dict[int, tuple[Holding, bool]] = {}
        """What each child holds, and whether it is live."""
        self._shares: Least[tuple[float, ExactFraction]] = Least()
        """Of the live children that the lowest share is looked for among; as floats first: these are told apart fast."""
        self._mixes: dict[int, list[Pair]] = {}
        """What each live child that uses something would hold at a share of 1."""
        self._as_it_is = own
        """What counts in full."""
        self._along = [_ZERO] * len(own)
        """The sum of the mixes."""

    def copy(self) -> "Kin":
        """The same children, for another future."""
        other = Kin(self._entitlements, self._as_it_is, self._rules)
        other.live, other._along = self.live, self._along
        other._standing, other._mixes = self._standing.copy(), self._mixes.copy()
        other._shares = self._shares.copy()
        return other

    def stands(self, number: int, held: Holding, *, live: bool) -> None:
        """This is what a child holds now, and whether it is live."""
        before = self._mixes.pop(number, None)
        self._take(number)
        self._standing[number] = held, live
        self.live += live
        entitlement = self._entitlements[number]
        mix = None
        if not (live and entitlement):
            self._as_it_is = _sum(self._as_it_is, self._in_full(held, live=live))
        else:
            over, under = held.most
            over, under = over * entitlement.denominator, under * entitlement.numerator
            if over or self._rules.lowest_of_live:
                self._shares.put(number, (ratio(over, under), ExactFraction(over, under)))
            if over:
                mix = self._mixes[number] = _times(held.parts, under, over)
        if mix != before:
            self._along = _changed(self._along, before, mix)

    def held(self) -> Holding:
        """What the node counts to hold."""
        first = self._shares.first()
        if first is None or not first[0][1].over:
            return Holding.of([bounded(*full.as_integer_ratio()) for full in self._as_it_is])
        over, under = first[0][1].over, first[0][1].under
        total: list[Pair] = []
        for full, (parts, whole) in zip(self._as_it_is, self._along, strict=True):
            alone, below = full.as_integer_ratio()
            if parts:
                scaled = whole * under
                total.append(bounded(alone * scaled + parts * over * below, below * scaled))
            else:
                total.append(bounded(alone, below))
        return Holding.of(total)

    def _take(self, number: int) -> None:
        """Takes the child out as it stood, but for its mix."""
        standing = self._standing.get(number)
        if standing is None:
            return
        held, live = standing
        self.live -= live
        if live and self._entitlements[number]:
            self._shares.drop(number)
        else:
            self._as_it_is = _difference(self._as_it_is, self._in_full(held, live=live))

    def _in_full(self, held: Holding, *, live: bool) -> Vector:
        """What counts of a child that is not scaled."""
        saturated = frozenset[str]() if live else self._rules.saturated
        return [
            NOTHING if name in saturated else Fraction(*part)
            for name, part in zip(self._rules.resources, held.parts, strict=True)
        ]


def _times(parts: Sequence[Pair], by: int, divided_by: int) -> list[Pair]:
    """Each part times a fraction, in lowest terms."""
    found = []
    for over, under in parts:
        over, under = over * by, under * divided_by  # noqa: PLW2901 # the same part, scaled
        divisor = gcd(over, under)
        found.append((over // divisor, under // divisor))
    return found


def _changed(along: list[Pair], before: list[Pair] | None, after: list[Pair] | None) -> list[Pair]:
    """The sum with another mix in place of one; None for none."""
    none = [_ZERO] * len(along)
    found = []
    for total, old, new in zip(along, before or none, after or none, strict=True):
        if old == new:
            found.append(total)
            continue
        over = new[0] * old[1] - old[0] * new[1]
        under = new[1] * old[1]
        over, under = total[0] * under + over * total[1], total[1] * under
        if under > _LONG:
            divisor = gcd(over, under)
            over, under = over // divisor, under // divisor
        found.append((over, under))
    return found


def _sum(one: Vector, other: Vector) -> Vector:
    return [a + b if b else a for a, b in zip(one, other, strict=True)]


def _difference(one: Vector, other: Vector) -> Vector:
    return [a - b if b else a for a, b in zip(one, other, strict=True)]


def scored(stretch: Stretch, field: Field, held: Sequence[Holding], node: Node) -> Stretch:
    """The node's sequence by what it counts to hold before each of its jobs; an infinite share stays one."""
    measure, scores = node.scale.measure, stretch.scores
    rules = measure.rules
    entitlement = rules.entitlement_of(node.tenant)
    finite = (scores.rows.rank & 1 == 0).tolist()
    tags = [
        _over(one.most, entitlement) if is_finite and entitlement else NOTHING
        for one, is_finite in zip(held, finite, strict=True)
    ]
    at = [one.parts.index(one.most) if one.most[0] else 0 for one in held]
    dominant = np.array(at, np.int64)
    amounts = [
        _amount(one.most, rules, where) if one.most[0] else 0 for one, where in zip(held, at, strict=True)
    ]
    use = np.where(scores.lacking, scores.use, np.array(amounts, np.int64))
    rows = _rows(scores.rows, tags, field.columns.grade[stretch.at], measure)
    return replace(stretch, scores=Scores(rows, dominant, use, scores.lacking, tuple(tags)))


def _over(part: Pair, entitlement: Fraction) -> Fraction:
    """The part of the pool over that of the tenant: brought to lowest terms once."""
    return Fraction(part[0] * entitlement.denominator, part[1] * entitlement.numerator)


def _amount(part: Pair, rules: PoolRules, at: int) -> int:
    """The part of the pool in base units, for people to read; half to even."""
    unit = rules.unit_shares[at]
    under = part[1] * unit.numerator
    whole, left = divmod(part[0] * unit.denominator, under)
    return min(whole + (2 * left > under or (2 * left == under and whole & 1)), LARGEST)


def _rows(rows: Rows, tags: Sequence[Fraction], grades: Ints, measure: Measure) -> Rows:
    worth = list(tags)
    if measure.rules.class_mode == "multiplicative":
        weights = (measure.multipliers.exact[grade] or FULL for grade in grades.tolist())
        worth = [tag / weight for tag, weight in zip(tags, weights, strict=True)]
    numbers = np.array([measure.multipliers.number(one) for one in worth], np.int64)
    floats = np.array([ratio(one.numerator, one.denominator) for one in worth], np.float64)
    return replace(rows, use=(numbers > 0).astype(np.int64), multiplier=numbers, tag=floats)
