"""The sense of a snapshot's jobs, waiting and running."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_contracts.base.quantities import exponent_hint, in_digits
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.validate import LARGEST_CLASS_WEIGHT, LEAST_WEIGHT
from fairlead_contracts.snapshot.gangs import check_asks, check_gang
from fairlead_contracts.snapshot.queues import check_level
from fairlead_contracts.snapshot.tenants import TenantChecks
from fairlead_contracts.snapshot.types import (
    SnapshotJob,
    SnapshotRunning,
    WrittenJob,
    WrittenRunning,
)
from fairlead_contracts.snapshot.values import LAST_SECOND, SnapshotValues, is_name

_REMEMBERED = 131_072
"""Different demands: some 50 MB."""
_encode = msgspec.json.Encoder().encode


class _Names(NamedTuple):
    """The checked names of where a job stands: one text each for all jobs there."""

    tenant: str
    pool: str
    job_class: str
    cluster: str
    frontend: str
    queue: str


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
        """Of what runs, and of jobs that state a uid, too."""
        self._uids: set[str] = set()
        """As stated."""
        self._only_ids: set[str] = set()
        """Of jobs whose ids are their uids, too."""
        self._right_names: dict[tuple[str | None, ...], _Names] = {}
        self._right_demands: dict[tuple[str, bytes], dict[str, int]] = {}

    def running(self, written: Iterable[WrittenRunning]) -> list[SnapshotRunning]:
        """Each running job."""
        return [self._running(at, job) for at, job in enumerate(written)]

    def _running(self, at: int, job: WrittenRunning) -> SnapshotRunning:
        known = len(self._values.problems)
        self._check_id("running", at, job.id, self._ids)
        pool = self._place("running", at, job)
        pods, gang = check_gang(job.gang, job.annotations, *self._values.telling("running", at))
        read = SnapshotRunning(
            id=job.id,
            tenant=job.tenant,
            pool=pool,
            job_class=self._class("running", at, job.job_class),
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
        """Checks what the pods ask for, where nothing else is wrong with the job."""
        counted = self._resources.get(read.pool, set())
        check_asks(read, written.demand, counted, self._on_nodes, self._values.telling(key, at)[1])

    def waiting(self, written: Iterable[WrittenJob]) -> list[SnapshotJob]:
        """Each waiting job."""
        return [self._job(at, job) for at, job in enumerate(written)]

    def _job(self, at: int, job: WrittenJob) -> SnapshotJob:
        known = len(self._values.problems)
        uid = self._uid(at, job)
        names = self._names(at, job)
        submitted = self._submitted(at, job.submitted)
        read = SnapshotJob(
            id=job.id,
            uid=uid,
            tenant=names.tenant,
            pool=names.pool,
            job_class=names.job_class,
            demand=self._demand("jobs", at, job.demand, names.pool),
            submitted=submitted,
            queue_time=submitted if job.queue_time is None else self._queue_time(at, job, submitted),
            level=SnapshotJob.DEFAULT_LEVEL if job.level is None else self._level(at, job.level),
            runtime_limit=None if job.runtime_limit is None else self._limit(at, job.runtime_limit),
            cluster=names.cluster,
            frontend=names.frontend,
            queue=names.queue,
        )
        # Of a million jobs, most say nothing of what follows.
        if job.priority_override is not None:
            read = replace(read, priority_override=self._override(at, job.priority_override))
        if job.gang is not None or job.annotations:
            read = self._with_gang(at, job, read, was_right=len(self._values.problems) == known)
        return read

    def _queue_time(self, at: int, job: WrittenJob, submitted: Micros) -> Micros:
        found = job.queue_time
        # Mostly it is the same text: that was read already, and told if it could not be.
        if submitted and found == job.submitted and type(found) is type(job.submitted):
            return submitted
        queue_time = self._values.instant(found, "jobs", at, "queue_time")
        return submitted if queue_time is None else queue_time

    def _with_gang(self, at: int, job: WrittenJob, read: SnapshotJob, *, was_right: bool) -> SnapshotJob:
        known = len(self._values.problems)
        pods, gang = check_gang(job.gang, job.annotations, *self._values.telling("jobs", at))
        read = replace(read, pods=pods, gang=gang)
        if job.frontend is None and was_right and len(self._values.problems) == known:
            self._check_asks("jobs", at, job, read)
        return read

    def _names(self, at: int, job: WrittenJob) -> _Names:
        """What the job says of where it stands. Jobs are of few tenants, classes and queues: what was right once is right again."""
        stated = (job.tenant, job.job_class, job.pool, job.cluster, job.frontend, job.queue)
        found = self._right_names.get(stated)
        if found is not None:
            return found
        known = len(self._values.problems)
        found = _Names(
            tenant=job.tenant,
            pool=self._place("jobs", at, job),
            job_class=self._class("jobs", at, job.job_class),
            cluster=self._values.named("jobs", at, "cluster", job.cluster),
            frontend=self._values.frontend("jobs", at, job.frontend),
            queue=self._values.named("jobs", at, "queue", job.queue),
        )
        if len(self._values.problems) == known:
            self._right_names[stated] = found
        return found

    def _uid(self, at: int, job: WrittenJob) -> str:
        known = len(self._values.problems)
        uid = job.id if job.uid is None else job.uid
        self._check_id("jobs", at, job.id, self._only_ids if job.uid is None else self._ids)
        if job.uid is not None:
            self._values.check_name(("jobs", at, "uid"), uid)
        is_known = uid in self._uids or (job.uid is not None and uid in self._only_ids)
        if is_known and len(self._values.problems) == known:
            self._values.fail(("jobs", at, "uid"), uid, "is another job's, too")
        if job.uid is not None:
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

    def _class(self, key: str, at: int, job_class: str | None) -> str:
        if self._policy is None:
            return ""  # which classes there are is not known: the policy's own problems are told
        classes = self._classes
        if job_class is None:
            return classes[-1]
        if job_class not in classes:
            self._values.fail((key, at, "class"), job_class, f"must be one of {', '.join(classes)}")
        return job_class

    def _demand(self, key: str, at: int, found: Mapping[str, object], pool: str) -> dict[str, int]:
        """Base units, without what is 0. Jobs that ask for the same share one dict, which is read once."""
        try:
            written = pool, _encode(found)
        except TypeError:  # YAML has keys that JSON has not: `memory: {null: 1}` is told as what it is
            written = None
        demand = None if written is None else self._right_demands.get(written)
        if demand is not None:
            return demand
        known, place = len(self._values.problems), (key, at, "demand")
        amounts = self._values.amounts(place, found)
        if not found.keys() <= (resources := self._resources.get(pool, found.keys())):
            self._values.check_resources(place, found, pool, resources)
        demand = amounts
        if 0 in amounts.values():
            demand = {resource: amount for resource, amount in amounts.items() if amount}
        right = len(self._values.problems) == known
        if right and written is not None and len(self._right_demands) < _REMEMBERED:
            self._right_demands[written] = demand
        return demand

    def _submitted(self, at: int, found: object) -> Micros:
        if found is None:
            self._values.fail(("jobs", at, "submitted"), None, "must be a time")
            return 0
        return self._values.instant(found, "jobs", at, "submitted") or 0

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

    def _check_id(self, key: str, at: int, id: str, known: set[str]) -> None:  # noqa: A002 # the snapshot's own word
        """Checks an id, and adds it to those that are known."""
        if not is_name(id):
            self._values.check_name((key, at, "id"), id)
        if id in self._only_ids or id in self._ids:
            self._values.fail((key, at, "id"), id, "is another job's, too")
        known.add(id)
