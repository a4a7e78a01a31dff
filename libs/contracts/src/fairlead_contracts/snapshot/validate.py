"""The sense of a snapshot: references, quantities, times, and what this release does not act on yet."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import MAX_SUM
from fairlead_contracts.frontend.capabilities import Capabilities
from fairlead_contracts.frontend.cards import CARD_RESOURCES
from fairlead_contracts.frontend.shipped import SHIPPED, shipped_capabilities
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import names_of, read_document
from fairlead_contracts.snapshot.gangs import Fail, check_node
from fairlead_contracts.snapshot.jobs import JobChecks
from fairlead_contracts.snapshot.tenants import TenantChecks
from fairlead_contracts.snapshot.types import (
    Snapshot,
    SnapshotClassValue,
    SnapshotNode,
    SnapshotPool,
    SnapshotQueue,
    WrittenClassValue,
    WrittenJob,
    WrittenQueue,
    WrittenSnapshot,
    in_base_units,
)
from fairlead_contracts.snapshot.values import SnapshotValues, check_level, listed

type QueueKey = tuple[str, str, str]
"""(cluster, frontend, name) of a queue."""


class SnapshotChecks[Job]:
    """Checks a snapshot whose shape is right, and puts it into base units.

    Args:
        written: the snapshot, as far as it could be read.
        kept: positions in the file of the entries that are in it, by list; by default all are.
        stated: names of pools and tenants that the file has, also of entries that could not be read.
    """

    def __init__(
        self,
        written: WrittenSnapshot[Job],
        jobs: Iterable[WrittenJob],
        *,
        kept: Mapping[str, list[int]],
        stated: Mapping[str, set[str]],
    ) -> None:
        pools = {pool.name for pool in written.pools} | stated.get("pools", set())
        self._written = written
        self._jobs = jobs
        self._stated = stated
        by_queue = dict.fromkeys(
            queue.frontend
            for queue in written.queues
            if queue.frontend and (queue.capabilities is not None or queue.ties)
        )
        self._values = SnapshotValues(kept, pools, [*SHIPPED, *(by_queue.keys() - SHIPPED.keys())])
        self._resources: dict[str, set[str]] = {}
        """Names of the pools' resources, by pool."""
        self._on_nodes: set[str] = set()

    @property
    def problems(self) -> list[FieldError]:
        """The problems that were found."""
        return self._values.problems

    def snapshot(self) -> Snapshot | None:
        """The checked snapshot; it counts only where no problem was found."""
        written = self._written
        names = {tenant.name for tenant in written.tenants} | self._stated.get("tenants", set())
        now = self._now()
        policy = self._policy(names)
        pools = self._pools()
        by_policy = names_of(written.policy.get("tenants"))
        checks = TenantChecks(written.tenants, policy, by_policy, names, self._values)
        tenants = checks.read()
        checks.check_tree()
        checks.find_pools()
        nodes = self._nodes()
        checks.check_places_of_past_use(self._resources)
        queues = self._queues()
        values = self._class_values([] if policy is None else policy.classes)
        jobs = JobChecks(policy, checks, self._resources, self._on_nodes, self._values)
        running = jobs.running(written.running)
        waiting = jobs.waiting(self._jobs)
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
            jobs=waiting,
        )

    def _now(self) -> Micros:
        if self._written.now is None:
            self._values.problems.append(
                FieldError("now", None, "is missing: the instant that waiting is counted to")
            )
            return 0
        return self._values.instant(self._written.now, "now") or 0

    def _policy(self, names: Collection[str]) -> PolicyDocument | None:
        try:
            return read_document(self._written.policy, tenants=names, pools=self._values.pools)
        except DocumentError as error:
            self._values.problems += [
                FieldError(f"policy.{part.field}", part.value, part.reason) for part in error.problems
            ]
            return None

    def _pools(self) -> list[SnapshotPool]:
        written = self._written.pools
        if not self._values.pools:
            self._values.problems.append(FieldError("pools", [], "must name at least one pool"))
        pools = []
        for at, pool in enumerate(written):
            self._values.check_name(("pools", at, "name"), pool.name)
            capacity = self._values.amounts(("pools", at, "capacity"), pool.capacity, MAX_SUM)
            for name in sorted(set(pool.saturated or ()) - pool.capacity.keys()):
                self._values.fail(("pools", at, "saturated"), name, "is not among what the pool has")
            quota = (
                None
                if pool.quota is None
                else self._values.amounts(("pools", at, "quota"), pool.quota, MAX_SUM)
            )
            pools.append(in_base_units(SnapshotPool, pool, capacity=capacity, quota=quota))
            self._resources.setdefault(pool.name, set()).update(pool.capacity)
        self._values.refuse_twice("pools", [pool.name for pool in written])
        return pools

    def _nodes(self) -> list[SnapshotNode]:
        nodes = []
        names = set[tuple[str, str]]()
        for at, written in enumerate(self._written.nodes):
            self._values.check_name(("nodes", at, "name"), written.name)
            if written.cluster is not None:
                self._values.check_name(("nodes", at, "cluster"), written.cluster)
            if written.pool is not None:
                self._values.check_pool("nodes", at, written.pool)
            node = check_node(written, *self._values.telling("nodes", at))
            if (node.cluster, node.name) in names:
                self._values.fail(("nodes", at, "name"), node.name, "is named twice")
            names.add((node.cluster, node.name))
            self._on_nodes.update(node.allocatable)
            if node.registers_cards:
                for pool in self._resources if node.pool is None else {node.pool} & self._resources.keys():
                    self._resources[pool].update(CARD_RESOURCES)
            nodes.append(node)
        return nodes

    def _queues(self) -> list[SnapshotQueue]:
        queues = []
        keys = set[QueueKey]()
        for at, written in enumerate(self._written.queues):
            self._values.check_name(("queues", at, "name"), written.name)
            self._values.frontend("queues", at, written.frontend)
            self._values.named("queues", at, "cluster", written.cluster)
            _, fail = self._values.telling("queues", at)
            queue = check_queue(written, self._pool_of_queue(at, written), fail)
            if (key := (queue.cluster, queue.frontend, queue.name)) in keys:
                fail("name", queue.name, "is named twice")
            keys.add(key)
            queues.append(queue)
        return queues

    def _pool_of_queue(self, at: int, queue: WrittenQueue) -> str:
        if queue.pool is None and len(self._values.pools) == 1:
            return next(iter(self._values.pools))
        if queue.pool is None:
            reason = f"is missing: name one of {listed(self._values.pools)}"
            self._values.fail(("queues", at, "pool"), queue.pool, reason)
        else:
            self._values.check_pool("queues", at, queue.pool)
        return queue.pool or ""

    def _class_values(self, classes: Collection[str]) -> list[SnapshotClassValue]:
        values = []
        named = set[tuple[str, str]]()
        for at, written in enumerate(self._written.class_values):
            self._values.named("class_values", at, "cluster", written.cluster)
            _, fail = self._values.telling("class_values", at)
            value = check_class_value(written, classes, fail)
            if (value.cluster, value.job_class) in named:
                fail("class", value.job_class, "is named twice")
            named.add((value.cluster, value.job_class))
            values.append(value)
        return values


