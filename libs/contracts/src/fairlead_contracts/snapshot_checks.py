"""The sense of a snapshot: references, quantities, times, and what this release does not act on yet."""

import math
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import msgspec

from fairlead_contracts.cards import CARD_RESOURCES
from fairlead_contracts.document import (
    LARGEST_CLASS_WEIGHT,
    LEAST_WEIGHT,
    check_weight,
    names_of,
    read_document,
)
from fairlead_contracts.document_parts import PolicyDocument
from fairlead_contracts.errors import DocumentError, FieldError
from fairlead_contracts.instants import SECOND, Micros, Moment, from_datetime, from_seconds
from fairlead_contracts.quantities import MAX_QUANTITY, base_units, parse_quantity
from fairlead_contracts.snapshot_gangs import Amounts, Fail, check_asks, check_gang, check_node
from fairlead_contracts.snapshot_parts import (
    Snapshot,
    SnapshotClassValue,
    SnapshotJob,
    SnapshotNode,
    SnapshotPool,
    SnapshotQueue,
    SnapshotRunning,
    SnapshotTenant,
    WrittenJob,
    WrittenQueue,
    WrittenRunning,
    WrittenSnapshot,
    WrittenTenant,
)
from fairlead_contracts.snapshot_queues import MAX_LEVEL, check_class_value, check_level, check_queue
from fairlead_contracts.snapshot_quick import Checked, Limits, QuickJobs
from fairlead_contracts.tree import check_tree, inner_nodes

