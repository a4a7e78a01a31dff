"""The jobs of a large JSON snapshot, read at once where nothing is wrong with them.

Jobs are alike: they are of few tenants, classes and queues, and ask for few different amounts. What the checks found
right once is right again, so of a job only its names and numbers are looked at. Any other job is left to the checks, which
say what is wrong with its place: the outcome is the same, only slower.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from fairlead_contracts.document_parts import Strict
from fairlead_contracts.instants import SECOND, Micros, Moment, from_datetime, from_seconds
from fairlead_contracts.snapshot_parts import SnapshotGang, SnapshotJob, WrittenJob

type Seconds = int | float | Moment
"""A time as JSON gives it."""


class LoadedJob(Strict, frozen=True, kw_only=True, rename={"urgency": "class"}, gc=False):
    """A waiting job as it is written, of kinds that are right: True is no 1 here."""

    id: str
    tenant: str
    demand: dict[str, int | float | str]
    submitted: Seconds
    urgency: str | None = None
    pool: str | None = None
    uid: str | None = None
    gang: msgspec.Raw | None = None
    cluster: str | None = None
    frontend: str | None = None
    queue: str | None = None
    queue_time: Seconds | None = None
    priority_override: float | None = None
    level: int | None = None
    runtime_limit: int | float | None = None
    annotations: dict[str, str] | None = None


class Checked(NamedTuple):
    """A job that was looked at closely."""

    job: SnapshotJob
    right: bool
    """Whether nothing was found wrong with it."""


class Limits(NamedTuple):
    """What single values must lie within."""

    first: int
    """Second that can be named."""
    last: int
    name: int
    """Characters."""
    level: int


type Quantity = Callable[[str, int | float | str], int | None]
"""The base units of an amount of a resource; None where it is no quantity."""

type _Stated = tuple[str, str | None, str | None, str | None, str | None, str | None]
"""Tenant, class, queue, frontend, cluster and pool as they are written."""


class _Kin(NamedTuple):
    """What jobs of one tenant, class and queue share."""

    pool: str
    tenant: str
    urgency: str
    queue: str
    frontend: str
    cluster: str
    amounts: dict[str, "_Amounts"]
    """By resource of their pool."""


class _Amounts(dict[int | float | str, int | None]):
    """Base units of the amounts of one resource, as they are written. Few are different: each is read once."""

    def __init__(self, resource: str, quantity: Quantity) -> None:
        super().__init__()
        self._resource = resource
        self._quantity = quantity

    def __missing__(self, written: float | str) -> int | None:
        amount = self._quantity(self._resource, written)
        if len(self) < _REMEMBERED:
            self[written] = amount
        return amount


_ALONE = 1, None
_REMEMBERED = 65_536
_loaded = msgspec.json.Decoder(LoadedJob)
_written = msgspec.json.Decoder(WrittenJob)


class QuickJobs:
    """Takes jobs that are right beyond doubt.

    Args:
        ids: of jobs so far, running ones among them; it grows meanwhile.
        uids: of waiting jobs so far; it grows meanwhile.
        check: looks at a job closely, tells what is wrong, and adds its names to those above.
        resources: by pool.
        quantity: reads an amount.
        limits: of single values.
    """

    def __init__(
        self,
        *,
        ids: set[str],
        uids: set[str],
        check: Callable[[int, WrittenJob], Checked],
        resources: Mapping[str, Collection[str]],
        quantity: Quantity,
        limits: Limits,
    ) -> None:
        self._ids = ids
        self._uids = uids
        self._check = check
        by_name = {name: _Amounts(name, quantity) for found in resources.values() for name in found}
        self._amounts = {pool: {name: by_name[name] for name in found} for pool, found in resources.items()}
        self._limits = limits
        self._owners: dict[tuple[str | None, str], tuple[str, str]] = {}
        """By stated pool and tenant: pool and tenant."""
        self._classes: dict[str | None, str] = {}
        self._names: dict[str | None, str] = {None: ""}
        """Of queues and clusters."""
        self._frontends: dict[str | None, str] = {None: ""}
        self._kins: dict[_Stated, _Kin] = {}
        self._overrides: set[float | None] = {None}
        self._gangs: dict[bytes, tuple[int, SnapshotGang | None]] = {}

    def read(self, found: Iterable[msgspec.Raw]) -> Iterator[SnapshotJob]:
        """Each job.

        Raises:
            MsgspecError: it has keys or kinds of values that no job has.
        """
        for at, raw in enumerate(found):
            try:
                loaded = _loaded.decode(raw)
            except msgspec.ValidationError:
                yield self._check(at, _written.decode(raw)).job
                continue
            job = self._take(loaded)
            if job is None:
                job, right = self._check(at, _written.decode(raw))
                if right:
                    self._learn(loaded, job)
            yield job

    def _take(self, loaded: LoadedJob) -> SnapshotJob | None:
        """The job; None where somebody has to look closer."""
        stated = loaded.tenant, loaded.urgency, loaded.queue, loaded.frontend, loaded.cluster, loaded.pool
        kin = self._kins.get(stated) or self._kin_of(stated)
        if kin is None or loaded.annotations is not None or loaded.priority_override not in self._overrides:
            return None
        demand = _demand_of(loaded.demand, kin.amounts)
        gang = _ALONE if loaded.gang is None else self._gangs.get(bytes(loaded.gang))
        submitted = self._instant(loaded.submitted)
        queue_time = submitted if loaded.queue_time is None else self._instant(loaded.queue_time)
        if demand is None or gang is None or submitted is None or queue_time is None:
            return None
        if gang[1] is not None and loaded.frontend is None:
            return None  # what its pods ask for is compared with its demand
        level, limit = loaded.level, loaded.runtime_limit
        if level is not None and abs(level) > self._limits.level:
            return None
        if (limit is not None and not 0 <= limit <= self._limits.last) or not self._enter(loaded):
            return None
        # Of up to 15 words; a call with more of them goes by a dictionary, at four times the price.
        job = SnapshotJob(
            id=loaded.id,
            uid=loaded.uid or loaded.id,
            tenant=kin.tenant,
            pool=kin.pool,
            urgency=kin.urgency,
            demand=demand,
            submitted=submitted,
            queue_time=queue_time,
            priority_override=loaded.priority_override,
            cluster=kin.cluster,
            frontend=kin.frontend,
            queue=kin.queue,
            level=SnapshotJob.DEFAULT_LEVEL if level is None else level,
            runtime_limit=None if limit is None else from_seconds(limit),
            pods=gang[0],
        )
        return job if gang[1] is None else msgspec.structs.replace(job, gang=gang[1])

    def _kin_of(self, stated: "_Stated") -> "_Kin | None":
        """What jobs of these names share; None where one of the names is not known to be right."""
        tenant, urgency, queue, frontend, cluster, pool = stated
        owner = self._owners.get((pool, tenant))
        if owner is None:
            return None
        named, steered = self._classes.get(urgency), self._frontends.get(frontend)
        line, where = self._names.get(queue), self._names.get(cluster)
        if named is None or steered is None or line is None or where is None:
            return None
        kin = self._kins[stated] = _Kin(*owner, named, line, steered, where, self._amounts[owner[0]])
        return kin

    def _learn(self, loaded: LoadedJob, job: SnapshotJob) -> None:
        """What the next jobs may share with one that is right."""
        self._owners[loaded.pool, loaded.tenant] = job.pool, job.tenant
        self._classes[loaded.urgency] = job.urgency
        self._names |= {loaded.queue: job.queue, loaded.cluster: job.cluster}
        self._frontends[loaded.frontend] = job.frontend
        self._overrides.add(loaded.priority_override)
        if loaded.annotations is None and loaded.gang is not None:
            self._gangs[bytes(loaded.gang)] = job.pods, job.gang

    def _enter(self, loaded: LoadedJob) -> bool:
        """Takes the job's names into those that are taken, where they are good and nobody else's."""
        name, uid, longest = loaded.id, loaded.uid, self._limits.name
        if name in self._ids or not 0 < len(name) <= longest or not name.isprintable():
            return False
        if uid is None:
            uid = name
        elif not 0 < len(uid) <= longest or not uid.isprintable():
            return False
        if uid in self._uids:
            return False
        self._ids.add(name)
        self._uids.add(uid)
        return True

    def _instant(self, found: Seconds) -> Micros | None:
        limits = self._limits
        if type(found) is int:
            return found * SECOND if limits.first <= found <= limits.last else None
        if isinstance(found, datetime):
            instant = from_datetime(found)
            return instant if limits.first <= instant // SECOND <= limits.last else None
        return from_seconds(found) if limits.first <= found < limits.last else None


def _demand_of(written: dict[str, int | float | str], amounts: dict[str, _Amounts]) -> dict[str, int] | None:
    """In base units; None where an amount cannot be read, or the pool has no such resource."""
    demand: dict[str, int] = {}
    for resource, value in written.items():
        known = amounts.get(resource)
        amount = None if known is None else known[value]
        if amount is None:
            return None
        if amount:
            demand[resource] = amount
    return demand
