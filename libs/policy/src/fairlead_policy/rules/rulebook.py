"""The policy document applied to facts: whose a job is, what it may have, where it counts."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import DAY, HOUR, Micros
from fairlead_contracts.base.quantities import format_quantity
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.policyfile.document import Grant, Match, PolicyDocument
from fairlead_contracts.policyfile.validate import LARGEST_CLASS_WEIGHT, LEAST_WEIGHT
from fairlead_policy.rules.entitlements import Entitlements, in_relation
from fairlead_policy.rules.jobs import JobQueue, WaitingJob
from fairlead_policy.rules.pool_rules import LARGEST, NOTHING, PoolRules, exactly

if TYPE_CHECKING:
    # Commands that look at a policy alone would wait for all that checks a template.
    from fairlead_contracts.messages.submissions import Submission


class GrantedClass(NamedTuple):
    """The class that a job has."""

    job_class: str
    refused: str | None
    """The class that it asked for and may not have, or that does not exist."""


class _SubmissionAsks(NamedTuple):
    """A submission as something that asks for a class: its job has no name of its own yet."""

    id: str
    uid: str
    requested_class: str | None


class Entrance(NamedTuple):
    """The queue and account in which somebody's job would enter: what decides whose it is."""

    scope: str
    cluster: str
    queue: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    local_queue: str | None


type GrantSubject = JobState | _SubmissionAsks
"""The job or submission that a class is granted to."""


class MatchSubject(Protocol):
    """The part of a job that match rules look at."""

    @property
    def scope(self) -> str:
        """Namespace or account."""

    @property
    def cluster(self) -> str:
        """The cluster in which the job runs."""

    @property
    def queue(self) -> str:
        """The queue in which the job waits."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The job's own labels."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """The job's own annotations, and those of what it was made for."""

    @property
    def local_queue(self) -> str | None:
        """The entry queue through which it came, in its scope."""


