"""Many places of trees, and of classes that are not strict, each made when somebody looks at it.

A million of them at once take gigabytes. They are made from columns, as `place_in` and `place_of` make one. Where
something is infinite, of which there is more to say, it is left to these two.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairlead_contracts.decisions import Lift, Place, Within
from fairlead_contracts.instants import Micros
from fairlead_policy.gathering import NOBODY, Depth, Gathering
from fairlead_policy.jobs import WaitingJob
from fairlead_policy.lane import Lane
from fairlead_policy.places import lift_at, lift_within, place_at
from fairlead_policy.places_in_order import PlacesInOrder
from fairlead_policy.ranking import Ints, ratio
from fairlead_policy.rules import PoolRules, override_of
from fairlead_policy.sequence import Sequence as JobSequence

type Pair = tuple[int, int]
"""Numerator and denominator."""


class _Own(NamedTuple):
    """A job's own terms, and the positions of the jobs that it counts as."""

    job: WaitingJob
    rank: int
    use: int
    dominant: int
    submitted: Micros
    lifted: int
    late: int


class _Below(NamedTuple):
    """The terms of a tenant below the top-level one before a job."""

    at: int
    use: int
    dominant: int
    lifter: int


class GatheredPlaces(PlacesInOrder):
    """Places in order, first job first; not with H-DRF, where tags are fractions of their own.

    Args:
        parts: tenants that stand alone, and top-level tenants' sequences, whole; one at least.
        order: numbers of their jobs, one part after the other.
        rules: of the pool.
        now: the instant.
    """

    def __init__(
        self,
        parts: Sequence[Lane | JobSequence],
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
        self._tops = [one.tenant if isinstance(one, Lane) else one.top for one in parts]
        self._units = [self._units_of(tenant) for tenant in self._tops]
        """What a unit of use is worth, by part and resource."""
        self._units_below = [self._units_of(tenant) for tenant in self._tenants]
        self._weights: dict[tuple[str, float | None], Pair] = {}
        """Of classes, and of the numbers that stand in their place."""
        self._lifts: dict[int, Lift | None] = {}
        """By number of the job."""
        self._lifts_below: dict[tuple[int, int], Lift] = {}
        """By tenant and position in its sequence."""

    def _units_of(self, tenant: str) -> list[Pair]:
        weight = self._rules.weight_of(tenant)
        if not weight:
            return []  # its share is infinite
        worth = [share / weight for share in self._rules.unit_shares]
        return [(one.numerator, one.denominator) for one in worth]

    def _made(self, numbers: Ints) -> list[Place]:
        found = self._gathered.take(numbers)
        part = self._part[numbers]
        parts, at = part.tolist(), (numbers - self._first[part]).tolist()
        own = map(
            _Own,
            found.jobs.tolist(),
            found.rank.tolist(),
            found.use.tolist(),
            found.dominant.tolist(),
            found.submitted.tolist(),
            found.lifted.tolist(),
            found.late.tolist(),
        )
        columns = parts, at, own, self._within(parts, found.depths), found.finite.tolist()
        return [
            self._place(part, position, terms, within)
            if finite
            else place_at(self._parts[part], position, self._now)
            for part, position, terms, within, finite in zip(*columns, strict=True)
        ]

    def _place(self, part: int, at: int, own: _Own, within: list[Within]) -> Place:
        job, use = own.job, own.use
        alone, top = isinstance(self._parts[part], Lane), self._tops[part]
        over, under = self._units[part][own.dominant] if use else (0, 1)
        return Place(
            uid=job.uid,
            scope=job.scope,
            id=job.id,
            tenant=job.tenant,
            urgency=job.urgency,
            override=None if alone else job.override,
            dominant=self._rules.resources[own.dominant] if use else "",
            use=use,
            tag=ratio(use * over, under),
            key=self._key(use * over, under, job, own.submitted),
            submitted=own.submitted,
            blocked=bool(own.rank & 2),
            demand=job.demand,
            top="" if top == job.tenant else top,
            position=0 if alone else at,
            lifted=None if own.lifted == at else self._lift(part, own.lifted),
            lifted_late=None if own.late == own.lifted else self._lift(part, own.late),
            within=within,
        )

    def _key(self, over: int, under: int, job: WaitingJob, submitted: Micros) -> float:
        """Of a tag, given as a fraction: what the class makes of it, and the waiting."""
        rules = self._rules
        if not rules.strict:
            weight, parts = self._weight_of(job)
            if rules.class_mode == "additive":
                over, under = over * parts + weight * under, under * parts
            else:
                over, under = over * parts, under * weight
        rate = rules.rate
        waited = rules.aged(submitted, self._now) * rate.numerator * under
        return ratio(over * rate.denominator + waited, under * rate.denominator)

    def _weight_of(self, job: WaitingJob) -> Pair:
        known = self._weights.get((job.urgency, job.override))
        if known is None:
            exact = self._rules.class_weight(job.urgency, override_of(job.override))
            known = self._weights[job.urgency, job.override] = exact.numerator, exact.denominator
        return known

    def _within(self, parts: Sequence[int], depths: Sequence[Depth]) -> list[list[Within]]:
        """What each job's tenant and those above it stand at, that tenant first."""
        found: list[list[Within]] = [[] for _ in parts]
        for depth in reversed(depths):
            below = map(
                _Below,
                depth.at.tolist(),
                depth.use.tolist(),
                depth.dominant.tolist(),
                depth.lifter.tolist(),
            )
            columns = found, parts, depth.tenant.tolist(), below, depth.finite.tolist()
            for within, part, tenant, terms, finite in zip(*columns, strict=True):
                if finite and tenant != NOBODY:
                    within.append(self._one_within(part, tenant, terms))
        return found

    def _one_within(self, part: int, tenant: int, terms: _Below) -> Within:
        use = terms.use
        over, under = self._units_below[tenant][terms.dominant] if use else (0, 1)
        return Within(
            tenant=self._tenants[tenant],
            dominant=self._rules.resources[terms.dominant] if use else "",
            use=use,
            tag=ratio(use * over, under),
            lifted=None if terms.lifter == terms.at else self._lift_below(part, tenant, terms.lifter),
        )

    def _lift(self, part: int, at: int) -> Lift | None:
        row = self._first.item(part) + at
        found = self._lifts.get(row)
        if found is None:
            found = self._lifts[row] = self._new_lift(part, at, row)
        return found

    def _new_lift(self, part: int, at: int, row: int) -> Lift | None:
        sequence, columns = self._parts[part], self._gathered
        if isinstance(sequence, Lane):
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
        if isinstance(sequence, Lane):
            return None
        found = self._lifts_below.get((tenant, at))
        if found is None:
            found = self._lifts_below[tenant, at] = lift_within(sequence, self._tenants[tenant], at)
        return found


def _may_be_oversized(parts: Sequence[Lane | JobSequence], rules: PoolRules) -> bool:
    """Whether some job may ask for more than the pool has."""
    columns = [part.columns(len(part)) if isinstance(part, Lane) else part.field.columns for part in parts]
    if any(one.lacking.any() for one in columns):
        return True
    return rules.may_exceed(np.max([one.demand.max(axis=0, initial=0) for one in columns], axis=0).tolist())
