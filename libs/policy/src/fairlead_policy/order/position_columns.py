"""Places as columns; and those of which only the tenant's share and the waiting tell, of tenants that stand alone.

A million places take a gigabyte and seconds as objects. Whoever reads them all looks at columns instead, part by part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Place
from fairlead_policy.exact.ranking import Ints, Rows, aged_at
from fairlead_policy.exact.rounding import Figures, Fractions
from fairlead_policy.rules.pool_rules import PoolRules


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


@dataclass(frozen=True, slots=True)
class Line[J: PlacedJob]:
    """Jobs of tenants that stand alone, with strict classes, none blocked and no share infinite: as equal columns."""

    jobs: Sequence[J]
    rows: Rows
    dominant: Ints
    """Position of the dominant resource in the pool's resources."""


@dataclass(frozen=True, slots=True)
class PositionColumns[J: PlacedJob]:
    """Places of finite shares, as equal columns; what they mean is told by `Place`."""

    jobs: Sequence[J]
    dominant: list[str]
    use: list[int]
    tag: list[float]
    key: list[float]
    submitted: list[Micros]


@dataclass(frozen=True, slots=True)
class PlainPlaces[J: PlacedJob](PositionColumns[J]):
    """The places of a line."""

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


def dominant_names(dominant: Ints, use: Ints, rules: PoolRules) -> list[str]:
    """The resources at these positions; empty where none of it is used."""
    names = rules.resources
    return [names[at] if used else "" for at, used in zip(dominant.tolist(), use.tolist(), strict=True)]


def plain_places[J: PlacedJob](
    line: Line[J], rules: PoolRules, multipliers: Fractions, now: Micros
) -> PlainPlaces[J]:
    """As `place_of` of each of these jobs, at a fraction of the cost.

    Args:
        line: the jobs.
        rules: of their pool.
        multipliers: of its rows.
        now: what the aging cap is measured from.
    """
    rows = line.rows
    figures = Figures(rows.use, multipliers.of(rows.multiplier), rules)
    return PlainPlaces(
        jobs=line.jobs,
        dominant=dominant_names(line.dominant, rows.use, rules),
        use=rows.use.tolist(),
        tag=figures.tags(),
        key=figures.keys(aged_at(rows.submitted, rules, now)),
        submitted=rows.submitted.tolist(),
    )
