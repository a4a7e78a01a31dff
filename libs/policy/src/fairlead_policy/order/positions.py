"""Positions as others see them, made from columns: the one place where an order becomes what is printed and sent.

A position carries its exact terms, and the floats nearest to what they come to: the same to the last bit, whichever
shard or grouping it was computed in. Each is made when somebody looks at it, some together while one reads on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Protocol, overload

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import EffectiveJob, Position, SiblingStanding, UnboundedBy
from fairlead_policy.exact.ranking import Flags, Ints, Names, Rows, aged_at
from fairlead_policy.exact.rounding import TermFigures
from fairlead_policy.exact.scoring import Scores, ShareMeasure, unbounded_by
from fairlead_policy.order.position_columns import (
    AT_ONCE,
    PositionColumns,
    PositionParts,
    WithinColumns,
)
from fairlead_policy.order.sibling_standings import DepthStandings, SiblingStandings
from fairlead_policy.rules.jobs import PositionedJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.service_order import InfiniteCause, InSequence, ServiceOrder


class PositionedJobs(Protocol):
    """Jobs side by side, in any order, with what their positions are made from."""

    @property
    def scores(self) -> Scores:
        """The scores of the jobs by their own terms."""

    def jobs_at(self, rows: Ints, /) -> Sequence[PositionedJob]:
        """The jobs at these rows."""

    def tops_at(self, rows: Ints, /) -> tuple[Sequence[str], Ints]:
        """Names of top-level tenants, and the number among them of each of these jobs'."""

    def cause_at(self, row: int, /) -> InfiniteCause:
        """The resource that the pool has none of and that makes the share of a job infinite."""

    def sequences(self, rows: Ints, /) -> Iterator[InSequence]:
        """The sequences of some jobs whose tenants do not stand alone."""


class _Served(NamedTuple):
    """Sequences that serve some jobs, and what these count as there, as equal columns."""

    sequences: Sequence[ServiceOrder]
    """Sequences of tenants that do not stand alone."""
    part: Ints
    """Number of each job's sequence; -1 where its tenant stands alone."""
    at: Ints
    """Index of each job in its sequence."""
    behind: Names
    """Name of the job whose terms each job counts by; empty where these are its own."""
    depths: Sequence[DepthStandings]
    """Standings among siblings, from the top down."""
    tenants: Sequence[str]
    """Names of tenants by their numbers in standings, and behind them an empty one: that of nobody."""

    def take(self, rows: slice) -> "_Served":
        """The columns of the jobs at these rows."""
        depths = [depth.take(rows) for depth in self.depths]
        return self._replace(part=self.part[rows], at=self.at[rows], behind=self.behind[rows], depths=depths)


