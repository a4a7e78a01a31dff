"""The order of a snapshot as lines that a person reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from fairlead_cli.client.phrases import duration, reason, share_in_words, tree_reason
from fairlead_cli.paper.arranging import PlannedPool, ids_of
from fairlead_cli.paper.fitting import fit_cell, fit_reasons
from fairlead_cli.paper.reserving import reserve_words
from fairlead_cli.paper.results import withheld_lines
from fairlead_contracts.base.instants import HOUR, SECOND, Micros, to_seconds
from fairlead_contracts.base.quantities import short_resource
from fairlead_contracts.snapshot.types import Snapshot, SnapshotJob
from fairlead_policy.exact.terms import counted_as
from fairlead_policy.explain.neighbour_text import RowCauses
from fairlead_policy.order.position_columns import PositionColumns
from fairlead_policy.order.shares import Quotients
from fairlead_policy.rules.jobs import PositionedJob
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.snapshot.levels import PlannedLevels

type TableColumns = list[list[str]]
"""Cells of some lines, none of them empty."""

_WHY = "the one above goes first because"
"""Head of the column as `fairlead queue` has it."""
_STANDS = "its tenant"
"""Head of the column where `--explain JOB` alone says what lets another go first."""
_ALIGNED = 2
"""Parts of a table whose columns are aligned together: first the head with a thousand lines, then two thousand each."""
_MINUTE = 60 * SECOND


def as_lines(planned: Iterable[PlannedPool], snapshot: Snapshot) -> Iterator[str]:
    """The result as a person reads it; ranks count from 1."""
    for one in planned:
        yield f"pool {one.pool.name}: {len(one.pool.positions)} waiting"
        if one.pool.positions:
            yield from _aligned(_order_columns(one, snapshot.now), lines=len(one.pool.positions))
        if one.reservation is not None:
            yield from reserve_words(one.reservation, ids_of(one.pool))
        if one.fits is not None:
            yield from fit_reasons(one.pool.positions, one.fits)
        if one.plan is not None:
            yield from _writes(one.plan, {job.uid: job for job in snapshot.jobs})
        yield ""


def _order_columns(planned: PlannedPool, now: Micros) -> Iterator[TableColumns]:
    level = (() if planned.plan is None else ("level",)) + (() if planned.fits is None else ("fit",))
    rules = planned.pool.rules
    rank, ages, causes, quotients = 1, _Ages(now), RowCauses(rules, now), Quotients(rules)
    divisor = "entitled" if rules.relative else "weight"
    names = ("#", "job", "tenant", "class", "share", divisor, "tag", "key", "dominant")
    yield [[name] for name in (*names, *level, "waited", _WHY if causes.tells else _STANDS)]
    for part in planned.pool.parts():
        jobs = part.jobs
        *terms, why = _cells(part, quotients, rules, now)
        if causes.tells:  # else it is what each job's tenant stands at
            pairs = zip(causes.of(part), why, strict=True)
            why = [cause or f"(its tenant {at})" for cause, at in pairs]
        yield [
            list(map(str, range(rank, rank + len(jobs)))),
            [job.id for job in jobs],
            [job.tenant for job in jobs],
            [job.job_class for job in jobs],
            *terms,
            *_standing(jobs, planned),
            ages.of(part.submitted),
            why,
        ]
        rank += len(jobs)


def _standing(jobs: Sequence[PositionedJob], planned: PlannedPool) -> Iterator[list[str]]:
    """Levels and nodes, where they were asked for."""
    if planned.plan is not None:
        yield [str(planned.plan.levels[job.uid]) for job in jobs]
    if planned.fits is not None:
        yield [fit_cell(planned.fits[job.uid]) for job in jobs]


def _cells(part: PositionColumns, quotients: Quotients, rules: PoolRules, now: Micros) -> Iterator[list[str]]:
    """Share, entitlement, tag, key, dominant resource and reason."""
    shares, entitled = quotients.of(part)
    parts = {one: f"{one:.2%}" if rules.relative else f"{one:g}" for one in set(entitled)}
    short = {name: short_resource(name) or None for name in set(part.dominant)}
    resources = [short[name] for name in part.dominant]
    yield ["∞" if share is None else f"{share:.2%}" for share in shares]
    yield [parts[one] for one in entitled]
    for terms in (part.tag, part.key):
        finite = zip(terms, part.unbounded_by, strict=True)
        yield ["∞" if because else f"{term:.6f}" for term, because in finite]
    yield [name or "-" for name in resources]
    yield _reasons(part, resources, rules, now)


def _reasons(
    part: PositionColumns, resources: Sequence[str | None], rules: PoolRules, now: Micros
) -> list[str]:
    columns = part.jobs, map(part.tenants.__getitem__, part.top), part.tag, resources, part.behind
    told = [
        tree_reason(
            "" if top == job.tenant else top,
            share_in_words(tag, resource, relative=rules.relative, rescaled=row in part.exact),
            behind,
        )
        for row, (job, top, tag, resource, behind) in enumerate(zip(*columns, strict=True))
    ]
    for row, position in part.apart.items():
        # Beyond the cap it depends on the clock which job another counts as.
        counts_as = None if position.effective_late is None else counted_as(position, rules, now)
        told[row] = reason(position, counts_as, relative=rules.relative)
    return told


class _Ages:
    """The ages of jobs in words: beyond an hour each minute is put in words once."""

    def __init__(self, now: Micros) -> None:
        self._now = now
        self._known: dict[int, str] = {}

    def of(self, submitted: Iterable[Micros]) -> list[str]:
        """The ages of jobs that were submitted at these instants."""
        now, known = self._now, self._known
        return [known.get((now - since) // _MINUTE) or self._worded(now - since) for since in submitted]

    def _worded(self, age: Micros) -> str:
        words = duration(to_seconds(max(age, 0)))
        if age >= HOUR:
            self._known[age // _MINUTE] = words
        return words


def _writes(plan: PlannedLevels, jobs: Mapping[str, SnapshotJob]) -> Iterator[str]:
    for one in withheld_lines(plan):
        place = f" on {one.cluster}" if one.cluster else ""
        yield f"no level is written to {one.frontend or 'the frontend'}{place}: {one.why}"
    if not plan.writes and not plan.withheld:
        yield "no level has to be written: the frontend goes that way already"
    if not plan.writes:
        return
    yield f"writes: {len(plan.writes)}, in this order"
    yield from _aligned(
        [
            [["job"], ["level"], ["to"]],
            [
                [jobs[uid].id for uid, _ in plan.writes],
                [str(jobs[uid].level) for uid, _ in plan.writes],
                [str(level) for _, level in plan.writes],
            ],
        ]
    )


def _aligned(found: Iterable[TableColumns], *, lines: int = 0) -> Iterator[str]:
    """Columns as lines with their cells one below another, some thousand at a time: the first are told at once.

    A column gets wider where a later part of a long table needs it; the first one, numbers up to `lines`, never does.
    """
    parts, widths = iter(found), list[int]()
    while together := list(islice(parts, _ALIGNED)):
        longest = [max(max(map(len, cells)) for cells in column) for column in zip(*together, strict=True)]
        widths = [max(pair) for pair in zip(widths or longest, longest, strict=True)]
        widths[0] = max(widths[0], len(str(lines)))
        # The last column needs no room behind it.
        line = "  " + "".join(f"%-{width}s  " for width in widths[:-1]) + "%s"
        for columns in together:
            yield from map(line.__mod__, zip(*columns, strict=True))