FRONTENDS = ("kueue", "slurm", "sim")
MAX_NAME = 512
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, those that RFC 3339 can name."""
_LISTED = 20


class SnapshotChecks:
    """Checks a snapshot whose shape is right, and puts it into base units.

    Args:
        written: as far as it could be read.
        kept: by list, the positions in the file of the entries that are in it; by default all are.
        stated: names of pools and tenants that the file has, also of entries that could not be read.
        unread: the jobs, in place of those in `written`, where their JSON has not been read yet.
    """

    def __init__(
        self,
        written: WrittenSnapshot,
        kept: Mapping[str, list[int]],
        stated: Mapping[str, set[str]],
        unread: Iterable[msgspec.Raw] | None = None,
    ) -> None:
        self.problems: list[FieldError] = []
        self._written = written
        self._unread = unread
        self._kept = kept
        self._policy: PolicyDocument | None = None
        self._classes: list[str] = []
        self._takes_unlisted = False
        self._tenant_names = {tenant.name for tenant in written.tenants} | stated.get("tenants", set())
        self._pool_names = {pool.name for pool in written.pools} | stated.get("pools", set())
        self._resources: dict[str, set[str]] = {}
        self._on_nodes: set[str] = set()
        """Resources that nodes have: pods may ask for some that no quota counts."""
        self._pool_of: dict[str, str | None] = {}
        self._quantities: dict[tuple[str, int | str], int] = {}
        self._good_names: set[str | None] = {None}
        """Of queues and clusters."""
        self._misnamed: set[str | None] = set()
        """Pools that a tenant names and that are none: told there, not once more a job."""
        self._inner: set[str] = set()
        """Tenants with others below them: they have no jobs of their own."""
        self._ids: set[str] = set()
        self._uids: set[str] = set()

    def snapshot(self) -> Snapshot | None:
        """The checked snapshot; it counts only where no problem was found."""
        written = self._written
        now = self._now()
        self._policy = policy = self._read_policy()
        if policy is not None:
            self._classes, self._takes_unlisted = policy.classes, policy.unlisted_weight is not None
        pools = self._pools()
        tenants = [self._tenant(at, tenant) for at, tenant in enumerate(written.tenants)]
        self._refuse_twice("tenants", [tenant.name for tenant in written.tenants])
        self._check_tree()
        self._find_pools_of_tenants()
        nodes = self._nodes()
        self._check_places_of_past_use()
        queues = self._queues()
        values = self._class_values()
        running = [self._running(at, job) for at, job in enumerate(written.running)]
        jobs = self._jobs()
        if policy is None:
            return None
        return Snapshot(
            now=now,
            policy=policy,
            pools=pools,
            tenants=tenants,
            nodes=nodes,
            queues=queues,
            class_values=values,
            running=running,
            jobs=jobs,
        )

    # The policy and what stands around the jobs -------------------------------------------------------------------

    def _now(self) -> Micros:
        if self._written.now is None:
            self.problems.append(
                FieldError("now", None, "is missing: the instant that waiting is counted to")
            )
            return 0
        return self._instant(self._written.now, "now") or 0

    def _read_policy(self) -> PolicyDocument | None:
        try:
            return read_document(self._written.policy, tenants=self._tenant_names, pools=self._pool_names)
        except DocumentError as error:
            self.problems += [
                FieldError(f"policy.{part.field}", part.value, part.reason) for part in error.problems
            ]
            return None

    def _pools(self) -> list[SnapshotPool]:
        written = self._written.pools
        if not self._pool_names:
            self.problems.append(FieldError("pools", [], "must name at least one pool"))
        pools = []
        for at, pool in enumerate(written):
            self._check_name(("pools", at, "name"), pool.name)
            capacity = self._amounts(("pools", at, "capacity"), pool.capacity)
            pools.append(SnapshotPool(name=pool.name, capacity=capacity))
            self._resources.setdefault(pool.name, set()).update(pool.capacity)
        self._refuse_twice("pools", [pool.name for pool in written])
        return pools

    def _tenant(self, at: int, tenant: WrittenTenant) -> SnapshotTenant:
        self._check_name(("tenants", at, "name"), tenant.name)
        if tenant.weight is not None:
            self.problems += check_weight(self._field("tenants", at, "weight"), tenant.weight)
        if tenant.pool is not None and not self._check_pool("tenants", at, tenant.pool):
            self._misnamed.add(tenant.pool)
        past = self._amounts(("tenants", at, "past_use"), tenant.past_use)
        if any(past.values()):
            self._check_past_use(at, tenant)
        return SnapshotTenant(
            name=tenant.name,
            weight=tenant.weight,
            pool=tenant.pool,
            parent=tenant.parent,
            past_use={resource: amount for resource, amount in past.items() if amount},
        )

    def _check_past_use(self, at: int, tenant: WrittenTenant) -> None:
        if self._policy is not None and self._policy.half_life_hours is None:
            reason = "past use counts only by a half-life: set half_life_hours in the policy"
            self._fail(("tenants", at, "past_use"), tenant.past_use, reason)

    def _check_tree(self) -> None:
        """The tree as a whole: the snapshot's word on a parent counts before the policy's."""
        listed = [] if self._policy is None else self._policy.tenants
        by_policy = {tenant.name: tenant.parent for tenant in listed}
        parents: dict[str, str | None] = dict(by_policy)
        places: dict[str, tuple[int, str]] = {}
        for at, tenant in enumerate(self._written.tenants):
            parents[tenant.name] = tenant.parent or by_policy.get(tenant.name)
            places[tenant.name] = at, tenant.name
        self._inner = inner_nodes(parents)
        for name, reason in check_tree(parents, self._tenant_names):
            if name in places:
                self._fail(("tenants", places[name][0], "parent"), parents[name], reason)
            else:
                at = next(at for at, tenant in enumerate(listed) if tenant.name == name)
                self.problems.append(FieldError(f"policy.tenants[{at}].parent", parents[name], reason))

    def _find_pools_of_tenants(self) -> None:
        """Each known tenant's pool: its own word, then the policy's, then those above it, then the only one."""
        alone = next(iter(self._pool_names)) if len(self._pool_names) == 1 else None
        self._pool_of = dict.fromkeys(self._tenant_names, alone)
        self._pool_of |= dict.fromkeys(names_of(self._written.policy.get("tenants")), alone)
        self._pool_of |= pools_of_tenants(self._policy, self._written.tenants, alone)

    def _check_places_of_past_use(self) -> None:
        for at, tenant in enumerate(self._written.tenants):
            pool = self._pool_of.get(tenant.name)
            if pool is None and tenant.past_use:
                reason = "counts in one pool: name the tenant's pool"
                self._fail(("tenants", at, "past_use"), tenant.past_use, reason)
            elif pool is not None:
                self._check_resources(("tenants", at, "past_use"), tenant.past_use, pool)

    def _nodes(self) -> list[SnapshotNode]:
        nodes = []
        names = set[tuple[str, str]]()
        for at, written in enumerate(self._written.nodes):
            self._check_name(("nodes", at, "name"), written.name)
            if written.cluster is not None:
                self._check_name(("nodes", at, "cluster"), written.cluster)
            if written.pool is not None:
                self._check_pool("nodes", at, written.pool)
            node = check_node(written, *self._telling("nodes", at))
            if (node.cluster, node.name) in names:
                self._fail(("nodes", at, "name"), node.name, "is named twice")
            names.add((node.cluster, node.name))
            self._on_nodes.update(node.allocatable)
            if node.registers_cards:
                for pool in self._resources if node.pool is None else {node.pool} & self._resources.keys():
                    self._resources[pool].update(CARD_RESOURCES)
            nodes.append(node)
        return nodes

    def _queues(self) -> list[SnapshotQueue]:
        queues = []
        doors = set[tuple[str, str, str]]()
        for at, written in enumerate(self._written.queues):
            self._check_name(("queues", at, "name"), written.name)
            self._frontend("queues", at, written.frontend)
            self._named("queues", at, "cluster", written.cluster)
            _, fail = self._telling("queues", at)
            queue = check_queue(written, self._pool_of_queue(at, written), fail)
            if (door := (queue.cluster, queue.frontend, queue.name)) in doors:
                fail("name", queue.name, "is named twice")
            doors.add(door)
            queues.append(queue)
        return queues

    def _pool_of_queue(self, at: int, queue: WrittenQueue) -> str:
        if queue.pool is None and len(self._pool_names) == 1:
            return next(iter(self._pool_names))
        if queue.pool is None:
            reason = f"is missing: name one of {_listed(self._pool_names)}"
            self._fail(("queues", at, "pool"), queue.pool, reason)
        else:
            self._check_pool("queues", at, queue.pool)
        return queue.pool or ""

    def _class_values(self) -> list[SnapshotClassValue]:
        values = []
        named = set[tuple[str, str]]()
        for at, written in enumerate(self._written.class_values):
            self._named("class_values", at, "cluster", written.cluster)
            _, fail = self._telling("class_values", at)
            value = check_class_value(written, self._classes, fail)
            if (value.cluster, value.urgency) in named:
                fail("class", value.urgency, "is named twice")
            named.add((value.cluster, value.urgency))
            values.append(value)
        return values

    # Jobs ---------------------------------------------------------------------------------------------------------

    def _running(self, at: int, job: WrittenRunning) -> SnapshotRunning:
        known = len(self.problems)
        self._check_id("running", at, job.id)
        pool = self._place("running", at, job)
        pods, gang = check_gang(job.gang, job.annotations, *self._telling("running", at))
        read = SnapshotRunning(
            id=job.id,
            tenant=job.tenant,
            pool=pool,
            urgency=self._class("running", at, job.urgency),
            demand=self._demand("running", at, job.demand, pool),
            started=self._instant(job.started, "running", at, "started"),
            ends=self._instant(job.ends, "running", at, "ends"),
            pods=pods,
            gang=gang,
        )
        if len(self.problems) == known:
            self._check_asks("running", at, job, read)
        return read

    def _check_asks(
        self, key: str, at: int, written: WrittenRunning | WrittenJob, read: SnapshotRunning | SnapshotJob
    ) -> None:
        """What the pods ask for, where nothing else is wrong with the job."""
        counted = self._resources.get(read.pool, set())
        check_asks(read, written.demand, counted, self._on_nodes, self._telling(key, at)[1])

    def _jobs(self) -> list[SnapshotJob]:
        """Each job, at once where it is right beyond doubt."""
        if self._unread is None:
            return [self._job(at, job) for at, job in enumerate(self._written.jobs)]
        limits = Limits(_FIRST_SECOND, _LAST_SECOND, MAX_NAME, MAX_LEVEL)
        quick = QuickJobs(
            ids=self._ids,
            uids=self._uids,
            check=self._closely,
            resources=self._resources,
            quantity=_quantity_of,
            limits=limits,
        )
        return list(quick.read(self._unread))

    def _closely(self, at: int, job: WrittenJob) -> Checked:
        known = len(self.problems)
        return Checked(self._job(at, job), right=len(self.problems) == known)

    def _job(self, at: int, job: WrittenJob) -> SnapshotJob:
        known = len(self.problems)
        uid = self._uid(at, job)
        pool = self._place("jobs", at, job)
        submitted = self._submitted(at, job.submitted)
        queue_time = self._instant(job.queue_time, "jobs", at, "queue_time")
        pods, gang = check_gang(job.gang, job.annotations, *self._telling("jobs", at))
        read = SnapshotJob(
            id=job.id,
            uid=uid,
            tenant=job.tenant,
            pool=pool,
            urgency=self._class("jobs", at, job.urgency),
            demand=self._demand("jobs", at, job.demand, pool),
            submitted=submitted,
            queue_time=submitted if queue_time is None else queue_time,
            priority_override=self._override(at, job.priority_override),
            cluster=self._named("jobs", at, "cluster", job.cluster),
            frontend=self._frontend("jobs", at, job.frontend),
            queue=self._named("jobs", at, "queue", job.queue),
            level=self._level(at, job.level),
            runtime_limit=self._limit(at, job.runtime_limit),
            pods=pods,
            gang=gang,
        )
        if job.frontend is None and len(self.problems) == known:
            self._check_asks("jobs", at, job, read)
        return read

    def _uid(self, at: int, job: WrittenJob) -> str:
        known = len(self.problems)
        self._check_id("jobs", at, job.id)
        uid = job.id
        if job.uid is not None:
            uid = job.uid
            self._check_name(("jobs", at, "uid"), uid)
        if uid in self._uids and len(self.problems) == known:
            self._fail(("jobs", at, "uid"), uid, "is another job's, too")
        self._uids.add(uid)
        return uid

    def _place(self, key: str, at: int, job: WrittenRunning | WrittenJob) -> str:
        """The pool of the job; empty, with a problem, where there is none to be found."""
        known = job.tenant in self._pool_of
        if not known and not self._takes_unlisted:
            self._fail(
                (key, at, "tenant"), job.tenant, "is not a tenant, neither of the snapshot nor of the policy"
            )
            return ""
        if job.tenant in self._inner:
            reason = "has tenants below it, and so no jobs of its own"
            self._fail((key, at, "tenant"), job.tenant, reason)
        if job.pool is not None:
            self._check_pool(key, at, job.pool)
            return job.pool
        pool = self._pool_of.get(job.tenant)
        if not known and len(self._pool_names) == 1:
            pool = next(iter(self._pool_names))
        if pool in self._pool_names:
            return pool
        if pool not in self._misnamed:
            reason = "is missing: its tenant names no pool that is in the snapshot"
            self._fail((key, at, "pool"), job.pool, reason)
        return ""

    def _class(self, key: str, at: int, urgency: str | None) -> str:
        if self._policy is None:
            return ""  # which classes there are is not known: the policy's own problems are told
        classes = self._classes
        if urgency is None:
            return classes[-1]
        if urgency not in classes:
            self._fail((key, at, "class"), urgency, f"is not a class; classes are {', '.join(classes)}")
        return urgency

    def _demand(self, key: str, at: int, found: Mapping[str, object], pool: str) -> dict[str, int]:
        demand = self._amounts((key, at, "demand"), found)
        self._check_resources((key, at, "demand"), found, pool)
        return {resource: amount for resource, amount in demand.items() if amount}

    def _check_resources(self, place: tuple[str, int, str], found: Mapping[str, object], pool: str) -> None:
        """Each is one of the pool's: what is none of them would count for nothing."""
        known = self._resources.get(pool)
        if known is None or found.keys() <= known:
            return
        key, at, name = place
        for resource in sorted(found.keys() - known):
            reason = f"is not a resource of pool {pool!r}, which has {_listed(known)}; state it there as 0 if it has none"
            self._fail((key, at, f"{name}.{resource}"), found[resource], reason)

    def _submitted(self, at: int, found: object) -> Micros:
        if found is None:
            self._fail(("jobs", at, "submitted"), None, "must be a time")
            return 0
        return self._instant(found, "jobs", at, "submitted") or 0

    def _named(self, key: str, at: int, name: str, found: str | None) -> str:
        if found not in self._good_names and self._check_name((key, at, name), found or ""):
            self._good_names.add(found)
        return found or ""

    def _frontend(self, key: str, at: int, found: str | None) -> str:
        if found is not None and found not in FRONTENDS:
            reason = f"is not a frontend; frontends are {', '.join(FRONTENDS)}"
            self._fail((key, at, "frontend"), found, reason)
        return found or ""

    def _level(self, at: int, found: int | None) -> int:
        if found is None:
            return SnapshotJob.DEFAULT_LEVEL
        check_level("level", found, self._telling("jobs", at)[1])
        return found

    def _override(self, at: int, found: float | None) -> float | None:
        if found is None or self._policy is None:
            return None
        place = ("jobs", at, "priority_override")
        mode = self._policy.class_mode
        if mode == "strict":
            self._fail(place, found, "takes the place of a class's weight: strict classes have none")
        least = LEAST_WEIGHT if mode == "multiplicative" else 0
        if not least <= found <= LARGEST_CLASS_WEIGHT:
            self._fail(place, found, f"must lie between {least:g} and {LARGEST_CLASS_WEIGHT:g}")
        return found

    def _limit(self, at: int, found: object) -> Micros | None:
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= _LAST_SECOND:
            self._fail(("jobs", at, "runtime_limit"), found, "must be a number of seconds from 0")
            return None
        return from_seconds(found)

    def _telling(self, key: str, at: int) -> tuple[Amounts, Fail]:
        """How the parts of one entry are read into base units, and how their problems are told."""

        def amounts(name: str, found: Mapping[str, object]) -> dict[str, int]:
            return self._amounts((key, at, name), found)

        def fail(name: str, value: object, reason: str) -> None:
            self._fail((key, at, name), value, reason)

        return amounts, fail

    # Single values ------------------------------------------------------------------------------------------------

    def _amounts(self, place: tuple[str, int, str], found: Mapping[str, object]) -> dict[str, int]:
        """Quantities in base units; those that cannot be read are left out, with a problem."""
        amounts: dict[str, int] = {}
        for resource, value in found.items():
            known = self._quantities.get((resource, value)) if type(value) in (int, str) else None  # type: ignore[arg-type] # mypy does not narrow by type()
            if known is None:
                known = self._quantity(place, resource, value)
            if known is not None:
                amounts[resource] = known
        return amounts

    def _quantity(self, place: tuple[str, int, str], resource: str, value: object) -> int | None:
        key, at, name = place
        self._check_name((key, at, name), resource)
        try:
            amount = parse_quantity(resource, value, field="")
        except FieldError as error:
            self._fail((key, at, f"{name}.{resource}"), value, error.reason)
            return None
        if type(value) is int or type(value) is str:
            # Jobs ask for few different amounts: each notation is parsed once. True is no 1 here.
            self._quantities[resource, value] = amount
        return amount

    def _instant(self, found: object, key: str, at: int | None = None, name: str = "") -> Micros | None:
        """Unix seconds or RFC 3339 as an instant; None where nothing or nothing readable is there."""
        if type(found) is int and _FIRST_SECOND <= found <= _LAST_SECOND:
            return found * SECOND
        if found is None:
            return None
        if isinstance(found, float) and not math.isnan(found) and _FIRST_SECOND <= found < _LAST_SECOND:
            return from_seconds(found)
        if isinstance(found, str | datetime):
            try:
                instant = from_datetime(msgspec.convert(found, Moment))
                if _FIRST_SECOND <= instant // SECOND <= _LAST_SECOND:  # its offset may lead out of the years
                    return instant
            except (msgspec.ValidationError, OverflowError, UnicodeEncodeError):
                pass
        field = key if at is None else self._field(key, at, name)
        reason = "must be a time: Unix seconds, or RFC 3339 with its offset, in the years 1 to 9999"
        self.problems.append(FieldError(field, found, reason))
        return None

    def _check_name(self, place: tuple[str, int, str], name: str) -> bool:
        good = 0 < len(name) <= MAX_NAME and name.isprintable()
        if not good:
            self._fail(place, name, f"must be 1 to {MAX_NAME} printable characters")
        return good

    def _check_id(self, key: str, at: int, id: str) -> None:  # noqa: A002 # the snapshot's own word
        self._check_name((key, at, "id"), id)
        if id in self._ids:
            self._fail((key, at, "id"), id, "is another job's, too")
        self._ids.add(id)

    def _check_pool(self, key: str, at: int, pool: str) -> bool:
        known = pool in self._pool_names
        if not known:
            self._fail((key, at, "pool"), pool, f"is not a pool; pools are {_listed(self._pool_names)}")
        return known

    def _refuse_twice(self, key: str, names: list[str]) -> None:
        seen: set[str] = set()
        for at, name in enumerate(names):
            if name in seen:
                self._fail((key, at, "name"), name, "is named twice")
            seen.add(name)

    def _fail(self, place: tuple[str, int, str], value: object, reason: str) -> None:
        self.problems.append(FieldError(self._field(*place), value, reason))

    def _field(self, key: str, at: int, name: str) -> str:
        kept = self._kept.get(key)
        return f"{key}[{at if kept is None else kept[at]}].{name}"


