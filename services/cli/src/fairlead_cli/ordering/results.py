"""The order of a snapshot as JSON and as lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from fairlead_cli.ordering.fitting import FitLine, fit_cell, fit_line, fit_reasons
from fairlead_cli.ordering.reserving import reserve_line, reserve_reasons, reserve_words
from fairlead_cli.words import duration, reason, short_resource
from fairlead_contracts.decisions import Place
from fairlead_contracts.instants import HOUR, SECOND, Micros, to_seconds
from fairlead_contracts.snapshot import Snapshot, SnapshotJob
from fairlead_policy import JobFit, OrderedPool, PlannedLevels, Wording
from fairlead_policy.reserve_snapshots import PaperReservation

_AT_ONCE = 4096
_MINUTE = 60 * SECOND


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


class WithheldLine(msgspec.Struct, frozen=True, kw_only=True):
    """A frontend that gets no level."""

    cluster: str
    frontend: str
    why: str


class PlannedPool(msgspec.Struct, frozen=True):
    """A pool in order, with the levels that this takes where they were asked for."""

    pool: OrderedPool
    plan: PlannedLevels | None
    fits: Mapping[str, JobFit] | None = None
    """By uid, where the policy asks for that."""
    reservation: PaperReservation | None = None
    """Where the policy asks for that."""


def as_json(planned: Iterable[PlannedPool], now: Micros) -> Iterator[bytes]:
    """The result as JSON, part by part; the same bytes for the same facts.

    `{"pools": [{"name", "order": [JobLine], "reserve": ReserveLine, "writes": [LevelLine], "withheld": [WithheldLine]}]}`,
    the writes in the order in which they are safe, and only where levels were asked for; `withheld` where some frontend
    gets none; `reserve` where the policy has that mode.
    """
    yield b'{"pools":['
    for number, one in enumerate(planned):
        yield b"," if number else b""
        yield from _pool_as_json(one, now)
    yield b"]}"


def _pool_as_json(planned: PlannedPool, now: Micros) -> Iterator[bytes]:
    pool, plan, encode = planned.pool, planned.plan, msgspec.json.encode
    wording = Wording(pool.rules, pool.standings, now, oversized=pool.oversized)
    written = dict(plan.writes) if plan is not None else {}
    ids: dict[str, str] = {}
    told = _reserve_reasons(planned)
    yield b'{"name":' + encode(pool.name) + b',"order":['
    for start, places in _parts(pool.places):
        lines = [_job_line(rank, place, planned, wording) for rank, place in enumerate(places, start)]
        for line, place in zip(lines, places, strict=True):
            if place.uid in told:
                line.reasons.append(told[place.uid])
        yield (b"," if start else b"") + encode(lines)[1:-1]
        if written:
            ids |= {place.uid: place.id for place in places if place.uid in written}
    yield b"]"
    if planned.reservation is not None:
        reserved = reserve_line(planned.reservation, {place.uid: place.id for place in pool.places})
        yield b',"reserve":' + encode(reserved)
    if plan is not None:
        yield b',"writes":' + encode([LevelLine(id=ids[uid], level=level) for uid, level in plan.writes])
        if plan.withheld:
            yield b',"withheld":' + encode(_withheld(plan))
    yield b"}"


def _reserve_reasons(planned: PlannedPool) -> dict[str, str]:
    if planned.reservation is None:
        return {}
    return reserve_reasons(planned.reservation, {place.uid: place.id for place in planned.pool.places})


def _parts(places: Sequence[Place]) -> Iterator[tuple[int, list[Place]]]:
    """Places some thousand at a time, with the number of the first of them: a million lines are never held at once."""
    found, start = iter(places), 0
    while part := list(islice(found, _AT_ONCE)):
        yield start, part
        start += len(part)


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
    for one in planned:
        yield f"pool {one.pool.name}: {len(one.pool.places)} waiting"
        if one.pool.places:
            yield from _aligned(_order_rows(one, snapshot.now), lines=len(one.pool.places))
        if one.reservation is not None:
            yield from reserve_words(one.reservation, {place.uid: place.id for place in one.pool.places})
        if one.fits is not None:
            yield from fit_reasons(one.pool.places, one.fits)
        if one.plan is not None:
            yield from _writes(one.plan, {job.uid: job for job in snapshot.jobs})
        yield ""


def _order_rows(planned: PlannedPool, now: Micros) -> Iterator[tuple[str, ...]]:
    plan, fits, ages = planned.plan, planned.fits, _Ages(now)
    level = (() if plan is None else ("level",)) + (() if fits is None else ("fit",))
    named = ("#", "job", "tenant", "class", "tag", "key", "dominant")
    yield (*named, *level, "waited", "why here: its tenant")
    for rank, place in enumerate(planned.pool.places, start=1):
        tag, key = ("∞", "∞") if place.unbounded else (f"{place.tag:.6f}", f"{place.key:.6f}")
        standing: tuple[str, ...] = () if plan is None else (str(plan.levels[place.uid]),)
        standing += () if fits is None else (fit_cell(fits[place.uid]),)
        names = (place.id, place.tenant, place.urgency, tag, key, short_resource(place.dominant) or "-")
        yield (str(rank), *names, *standing, ages.of(place.submitted), reason(place))


class _Ages:
    """How long jobs have waited, in words: beyond an hour each minute is put in words once."""

    def __init__(self, now: Micros) -> None:
        self._now = now
        self._known: dict[int, str] = {}

    def of(self, submitted: Micros) -> str:
        """Since then."""
        age = max(self._now - submitted, 0)
        if age < HOUR:
            return duration(to_seconds(age))
        minute = age // _MINUTE
        words = self._known.get(minute)
        if words is None:
            words = self._known[minute] = duration(to_seconds(age))
        return words


def _withheld(plan: PlannedLevels) -> list[WithheldLine]:
    return [
        WithheldLine(cluster=cluster, frontend=frontend, why=why)
        for (cluster, frontend), why in plan.withheld.items()
    ]


def _writes(plan: PlannedLevels, jobs: Mapping[str, SnapshotJob]) -> Iterator[str]:
    for one in _withheld(plan):
        place = f" on {one.cluster}" if one.cluster else ""
        yield f"no level is written to {one.frontend or 'the frontend'}{place}: {one.why}"
    if not plan.writes and not plan.withheld:
        yield "no level has to be written: the frontend goes that way already"
    if not plan.writes:
        return
    yield f"writes: {len(plan.writes)}, in this order"
    rows = [(jobs[uid].id, str(jobs[uid].level), str(level)) for uid, level in plan.writes]
    yield from _aligned([("job", "level", "to"), *rows])


def _aligned(rows: Iterable[tuple[str, ...]], *, lines: int = 0) -> Iterator[str]:
    """Rows as lines with their columns one below another, some thousand at a time: the first are told at once.

    A column gets wider where a later part of a long table needs it; the first one, numbers up to `lines`, never does.
    """
    found, widths = iter(rows), list[int]()
    while part := list(islice(found, _AT_ONCE)):
        longest = [max(map(len, column)) for column in zip(*part, strict=True)]
        widths = [max(pair) for pair in zip(widths or longest, longest, strict=True)]
        widths[0] = max(widths[0], len(str(lines)))
        # The last column needs no room behind it.
        line = "  " + "".join(f"%-{width}s  " for width in widths[:-1]) + "%s"
        yield from map(line.__mod__, part)
