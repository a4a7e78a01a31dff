"""Positions as columns: a million of them take a gigabyte and seconds as objects, so whoever reads all reads these."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position, UnboundedBy
from fairlead_policy.exact.terms import top_of
from fairlead_policy.rules.jobs import PositionedJob

AT_ONCE = 1024
"""Positions that are made together while one reads on: few enough to stay in a processor's cache meanwhile."""


@dataclass(frozen=True, slots=True)
class WithinColumns:
    """Standings of jobs' tenants among their siblings at one depth below the top-level ones: `SiblingStanding` as columns."""

    tenants: Sequence[str]
    """Names of tenants by number, and behind them an empty one."""
    tenant: Sequence[int]
    """Number of the job's own tenant or one above it; -1 where its own stands higher."""
    dominant: Sequence[str]
    """Dominant resource of that tenant; empty where it has nothing before the job."""
    tag: Sequence[float]
    rescaled: Sequence[bool]
    """Whether H-DRF makes the tag of that tenant."""


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """Positions of some jobs as equal columns; what they mean is told by `Position`."""

    jobs: Sequence[PositionedJob]
    tenants: Sequence[str]
    """Names of top-level tenants, by number: mostly one table for all parts of an order."""
    top: Sequence[int]
    """Number of each job's top-level tenant."""
    dominant: Sequence[str]
    use: Sequence[int]
    tag: Sequence[float]
    key: Sequence[float]
    """Tags and keys are 0 where the share is infinite."""
    exact: Mapping[int, Fraction]
    """Tags that H-DRF makes, by row: their dominant use says nothing of them."""
    unbounded_by: Sequence[UnboundedBy | None]
    """Cause of an infinite share; None where the share is finite."""
    submitted: Sequence[Micros]
    override: Sequence[float | None]
    """Granted number in place of the class's weight; None where it does not count."""
    behind: Sequence[str]
    """Name of the job whose terms each job counts by; empty where these are its own."""
    within: Sequence[WithinColumns]
    """Standings among siblings, from the top down."""
    apart: Mapping[int, Position]
    """Positions of which more is to be told than columns hold, by row: infinite shares, and jobs that ask for what is used
    up (H-DRF)."""

    @classmethod
    def of(cls, positions: Sequence[Position]) -> "PositionColumns":
        """Positions that come as objects, each to be told by itself."""
        return cls(
            jobs=positions,
            tenants=list(map(top_of, positions)),
            top=range(len(positions)),
            dominant=[position.dominant for position in positions],
            use=[position.use for position in positions],
            tag=[position.tag for position in positions],
            key=[position.key for position in positions],
            exact={row: Fraction(position.share) for row, position in enumerate(positions) if position.share},
            # Of a position that an earlier release tells, what makes it infinite is not known.
            unbounded_by=[
                position.unbounded_by or ("beyond" if position.unbounded else None) for position in positions
            ],
            submitted=[position.submitted for position in positions],
            override=[position.override for position in positions],
            behind=[""] * len(positions),
            within=[],
            apart=dict(enumerate(positions)),
        )


class OfTenants[T]:
    """Facts of tenants, each found once for a table of names: of thousands a processor has numbers at hand, and no names."""

    def __init__(self, find: Callable[[str], T]) -> None:
        self._find = find
        self._tenants: Sequence[str] = ()
        self._found: list[T] = []

    def of(self, tenants: Sequence[str], numbers: Iterable[int]) -> Iterator[T]:
        """Facts of the tenants with these numbers in the table."""
        if tenants is not self._tenants:
            self._tenants, self._found = tenants, list(map(self._find, tenants))
        return map(self._found.__getitem__, numbers)


@dataclass(frozen=True, slots=True)
class PositionParts:
    """Positions as columns, `AT_ONCE` in each part: every part is made when somebody looks at it, whoever made the others."""

    total: int
    """Number of all positions."""
    made: Callable[[slice], PositionColumns]
    """Makes the positions of some rows of the order."""

    def __len__(self) -> int:
        return (self.total + AT_ONCE - 1) // AT_ONCE

    def __getitem__(self, number: int) -> PositionColumns:
        return self.made(slice(number * AT_ONCE, (number + 1) * AT_ONCE))

    def __iter__(self) -> Iterator[PositionColumns]:
        return map(self.__getitem__, range(len(self)))
