"""The order of a snapshot as JSON."""

from collections.abc import Generator, Iterable
from functools import partial
from itertools import chain, repeat

import msgspec

from fairlead_cli.paper.arranging import PlannedPool, ids_of
from fairlead_cli.paper.fitting import FitLine, fit_line
from fairlead_cli.paper.forks import ResultPiece, made
from fairlead_cli.paper.reserving import reserve_line, reserve_reasons
from fairlead_contracts.base.instants import Micros
from fairlead_policy.explain.reasons import Wording
from fairlead_policy.order.position_columns import AT_ONCE, PositionColumns
from fairlead_policy.order.shares import Quotients
from fairlead_policy.snapshot.levels import PlannedLevels

_ENCODER = msgspec.json.Encoder()


class JobLine(msgspec.Struct, frozen=True, rename={"job_class": "class"}, gc=False):
    """A job's position in the order.

    Made by position: that costs half of what names cost, and a million are made.
    """

    id: str
    rank: int
    """Number of the position, from 0."""
    tenant: str
    job_class: str
    share: float | None
    """Part of the pool that its top-level tenant has just before it; None where that is of what the pool has
    not."""
    entitled: float
    """The part of the pool that this tenant is entitled to: the tag is the one over the other."""
    tag: float | None
    key: float | None
    """Tag and key are both None where the tag is infinite: JSON has no infinity."""
    dominant: str
    level: int | msgspec.UnsetType
    """Level of the job once all writes are done."""
    fit: FitLine | msgspec.UnsetType
    """Fit of the job, where the policy has a strategy to place jobs by."""
    reasons: list[str]


class LevelLine(msgspec.Struct, frozen=True, kw_only=True):
    """A write: a job and its new level."""

    id: str
    level: int


class WithheldLine(msgspec.Struct, frozen=True, kw_only=True):
    """A frontend that gets no level."""

    cluster: str
    frontend: str
    why: str


def as_json(planned: Iterable[PlannedPool], now: Micros, *, by: int = 1) -> Generator[bytes | bytearray]:
    """The result as JSON, part by part; the same bytes for the same facts, by however many processes.

    `{"pools": [{"name", "order": [JobLine], "reserve": ReserveLine, "writes": [LevelLine], "withheld": [WithheldLine]}]}`,
    the writes in the order in which they are safe, and only where levels were asked for; `withheld` where some frontend
    gets none; `reserve` where the policy has that mode.

    Raises:
        ForkEndedError: a process ended before its parts were made.
    """
    pools = [_PoolAsJson(one, now, "," if number else "") for number, one in enumerate(planned)]
    yield b'{"pools":['
    yield from made(list(chain.from_iterable(pool.pieces() for pool in pools)), by=by)
    yield b"]}"


class _PoolAsJson:
    """A pool as JSON, in pieces of many jobs: what comes before is in the first, the rest in the last.

    Args:
        planned: the pool.
        now: the instant of the order.
        before: text that parts it from the pool before.
    """

    def __init__(self, planned: PlannedPool, now: Micros, before: str) -> None:
        pool = planned.pool
        self._planned, self._parts = planned, pool.parts()
        self._head = f'{before}{{"name":{msgspec.json.encode(pool.name).decode()},"order":['.encode()
        self._wording = Wording(pool.rules, pool.standings, now, oversized=bool(pool.apart))
        self._quotients = Quotients(pool.rules)
        self._named, self._told = dict[str, str](), dict[str, str]()
        if planned.reservation is not None:
            self._named = ids_of(pool)
            self._told = reserve_reasons(planned.reservation, self._named)

    def pieces(self) -> list[ResultPiece]:
        """The makers of the pieces, in order."""
        return [partial(self._piece, number) for number in range(max(1, len(self._parts)))]

    def _piece(self, number: int) -> bytearray:
        found = bytearray()
        if len(self._parts):
            found = self._jobs(number)
            found[:1] = b"," if number else self._head
            del found[-1:]
        else:
            found += self._head
        if number >= len(self._parts) - 1:
            found += b"]" + self._rest()
        return found

    def _jobs(self, number: int) -> bytearray:
        """A list of jobs that are told together."""
        part, found = self._parts[number], bytearray()
        lines = self._lines(number * AT_ONCE, part)
        if self._told:
            for line, job in zip(lines, part.jobs, strict=True):
                line.reasons.extend([self._told[job.uid]] if job.uid in self._told else [])
        _ENCODER.encode_into(lines, found)
        return found

    def _lines(self, first: int, part: PositionColumns) -> list[JobLine]:
        """The lines of a part's jobs, the first with that rank."""
        jobs, plan, fits = part.jobs, self._planned.plan, self._planned.fits
        uids = [job.uid for job in jobs] if plan is not None or fits is not None else []
        columns = (
            [job.id for job in jobs],
            range(first, first + len(jobs)),
            [job.tenant for job in jobs],
            [job.job_class for job in jobs],
            *self._quotients.of(part),
            *(
                [None if infinite else one for one, infinite in zip(column, part.unbounded_by, strict=True)]
                for column in (part.tag, part.key)
            ),
            part.dominant,
            repeat(msgspec.UNSET) if plan is None else [plan.levels[uid] for uid in uids],
            repeat(msgspec.UNSET) if fits is None else [fit_line(fits[uid]) for uid in uids],
            self._wording.of_columns(part),
        )
        return list(map(JobLine, *columns))

    def _rest(self) -> bytes:
        """The keys that come behind the jobs."""
        plan, reservation, encode = self._planned.plan, self._planned.reservation, msgspec.json.encode
        found = []
        if reservation is not None:
            found.append(b',"reserve":' + encode(reserve_line(reservation, self._named)))
        if plan is not None:
            levels = dict(plan.writes)
            jobs = self._planned.pool.jobs() if levels else ()
            ids = {job.uid: job.id for job in jobs if job.uid in levels}
            writes = [LevelLine(id=ids[uid], level=level) for uid, level in plan.writes]
            found.append(b',"writes":' + encode(writes))
            if plan.withheld:
                found.append(b',"withheld":' + encode(withheld_lines(plan)))
        return b"".join((*found, b"}"))


def withheld_lines(plan: PlannedLevels) -> list[WithheldLine]:
    """The frontends that get no level."""
    return [
        WithheldLine(cluster=cluster, frontend=frontend, why=why)
        for (cluster, frontend), why in plan.withheld.items()
    ]