def check_queue(queue: WrittenQueue, pool: str, fail: Fail) -> SnapshotQueue:
    """The queue, in the pool that was found for it."""
    for name in ("default_level", "lowest_level", "highest_level"):
        check_level(name, getattr(queue, name), fail)
    if queue.lowest_level > queue.highest_level:
        fail("highest_level", queue.highest_level, f"must not be below lowest_level, {queue.lowest_level}")
    return SnapshotQueue(
        name=queue.name,
        pool=pool,
        frontend=queue.frontend or "",
        cluster=queue.cluster or "",
        default_level=queue.default_level,
        lowest_level=queue.lowest_level,
        highest_level=queue.highest_level,
        bands_by_class=queue.bands_by_class,
        preemption=queue.preemption,
        capabilities=_capabilities(queue),
    )


def _capabilities(queue: WrittenQueue) -> Capabilities | None:
    """The capabilities that the queue states; None where its frontend's name says them all."""
    alone = {
        name: value
        for name in ("ties", "orders_across_queues")
        if (value := getattr(queue, name)) is not None
    }
    if queue.capabilities is None and not alone:
        return None
    known = queue.capabilities or shipped_capabilities(queue.frontend or "")
    return Capabilities(**msgspec.structs.asdict(known) | alone)


def check_class_value(found: WrittenClassValue, classes: Collection[str], fail: Fail) -> SnapshotClassValue:
    """Checks a cluster's value of one class.

    Args:
        found: the value as written.
        classes: the policy's classes; empty where they are not known.
        fail: tells a problem.
    """
    if classes and found.job_class not in classes:
        fail("class", found.job_class, f"must be one of {', '.join(classes)}")
    check_level("value", found.value, fail)
    return in_base_units(SnapshotClassValue, found, cluster=found.cluster or "")


def misplaced(snapshot: Snapshot) -> Iterator[FieldError]:
    """Finds what belongs to no queue of the snapshot: jobs of pools that have queues there, and values of classes.

    A job would be planned by levels that it cannot get, and a value would change nothing.
    """
    clusters = {queue.cluster for queue in snapshot.queues}
    for at, value in enumerate(snapshot.class_values):
        if value.cluster not in clusters:
            reason = "is not the cluster of a queue in `queues`"
            yield FieldError(f"class_values[{at}].cluster", value.cluster, reason)
    keys: dict[str, set[QueueKey]] = {}
    for queue in snapshot.queues:
        keys.setdefault(queue.pool, set()).add((queue.cluster, queue.frontend, queue.name))
    for at, job in enumerate(snapshot.jobs if keys else ()):
        known = keys.get(job.pool)
        key = job.cluster, job.frontend, job.queue
        if known is not None and key not in known:
            yield FieldError(f"jobs[{at}].queue", job.queue, _why_astray(key, job.pool, known))


def _why_astray(key: QueueKey, pool: str, known: Collection[QueueKey]) -> str:
    alike = {(cluster, frontend) for cluster, frontend, name in known if name == key[2]}
    if alike:
        places = " or ".join(sorted(_place(*one) for one in alike))
        return f"stands {places} in `queues`, and the job {_place(*key[:2])}"
    return f"is not a queue of pool {pool!r} in `queues`"


def _place(cluster: str, frontend: str) -> str:
    return f"on cluster {cluster!r} with frontend {frontend!r}"
