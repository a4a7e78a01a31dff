"""Tags and keys as people see them, of many jobs at once: the floats nearest to the exact ones.

They are estimated in floats of 64 bits and more, which tells the nearest float of 53 bits of nearly all; the others are
divided out, which costs ten times as much.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fairlead_policy.exact.ranking import Ints, ratio
from fairlead_policy.rules.pool_rules import PoolRules

type LongFloats = NDArray[np.longdouble]
type Pair = tuple[int, int]
"""Numerator and denominator."""

_BITS = 63
"""Bits behind the first one in the floats that estimates are made in."""
_PRECISE = np.finfo(np.longdouble).nmant >= _BITS
"""Whether this machine's longest floats have so many bits; where not, every number is divided out."""
_FEW = 32
"""Largest count of numbers that are all divided out: to prepare estimates costs as much."""
_ERROR = np.longdouble(2) ** -60
"""The relative error of an estimate: it is rounded six times at most, each time by no more than 2^-64 of it."""


class Fractions(dict[int, np.longdouble]):
    """Estimates of multipliers, by number, each found once; more multipliers may come."""

    def __init__(self, exact: Sequence[Fraction]) -> None:
        super().__init__()
        self.exact = exact

    def __missing__(self, number: int) -> np.longdouble:
        over, under = self.exact[number].as_integer_ratio()
        found = self[number] = np.longdouble(over) / np.longdouble(under)
        return found

    def of(self, number: Ints) -> "NumberedFractions":
        """The fractions of jobs, by the number of each job's."""
        return NumberedFractions(number, self)


@dataclass(frozen=True, slots=True)
class NumberedFractions:
    """A fraction for each job, by its number."""

    number: Ints
    fractions: Fractions

    def estimated(self) -> LongFloats:
        """Estimates of the fractions, job by job, as near as the longest floats come."""
        return np.fromiter(
            map(self.fractions.__getitem__, self.number.tolist()), np.longdouble, len(self.number)
        )

    def at(self, job: int) -> Pair:
        """The fraction of one job."""
        return self.fractions.exact[self.number.item(job)].as_integer_ratio()


class TermFigures:
    """`use * multiplier` of jobs, use in base units, and what their waiting adds."""

    def __init__(self, use: Ints, multiplier: NumberedFractions, rules: PoolRules) -> None:
        self._use, self._multiplier = use, multiplier
        self._rules, self._rate = rules, rules.rate
        self._estimable = _PRECISE and len(use) > _FEW and not rules.largest_share_is_huge
        self._tags = multiplier.estimated() * use if self._estimable else np.zeros(0, np.longdouble)

    def tags(self) -> list[float]:
        """`use * multiplier` of each job."""
        if not self._estimable:
            return list(map(self._tag, range(len(self._use))))
        return _rounded(self._tags, self._tag)

    def keys(self, aged: Ints, added: NumberedFractions | None = None) -> list[float]:
        """`tag + rate * aged` of each job, and what else is added."""

        def exact(at: int) -> float:
            return self._key(at, aged.item(at), (0, 1) if added is None else added.at(at))

        if not self._estimable:
            return list(map(exact, range(len(self._use))))
        extra = np.longdouble(0) if added is None else added.estimated()
        # What is subtracted from another number may leave little but the error.
        if (aged < 0).any() or np.any(extra < 0):
            return list(map(exact, range(len(self._use))))
        rate = np.longdouble(self._rate.numerator) / np.longdouble(self._rate.denominator)
        return _rounded(self._tags + aged * rate + extra, exact)

    def _tag(self, at: int) -> float:
        over, under = self._multiplier.at(at)
        return ratio(self._use.item(at) * over, under)

    def _key(self, at: int, aged: int, added: Pair) -> float:
        over, under = self._multiplier.at(at)
        over, under = self._use.item(at) * over * added[1] + added[0] * under, under * added[1]
        waited = aged * self._rate.numerator * under
        return ratio(over * self._rate.denominator + waited, under * self._rate.denominator)


def _rounded(estimates: LongFloats, exact: Callable[[int], float]) -> list[float]:
    """The float nearest to each number: where both bounds of its estimate have the same, it is that."""
    low = (estimates * (1 - _ERROR)).astype(np.float64)
    high = (estimates * (1 + _ERROR)).astype(np.float64)
    found: list[float] = low.tolist()
    for at in np.flatnonzero(low != high).tolist():
        found[at] = exact(at)
    return found
