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
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from fairlead_policy.merging import Field, Node, Stretch
from fairlead_policy.ranking import Flags, Ints, Rows, ratio
from fairlead_policy.rules import FULL, LARGEST, NOTHING, PoolRules
from fairlead_policy.scoring import Measure, Scores

GRID = 2**64

type Vector = list[Fraction]
"""By resource of the pool, the part that is held, times the resource's weight."""


@dataclass(frozen=True, slots=True)
class Course:
    """What a node counts to hold before each of its jobs starts, and after the last."""

    held: Sequence[Vector]
    live: Sequence[bool]
    """Whether a job that is not blocked waits at that point or comes behind it."""


def leaf_course(field: Field, number: int, use: Sequence[int], rules: PoolRules) -> Course:
    """A tenant's own use along its own order."""
    start, end = int(field.starts[number]), int(field.starts[number + 1])
    totals = [list(use)]
    for row in field.columns.demand[start:end].tolist():
        totals.append([held + asked for held, asked in zip(totals[-1], row, strict=True)])
    free = field.columns.rank[start:end] & 1 == 0
    return Course([_parts(total, rules) for total in totals], _live_from(free))


def idle_course(use: Sequence[int], rules: PoolRules) -> Course:
    """Of a tenant that waits for nothing."""
    return Course([_parts(use, rules)], [False])


def _bounded(part: Fraction) -> Fraction:
    return part if part.denominator <= GRID else Fraction(round(part * GRID), GRID)


def _parts(total: Sequence[int], rules: PoolRules) -> Vector:
    return [amount * unit for amount, unit in zip(total, rules.unit_shares, strict=True)]


def _live_from(free: Flags) -> list[bool]:
    """Before each job, and after the last."""
    ahead: list[bool] = np.logical_or.accumulate(np.append(free, False)[::-1])[::-1].tolist()
    return ahead


def course_of(
    stretch: Stretch | None,
    children: Sequence[tuple[Course, Fraction]],
    own: Sequence[int],
    rules: PoolRules,
) -> Course:
    """What a node counts to hold along its sequence.

    Args:
        stretch: the sequence; None where nothing waits.
        children: the course and the weight of each child, in the order of `Stretch.child`.
        own: past use of the node itself, by resource of the pool.
        rules: of the pool.
    """
    kin = _Kin(children, _parts(own, rules), rules)
    held = [kin.held()]
    if stretch is None or stretch.child is None:
        return Course(held, [False])
    for number in stretch.child.tolist():
        kin.start(number)
        held.append(kin.held())
    return Course(held, _live_from(stretch.scores.rows.rank & 2 == 0))


class _Kin:
    """The children of a node at one point of its sequence. One job changes one of them."""

    def __init__(self, children: Sequence[tuple[Course, Fraction]], own: Vector, rules: PoolRules) -> None:
        self._children = children
        self._rules = rules
        self._counted = [name not in rules.saturated for name in rules.resources]
        self._started = [0] * len(children)
        self._shares: dict[int, Fraction] = {}
        """Of the live children that the lowest share is looked for among."""
        self._rounded: dict[int, float] = {}
        """The same as floats: only where these are equal, fractions have to be compared."""
        self._mixes: dict[int, Vector] = {}
        """What each live child that uses something would hold at a share of 1."""
        self._as_it_is = list(own)
        """What counts in full."""
        self._along = [NOTHING] * len(own)
        """The sum of the mixes."""
        for number in range(len(children)):
            self._put(number)

    def start(self, number: int) -> None:
        """The child's next job starts."""
        self._take(number)
        self._started[number] += 1
        self._put(number)

    def held(self) -> Vector:
        """What the node counts to hold."""
        lowest = self._lowest()
        total = (full + mix * lowest for full, mix in zip(self._as_it_is, self._along, strict=True))
        return [_bounded(amount) for amount in total]

    def _lowest(self) -> Fraction:
        least = min(self._rounded.values(), default=None)
        return min(
            (self._shares[number] for number, one in self._rounded.items() if one == least), default=NOTHING
        )

    def _put(self, number: int) -> None:
        """Adds the child as it stands."""
        held, live, weight = self._standing(number)
        if not (live and weight):
            self._as_it_is = _sum(self._as_it_is, self._in_full(held, live=live))
            return
        share = max(held, default=NOTHING) / weight
        if share or self._rules.lowest_of_live:
            self._shares[number], self._rounded[number] = share, ratio(share.numerator, share.denominator)
        if share:
            mix = self._mixes[number] = [part / share for part in held]
            self._along = _sum(self._along, mix)

    def _take(self, number: int) -> None:
        """Takes it out again."""
        held, live, weight = self._standing(number)
        if not (live and weight):
            self._as_it_is = _difference(self._as_it_is, self._in_full(held, live=live))
            return
        self._shares.pop(number, None)
        self._rounded.pop(number, None)
        mix = self._mixes.pop(number, None)
        if mix is not None:
            self._along = _difference(self._along, mix)

    def _standing(self, number: int) -> tuple[Vector, bool, Fraction]:
        """What the child holds, whether it is live, and its weight."""
        course, weight = self._children[number]
        at = self._started[number]
        return course.held[at], course.live[at], weight

    def _in_full(self, held: Vector, *, live: bool) -> Vector:
        """What counts of a child that is not scaled."""
        if live:
            return held
        return [part if counted else NOTHING for part, counted in zip(held, self._counted, strict=True)]


def _sum(one: Vector, other: Vector) -> Vector:
    return [a + b if b else a for a, b in zip(one, other, strict=True)]


def _difference(one: Vector, other: Vector) -> Vector:
    return [a - b if b else a for a, b in zip(one, other, strict=True)]


def scored(stretch: Stretch, field: Field, course: Course, node: Node) -> Stretch:
    """The node's sequence by what it counts to hold; an infinite share stays one."""
    measure, scores = node.scale.measure, stretch.scores
    rules, count = measure.rules, len(stretch.at)
    weight = rules.entitlement_of(node.tenant)
    finite = (scores.rows.rank & 1 == 0).tolist()
    tags = [
        max(held, default=NOTHING) / weight if bounded and weight else NOTHING
        for held, bounded in zip(course.held[:count], finite, strict=True)
    ]
    dominant = np.array([held.index(max(held)) if held else 0 for held in course.held[:count]], np.int64)
    amounts = [
        _amount(held[at], rules, at) if held else 0
        for held, at in zip(course.held[:count], dominant.tolist(), strict=True)
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
