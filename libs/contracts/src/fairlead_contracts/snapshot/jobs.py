"""The sense of a snapshot's jobs, waiting and running."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.exponents import exponent_hint
from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_contracts.base.quantities import MAX_QUANTITY, base_units, parse_quantity
from fairlead_contracts.messages.state import HIGHEST_LEVEL
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.validate import LARGEST_CLASS_WEIGHT, LEAST_WEIGHT
from fairlead_contracts.snapshot.gangs import check_asks, check_gang
from fairlead_contracts.snapshot.queues import check_level
from fairlead_contracts.snapshot.quick import Checked, Limits, QuickJobs, UnreadJobs
from fairlead_contracts.snapshot.tenants import TenantChecks
from fairlead_contracts.snapshot.types import SnapshotJob, SnapshotRunning, WrittenJob, WrittenRunning
from fairlead_contracts.snapshot.values import FIRST_SECOND, LAST_SECOND, MAX_NAME, SnapshotValues


class JobChecks:
    """Checks the jobs of a snapshot whose other parts are known.

    Args:
        policy: as far as it is known.
        tenants: with their pools.
        resources: by pool.
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
        self._ids: set[str] = set()
        self._uids: set[str] = set()

    def running(self, written: Iterable[WrittenRunning]) -> list[SnapshotRunning]:
        """Each running job."""
        return [self._running(at, job) for at, job in enumerate(written)]

    def _running(self, at: int, job: WrittenRunning) -> SnapshotRunning:
        known = len(self._values.problems)
        self._check_id("running", at, job.id)
        pool = self._place("running", at, job)
        pods, gang = check_gang(job.gang, job.annotations, *self._values.telling("running", at))
        read = SnapshotRunning(
            id=job.id,
            tenant=job.tenant,
            pool=pool,
            urgency=self._class("running", at, job.urgency),
            demand=self._demand("running", at, job.demand, pool),
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
        """What the pods ask for, where nothing else is wrong with the job."""
        counted = self._resources.get(read.pool, set())
        check_asks(read, written.demand, counted, self._on_nodes, self._values.telling(key, at)[1])

    def waiting(self, written: Iterable[WrittenJob], unread: UnreadJobs | None) -> list[SnapshotJob]:
        """Each waiting job; those that are `unread` yet at once, where they are right beyond doubt."""
        if unread is None:
            return [self._job(at, job) for at, job in enumerate(written)]
        limits = Limits(FIRST_SECOND, LAST_SECOND, MAX_NAME, HIGHEST_LEVEL)
        quick = QuickJobs(
            ids=self._ids,
            uids=self._uids,
            check=self._closely,
            resources=self._resources,
            quantity=_quantity_of,
            limits=limits,
        )
        return quick.read(unread)

    def _closely(self, at: int, job: WrittenJob) -> Checked:
        known = len(self._values.problems)
        read = self._job(at, job)
        # Without a pool it is wrong, although that may be told of its tenant alone.
        return Checked(read, right=read.pool != "" and len(self._values.problems) == known)

    def _job(self, at: int, job: WrittenJob) -> SnapshotJob:
        known = len(self._values.problems)
        uid = self._uid(at, job)
        pool = self._place("jobs", at, job)
        submitted = self._submitted(at, job.submitted)
        queue_time = self._values.instant(job.queue_time, "jobs", at, "queue_time")
        pods, gang = check_gang(job.gang, job.annotations, *self._values.telling("jobs", at))
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
            cluster=self._values.named("jobs", at, "cluster", job.cluster),
            frontend=self._values.frontend("jobs", at, job.frontend),
            queue=self._values.named("jobs", at, "queue", job.queue),
            level=self._level(at, job.level),
            runtime_limit=self._limit(at, job.runtime_limit),
            pods=pods,
            gang=gang,
        )
        if job.frontend is None and len(self._values.problems) == known:
            self._check_asks("jobs", at, job, read)
        return read

    def _uid(self, at: int, job: WrittenJob) -> str:
        known = len(self._values.problems)
        self._check_id("jobs", at, job.id)
        uid = job.id
        if job.uid is not None:
            uid = job.uid
            self._values.check_name(("jobs", at, "uid"), uid)
        if uid in self._uids and len(self._values.problems) == known:
            self._values.fail(("jobs", at, "uid"), uid, "is another job's, too")
        self._uids.add(uid)
        return uid

    def _place(self, key: str, at: int, job: WrittenRunning | WrittenJob) -> str:
        """The pool of the job; empty, with a problem, where there is none to be found."""
        known = job.tenant in self._tenants.pool_of
        if not known and not self._takes_unlisted:
            self._values.fail(
                (key, at, "tenant"), job.tenant, "is not a tenant, neither of the snapshot nor of the policy"
            )
            return ""
        if job.tenant in self._tenants.inner:
            reason = "has tenants below it, and so no jobs of its own"
            self._values.fail((key, at, "tenant"), job.tenant, reason)
        if job.pool is not None:
            self._values.check_pool(key, at, job.pool)
            return job.pool
        pool = self._tenants.pool_of.get(job.tenant)
        if not known and len(self._values.pools) == 1:
            pool = next(iter(self._values.pools))
        if pool in self._values.pools:
            return pool
        if pool not in self._tenants.misnamed:
            reason = "is missing: its tenant names no pool that is in the snapshot"
            self._values.fail((key, at, "pool"), job.pool, reason)
        return ""

    def _class(self, key: str, at: int, urgency: str | None) -> str:
        if self._policy is None:
            return ""  # which classes there are is not known: the policy's own problems are told
        classes = self._classes
        if urgency is None:
            return classes[-1]
        if urgency not in classes:
            self._values.fail(
                (key, at, "class"), urgency, f"is not a class; classes are {', '.join(classes)}"
            )
        return urgency

    def _demand(self, key: str, at: int, found: Mapping[str, object], pool: str) -> dict[str, int]:
        demand = self._values.amounts((key, at, "demand"), found)
        self._values.check_resources((key, at, "demand"), found, pool, self._resources.get(pool))
        return {resource: amount for resource, amount in demand.items() if amount}

    def _submitted(self, at: int, found: object) -> Micros:
        if found is None:
            self._values.fail(("jobs", at, "submitted"), None, "must be a time")
            return 0
        return self._values.instant(found, "jobs", at, "submitted") or 0

    def _level(self, at: int, found: int | None) -> int:
        if found is None:
            return SnapshotJob.DEFAULT_LEVEL
        check_level("level", found, self._values.telling("jobs", at)[1])
        return found

    def _override(self, at: int, found: float | None) -> float | None:
        if found is None or self._policy is None:
            return None
        place = ("jobs", at, "priority_override")
        mode = self._policy.class_mode
        if mode == "strict":
            self._values.fail(place, found, "takes the place of a class's weight: strict classes have none")
        least = LEAST_WEIGHT if mode == "multiplicative" else 0
        if not least <= found <= LARGEST_CLASS_WEIGHT:
            self._values.fail(place, found, f"must lie between {least:g} and {LARGEST_CLASS_WEIGHT:g}")
        return found

    def _limit(self, at: int, found: object) -> Micros | None:
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= LAST_SECOND:
            self._values.fail(
                ("jobs", at, "runtime_limit"),
                found,
                f"must be a number of seconds from 0{exponent_hint(found)}",
            )
            return None
        return from_seconds(found)

    def _check_id(self, key: str, at: int, id: str) -> None:  # noqa: A002 # the snapshot's own word
        self._values.check_name((key, at, "id"), id)
        if id in self._ids:
            self._values.fail((key, at, "id"), id, "is another job's, too")
        self._ids.add(id)


def _quantity_of(resource: str, value: float | str) -> int | None:
    if type(value) is int and 0 <= (amount := value * base_units(resource)) <= MAX_QUANTITY:
        return amount
    try:
        return parse_quantity(resource, value)
    except FieldError:
        return None
