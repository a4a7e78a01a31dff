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
on every machine, given the saturated resources. It is counted job by job: some 25 µs for each job and level.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from math import ceil, lcm
from typing import NamedTuple

import numpy as np

from fairlead_policy.exact.ranking import Ints, Rows, ratio
from fairlead_policy.exact.scoring import Scores, ShareMeasure
from fairlead_policy.rules.pool_rules import FULL, LARGEST, NOTHING, PoolRules
from fairlead_policy.tenants.fixed_point import (
    COARSEST,
    FINE,
    ZERO,
    Ratio,
    Sum,
    SumTerm,
    bounded,
    bounded_near,
)
from fairlead_policy.tenants.least import Least
from fairlead_policy.tenants.merging import JobTable, ScoredNode, SequencePrefix

_OWN = -1
"""Number of the node itself among its children."""


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


class Dominant(NamedTuple):
    """The largest part that a tenant counts to hold, the first of equal ones."""

    part: Ratio
    at: int
    """Number of its resource; 0 where nothing is held."""


def dominant_of(parts: Iterable[Ratio]) -> Dominant:
    """The largest of parts by resource."""
    most, dominant = ZERO, 0
    for at, (over, under) in enumerate(parts):
        if over * most[1] > most[0] * under:
            most, dominant = (over, under), at
    return Dominant(most, dominant)


