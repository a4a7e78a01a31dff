"""A waiting job as a JSON snapshot gives it, and what many of them say, field by field."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from fairlead_contracts.base.instants import Moment
from fairlead_contracts.base.reading import Strict

type Seconds = int | float | Moment
"""A time as JSON gives it."""

type Stated = tuple[str, str | None, str | None, str | None, str | None, str | None]
"""Tenant, class, queue, frontend, cluster and pool as they are written."""

NO_GANG = msgspec.Raw()


class LoadedJob(Strict, frozen=True, kw_only=True, rename={"urgency": "class"}, gc=False):
    """A waiting job as it is written, of kinds that are right: True is no 1 here."""

    id: str
    tenant: str
    demand: msgspec.Raw
    """Its text: jobs that write it alike ask for the same, and it is read once for all of them."""
    submitted: Seconds
    urgency: str | None = None
    pool: str | None = None
    uid: str | None = None
    gang: msgspec.Raw = NO_GANG
    """Of `Raw | None` msgspec takes null alone."""
    cluster: str | None = None
    frontend: str | None = None
    queue: str | None = None
    queue_time: Seconds | None = None
    priority_override: float | None = None
    level: int | None = None
    runtime_limit: int | float | None = None
    annotations: dict[str, str] | None = None


class Columns(NamedTuple):
    """What jobs say, field by field: `LoadedJob`'s fields in their order, a value a job."""

    id: tuple[str, ...]
    tenant: tuple[str, ...]
    demand: tuple[msgspec.Raw, ...]
    submitted: tuple[Seconds, ...]
    urgency: tuple[str | None, ...]
    pool: tuple[str | None, ...]
    uid: tuple[str | None, ...]
    gang: tuple[msgspec.Raw, ...]
    cluster: tuple[str | None, ...]
    frontend: tuple[str | None, ...]
    queue: tuple[str | None, ...]
    queue_time: tuple[Seconds | None, ...]
    priority_override: tuple[float | None, ...]
    level: tuple[int | None, ...]
    runtime_limit: tuple[int | float | None, ...]
    annotations: tuple[dict[str, str] | None, ...]

    @classmethod
    def of(cls, jobs: Iterable[LoadedJob]) -> "Columns":
        """Those of one job or more."""
        return cls(*zip(*map(msgspec.structs.astuple, jobs), strict=True))

    def stated(self) -> Iterator[Stated]:
        """Each job's names beside its own."""
        return zip(self.tenant, self.urgency, self.queue, self.frontend, self.cluster, self.pool, strict=True)

    def is_plain(self) -> bool:
        """Whether no job says what few jobs say."""
        few = self.uid, self.queue_time, self.level, self.runtime_limit, self.priority_override
        return all(map(says_nothing, few)) and self.gang.count(NO_GANG) == len(self.gang)

    def uids(self) -> list[str]:
        """The id where a job states no other."""
        return [name if uid is None else uid for name, uid in zip(self.id, self.uid, strict=True)]

    def queue_times(self) -> list[Seconds]:
        """The time of its submission where a job states no other."""
        both = zip(self.submitted, self.queue_time, strict=True)
        return [first if queued is None else queued for first, queued in both]

    def colons_in_strings(self) -> int:
        """At least so many in names of their own, and two in each time: between its hours, minutes and seconds."""
        colons = "".join(self.id).count(":") + sum(uid.count(":") for uid in self.uid if uid)
        times = [list(map(type, column)).count(datetime) for column in (self.submitted, self.queue_time)]
        return colons + 2 * sum(times)


def says_nothing(column: tuple[object, ...]) -> bool:
    """Whether no job has a value there."""
    return column.count(None) == len(column)
