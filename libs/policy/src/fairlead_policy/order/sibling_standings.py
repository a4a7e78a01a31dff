"""Standings of jobs' tenants among their siblings, level by level below the top: as columns over a tree's jobs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairlead_policy.exact.ranking import Flags, Ints
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.service_order import ServiceOrder

NOBODY = -1
_FEW = 16
"""Largest number of jobs that are looked up one by one: columns of a whole tree cost more."""


class DepthStandings(NamedTuple):
    """Standings of jobs among their siblings at one depth below the top-level tenants."""

    tenant: Ints
    """Number of the tenant there, the job's own or one above it; `NOBODY` where its own stands higher."""
    at: Ints
    """Index in that tenant's sequence."""
    use: Ints
    """Use of the dominant resource, base units; 0 where that tenant's share is of what the pool has not."""
    dominant: Ints
    counted: Ints
    """Use that its tag is made from: as in `Rows`."""
    multiplier: Ints
    """Number of the factor from that to the tag: as in `Rows`."""
    effective_row: Ints
    """Index in that sequence of the job that it counts as."""
    finite: Flags
    rescaled: Flags
    """Whether H-DRF makes its tag."""

    def take(self, rows: Ints | slice) -> "DepthStandings":
        """The standings of the jobs at these rows."""
        return DepthStandings._make(column[rows] for column in self)

    def put(self, rows: Ints | slice, other: "DepthStandings") -> None:
        """Puts other jobs' standings in place of those at some rows."""
        for column, told in zip(self, other, strict=True):
            column[rows] = told

    @classmethod
    def of_nobody(cls, jobs: int) -> "DepthStandings":
        """Empty columns, to be filled in."""
        at, use, dominant, counted, multiplier, effective_row = np.zeros((6, jobs), np.int64)
        finite, rescaled = np.ones(jobs, np.bool_), np.zeros(jobs, np.bool_)
        nobody = np.full(jobs, NOBODY)
        return cls(nobody, at, use, dominant, counted, multiplier, effective_row, finite, rescaled)


class SiblingStandings:
    """Columns of the trees that somebody looked at, as far as they looked. Tenants get numbers on the way."""

    def __init__(self, rules: PoolRules) -> None:
        self.tenants: list[str] = []
        """Names of tenants, by number."""
        self._numbers: dict[str, int] = {}
        self._rules = rules
        self._known: dict[ServiceOrder, tuple[dict[str, None], list[DepthStandings]]] = {}
        """The tenants whose jobs are filled in, and the columns by number in the table, for each sequence."""

    def of(self, sequence: ServiceOrder, indexes: Ints) -> Sequence[DepthStandings]:
        """The levels below the top of jobs of a sequence, from the top down."""
        if len(indexes) <= _FEW:
            return self._one_by_one(sequence, indexes)
        filled, depths = self._known.setdefault(sequence, ({}, []))
        numbers = sequence.prefix.at[indexes]
        for leaf in np.unique(sequence.table.tenant_queue[numbers]).tolist():
            way = self._rules.way_up(sequence.table.tenant_queues[leaf].tenant)
            for number, tenant in enumerate(way[-2::-1]):
                if tenant not in filled:
                    filled[tenant] = None
                    self._fill(depths, number, sequence, tenant)
        return [depth.take(numbers) for depth in depths]

    def _one_by_one(self, sequence: ServiceOrder, indexes: Ints) -> Sequence[DepthStandings]:
        depths: list[DepthStandings] = []
        for row, index in enumerate(indexes.tolist()):
            way = self._rules.way_up(sequence.job_at(index).tenant)
            for number, tenant in enumerate(way[-2::-1]):
                if number == len(depths):
                    depths.append(DepthStandings.of_nobody(len(indexes)))
                at = np.array([sequence.index_in(tenant, index)])
                depths[number].put(slice(row, row + 1), self._standing(sequence, tenant, at))
        return depths

    def _fill(self, depths: list[DepthStandings], number: int, sequence: ServiceOrder, tenant: str) -> None:
        while len(depths) <= number:
            depths.append(DepthStandings.of_nobody(len(sequence.table.tenant_queue)))
        at = sequence.prefixes[tenant].at
        depths[number].put(at, self._standing(sequence, tenant, np.arange(len(at))))

    def _standing(self, sequence: ServiceOrder, tenant: str, at: Ints) -> DepthStandings:
        """A tenant's standing at some indexes of its sequence."""
        scores = sequence.prefixes[tenant].scores.take(at)
        return DepthStandings(
            tenant=np.full(len(at), self._number(tenant)),
            at=at,
            use=np.where(scores.lacking, 0, scores.use),
            dominant=scores.dominant,
            counted=scores.rows.use,
            multiplier=scores.rows.multiplier,
            effective_row=sequence.effective_row_in(tenant)[at],
            finite=scores.finite,
            rescaled=np.full(len(at), scores.exact is not None),
        )

    def _number(self, tenant: str) -> int:
        found = self._numbers.setdefault(tenant, len(self.tenants))
        if found == len(self.tenants):
            self.tenants.append(tenant)
        return found
