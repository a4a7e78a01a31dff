"""The order of a snapshot as JSON."""

from collections.abc import Iterable, Iterator
from itertools import repeat

import msgspec

from fairlead_cli.paper.arranging import PlannedPool, ids_of
from fairlead_cli.paper.fitting import FitLine, fit_line
from fairlead_cli.paper.reserving import reserve_line, reserve_reasons
from fairlead_contracts.base.instants import Micros
from fairlead_policy.explain.reasons import Wording
from fairlead_policy.order.position_columns import PositionColumns
from fairlead_policy.order.shares import Quotients
from fairlead_policy.snapshot.levels import PlannedLevels


class JobLine(msgspec.Struct, frozen=True, rename={"job_class": "class"}, gc=False):
    """One job's place. Made by position: that costs half of what names cost, and a million are made."""

    id: str
    rank: int
    """From 0."""
    tenant: str
    job_class: str
    share: float | None
    """Of the pool, of its top-level tenant just before it; None where that is of what the pool has not."""
    entitled: float
    """The part of the pool that this tenant is entitled to: the tag is the one over the other."""
    tag: float | None
    key: float | None
    """Both None where the tag is infinite: JSON has no infinity."""
    dominant: str
    level: int | msgspec.UnsetType
    """Once all writes are done."""
    fit: FitLine | msgspec.UnsetType
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
    quotients = Quotients(pool.rules)
    written = dict(plan.writes) if plan is not None else {}
    ids: dict[str, str] = {}
    named, told = dict[str, str](), dict[str, str]()
    if planned.reservation is not None:
        named = ids_of(pool)
        told = reserve_reasons(planned.reservation, named)
    yield b'{"name":' + encode(pool.name) + b',"order":['
    first = 0
    for part in pool.parts():
        jobs, lines = part.jobs, _job_lines(first, part, planned, wording, quotients)
        if told:
            for line, job in zip(lines, jobs, strict=True):
                line.reasons.extend([told[job.uid]] if job.uid in told else [])
        yield (b"," if first else b"") + encode(lines)[1:-1]
        lines.clear()  # before the next are made: they take the memory that these have
        if written:
            ids |= {job.uid: job.id for job in jobs if job.uid in written}
        first += len(jobs)
    yield b"]"
    if planned.reservation is not None:
        yield b',"reserve":' + encode(reserve_line(planned.reservation, named))
    if plan is not None:
        yield b',"writes":' + encode([LevelLine(id=ids[uid], level=level) for uid, level in plan.writes])
        if plan.withheld:
            yield b',"withheld":' + encode(withheld_lines(plan))
    yield b"}"


def _job_lines(
    first: int, part: PositionColumns, planned: PlannedPool, wording: Wording, quotients: Quotients
) -> list[JobLine]:
    """One of each place, the first with that rank."""
    jobs, plan, fits = part.jobs, planned.plan, planned.fits
    uids = [job.uid for job in jobs] if plan is not None or fits is not None else []
    columns = (
        [job.id for job in jobs],
        range(first, first + len(jobs)),
        [job.tenant for job in jobs],
        [job.job_class for job in jobs],
        *quotients.of(part),
        *(
            [None if infinite else one for one, infinite in zip(column, part.unbounded_by, strict=True)]
            for column in (part.tag, part.key)
        ),
        part.dominant,
        repeat(msgspec.UNSET) if plan is None else [plan.levels[uid] for uid in uids],
        repeat(msgspec.UNSET) if fits is None else [fit_line(fits[uid]) for uid in uids],
        wording.of_columns(part),
    )
    return list(map(JobLine, *columns))


def withheld_lines(plan: PlannedLevels) -> list[WithheldLine]:
    """The frontends that get no level."""
    return [
        WithheldLine(cluster=cluster, frontend=frontend, why=why)
        for (cluster, frontend), why in plan.withheld.items()
    ]