class CountedHolding(NamedTuple):
    """A tenant's holding as it counts, by resource of the pool: parts over one denominator."""

    parts: Sequence[int]
    under: int
    most: int
    """The largest of them."""

    @classmethod
    def of(cls, parts: Sequence[Ratio]) -> "CountedHolding":
        """The holding of a node, as its children make it."""
        common = lcm(*(under for _, under in parts))
        whole = [over * (common // under) for over, under in parts]
        return cls(whole, common, max(whole, default=0))

    @property
    def dominant(self) -> Dominant:
        """The holding's largest part."""
        return Dominant((self.most, self.under), self.parts.index(self.most) if self.most else 0)


class SiblingState(NamedTuple):
    """A tenant's state among its siblings."""

    held: CountedHolding
    live: bool
    """Whether a job that is not blocked is still to start, there or below."""


class ChildShares:
    """The shares of a node's children, and what it counts to hold by them. An event changes one of them.

    Args:
        entitlements: the children's entitlements, by number.
        past: past use of the node itself, in parts of the pool by resource.
    """

    def __init__(self, entitlements: Sequence[Fraction], past: Sequence[Fraction], rules: PoolRules) -> None:
        self._entitlements = entitlements
        self._entitled = ceil(sum(entitlements))
        self._rules = rules
        self._live: set[int] = set()
        self._shares: Least[tuple[float, ExactFraction]] = Least()
        """Shares of the live children that the lowest is looked for among; first as floats, which compare fast."""
        self._in_full = Sum(len(past))
        """The sum of what counts in full."""
        held = CountedHolding.of([part.as_integer_ratio() for part in past])
        self._in_full.put(_OWN, SumTerm.of(held.parts, held.under))
        self._scaled = Sum(len(past))
        """Sum of what live children that use something would hold at a share of 1."""

    def copy(self) -> "ChildShares":
        """A copy that changes without the original."""
        other = copy(self)
        other.copy_parts()
        return other

    def copy_parts(self) -> None:
        """Copies the mutable parts, so that the original stays unchanged."""
        self._live, self._shares = self._live.copy(), self._shares.copy()
        self._in_full, self._scaled = self._in_full.copy(), self._scaled.copy()

    @property
    def live(self) -> bool:
        """Whether a child is live."""
        return bool(self._live)

    def state(self) -> SiblingState:
        """The node's state among its own siblings."""
        return SiblingState(self.held(), self.live)

    def set_child(self, number: int, held: CountedHolding, live: bool) -> None:  # noqa: FBT001 # the fields of a SiblingState
        """Sets what a child holds now, and whether it is live."""
        (self._live.add if live else self._live.discard)(number)
        entitlement = self._entitlements[number]
        over, under = held.most, held.under
        if live and entitlement and (over or self._rules.lowest_of_live):
            share = over * entitlement.denominator, under * entitlement.numerator
            self._shares.put(number, (ratio(*share), ExactFraction(*share)))
        else:
            self._shares.drop(number)
        if not (live and entitlement):
            self._scaled.drop(number)
            self._in_full.put(number, SumTerm.of(self._counted(held, live=live), under))
            return
        self._in_full.drop(number)
        if over:
            self._scaled.put(number, SumTerm.of(held.parts, over, entitlement))
        else:
            self._scaled.drop(number)

    def held(self) -> CountedHolding:
        """The node's holding as it counts."""
        near, slack = self._near()
        return CountedHolding.of([self._bounded(at, one, slack) for at, one in enumerate(near)])

    def dominant(self) -> Dominant:
        """The largest part of the holding; others are worked out exactly only where they come close."""
        near, slack = self._near()
        if near:
            most = max(near)
            at = near.index(most)
            if len(near) == 1 or sorted(near)[-2] < most - 2 * (slack + COARSEST):
                return Dominant(self._bounded(at, most, slack), at)
        return dominant_of(self._bounded(at, one, slack) for at, one in enumerate(near))

    def _near(self) -> tuple[list[int], int]:
        """The node's holding, nearly, before it is bounded, and the largest error: see `fixed_point`."""
        full, scaled = self._in_full, self._scaled
        over, under = self._lowest()
        share = (over << FINE) // under
        slack = full.slack + scaled.slack * ((share >> FINE) + 2) + self._entitled + 2
        pairs = zip(full.near, scaled.near, strict=True)
        return [whole + (part * share >> FINE) for whole, part in pairs], slack

    def _lowest(self) -> Ratio:
        first = self._shares.first()
        return ZERO if first is None else (first[0][1].over, first[0][1].under)

    def _bounded(self, at: int, near: int, slack: int) -> Ratio:
        """The part of a resource that counts: from the sums themselves where those near them do not tell."""
        told = bounded_near(near, slack)
        if told is not None:
            return told
        lowest = self._lowest()
        (full, below), (part, under) = self._in_full.exact(at), self._scaled.exact(at)
        under *= lowest[1]
        return bounded(full * under + part * lowest[0] * below, below * under)

    def _counted(self, held: CountedHolding, *, live: bool) -> Sequence[int]:
        """The part of an unscaled child's use that counts towards its parent."""
        saturated = self._rules.saturated
        if live or not saturated:
            return held.parts
        named = zip(self._rules.resources, held.parts, strict=True)
        return [0 if name in saturated else part for name, part in named]


def scored(
    prefix: SequencePrefix, table: JobTable, held: Sequence[Dominant], node: ScoredNode
) -> SequencePrefix:
    """The node's sequence by what it counts to hold before each of its jobs; an infinite share stays one."""
    measure, scores = node.scale.measure, prefix.scores
    rules = measure.rules
    entitlement = rules.entitlement_of(node.tenant)
    finite = (scores.rows.rank & 1 == 0).tolist()
    tags = [
        # The part of the pool over that of the tenant, brought to lowest terms once.
        Fraction(one.part[0] * entitlement.denominator, one.part[1] * entitlement.numerator)
        if is_finite and entitlement
        else NOTHING
        for one, is_finite in zip(held, finite, strict=True)
    ]
    dominant = np.array([one.at for one in held], np.int64)
    amounts = [_amount(one.part, rules, one.at) if one.part[0] else 0 for one in held]
    use = np.where(scores.lacking, scores.use, np.array(amounts, np.int64))
    rows = _rows(scores.rows, tags, table.columns.weight_number[prefix.at], measure)
    return replace(prefix, scores=Scores(rows, dominant, use, scores.lacking, tuple(tags)))


def _amount(part: Ratio, rules: PoolRules, at: int) -> int:
    """The part of the pool in base units, for people to read; half to even."""
    unit = rules.unit_shares[at]
    under = part[1] * unit.numerator
    whole, left = divmod(part[0] * unit.denominator, under)
    return min(whole + (2 * left > under or (2 * left == under and whole & 1)), LARGEST)


def _rows(rows: Rows, tags: Sequence[Fraction], weight_numbers: Ints, measure: ShareMeasure) -> Rows:
    weighted = list(tags)
    if measure.rules.class_mode == "multiplicative":
        weights = (measure.multipliers.exact[one] or FULL for one in weight_numbers.tolist())
        weighted = [tag / weight for tag, weight in zip(tags, weights, strict=True)]
    numbers = np.array([measure.multipliers.number(one) for one in weighted], np.int64)
    floats = np.array([ratio(one.numerator, one.denominator) for one in weighted], np.float64)
    return replace(rows, use=(numbers > 0).astype(np.int64), multiplier=numbers, tag=floats)
