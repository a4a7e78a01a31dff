"""Positions as columns: a million of them take a gigabyte and seconds as objects, so whoever reads all reads these."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position, UnboundedBy
from fairlead_policy.exact.terms import top_of
from fairlead_policy.rules.jobs import PositionedJob

AT_ONCE = 1024
"""Positions that are made together while one reads on: few enough to stay in a processor's cache meanwhile."""


@dataclass(frozen=True, slots=True)
class WithinColumns:
    """Standings of jobs' tenants among their siblings at one depth below the top-level ones: `Within` as columns."""

    tenant: Sequence[str]
    """Name of the job's own tenant or one above it; empty where its own stands higher."""
    dominant: Sequence[str]
    """Dominant resource of that tenant; empty where it has nothing before the job."""
    tag: Sequence[float]


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """Positions of some jobs as equal columns; what they mean is told by `Position`."""

    jobs: Sequence[PositionedJob]
    top: Sequence[str]
    """The top-level tenants."""
    dominant: Sequence[str]
    use: Sequence[int]
    tag: Sequence[float]
    key: Sequence[float]
    """Tags and keys are 0 where the share is infinite."""
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
    """Positions of which more is to be told than columns hold, by row: infinite or scaled (H-DRF) shares."""

    @classmethod
    def of(cls, positions: Sequence[Position]) -> "PositionColumns":
        """Positions that come as objects, each to be told by itself."""
        return cls(
            jobs=positions,
            top=list(map(top_of, positions)),
            dominant=[position.dominant for position in positions],
            use=[position.use for position in positions],
            tag=[position.tag for position in positions],
            key=[position.key for position in positions],
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