def pools_of_tenants(
    policy: PolicyDocument | None, stated: Iterable[WrittenTenant | SnapshotTenant], alone: str | None
) -> dict[str, str | None]:
    """By tenant of policy or snapshot, the pool that its jobs stand in; None where nothing says.

    Args:
        policy: as far as it is known.
        stated: the snapshot's tenants; their word counts before the policy's.
        alone: the only pool, where there is one.
    """
    listed = [] if policy is None else policy.tenants
    pools = {tenant.name: tenant.pool for tenant in listed}
    parents = {tenant.name: tenant.parent for tenant in listed}
    for tenant in stated:
        pools[tenant.name] = tenant.pool or pools.get(tenant.name)
        parents[tenant.name] = tenant.parent or parents.get(tenant.name)
    return {name: _inherited(name, pools, parents) or alone for name in pools}


def _inherited(name: str, pools: Mapping[str, str | None], parents: Mapping[str, str | None]) -> str | None:
    way: set[str] = set()
    above: str | None = name
    while above is not None and above not in way:
        if pools.get(above) is not None:
            return pools[above]
        way.add(above)
        above = parents.get(above)
    return None


def _quantity_of(resource: str, value: float | str) -> int | None:
    if type(value) is int and 0 <= (amount := value * base_units(resource)) <= MAX_QUANTITY:
        return amount
    try:
        return parse_quantity(resource, value)
    except FieldError:
        return None


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)[:_LISTED]
    return (", ".join(shown) + (", …" if len(names) > len(shown) else "")) or "none"
