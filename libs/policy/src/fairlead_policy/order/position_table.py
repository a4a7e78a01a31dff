"""Many places of trees, and of classes that are not strict, each made when somebody looks at it.

A million of them at once take gigabytes. They are made from columns, as `place_in` and `place_of` make one. Where
something is infinite, of which there is more to say, it is left to these two.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Lift, Place, Within
from fairlead_policy.exact.multipliers import ClassWeights, UnitShares
from fairlead_policy.exact.ranking import Ints, aged_at
from fairlead_policy.exact.rounding import Figures, Numbered
from fairlead_policy.order.lazy_positions import LazyPositions
from fairlead_policy.order.position_columns import dominant_names
from fairlead_policy.order.positions import lift_at, lift_within, place_at
from fairlead_policy.order.table_sources import NOBODY, Depth, Gathered, Gathering
from fairlead_policy.order.tree_columns import Below, TreeColumns
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import TenantQueue


class _Others(NamedTuple):
    """By job, the jobs that it counts as, and what its tenant and those above it stand at."""

    lifted: Sequence[Lift | None]
    late: Sequence[Lift | None]
    within: Sequence[list[Within]]


class PositionTable(LazyPositions):
    """Places in order, first job first; not with H-DRF, where tags are fractions of their own.

    Args:
        parts: tenants that stand alone, and top-level tenants' sequences, whole; one at least.
        order: numbers of their jobs, one part after the other.
        rules: of the pool.
        now: the instant.
    """

    def __init__(
        self,
        parts: Sequence[TenantQueue | ServiceOrder],
        order: Ints,
        *,
        rules: PoolRules,
        now: Micros,
    ) -> None:
        super().__init__(order, oversized=_may_be_oversized(parts, rules))
        self._parts = parts
        self._rules, self._now = rules, now
        gathering = Gathering(rules)
        self._gathered = gathering.all_of(parts)
        lengths = list(map(len, parts))
        self._first = np.cumsum([0, *lengths])
        """Of each part, the number of its first job."""
        self._part = np.repeat(np.arange(len(parts)), lengths)
        self._tenants = gathering.tenants
        self._tops = [one.top for one in parts]
        self._alone = [isinstance(one, TenantQueue) for one in parts]
        self._units = UnitShares(rules, self._tops)
        self._units_below = UnitShares(rules, self._tenants)
        self._weights = None if rules.strict else ClassWeights(rules)
        self._lifts: dict[int, Lift | None] = {}
        """By number of the job."""
        self._lifts_below: dict[tuple[int, int], Lift] = {}
        """By tenant and position in its sequence."""

    def parts(self) -> Iterator[TreeColumns | list[Place]]:
        """All of them, some hundred at a time; as objects where a share is infinite, of which there is more to say."""
        for numbers in self._together():
            found = self._gathered.take(numbers)
            yield self._columns(found, numbers) if found.finite.all() else self._made(numbers)

    def _columns(self, found: Gathered, numbers: Ints) -> TreeColumns:
        """Right where the share is finite."""
        parts = self._part[numbers]
        jobs: list[WaitingJob] = found.jobs.tolist()
        overrides = [job.override for job in jobs]
        shares = self._units.of(parts, found.dominant)
        tags = Figures(found.use, shares, self._rules)
        return TreeColumns(
            jobs=jobs,
            dominant=dominant_names(found.dominant, found.use, self._rules),
            use=found.use.tolist(),
            tag=tags.tags(),
            key=self._keys(tags, shares, jobs, found),
            submitted=found.submitted.tolist(),
            top=[self._tops[part] for part in parts.tolist()],
            override=overrides,
            behind=self._behind(found, parts, numbers),
            below=[self._below(depth) for depth in found.depths],
        )

    def _keys(
        self, tags: Figures, shares: Numbered, jobs: Sequence[WaitingJob], found: Gathered
    ) -> list[float]:
        """What the class makes of the tags, and the waiting."""
        aged = aged_at(found.submitted, self._rules, self._now)
        if self._weights is None:
            return tags.keys(aged)
        weights = self._weights.of(jobs)
        if self._rules.class_mode == "additive":
            return tags.keys(aged, weights)
        divided = self._weights.dividing(shares, weights)
        return Figures(found.use, divided, self._rules).keys(aged)

    def _behind(self, found: Gathered, parts: Ints, numbers: Ints) -> list[str]:
        behind = [""] * len(numbers)
        others = self._first[parts] + found.counted
        for at in np.flatnonzero(others != numbers).tolist():
            other = self._gathered.jobs[others.item(at)]
            behind[at] = other.id or other.uid
        return behind

    def _below(self, depth: Depth) -> Below:
        there = depth.tenant != NOBODY
        tenant, use = np.where(there, depth.tenant, 0), np.where(there, depth.use, 0)
        names = self._tenants
        return Below(
            tenant=[names[one] if one != NOBODY else "" for one in depth.tenant.tolist()],
            dominant=dominant_names(depth.dominant, use, self._rules),
            tag=Figures(use, self._units_below.of(tenant, depth.dominant), self._rules).tags(),
        )

    def _made(self, numbers: Ints) -> list[Place]:
        found = self._gathered.take(numbers)
        told, part = self._columns(found, numbers), self._part[numbers]
        at = numbers - self._first[part]
        others = _Others(
            lifted=self._lifted(part, found.lifted, at),
            late=self._lifted(part, found.late, found.lifted),
            within=self._within(part, found.depths, told.below),
        )
        columns = part.tolist(), at.tolist(), found.finite.tolist(), found.rank.tolist()
        return [
            self._place(told, row, others, alone=self._alone[number], at=position, blocked=bool(rank & 2))
            if finite
            else place_at(self._parts[number], position, self._now)
            for row, (number, position, finite, rank) in enumerate(zip(*columns, strict=True))
        ]

    @staticmethod
    def _place(
        told: TreeColumns, row: int, others: "_Others", *, alone: bool, at: int, blocked: bool
    ) -> Place:
        job, top = told.jobs[row], told.top[row]
        return Place(
            uid=job.uid,
            scope=job.scope,
            id=job.id,
            tenant=job.tenant,
            urgency=job.urgency,
            override=None if alone else job.override,
            dominant=told.dominant[row],
            use=told.use[row],
            tag=told.tag[row],
            key=told.key[row],
            submitted=told.submitted[row],
            blocked=blocked,
            demand=job.demand,
            top="" if top == job.tenant else top,
            position=0 if alone else at,
            lifted=others.lifted[row],
            lifted_late=others.late[row],
            within=others.within[row],
        )

    def _lifted(self, part: Ints, lifter: Ints, known: Ints) -> list[Lift | None]:
        """The jobs at these positions, as far as they are others than those at the known ones."""
        columns = part.tolist(), lifter.tolist(), (lifter == known).tolist()
        return [None if same else self._lift(number, at) for number, at, same in zip(*columns, strict=True)]

    def _within(self, part: Ints, depths: Sequence[Depth], below: Sequence[Below]) -> list[list[Within]]:
        """What each job's tenant and those above it stand at, that tenant first."""
        found: list[list[Within]] = [[] for _ in part]
        for depth, told in zip(reversed(depths), reversed(below), strict=True):
            there = np.flatnonzero(depth.finite & (depth.tenant != NOBODY)).tolist()
            lifter, same = depth.lifter.tolist(), (depth.lifter == depth.at).tolist()
            for row in there:
                number = depth.tenant.item(row)
                found[row].append(
                    Within(
                        tenant=told.tenant[row],
                        dominant=told.dominant[row],
                        use=depth.use.item(row),
                        tag=told.tag[row],
                        lifted=None if same[row] else self._lift_below(part.item(row), number, lifter[row]),
                    )
                )
        return found

    def _lift(self, part: int, at: int) -> Lift | None:
        row = self._first.item(part) + at
        found = self._lifts.get(row)
        if found is None:
            found = self._lifts[row] = self._new_lift(part, at, row)
        return found

    def _new_lift(self, part: int, at: int, row: int) -> Lift | None:
        sequence, columns = self._parts[part], self._gathered
        if isinstance(sequence, TenantQueue):
            return None
        if not columns.finite[row]:
            return lift_at(sequence, at)
        job, use = columns.jobs[row], columns.use.item(row)
        return Lift(
            uid=job.uid,
            id=job.id,
            urgency=job.urgency,
            override=job.override,
            dominant=self._rules.resources[columns.dominant.item(row)] if use else "",
            use=use,
            submitted=columns.submitted.item(row),
            blocked=bool(columns.rank.item(row) & 2),
        )

    def _lift_below(self, part: int, tenant: int, at: int) -> Lift | None:
        sequence = self._parts[part]
        if isinstance(sequence, TenantQueue):
            return None
        found = self._lifts_below.get((tenant, at))
        if found is None:
            found = self._lifts_below[tenant, at] = lift_within(sequence, self._tenants[tenant], at)
        return found


def _may_be_oversized(parts: Sequence[TenantQueue | ServiceOrder], rules: PoolRules) -> bool:
    """Whether some job may ask for more than the pool has."""
    columns = [
        part.columns(len(part)) if isinstance(part, TenantQueue) else part.field.columns for part in parts
    ]
    if any(one.lacking.any() for one in columns):
        return True
    return rules.may_exceed(np.max([one.demand.max(axis=0, initial=0) for one in columns], axis=0).tolist())
