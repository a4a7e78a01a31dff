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

import numpy as np

from fairlead_policy.least import Least
from fairlead_policy.merging import Field, Node, Stretch
from fairlead_policy.ranking import Ints, Rows, ratio
from fairlead_policy.rules import FULL, LARGEST, NOTHING, PoolRules
from fairlead_policy.scoring import Measure, Scores

GRID = 2**64

type Vector = list[Fraction]
"""By resource of the pool, the part that is held, times the resource's weight."""


def bounded(part: Fraction) -> Fraction:
    """The part as it counts further up."""
    return part if part.denominator <= GRID else Fraction(round(part * GRID), GRID)


def parts_of(total: Sequence[int], rules: PoolRules) -> Vector:
    """The parts of the pool that use comes to, by resource of the pool."""
    return [amount * unit for amount, unit in zip(total, rules.unit_shares, strict=True)]


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
        self._standing: dict[int, tuple[Vector, bool]] = {}
        """What each child holds, and whether it is live."""
        self._shares: Least[tuple[float, Fraction]] = Least()
        """Of the live children that the lowest share is looked for among; as floats first: these are told apart fast."""
        self._mixes: dict[int, Vector] = {}
        """What each live child that uses something would hold at a share of 1."""
        self._as_it_is = own
        """What counts in full."""
        self._along = [NOTHING] * len(own)
        """The sum of the mixes."""

    def copy(self) -> "Kin":
        """The same children, for another future."""
        other = Kin(self._entitlements, self._as_it_is, self._rules)
        other.live, other._along = self.live, self._along
        other._standing, other._mixes = self._standing.copy(), self._mixes.copy()
        other._shares = self._shares.copy()
        return other

    def stands(self, number: int, held: Vector, *, live: bool) -> None:
        """This is what a child holds now, and whether it is live."""
        self._take(number)
        self._standing[number] = held, live
        self.live += live
        entitlement = self._entitlements[number]
        if not (live and entitlement):
            self._as_it_is = _sum(self._as_it_is, self._in_full(held, live=live))
            return
        share = max(held, default=NOTHING) / entitlement
        if share or self._rules.lowest_of_live:
            self._shares.put(number, (ratio(share.numerator, share.denominator), share))
        if share:
            mix = self._mixes[number] = [part / share if part else part for part in held]
            self._along = _sum(self._along, mix)

    def held(self) -> Vector:
        """What the node counts to hold."""
        first = self._shares.first()
        lowest = NOTHING if first is None else first[0][1]
        if not lowest:
            return list(map(bounded, self._as_it_is))
        return [
            bounded(full + mix * lowest if mix else full)
            for full, mix in zip(self._as_it_is, self._along, strict=True)
        ]

    def _take(self, number: int) -> None:
        """Takes the child out as it stood."""
        standing = self._standing.get(number)
        if standing is None:
            return
        held, live = standing
        self.live -= live
        if not (live and self._entitlements[number]):
            self._as_it_is = _difference(self._as_it_is, self._in_full(held, live=live))
            return
        self._shares.drop(number)
        mix = self._mixes.pop(number, None)
        if mix is not None:
            self._along = _difference(self._along, mix)

    def _in_full(self, held: Vector, *, live: bool) -> Vector:
        """What counts of a child that is not scaled."""
        if live or not self._rules.saturated:
            return held
        saturated = self._rules.saturated
        return [
            NOTHING if name in saturated else part
            for name, part in zip(self._rules.resources, held, strict=True)
        ]


def _sum(one: Vector, other: Vector) -> Vector:
    return [a + b if b else a for a, b in zip(one, other, strict=True)]


def _difference(one: Vector, other: Vector) -> Vector:
    return [a - b if b else a for a, b in zip(one, other, strict=True)]


def scored(stretch: Stretch, field: Field, held: Sequence[Vector], node: Node) -> Stretch:
    """The node's sequence by what it counts to hold before each of its jobs; an infinite share stays one."""
    measure, scores = node.scale.measure, stretch.scores
    rules = measure.rules
    entitlement = rules.entitlement_of(node.tenant)
    finite = (scores.rows.rank & 1 == 0).tolist()
    tags = [
        max(parts, default=NOTHING) / entitlement if is_finite and entitlement else NOTHING
        for parts, is_finite in zip(held, finite, strict=True)
    ]
    dominant = np.array([parts.index(max(parts)) if parts else 0 for parts in held], np.int64)
    amounts = [
        _amount(parts[at], rules, at) if parts else 0
        for parts, at in zip(held, dominant.tolist(), strict=True)
    ]
    use = np.where(scores.lacking, scores.use, np.array(amounts, np.int64))
    rows = _rows(scores.rows, tags, field.columns.grade[stretch.at], measure)
    return replace(stretch, scores=Scores(rows, dominant, use, scores.lacking, tuple(tags)))


def _amount(part: Fraction, rules: PoolRules, at: int) -> int:
    """The part of the pool in base units, for people to read."""
    return min(round(part / rules.unit_shares[at]), LARGEST)


def _rows(rows: Rows, tags: Sequence[Fraction], grades: Ints, measure: Measure) -> Rows:
    worth = list(tags)
    if measure.rules.class_mode == "multiplicative":
        weights = (measure.multipliers.exact[grade] or FULL for grade in grades.tolist())
        worth = [tag / weight for tag, weight in zip(tags, weights, strict=True)]
    numbers = np.array([measure.multipliers.number(one) for one in worth], np.int64)
    floats = np.array([ratio(one.numerator, one.denominator) for one in worth], np.float64)
    return replace(rows, use=(numbers > 0).astype(np.int64), multiplier=numbers, tag=floats)
