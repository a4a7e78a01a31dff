"""The order of a snapshot as JSON and as lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from fairlead_cli.ordering.fitting import FitLine, fit_cell, fit_line, fit_reasons
from fairlead_cli.words import duration, reason, short_resource
from fairlead_contracts.decisions import Place
from fairlead_contracts.instants import Micros, to_seconds
from fairlead_contracts.snapshot import Snapshot
from fairlead_policy import JobFit, OrderedPool, PlannedLevels, Wording


class JobLine(msgspec.Struct, frozen=True, kw_only=True, rename={"urgency": "class"}, gc=False):
    """One job's place."""

    id: str
    rank: int
    """From 0."""
    tenant: str
    urgency: str
    tag: float | None
    key: float | None
    """Both None where the tag is infinite: JSON has no infinity."""
    dominant: str
    level: int | msgspec.UnsetType = msgspec.UNSET
    """Once all writes are done."""
    fit: FitLine | msgspec.UnsetType = msgspec.UNSET
    """Where the policy has a strategy to place jobs by."""
    reasons: list[str]


class LevelLine(msgspec.Struct, frozen=True, kw_only=True):
    """One write."""

    id: str
    level: int


class PoolResult(msgspec.Struct, frozen=True, kw_only=True):
    """One pool in order."""

    name: str
    order: list[JobLine]
    writes: list[LevelLine] | msgspec.UnsetType = msgspec.UNSET
    """In the order in which they are safe."""


class OrderResult(msgspec.Struct, frozen=True, kw_only=True):
    """Every pool in order."""

    pools: list[PoolResult]


class PlannedPool(msgspec.Struct, frozen=True):
    """A pool in order, with the levels that this takes where they were asked for."""

    pool: OrderedPool
    plan: PlannedLevels | None
    fits: Mapping[str, JobFit] | None = None
    """By uid, where the policy asks for that."""


def as_json(planned: Iterable[PlannedPool], now: Micros) -> bytes:
    """The result as JSON, the same bytes for the same facts."""
    return msgspec.json.encode(OrderResult(pools=[_result(one, now) for one in planned]))


def _result(planned: PlannedPool, now: Micros) -> PoolResult:
    pool, plan = planned.pool, planned.plan
    wording = Wording(pool.rules, pool.standings, now)
    order = [_job_line(rank, place, planned, wording) for rank, place in enumerate(pool.places)]
    if plan is None:
        return PoolResult(name=pool.name, order=order)
    ids = {place.uid: place.id for place in pool.places}
    writes = [LevelLine(id=ids[uid], level=level) for uid, level in plan.writes]
    return PoolResult(name=pool.name, order=order, writes=writes)


def _job_line(rank: int, place: Place, planned: PlannedPool, wording: Wording) -> JobLine:
    plan, fits = planned.plan, planned.fits
    return JobLine(
        id=place.id,
        rank=rank,
        tenant=place.tenant,
        urgency=place.urgency,
        tag=None if place.unbounded else place.tag,
        key=None if place.unbounded else place.key,
        dominant=place.dominant,
        level=msgspec.UNSET if plan is None else plan.levels[place.uid],
        fit=msgspec.UNSET if fits is None else fit_line(fits[place.uid]),
        reasons=wording.reasons(place),
    )


def as_lines(planned: Iterable[PlannedPool], snapshot: Snapshot) -> Iterator[str]:
    """The result as a person reads it; ranks count from 1."""
    before = {job.uid: job.level for job in snapshot.jobs}
    for one in planned:
        yield f"pool {one.pool.name}: {len(one.pool.places)} waiting"
        if one.pool.places:
            yield from _aligned(_order_rows(one, snapshot.now))
        if one.fits is not None:
            yield from fit_reasons(one.pool.places, one.fits)
        if one.plan is not None:
            yield from _writes(one.pool, one.plan, before)
        yield ""


def _order_rows(planned: PlannedPool, now: Micros) -> list[tuple[str, ...]]:
    plan, fits = planned.plan, planned.fits
    level = (() if plan is None else ("level",)) + (() if fits is None else ("fit",))
    named = ("#", "job", "tenant", "class", "tag", "key", "dominant")
    rows: list[tuple[str, ...]] = [(*named, *level, "waited", "why here: its tenant")]
    for rank, place in enumerate(planned.pool.places, start=1):
        tag, key = ("∞", "∞") if place.unbounded else (f"{place.tag:.6f}", f"{place.key:.6f}")
        age = duration(max(0.0, to_seconds(now - place.submitted)))
        standing: tuple[str, ...] = () if plan is None else (str(plan.levels[place.uid]),)
        standing += () if fits is None else (fit_cell(fits[place.uid]),)
        names = (place.id, place.tenant, place.urgency, tag, key, short_resource(place.dominant) or "-")
        rows.append((str(rank), *names, *standing, age, reason(place)))
    return rows


def _writes(pool: OrderedPool, plan: PlannedLevels, before: dict[str, int]) -> Iterator[str]:
    if not plan.writes:
        yield "no level has to be written: the frontend goes that way already"
        return
    yield f"writes: {len(plan.writes)}, in this order"
    ids = {place.uid: place.id for place in pool.places}
    rows = [(ids[uid], str(before[uid]), str(level)) for uid, level in plan.writes]
    yield from _aligned([("job", "level", "to"), *rows])


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Rows as lines with their columns one below another: a million of them take seconds, as a drawn table minutes."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  " + "  ".join(cells).rstrip()
