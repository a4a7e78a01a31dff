"""The sense of a snapshot's jobs, waiting and running: their ids, what they ask for, and the rest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import batched, compress
from operator import is_, not_
from typing import cast

from msgspec.structs import replace

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_contracts.base.quantities import exponent_hint, in_digits
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.validate import LARGEST_CLASS_WEIGHT, LEAST_WEIGHT
from fairlead_contracts.snapshot.gangs import check_asks, check_gang
from fairlead_contracts.snapshot.tenants import TenantChecks
from fairlead_contracts.snapshot.types import (
    SnapshotJob,
    SnapshotRunning,
    WrittenJob,
    WrittenRunning,
)
from fairlead_contracts.snapshot.values import (
    LAST_SECOND,
    EntryPlace,
    SnapshotValues,
    are_names,
    check_level,
    is_name,
)

AT_ONCE = 1024
"""Jobs that are read side by side, field by field: one by one takes three times as long."""
_REMEMBERED = 32_768
"""Different demands that are remembered: some 10 MB."""


class JobIds:
    """The ids and uids that were met. An id counts as the uid of a waiting job that states none."""

    def __init__(self, values: SnapshotValues) -> None:
        self._values = values
        self._ids: set[str] = set()
        """Ids of running jobs, and of jobs that state a uid, too."""
        self._uids: set[str] = set()
        """Uids as stated."""
        self._only_ids: set[str] = set()
        """Ids of jobs whose ids are their uids, too."""

    def take_running(self, at: int, id: str) -> None:  # noqa: A002 # the snapshot's own word
        """Adds the id of a running job, and tells what is wrong with it."""
        self._check_id("running", at, id)
        self._ids.add(id)

    def take_all(self, jobs: Sequence[WrittenJob]) -> bool:
        """Adds the ids of some waiting jobs, if all of them are right."""
        ids = {job.id for job in jobs}
        stated = {job.uid for job in jobs if job.uid is not None}
        uids = {job.id if job.uid is None else job.uid for job in jobs} if stated else ids
        named = ids | stated if stated else ids
        are_new = (
            len(ids) == len(uids) == len(jobs)
            and ids.isdisjoint(self._ids)
            and uids.isdisjoint(self._uids)
            and named.isdisjoint(self._only_ids)
            and are_names(named)
        )
        if are_new:
            only = uids - stated
            self._only_ids |= only
            self._ids |= ids - only
            self._uids |= stated
        return are_new

    def take(self, at: int, job: WrittenJob) -> None:
        """Adds the ids of one waiting job, and tells what is wrong with them."""
        known = len(self._values.problems)
        uid = job.id if job.uid is None else job.uid
        self._check_id("jobs", at, job.id)
        if job.uid is not None:
            self._values.check_name(("jobs", at, "uid"), uid)
        is_known = uid in self._uids or (job.uid is not None and uid in self._only_ids)
        if is_known and len(self._values.problems) == known:
            self._values.fail(("jobs", at, "uid"), uid, "is another job's, too")
        if job.uid is None:
            self._only_ids.add(uid)
        else:
            self._ids.add(job.id)
            self._uids.add(uid)

    def _check_id(self, key: str, at: int, id: str) -> None:  # noqa: A002 # the snapshot's own word
        if not is_name(id):
            self._values.check_name((key, at, "id"), id)
        if id in self._only_ids or id in self._ids:
            self._values.fail((key, at, "id"), id, "is another job's, too")


class DemandReader:
    """Reads demands, without what is 0. Jobs that ask for the same mostly share one dict.

    Args:
        resources: names of the pools' resources, by pool.
        values: reads amounts, and collects problems.
    """

    def __init__(self, resources: Mapping[str, AbstractSet[str]], values: SnapshotValues) -> None:
        self._resources = resources
        self._values = values
        self._known: dict[tuple[object, ...], dict[str, int]] = {}
        self._varied = False
        """Whether demands hardly repeat: to look for them costs as much as reading them."""

    def one(self, place: EntryPlace, found: Mapping[str, object], pool: str) -> dict[str, int]:
        """Reads one demand, and tells its problems."""
        amounts = self._values.amounts(place, found)
        self._values.check_resources(place, found, pool, self._resources.get(pool))
        return {resource: amount for resource, amount in amounts.items() if amount}

    def all(
        self, at: int, found: Sequence[Mapping[str, object]], pools: Sequence[str]
    ) -> list[dict[str, int]]:
        """The demands of waiting jobs of these pools.

        Args:
            at: the position of the first; problems are told of that one.
            found: the demands as written.
            pools: the pool of each.
        """
        named = set[str]().union(*found)
        for pool in set(pools):
            known = self._resources.get(pool, named)
            if not named <= known and any(
                not one.keys() <= known for one, its in zip(found, pools, strict=True) if its == pool
            ):
                return self._one_by_one(at, found, pools)
        try:
            return self._shared(self._side_by_side(found, named))
        except FieldError:
            return self._one_by_one(at, found, pools)

    def _one_by_one(
        self, at: int, found: Sequence[Mapping[str, object]], pools: Sequence[str]
    ) -> list[dict[str, int]]:
        return [self.one(("jobs", at, "demand"), one, pool) for one, pool in zip(found, pools, strict=True)]

    def _side_by_side(
        self, found: Sequence[Mapping[str, object]], named: AbstractSet[str]
    ) -> list[dict[str, int]]:
        """The demands, resource by resource; `named` are those that some of them names.

        Raises:
            FieldError: some resource is none, or an amount cannot be read; nothing is told.
        """
        read = cast("list[dict[str, int]]", list(map(dict, found)))  # as soon as each amount is read
        for resource in named:
            asking = [one for one in read if resource in one]
            amounts = self._values.column_of_amounts(resource, [one[resource] for one in asking])
            for one, amount in zip(asking, amounts, strict=True):
                one[resource] = amount
            if 0 in amounts:
                for one in compress(asking, map(not_, amounts)):
                    del one[resource]
        return read

    def _shared(self, read: list[dict[str, int]]) -> list[dict[str, int]]:
        """The demands, where jobs that ask for the same share one dict."""
        if self._varied:
            return read
        known = self._known
        is_full = len(known) >= _REMEMBERED
        names_and_amounts = [(*one, *one.values()) for one in read]
        shared = list(map(known.get if is_full else known.setdefault, names_and_amounts, read))
        if is_full and sum(map(is_, shared, read)) > len(read) / 2:
            self._varied = True
            known.clear()
        return shared


class JobChecks:
    """Checks the jobs of a snapshot whose other parts are known.

    Args:
        policy: the policy, as far as it is known.
        tenants: the tenants with their pools.
        resources: names of the pools' resources, by pool.
        on_nodes: resources that nodes have: pods may ask for some that no quota counts.
        values: reads single values, and collects problems.
    """

    def __init__(
        self,
        policy: PolicyDocument | None,
        tenants: TenantChecks,
        resources: Mapping[str, AbstractSet[str]],
        on_nodes: AbstractSet[str],
        values: SnapshotValues,
    ) -> None:
        self._policy = policy
        self._classes = [] if policy is None else policy.classes
        self._takes_unlisted = policy is not None and policy.unlisted_weight is not None
        self._tenants = tenants
        self._resources = resources
        self._on_nodes = on_nodes
        self._values = values
        self._ids = JobIds(values)
        self._demands = DemandReader(resources, values)
        # Jobs are of few tenants, classes and queues: what was right once is right again, and one text for all of them.
        self._places: dict[str | tuple[str, str], tuple[str, str]] = {}
        """Tenant and pool, by what is said of them: most jobs say their tenant alone."""
        self._job_classes: dict[str | None, str] = {}
        self._frontends: dict[str | None, str] = {}
        self._named: dict[str | None, str] = {}
        """Names of queues and clusters that are right."""

    def running(self, written: Iterable[WrittenRunning]) -> list[SnapshotRunning]:
        """Reads the running jobs."""
        return [self._running(at, job) for at, job in enumerate(written)]

    def _running(self, at: int, job: WrittenRunning) -> SnapshotRunning:
        known = len(self._values.problems)
        self._ids.take_running(at, job.id)
        pool = self._place("running", at, job.tenant, job.pool)
        pods, gang = check_gang(job.gang, job.annotations, *self._values.telling("running", at))
        read = SnapshotRunning(
            id=job.id,
            tenant=job.tenant,
            pool=pool,
            job_class=self._class("running", at, job.job_class),
            demand=self._demands.one(("running", at, "demand"), job.demand, pool),
            started=self._values.instant(job.started, "running", at, "started"),
            ends=self._values.instant(job.ends, "running", at, "ends"),
            frontend=self._values.frontend("running", at, job.frontend),
            pods=pods,
            gang=gang,
        )
        if job.frontend is None and len(self._values.problems) == known:
            self._check_asks("running", at, job, read)
        return read

    def _check_asks(
        self, key: str, at: int, written: WrittenRunning | WrittenJob, read: SnapshotRunning | SnapshotJob
    ) -> None:
        """Checks what the pods ask for, where nothing else is wrong with the job."""
        counted = self._resources.get(read.pool, set())
        check_asks(read, written.demand, counted, self._on_nodes, self._values.telling(key, at)[1])

    def waiting(self, written: Iterable[WrittenJob]) -> list[SnapshotJob]:
        """Reads the waiting jobs."""
        read = list[SnapshotJob]()
        for jobs in batched(written, AT_ONCE, strict=False):
            read += self._side_by_side(len(read), jobs)
        return read

    def _side_by_side(self, at: int, jobs: Sequence[WrittenJob]) -> list[SnapshotJob]:
        """Reads jobs together; where something is wrong, one by one, so that problems are told job by job."""
        known = len(self._values.problems)
        read = self._columns(at, jobs, known)
        if len(self._values.problems) == known and self._ids.take_all(jobs):
            return read
        del self._values.problems[known:]
        return [self._alone(at + number, job) for number, job in enumerate(jobs)]

    def _alone(self, at: int, job: WrittenJob) -> SnapshotJob:
        known = len(self._values.problems)
        self._ids.take(at, job)
        [read] = self._columns(at, [job], known)
        return read

    def _columns(self, at: int, jobs: Sequence[WrittenJob], known: int) -> list[SnapshotJob]:
        """The jobs, field by field.

        Args:
            at: position of the first.
            jobs: some, or one: then its problems are told.
            known: the number of problems before these jobs.
        """
        tenants, pools, classes, clusters, frontends, queues = self._names(at, jobs)
        since = [job.submitted for job in jobs]
        submitted = self._submitted(at, since)
        columns = (
            [job.id for job in jobs],
            [job.id if job.uid is None else job.uid for job in jobs],
            tenants,
            pools,
            classes,
            self._demands.all(at, [job.demand for job in jobs], pools),
            submitted,
            self._queue_times(at, [job.queue_time for job in jobs], since, submitted),
            clusters,
            frontends,
            queues,
            [SnapshotJob.DEFAULT_LEVEL if job.level is None else self._level(at, job.level) for job in jobs],
            [None if job.runtime_limit is None else self._limit(at, job.runtime_limit) for job in jobs],
            [
                None if job.priority_override is None else self._override(at, job.priority_override)
                for job in jobs
            ],
            [job.flavorless for job in jobs],
            [job.limited for job in jobs],
        )
        read = list(map(SnapshotJob, *columns))
        for number, job in enumerate(jobs):
            if job.gang is not None or job.annotations:
                read[number] = self._with_gang(at + number, job, read[number], known)
        return read

    def _names(self, at: int, jobs: Sequence[WrittenJob]) -> Sequence[Sequence[str]]:
        """Tenants, pools, classes, clusters, frontends and queues of the jobs, see `_columns`."""
        places = self._once(
            self._places,
            [job.tenant if job.pool is None else (job.tenant, job.pool) for job in jobs],
            lambda stated: self._tenant_and_pool(at, stated),
        )
        classes = self._once(
            self._job_classes, [job.job_class for job in jobs], lambda one: self._class("jobs", at, one)
        )
        clusters = self._once(
            self._named,
            [job.cluster for job in jobs],
            lambda one: self._values.named("jobs", at, "cluster", one),
        )
        frontends = self._once(
            self._frontends,
            [job.frontend for job in jobs],
            lambda one: self._values.frontend("jobs", at, one),
        )
        queues = self._once(
            self._named, [job.queue for job in jobs], lambda one: self._values.named("jobs", at, "queue", one)
        )
        return *zip(*places, strict=True), classes, clusters, frontends, queues

    def _tenant_and_pool(self, at: int, stated: str | tuple[str, str]) -> tuple[str, str]:
        tenant, pool = (stated, None) if isinstance(stated, str) else stated
        return tenant, self._place("jobs", at, tenant, pool)

    def _submitted(self, at: int, found: Sequence[object]) -> list[Micros]:
        if None in found:
            self._values.fail(("jobs", at, "submitted"), None, "must be a time")
        return [instant or 0 for instant in self._values.instants(found, "jobs", at, "submitted")]

    def _queue_times(
        self, at: int, found: Sequence[object], since: Sequence[object], submitted: Sequence[Micros]
    ) -> Sequence[Micros]:
        if found.count(None) == len(found):
            return submitted
        # Mostly they are the same texts: those were read already, and told if they could not be.
        if found == since and all(submitted) and list(map(type, found)) == list(map(type, since)):
            return submitted
        read = self._values.instants(found, "jobs", at, "queue_time")
        return [one if queued is None else queued for one, queued in zip(submitted, read, strict=True)]

    def _with_gang(self, at: int, job: WrittenJob, read: SnapshotJob, known: int) -> SnapshotJob:
        pods, gang = check_gang(job.gang, job.annotations, *self._values.telling("jobs", at))
        read = replace(read, pods=pods, gang=gang)
        if job.frontend is None and len(self._values.problems) == known:
            self._check_asks("jobs", at, job, read)
        return read

    def _once[K, V](self, known: dict[K, V], found: Sequence[K], read: Callable[[K], V]) -> list[V]:
        """Reads values that many jobs share, each once if it is right."""
        try:
            return list(map(known.__getitem__, found))
        except KeyError:
            return [known[one] if one in known else self._learned(known, one, read) for one in found]

    def _learned[K, V](self, known: dict[K, V], found: K, read: Callable[[K], V]) -> V:
        problems = len(self._values.problems)
        value = read(found)
        if len(self._values.problems) == problems:
            known[found] = value
        return value

    def _place(self, key: str, at: int, tenant: str, stated: str | None) -> str:
        """The pool of the job; empty, with a problem, where there is none to be found."""
        known = tenant in self._tenants.pool_of
        if not known and not self._takes_unlisted:
            self._values.fail(
                (key, at, "tenant"), tenant, "is not a tenant, neither of the snapshot nor of the policy"
            )
            return ""
        if tenant in self._tenants.inner:
            reason = "has tenants below it, and so no jobs of its own"
            self._values.fail((key, at, "tenant"), tenant, reason)
        if stated is not None:
            self._values.check_pool(key, at, stated)
            return stated
        pool = self._tenants.pool_of.get(tenant)
        if not known and len(self._values.pools) == 1:
            pool = next(iter(self._values.pools))
        if pool in self._values.pools:
            return pool
        if pool not in self._tenants.misnamed:
            reason = "is missing: its tenant names no pool that is in the snapshot"
            self._values.fail((key, at, "pool"), stated, reason)
        return ""

    def _class(self, key: str, at: int, job_class: str | None) -> str:
        if self._policy is None:
            return ""  # which classes there are is not known: the policy's own problems are told
        classes = self._classes
        if job_class is None:
            return classes[-1]
        if job_class not in classes:
            self._values.fail((key, at, "class"), job_class, f"must be one of {', '.join(classes)}")
        return job_class

    def _level(self, at: int, found: int) -> int:
        check_level("level", found, self._values.telling("jobs", at)[1])
        return found

    def _override(self, at: int, found: float) -> float | None:
        if self._policy is None:
            return None
        place = ("jobs", at, "priority_override")
        mode = self._policy.class_mode
        if mode == "strict":
            self._values.fail(place, found, "takes the place of a class's weight: strict classes have none")
        least = LEAST_WEIGHT if mode == "multiplicative" else 0
        if not least <= found <= LARGEST_CLASS_WEIGHT:
            self._values.fail(
                place, found, f"must lie between {in_digits(least)} and {in_digits(LARGEST_CLASS_WEIGHT)}"
            )
        return found

    def _limit(self, at: int, found: object) -> Micros | None:
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= LAST_SECOND:
            self._values.fail(
                ("jobs", at, "runtime_limit"),
                found,
                f"must be a number of seconds from 0{exponent_hint(found)}",
            )
            return None
        return from_seconds(found)
