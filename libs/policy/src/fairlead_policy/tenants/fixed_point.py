"""Sums of fractions by fixed point, and what they count as, exactly.

A sum of a hundred fractions has a denominator of thousands of bits, and somebody asks for it after each job. What is asked
is less: the sum rounded to parts of 2^-64, or as it is where its denominator is no longer than that. So a sum is kept in
parts of 2^-192, within a known slack. That nearly always tells both for certain; where it does not, the fractions are
added up.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import starmap
from math import gcd
from operator import add, sub
from typing import NamedTuple

type Ratio = tuple[int, int]
"""Numerator and denominator, not always in lowest terms."""

GRID = 2**64
"""Sums further up are counted in parts of it."""
FINE = 192
"""Bits behind the point."""
_BELOW = FINE - 64
COARSEST = 1 << _BELOW
"""Largest error of what counts further up, in parts of 2^-192."""
_HALF = 1 << (_BELOW - 1)
_PART = (1 << _BELOW) - 1
_ONE = 1 << FINE
_FRACTION = _ONE - 1
_SHORT = 1 << (_BELOW - 1)
_LONG = 2**128
"""Sums that alike jobs make have shorter denominators than that; of others too few are looked at to keep them up."""
ZERO: Ratio = (0, 1)
_ONCE = Fraction(1)


def bounded(over: int, under: int) -> Ratio:
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


def bounded_near(near: int, slack: int) -> Ratio | None:
    """`bounded` of an approximate sum, in parts of 2^-192; None where the slack leaves two answers.

    First that the number has no denominator of up to 2^64. With one, q, it would put `near * q` within `slack * q` of a
    whole number. Of all q below the next convergent of the continued fraction the last convergent comes closest to one:
    by the remainder at which Euclid's algorithm stands then.
    """
    larger, remainder = _ONE, near & _FRACTION
    while remainder >= _SHORT:
        larger, remainder = remainder, larger % remainder
    left = near & _PART
    if remainder <= slack << 64 or abs(left - _HALF) <= slack:
        return None
    return (near >> _BELOW) + (left > _HALF), GRID


class SumTerm(NamedTuple):
    """A term of a sum of many, by resource: parts over one denominator, times a factor."""

    near: list[int]
    """The term in parts of 2^-192, less than two of them too few."""
    parts: Sequence[int]
    under: int
    factor: Fraction

    @classmethod
    def of(cls, parts: Sequence[int], under: int, factor: Fraction = _ONCE) -> "SumTerm":
        """`parts * factor / under`."""
        spare = max(parts, default=0).bit_length()
        unit = (factor.numerator << (FINE + spare)) // (under * factor.denominator)
        return cls([part * unit >> spare for part in parts], parts, under, factor)

    def exact(self, at: int) -> Ratio:
        """The term's number for a resource, in lowest terms."""
        over, under = self.parts[at] * self.factor.numerator, self.under * self.factor.denominator
        divisor = gcd(over, under)
        return over // divisor, under // divisor


class Sum:
    """The sum of what many add, by resource. One of them changes at a time."""

    def __init__(self, size: int) -> None:
        self.near = [0] * size
        """The sums in parts of 2^-192, less than `slack` of them too few."""
        self._terms: dict[int, SumTerm] = {}
        self._short = dict.fromkeys(range(size), ZERO)
        """The sums themselves by number of the resource, as long as their denominators are short."""

    def copy(self) -> "Sum":
        """A copy that changes without the original."""
        other = Sum(0)
        other.near, other._terms, other._short = self.near, self._terms.copy(), self._short.copy()
        return other

    @property
    def slack(self) -> int:
        """The greatest error of the numbers."""
        return 2 * len(self._terms)

    def put(self, number: int, term: SumTerm) -> None:
        """Sets the term of one member."""
        before = self._terms.get(number)
        self._terms[number] = term
        if before is None:
            self.near = list(map(add, self.near, term.near))
        else:
            self.near = list(map(add, self.near, map(sub, term.near, before.near)))
        if self._short:
            self._keep_short(before, term)

    def drop(self, number: int) -> None:
        """Removes the term of one member."""
        before = self._terms.pop(number, None)
        if before is not None:
            self.near = list(map(sub, self.near, before.near))
            if self._short:
                self._keep_short(before, None)

    def exact(self, at: int) -> Ratio:
        """The exact sum of a resource."""
        found = self._short.get(at)
        if found is None:
            found = _summed([term.exact(at) for term in self._terms.values()])
            if found[1] <= _LONG:
                self._short[at] = found
        return found

    def _keep_short(self, before: SumTerm | None, after: SumTerm | None) -> None:
        for at, total in list(self._short.items()):
            old = ZERO if before is None else before.exact(at)
            new = ZERO if after is None else after.exact(at)
            if old == new:
                continue
            over, under = new[0] * old[1] - old[0] * new[1], new[1] * old[1]
            over, under = total[0] * under + over * total[1], total[1] * under
            if under > _LONG:
                divisor = gcd(over, under)
                over, under = over // divisor, under // divisor
            if under > _LONG:
                del self._short[at]
            else:
                self._short[at] = over, under


def _summed(parts: list[Ratio]) -> Ratio:
    """The sum in lowest terms: of halves, so that most of the numbers are short."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [*starmap(_added, pairs), *parts[len(parts) & ~1 :]]
    return parts[0] if parts else ZERO


def _added(one: Ratio, other: Ratio) -> Ratio:
    over, under = one[0] * other[1] + other[0] * one[1], one[1] * other[1]
    divisor = gcd(over, under)
    return over // divisor, under // divisor
