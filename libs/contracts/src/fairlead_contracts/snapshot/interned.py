"""What the jobs of a snapshot have in common: they are of few tenants, classes and queues, and ask for few amounts."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeGuard

import msgspec

from fairlead_contracts.snapshot.loaded import NO_GANG, LoadedJob, Stated
from fairlead_contracts.snapshot.types import SnapshotGang, SnapshotJob

type Quantity = Callable[[str, int | float | str], int | None]
"""The base units of an amount of a resource; None where it is no quantity."""


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a job asks for."""

    amounts: dict[str, int]
    """In base units, without what is 0. Jobs that write it alike share it."""
    keys: int
    """How many keys it is written with."""


class Kin(msgspec.Struct, frozen=True, gc=False):
    """What jobs of one tenant, class and queue share."""

    model: SnapshotJob
    """A job of theirs, for all but what each says of its own."""
    demands: "Demands"
    """Of their pool."""
    keys: int
    """How many keys each of them has for sure, those in its demand left out."""
    in_strings: int
    """Colons in these names."""


class Gang(msgspec.Struct, frozen=True, gc=False):
    """A gang that is right."""

    pods: int
    gang: SnapshotGang | None
    keys: int
    """Colons behind it and in it, none of them behind a key that is given twice."""


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


class Demands(dict[bytes, Demand | None]):
    """The demands of one pool's jobs by their text; None where one needs a closer look."""

    def __init__(self, amounts: dict[str, _Amounts]) -> None:
        super().__init__()
        self._amounts = amounts

    def __missing__(self, text: bytes) -> Demand | None:
        demand = self._read(text)
        if len(self) < _REMEMBERED_DEMANDS:
            self[text] = demand
        return demand

    def _read(self, text: bytes) -> Demand | None:
        try:
            written = _demand.decode(text)
        except msgspec.ValidationError:
            return None
        demand: dict[str, int] = {}
        for resource, value in written.items():
            known = self._amounts.get(resource)
            amount = None if known is None else known[value]
            if amount is None:
                return None
            if amount:
                demand[resource] = amount
        return Demand(demand, len(written))


ALONE = Gang(1, None, 0)
_REMEMBERED = 65_536
_REMEMBERED_DEMANDS = 131_072
"""Some 20 MB beside the demands themselves."""
_KEYS = 3
"""Those that each job has beside its names: id, demand, submitted."""
_demand = msgspec.json.Decoder(dict[str, int | float | str])


class Kins:
    """What was right once is right again, and found here.

    Args:
        resources: by pool.
        quantity: reads an amount.

    Attributes:
        overrides: of priority, that are right.
    """

    def __init__(self, resources: Mapping[str, Collection[str]], quantity: Quantity) -> None:
        by_name = {name: _Amounts(name, quantity) for found in resources.values() for name in found}
        self._demands = {
            pool: Demands({name: by_name[name] for name in found}) for pool, found in resources.items()
        }
        self.overrides: set[float | None] = {None}
        self._owners: dict[tuple[str | None, str], tuple[str, str]] = {}
        """By stated pool and tenant: pool and tenant."""
        self._classes: dict[str | None, str] = {}
        self._names: dict[str | None, str] = {None: ""}
        """Of queues and clusters."""
        self._frontends: dict[str | None, str] = {None: ""}
        self._kins: dict[Stated, Kin] = {}
        self._gangs: dict[bytes, Gang] = {}

    def all_of(self, stated: Iterable[Stated]) -> list[Kin] | None:
        """What the jobs of each of these names share; None where one of the names is not known to be right."""
        known = self._kins.get
        kins = [known(one) or self._meet(one) for one in stated]
        return kins if all_there(kins) else None

    def gang(self, written: msgspec.Raw) -> Gang | None:
        """None where it is not known to be right."""
        return ALONE if written is NO_GANG else self._gangs.get(bytes(written))

    def learn(self, loaded: LoadedJob, job: SnapshotJob) -> None:
        """What the next jobs may share with one that is right."""
        self._owners[loaded.pool, loaded.tenant] = job.pool, job.tenant
        self._classes[loaded.urgency] = job.urgency
        self._names |= {loaded.queue: job.queue, loaded.cluster: job.cluster}
        self._frontends[loaded.frontend] = job.frontend
        self.overrides.add(loaded.priority_override)
        if loaded.annotations is None and loaded.gang is not NO_GANG:
            written = bytes(loaded.gang)
            self._gangs[written] = Gang(job.pods, job.gang, 1 + written.count(b":"))

    def _meet(self, stated: Stated) -> Kin | None:
        tenant, urgency, queue, frontend, cluster, pool = stated
        owner = self._owners.get((pool, tenant))
        if owner is None:
            return None
        named, steered = self._classes.get(urgency), self._frontends.get(frontend)
        line, where = self._names.get(queue), self._names.get(cluster)
        if named is None or steered is None or line is None or where is None:
            return None
        model = SnapshotJob(
            id="",
            uid="",
            tenant=owner[1],
            pool=owner[0],
            urgency=named,
            demand={},
            submitted=0,
            queue_time=0,
            cluster=where,
            frontend=steered,
            queue=line,
        )
        names = [name for name in stated if name is not None]
        keys, colons = _KEYS + len(names), sum(name.count(":") for name in names)
        kin = self._kins[stated] = Kin(model, self._demands[owner[0]], keys, colons)
        return kin


def all_there[T: msgspec.Struct](found: list[T | None]) -> TypeGuard[list[T]]:
    """Whether none of them is None."""
    return all(found)