class Positions(Sequence[Position]):
    """The positions of jobs, first job first: `order` holds their rows in the line."""

    def __init__(self, line: PositionedJobs, order: Ints, measure: ShareMeasure, now: Micros) -> None:
        rules = measure.rules
        self._line, self._order = line, order
        self._rules, self._now = rules, now
        self._measure = measure
        self._effective_jobs: dict[tuple[ServiceOrder, str, int], EffectiveJob] = {}

    @cached_property
    def _sibling_standings(self) -> SiblingStandings:
        return SiblingStandings(self._rules)

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Position]:
        served = self._served(self._order)  # at once: a thousand trees have a job in each thousand
        for start in range(0, len(self), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            yield from self._made(self._order[some], served.take(some))

    @overload
    def __getitem__(self, at: int) -> Position: ...

    @overload
    def __getitem__(self, at: slice) -> list[Position]: ...

    def __getitem__(self, at: int | slice) -> Position | list[Position]:
        rows = self._order[at] if isinstance(at, slice) else self._order[at, np.newaxis]
        found = self._made(rows, self._served(rows))
        return found if isinstance(at, slice) else found[0]

    def jobs(self) -> Iterator[PositionedJob]:
        """The jobs themselves, first job first."""
        for start in range(0, len(self), AT_ONCE):
            yield from self._line.jobs_at(self._order[start : start + AT_ONCE])

    def parts(self) -> PositionParts:
        """All positions as columns."""
        served = self._served(self._order)

        def made(some: slice) -> PositionColumns:
            return self._part(self._order[some], served.take(some))

        return PositionParts(len(self), made)

    def _part(self, rows: Ints, served: _Served) -> PositionColumns:
        columns = self._columns(rows, served)
        apart = np.flatnonzero(self._is_apart(rows, served))
        some = rows[apart]
        positions = self._made(some, self._served(some)) if len(apart) else []
        return replace(columns, apart=dict(zip(apart.tolist(), positions, strict=True)))

    def _served(self, rows: Ints) -> _Served:
        part, at = np.empty(len(rows), np.int64), np.zeros(len(rows), np.int64)
        behind: Names = np.empty(len(rows), np.object_)
        part.fill(-1)
        behind.fill("")
        sequences: list[ServiceOrder] = []
        depths: list[DepthStandings] = []
        for sequence, which, indexes in self._line.sequences(rows):
            part[which], at[which] = len(sequences), indexes
            sequences.append(sequence)
            counted = sequence.effective_row[indexes]
            others = np.flatnonzero(counted != indexes)
            behind[which[others]] = [job.id or job.uid for job in sequence.jobs_at(counted[others])]
            for number, depth in enumerate(self._sibling_standings.of(sequence, indexes)):
                if number == len(depths):
                    depths.append(DepthStandings.of_nobody(len(rows)))
                depths[number].put(which, depth)
        return _Served(sequences, part, at, behind, depths, [*self._sibling_standings.tenants, ""])

    def _is_apart(self, rows: Ints, served: _Served) -> Flags:
        """Whether more is to be told of jobs than columns hold."""
        found: Flags = self._line.scores.rows.rank[rows] & 3 > 0
        for depth in served.depths:
            found |= ~depth.finite
        return found

    def _columns(self, rows: Ints, served: _Served) -> PositionColumns:
        jobs, scores = self._line.jobs_at(rows), self._line.scores.take(rows)
        tenants, numbers = self._line.tops_at(rows)
        top = numbers.tolist()
        tag, key = self._figures(scores.rows, jobs)
        dominant, use = _names(scores.dominant, scores.use, self._rules), scores.use.tolist()
        because: list[UnboundedBy | None] = [None] * len(jobs)
        for row in (scores.rows.rank & 1).nonzero()[0].tolist():
            because[row] = "beyond"
            tag[row] = key[row] = 0.0
            if scores.lacking[row]:
                dominant[row], use[row] = self._line.cause_at(rows.item(row))
                because[row] = "held"
            if not self._rules.entitlement_of(tenants[top[row]]):
                because[row] = "weight"
        return PositionColumns(
            jobs=jobs,
            tenants=tenants,
            top=top,
            dominant=dominant,
            use=use,
            tag=tag,
            key=key,
            exact={row: exact for row, exact in enumerate(scores.exact or ()) if exact is not None},
            unbounded_by=because,
            submitted=scores.rows.submitted.tolist(),
            override=[None] * len(jobs) if self._rules.strict else [job.override for job in jobs],
            behind=served.behind.tolist(),
            within=[self._within_columns(depth, served.tenants, jobs) for depth in served.depths],
            apart={},
        )

    def _figures(self, rows: Rows, jobs: Sequence[PositionedJob]) -> tuple[list[float], list[float]]:
        """Tags, and keys: the tags as classes change them, and the waiting."""
        fractions, rules = self._measure.fractions, self._rules
        aged = aged_at(rows.submitted, rules, self._now)
        weighted = TermFigures(rows.use, fractions.of(rows.multiplier), rules)
        keys = weighted.keys(aged, None if rows.offset is None else fractions.of(rows.offset))
        divided = rules.class_mode == "multiplicative"
        return self._tags(rows.use, rows.multiplier, jobs) if divided else weighted.tags(), keys

    def _tags(self, use: Ints, multiplier: Ints, jobs: Sequence[PositionedJob]) -> list[float]:
        """The tags of jobs, without what the weights of their classes divide them by."""
        weights = self._measure.weight_numbers
        if self._rules.class_mode == "multiplicative":
            multiplier = weights.undivided(multiplier, np.array(list(map(weights.of, jobs)), np.int64))
        return TermFigures(use, self._measure.fractions.of(multiplier), self._rules).tags()

    def _within_columns(
        self, depth: DepthStandings, tenants: Sequence[str], jobs: Sequence[PositionedJob]
    ) -> WithinColumns:
        return WithinColumns(
            tenants=tenants,
            tenant=depth.tenant.tolist(),
            dominant=_names(depth.dominant, depth.use, self._rules),
            tag=self._tags(depth.counted, depth.multiplier, jobs),
            rescaled=depth.rescaled.tolist(),
        )

    def _made(self, rows: Ints, served: _Served) -> list[Position]:
        columns = self._columns(rows, served)
        effective, within = self._compared(columns.within, served)
        override, submitted, at = columns.override, columns.submitted, served.at.tolist()
        shares = self._line.scores.shares_at(rows)
        told = zip(
            columns.jobs,
            map(columns.tenants.__getitem__, columns.top),
            zip(columns.dominant, columns.use, columns.tag, columns.key, strict=True),
            columns.unbounded_by,
            (self._line.scores.rows.rank[rows] & 2).tolist(),
            strict=True,
        )
        return [
            Position(
                uid=job.uid,
                scope=job.scope,
                id=job.id,
                tenant=job.tenant,
                job_class=job.job_class,
                override=override[row],
                dominant=dominant,
                use=use,
                share=shares[row],
                tag=tag,
                key=key,
                submitted=submitted[row],
                unbounded=because is not None,
                unbounded_by=because,
                blocked=blocked > 0,
                demand=job.demand,
                top="" if top == job.tenant else top,
                own_rank=at[row],
                effective=effective[row][0],
                effective_late=effective[row][1],
                within=within[row],
            )
            for row, (job, top, (dominant, use, tag, key), because, blocked) in enumerate(told)
        ]

    def _compared(
        self, columns: Sequence[WithinColumns], served: _Served
    ) -> tuple[list[tuple[EffectiveJob | None, EffectiveJob | None]], list[list[SiblingStanding]]]:
        """The jobs that each counts as, and what its tenants below the top stand at."""
        effective: list[tuple[EffectiveJob | None, EffectiveJob | None]] = [(None, None)] * len(served.part)
        within: list[list[SiblingStanding]] = [[] for _ in effective]
        for row in np.flatnonzero(served.part >= 0).tolist() if served.sequences else ():
            sequence, at = served.sequences[served.part.item(row)], served.at.item(row)
            effective[row] = self._effective(sequence, at)
            within[row] = self._within(sequence, row, columns, served.depths)
        return effective, within

    def _effective(self, sequence: ServiceOrder, at: int) -> tuple[EffectiveJob | None, EffectiveJob | None]:
        """The jobs whose terms count for a job: as submitted, and far beyond the cap. None where its own do."""
        first, last = sequence.as_submitted.item(at), sequence.by_tag.item(at)
        return (
            None if first == at else self._effective_job(sequence, sequence.top, first),
            None if last == first else self._effective_job(sequence, sequence.top, last),
        )

    def _within(
        self,
        sequence: ServiceOrder,
        row: int,
        columns: Sequence[WithinColumns],
        depths: Sequence[DepthStandings],
    ) -> list[SiblingStanding]:
        """The standings of a job's tenant and of those above it, that tenant first."""
        found: list[SiblingStanding] = []
        for told, depth in zip(reversed(columns), reversed(depths), strict=True):
            tenant = told.tenants[told.tenant[row]]
            if not tenant:
                continue
            at, effective_row = depth.at.item(row), depth.effective_row.item(row)
            scores = sequence.prefixes[tenant].scores
            share = scores.share_at(at)
            found.append(
                SiblingStanding(
                    tenant=tenant,
                    dominant=told.dominant[row],
                    use=depth.use.item(row),
                    tag=told.tag[row],
                    share=share,
                    unbounded_by=unbounded_by(scores, at, self._rules.entitlement_of(tenant)),
                    effective=None
                    if effective_row == at
                    else self._effective_job(sequence, tenant, effective_row),
                )
            )
        return found

    def _effective_job(self, sequence: ServiceOrder, tenant: str, at: int) -> EffectiveJob:
        """The terms of the job at an index of a tenant's sequence, as its siblings' are compared with them."""
        known = self._effective_jobs.get((sequence, tenant, at))
        if known is None:
            known = self._effective_jobs[sequence, tenant, at] = _new_effective_job(sequence, tenant, at)
        return known


def _new_effective_job(sequence: ServiceOrder, tenant: str, at: int) -> EffectiveJob:
    scores, job = sequence.prefixes[tenant].scores, sequence.job_within(tenant, at)
    use, rank = 0 if scores.lacking[at] else scores.use.item(at), scores.rows.rank.item(at)
    dominant = sequence.measure.rules.resources[scores.dominant.item(at)] if use else ""
    if scores.lacking[at] and tenant == sequence.top:
        dominant, use = sequence.cause_at(at)
    return EffectiveJob(
        uid=job.uid,
        id=job.id,
        job_class=job.job_class,
        override=job.override,
        dominant=dominant,
        use=use,
        share=scores.share_at(at),
        submitted=scores.rows.submitted.item(at),
        unbounded=bool(rank & 1),
        blocked=bool(rank & 2),
    )


def _names(dominant: Ints, use: Ints, rules: PoolRules) -> list[str]:
    """The resources at these indexes; empty where none of it is used."""
    names = np.array([*rules.resources, ""], np.object_)
    found: list[str] = names[np.where(use != 0, dominant, len(rules.resources))].tolist()
    return found
