"""Places of which only the tenant's share and the waiting tell, as columns: of pools whose tenants all stand alone.

A million places take a gigabyte and seconds as objects. Whoever reads them all looks at columns instead, part by part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fairlead_contracts.decisions import Place
from fairlead_contracts.instants import Micros
from fairlead_policy.ranking import Ints, Rows, ratio
from fairlead_policy.rules import PoolRules

type LongFloats = NDArray[np.longdouble]

_BITS = 63
"""Behind the first one, of what estimates are made in."""
_PRECISE = np.finfo(np.longdouble).nmant >= _BITS
"""Not on every machine: elsewhere all is divided out."""
_ERROR = np.longdouble(2) ** -60
"""Relative, of an estimate: it is rounded five times at most, each time by no more than 2^-64 of it."""


class PlacedJob(Protocol):
    """A job, as far as its place repeats it."""

    @property
    def uid(self) -> str:
        """Its unique name."""

    @property
    def scope(self) -> str:
        """Namespace or account."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def tenant(self) -> str:
        """Whose it is."""

    @property
    def urgency(self) -> str:
        """Its class."""

    @property
    def submitted(self) -> Micros:
        """When waiting began."""

    @property
    def demand(self) -> dict[str, int]:
        """Base units, of the whole job."""


class Terms(Protocol):
    """Multipliers by number, as numerator and denominator."""

    def __getitem__(self, number: int, /) -> tuple[int, int]:
        """Of one of them."""


@dataclass(frozen=True, slots=True)
class Line[J: PlacedJob]:
    """Jobs of tenants that stand alone, with strict classes, none blocked and no share infinite: as equal columns."""

    jobs: Sequence[J]
    rows: Rows
    dominant: Ints
    """Position of the dominant resource in the pool's resources."""


@dataclass(frozen=True, slots=True)
class PlainPlaces[J: PlacedJob]:
    """The places of a line, as equal columns; what they mean is told by `Place`."""

    jobs: Sequence[J]
    dominant: list[str]
    use: list[int]
    tag: list[float]
    key: list[float]
    submitted: list[Micros]

    def places(self) -> list[Place]:
        """Each as an object."""
        columns = self.jobs, self.dominant, self.use, self.tag, self.key, self.submitted
        return [
            Place(
                uid=job.uid,
                scope=job.scope,
                id=job.id,
                tenant=job.tenant,
                urgency=job.urgency,
                dominant=dominant,
                use=use,
                tag=tag,
                key=key,
                submitted=submitted,
                demand=job.demand,
            )
            for job, dominant, use, tag, key, submitted in zip(*columns, strict=True)
        ]


def plain_places[J: PlacedJob](line: Line[J], rules: PoolRules, terms: Terms, now: Micros) -> PlainPlaces[J]:
    """As `place_of` of each of these jobs, at a fraction of the cost.

    Args:
        line: the jobs.
        rules: of their pool.
        terms: of the line's multipliers.
        now: what the aging cap is measured from.
    """
    rows, names = line.rows, rules.resources
    aged = rows.submitted if rules.cap is None else np.maximum(rows.submitted, now - rules.cap)
    use = rows.use.tolist()
    figures = _Figures(rows, aged, terms, rules)
    return PlainPlaces(
        jobs=line.jobs,
        dominant=[names[at] if used else "" for at, used in zip(line.dominant.tolist(), use, strict=True)],
        use=use,
        tag=figures.tags(),
        key=figures.keys(),
        submitted=rows.submitted.tolist(),
    )


class _Figures:
    """Tags and keys as people see them: the floats nearest to the exact ones.

    They are estimated in floats of 64 bits and more, which tells the nearest float of 53 bits of nearly all; the others are
    divided out, which costs ten times as much.
    """

    def __init__(self, rows: Rows, aged: Ints, terms: Terms, rules: PoolRules) -> None:
        self._use, self._number, self._aged = rows.use, rows.multiplier, aged
        self._terms = terms
        self._rate = rules.rate
        self._estimable = _PRECISE and not rules.largest_share_is_huge
        self._tags = self._estimated_tags() if self._estimable else np.zeros(0, np.longdouble)

    def tags(self) -> list[float]:
        """`use * multiplier` of each."""
        if not self._estimable:
            return list(map(self._tag, range(len(self._use))))
        return _rounded(self._tags, self._tag)

    def keys(self) -> list[float]:
        """`tag + rate * aged` of each."""
        # What is subtracted from another number may leave little but the error.
        if not self._estimable or (self._aged < 0).any():
            return list(map(self._key, range(len(self._use))))
        rate = np.longdouble(self._rate.numerator) / np.longdouble(self._rate.denominator)
        return _rounded(self._tags + self._aged * rate, self._key)

    def _estimated_tags(self) -> LongFloats:
        numbers, which = np.unique(self._number, return_inverse=True)
        pairs = [self._terms[number] for number in numbers.tolist()]
        multipliers = [np.longdouble(over) / np.longdouble(under) for over, under in pairs]
        found: LongFloats = np.array(multipliers, np.longdouble)[which] * self._use
        return found

    def _tag(self, at: int) -> float:
        over, under = self._terms[self._number.item(at)]
        return ratio(self._use.item(at) * over, under)

    def _key(self, at: int) -> float:
        over, under = self._terms[self._number.item(at)]
        rate, rate_over = self._rate.numerator, self._rate.denominator
        waited = self._aged.item(at) * rate * under
        return ratio(self._use.item(at) * over * rate_over + waited, under * rate_over)


def _rounded(estimates: LongFloats, exact: Callable[[int], float]) -> list[float]:
    """The float nearest to each number: where both bounds of its estimate have the same, it is that."""
    low = (estimates * (1 - _ERROR)).astype(np.float64)
    high = (estimates * (1 + _ERROR)).astype(np.float64)
    found: list[float] = low.tolist()
    for at in np.flatnonzero(low != high).tolist():
        found[at] = exact(at)
    return found