class Rulebook:
    """Resolves facts to a policy that the contracts have checked. Pure: the same document gives the same answers."""

    def __init__(self, document: PolicyDocument, revision: int) -> None:
        self.document = document
        self.revision = revision
        self._tenants = {tenant.name: tenant for tenant in document.tenants}
        self._pool_by_member = {member: pool.name for pool in document.pools for member in pool.members}
        self._sharing = {pool.name for pool in document.pools if pool.hardware == "shared"}
        self._members = {pool.name: [_member(name) for name in pool.members] for pool in document.pools}
        self._grants: dict[str, list[Grant]] = {}
        for grant in document.grants:
            self._grants.setdefault(grant.tenant, []).append(grant)
        # Most tenants match the scope of their name: only the others have to be tried one after another.
        self._matchers = [
            (at, tenant.name, tenant.match)
            for at, tenant in enumerate(document.tenants)
            if tenant.match is not None
        ]
        self._parents = {t.name: t.parent for t in document.tenants if t.parent is not None}
        inner = set(self._parents.values())
        self._named = {
            t.name: at for at, t in enumerate(document.tenants) if t.match is None and t.name not in inner
        }
        self._shards: dict[str, int] = {}
        self._entitlements: dict[str, Entitlements] = {}

    @property
    def half_life(self) -> Micros | None:
        """The time after which past use counts half; None where only what runs now counts."""
        hours = self.document.half_life_hours
        return None if hours is None else round(exactly(hours) * HOUR)

    def pool_of(self, cluster: str, stated_pool: str) -> str:
        """The policy's pool of a pool that a cluster states."""
        member = f"{cluster}/{stated_pool}"
        return self._pool_by_member.get(member, member)

    def members_of(self, pool: str) -> list[tuple[str, str]]:
        """The (cluster, stated pool) pairs that a pool joins."""
        return self._members.get(pool) or [_member(pool)]

    def shares_hardware(self, pool: str) -> bool:
        """Whether the clusters that a pool joins have the same machines."""
        return pool in self._sharing

    def tenant_of(self, job: MatchSubject) -> str:
        """The tenant of a job: the first of the document that matches it, else its scope's name.

        A scope that bears the name of a tenant whose match rules do not take the job, or that has children and so no
        jobs of its own, gets another name: it must not enjoy that tenant's weight and grants. Names of tenants hold no
        blanks, so the two cannot be confused.
        """
        named = self._named.get(job.scope)
        for at, name, match in self._matchers:
            if named is not None and at > named:
                break
            if _matches(match, job):
                return name
        if named is None and job.scope in self._tenants:
            return f"{job.scope} (unlisted)"
        return job.scope

    def class_of(self, job: GrantSubject, tenant: str) -> GrantedClass:
        """The class that the job has: what was granted to itself, else what it asks for and its tenant may have."""
        everybodys = self.document.classes[-1]
        asked = job.requested_class
        if (own := self.grant_to(job, tenant)) is not None:
            return GrantedClass(own.classes[0], None)
        if asked is None or asked == everybodys:
            return GrantedClass(everybodys, None)
        for grant in self._grants_of(tenant):
            if asked in grant.classes and grant.job is None:
                return GrantedClass(asked, None)
        return GrantedClass(everybodys, asked)

    def grant_to(self, job: GrantSubject, tenant: str) -> Grant | None:
        """The grant of a class to this job alone; None where there is none."""
        for grant in self._grants_of(tenant):
            if grant.job is not None and grant.job in {job.id, job.uid} and grant.classes:
                return grant
        return None

    def waiting_job(self, job: JobState, *, apart: bool) -> WaitingJob:
        """The job as its order knows it: whose it is, in which class, and whether it cannot start as things are."""
        tenant = self.tenant_of(job)
        return WaitingJob(
            uid=job.uid,
            scope=job.scope,
            id=job.id,
            tenant=tenant,
            job_class=self.class_of(job, tenant).job_class,
            submitted=job.submitted,
            # The same bytes however it was written, and no number that cannot be sent.
            demand={name: min(max(amount, 0), LARGEST) for name, amount in sorted(job.demand.items())},
            queue=JobQueue(job.cluster, job.queue, apart),
            override=self.override_of(job, tenant),
        )

    def override_of(self, job: JobState, tenant: str) -> float | None:
        """The number that counts in place of the job's class's weight; None where none is stated, or granted."""
        stated = job.priority_override
        if stated is None or self.document.class_mode == "strict" or not 0 <= stated <= LARGEST_CLASS_WEIGHT:
            return None
        if self.document.class_mode == "multiplicative" and stated < LEAST_WEIGHT:
            return None
        return stated if self.grants_override(job, tenant) else None

    def grants_override(self, job: JobState, tenant: str) -> bool:
        """Whether a number of the job's own may count in place of its class's weight."""
        return any(
            grant.priority_override and grant.job in {None, job.id, job.uid}
            for grant in self._grants_of(tenant)
        )

    def _grants_of(self, tenant: str) -> Iterator[Grant]:
        """The grants of the tenant, and of the tenants that it counts towards."""
        name: str | None = tenant
        while name is not None:
            yield from self._grants.get(name, ())
            name = self._parents.get(name)

    def top_of(self, tenant: str) -> str:
        """The top-level tenant that a tenant's use counts towards."""
        while (parent := self._parents.get(tenant)) is not None:
            tenant = parent
        return tenant

    def shard_of(self, tenant: str) -> int:
        """The shard that scores the tenant: that of its top-level tenant, whose jobs are served in one sequence.

        The same on every machine and for ever: Python's own hash is not.
        """
        shard = self._shards.get(tenant)
        if shard is None:
            top = self.top_of(tenant)
            digest = hashlib.blake2b(top.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            shard = self._shards[tenant] = int.from_bytes(digest) % self.document.shards
        return shard

    def weight_of(self, tenant: str, pool: str | None = None) -> Fraction:
        """The tenant's weight, in a pool or wherever it counts. 0 for one that has none: it stands last."""
        listed = self._tenants.get(tenant)
        if listed is None:
            unlisted = self.document.unlisted_weight
            return NOTHING if unlisted is None else exactly(unlisted)
        return exactly(listed.weight) if pool is None or self._pool_of(tenant) in (None, pool) else NOTHING

    def entitlements(self, pool: str) -> Entitlements:
        """The divisors of a pool's tags. Tenants that the policy limits to another pool have no part in it."""
        found = self._entitlements.get(pool)
        if found is None:
            stated = self.document.unlisted_weight
            unlisted = None if stated is None else exactly(stated)
            weights = {
                tenant.name: exactly(tenant.weight)
                for tenant in self.document.tenants
                if self._pool_of(tenant.name) in (None, pool)
            }
            if self.document.divide_by == "entitlement":
                found = in_relation(weights, self._parents, unlisted, self.document.expected_unlisted)
            else:  # each weight is the part itself, 1 being the whole pool
                found = Entitlements(listed=weights, unlisted=unlisted or NOTHING)
            self._entitlements[pool] = found
        return found

    def _pool_of(self, tenant: str) -> str | None:
        """The only pool that a tenant counts in: its own word, else that of the nearest tenant above it."""
        name: str | None = tenant
        while name is not None:
            pool = self._tenants[name].pool if name in self._tenants else None
            if pool is not None:
                return pool
            name = self._parents.get(name)
        return None

    def pool_rules(
        self, pool: str, capacity: Mapping[str, int], quota: Mapping[str, int] | None = None
    ) -> PoolRules:
        """The rules of a pool with that capacity, in base units; `cap_days` is rounded to microseconds.

        Args:
            pool: the pool's name in the policy.
            capacity: the pool's capacity in base units.
            quota: what it may have at most; None where that is its capacity.
        """
        aging, parts = self.document.aging, self.entitlements(pool)
        hierarchy, weights = self.document.hierarchy, self.document.class_weights
        return PoolRules(
            capacity=dict(sorted(capacity.items())),
            quota=quota or {},
            classes=tuple(self.document.classes),
            rate=exactly(aging.entitlement_per_day) / DAY,
            cap=None if aging.cap_days is None else round(exactly(aging.cap_days) * DAY),
            resource_weights={
                name: exactly(weight) for name, weight in sorted(self.document.resource_weights.items())
            },
            entitlements={
                tenant.name: parts.listed.get(tenant.name, NOTHING) for tenant in self.document.tenants
            },
            unlisted_entitlement=parts.unlisted,
            weights={tenant.name: self.weight_of(tenant.name, pool) for tenant in self.document.tenants},
            unlisted_weight=exactly(self.document.unlisted_weight or 0),
            relative=self.document.divide_by == "entitlement",
            parents=self._parents,
            class_mode=self.document.class_mode,
            class_weights={name: exactly(weight) for name, weight in sorted(weights.items())},
            rescaled=hierarchy.mode == "hdrf",
            lowest_of_live=hierarchy.minimum == "live",
        )

    def check_submission(
        self,
        submission: "Submission",
        *,
        capacity: Mapping[str, int],
        cluster: str = "",
        queue: str | None = None,
        local_queue: str | None = None,
        frontend: str | None = None,
    ) -> None:
        """Whether the policy and the pool let the job in at all.

        The tenant that it was submitted as is its scope. Whose it then is, and what is granted to it, match rules
        say: exactly as they will of the job.

        Args:
            capacity: the capacity of the pool that it would stand in, base units.
            cluster: the cluster that it would run in; empty where none is known.
            queue: the queue that it would stand in; None where it has none.
            local_queue: its entry queue to that queue, where the frontend has such.
            frontend: the frontend of that queue; None where none is known.

        Raises:
            FieldError: it is for another frontend; the tenant, class or resource is unknown or not granted, or the job is larger than
                the pool and could never start.
        """
        if frontend is not None and submission.frontend not in (None, frontend):
            raise FieldError(
                "frontend", submission.frontend, f"is not that of the cluster, which is {frontend}"
            )
        annotations = submission.template.annotations if submission.template is not None else {}
        tenant = self.tenant_of(
            Entrance(submission.tenant, cluster, queue or "", submission.labels, annotations, local_queue)
        )
        self._check_tenant(submission.tenant, tenant)
        self._check_class(submission, tenant)
        for resource, amount in submission.demand.items():
            _check_size(resource, amount, capacity)

    def _check_tenant(self, scope: str, tenant: str) -> None:
        if tenant not in self._tenants and scope in self._parents.values():
            reason = "has tenants below it, and so no jobs of its own: submit as one of them"
            raise FieldError("tenant", scope, reason)
        if tenant not in self._tenants and self.document.unlisted_weight is None:
            raise FieldError(
                "tenant", scope, "is not in the policy, and the policy takes only tenants that it names"
            )

    def _check_class(self, submission: "Submission", tenant: str) -> None:
        asked = submission.job_class
        if asked is None:
            return
        if asked not in self.document.classes:
            raise FieldError("class", asked, f"must be one of {', '.join(self.document.classes)}")
        if self.class_of(_SubmissionAsks(submission.id, submission.id, asked), tenant).refused:
            raise FieldError(
                "class",
                asked,
                f"is not granted to tenant {tenant!r}; "
                "submit it without, and ask an operator to `fairlead approve` the job, or to grant the tenant the class in the policy",
            )


def _member(name: str) -> tuple[str, str]:
    cluster, _, pool = name.partition("/")
    return cluster, pool


def _matches(match: Match, job: MatchSubject) -> bool:
    return (
        (match.scopes is None or job.scope in match.scopes)
        and (match.queues is None or job.queue in match.queues)
        and (match.clusters is None or job.cluster in match.clusters)
        and match.labels.items() <= job.labels.items()
        and match.annotations.items() <= job.annotations.items()
        and (match.local_queues is None or f"{job.scope}/{job.local_queue}" in match.local_queues)
    )


def _check_size(resource: str, amount: int, capacity: Mapping[str, int]) -> None:
    if resource not in capacity:
        raise FieldError(
            f"demand.{resource}",
            format_quantity(resource, amount),
            f"is not a resource of the pool, which has {_listed(capacity)}",
        )
    if amount > capacity[resource]:
        raise FieldError(
            f"demand.{resource}",
            format_quantity(resource, amount),
            f"is more than the whole pool has, {format_quantity(resource, capacity[resource])}",
        )


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)[:20]
    return (", ".join(shown) + (", …" if len(names) > len(shown) else "")) or "none"
