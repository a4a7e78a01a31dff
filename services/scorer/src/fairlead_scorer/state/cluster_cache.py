"""The cluster cache: what the clusters state, read through the policy, as pools of jobs in order.

Pure and incremental: after any sequence of changes it equals a cache built from the last state alone. A job leads to
its queue, the queue to the pool that the cluster states, that to the policy's pool. Waiting jobs wait there, running
ones count as use, held and ended ones do neither.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import StatedPastUse
from fairlead_contracts.messages.questions import Approval
from fairlead_contracts.messages.state import JobState, Phase, QueueState, State
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_policy.fit.feasibility import StatedNodes
from fairlead_policy.levels.withholding import unsteered_level
from fairlead_policy.rules.rulebook import Rulebook
from fairlead_policy.snapshot.stated_facts import FactsChange, PoolsChange, StatedFacts, StatedKey
from fairlead_scorer.state.name_index import NameIndex, readings_of
from fairlead_scorer.state.past import FinishedRun, PoolPast, finished_run
from fairlead_scorer.state.past_sources import FinishedRuns, PersistedUsage, needed_from, revision_of
from fairlead_scorer.state.pool import CountedJob, RunningJob, ScoredPool
from fairlead_scorer.state.queue_indexes import UnrankedJobs, WaitingKinds, array_rest

_STEP = 500
"""Jobs taken in at a time: a replay of a hundred thousand must not keep the lease from being renewed."""

_MOST_BEGINNING = 1000
"""Jobs with the same beginning of the name that are looked at: the answer is only a hint."""


class JobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a job is counted, and as what."""

    pool: str
    stated: StatedKey
    job: CountedJob
    asked: dict[str, int]
    """The demand that its frontend counts against quota. Where cards are known, the job may weigh something else."""


class ClusterCache:
    """The facts of all clusters, and the pools that the policy makes of them."""

    def __init__(self) -> None:
        self.pools: dict[str, ScoredPool] = {}
        """Pools by policy name."""
        self.facts = StatedFacts()
        """Facts that the clusters state. Nothing is scored until a policy is known to read it through."""
        self.fit_on_nodes: defaultdict[str, StatedNodes] = defaultdict(StatedNodes)
        """The fit of jobs on each cluster's nodes, by cluster; made when first asked for."""
        self._names = NameIndex()
        self._waiting_kinds = WaitingKinds()
        self._unranked = UnrankedJobs()
        self._entries: dict[str, JobEntry] = {}
        """Jobs that count, by uid: where, and as what."""
        self._use: dict[StatedKey, dict[str, int]] = {}
        self._held: dict[StatedKey, dict[str, int]] = {}
        """Amounts that running jobs take, by stated pool: their part of `_use`."""
        self._over = FinishedRuns()
        self._persisted = PersistedUsage()

    @property
    def rulebook(self) -> Rulebook | None:
        """Rules of the policy; None until a policy is there: nothing is scored without one."""
        return self.facts.rulebook

    # What happens to it -------------------------------------------------------------------------------------------

    def adopting(self, document: PolicyDocument, revision: int) -> Iterator[None]:
        """Takes on a policy in steps of a few milliseconds: every pool and every position is worked out anew.

        Between two steps the cache is not fit to decide from.
        """
        past_before = self._pasts()
        self._forget_positions()
        rulebook = Rulebook(document, revision)
        if rulebook.half_life is None:
            self._persisted.forget(revision)
        self.facts.adopt(rulebook)
        self._shape_pools(past_before)
        for run in self._over.values():
            self._remember(run)
        for number, job in enumerate(self.facts.jobs, start=1):
            self._settle(job.uid)
            if number % _STEP == 0:
                yield

    def abandon(self) -> None:
        """Drops the policy, which is gone: nothing can be scored until there is one again."""
        self._forget_positions()
        self.facts.adopt(None)

    def _forget_positions(self) -> None:
        self.pools.clear()
        for places in (self._entries, self._use, self._held):
            places.clear()

    def learning(self, changes: Mapping[str, State | None]) -> Iterator[None]:
        """Takes in changed facts, by state subject, in steps of a few milliseconds; None where the object is gone.

        Between two steps the cache is not fit to decide from.
        """
        for number, change in enumerate(self.facts.learning(changes), start=1):
            self._follow(change)
            if number % _STEP == 0:
                yield

    def _follow(self, change: FactsChange) -> None:
        if change.pools is not None:
            self._shape_pools({})
            self._remember_anew(change.pools)
        for subject, *stated in change.statements:
            self._unranked.replace(*(array_rest(subject, one) for one in stated))
        for before, after in change.jobs:
            self._names.replace(before, after)
            self._waiting_kinds.replace(before, after)
            self._unranked.replace(before, after)
        for uid in change.recharged:
            self._settle(uid)

    def hear(self, runs: Iterable[FinishedRun]) -> None:
        """Takes in runs that are over; told again, they change nothing."""
        for run in runs:
            self._end(run)

    def follow(
        self, persisted: Iterable[StatedPastUse], ours: Callable[[str, int], bool], now: Micros
    ) -> list[StatedPastUse]:
        """Takes in what the owners of shards stated of past use.

        Args:
            persisted: their statements.
            ours: whether a shard of a pool is ours: of those we know more than was stated.
            now: the clock.

        Returns:
            Statements that are not followed: they are settled to a time that is yet to come by our clock.
        """
        of_other_policies: set[str] = set()
        ahead_of_clock: list[StatedPastUse] = []
        for statement in persisted:
            self._persisted.note(statement)
            pool = self.pools.get(statement.pool)
            if pool is None or statement.kept is None:
                continue
            if revision_of(statement) != pool.policy:
                of_other_policies.add(pool.name)
            elif ours(statement.pool, statement.shard):
                continue
            elif pool.is_ahead_of_clock(statement.shard, statement.kept, now):
                ahead_of_clock.append(statement)
            else:
                pool.follow(statement.shard, statement.kept)
        for name in of_other_policies:
            self.pools[name].start_from_other_policies(
                self._persisted.not_under(name, self.pools[name].policy)
            )
        return ahead_of_clock

    # What follows from it -----------------------------------------------------------------------------------------

    def _shape_pools(self, past_before: Mapping[str, PoolPast]) -> None:
        """Gives the pools the shapes that are stated: some are new, some are no more.

        Args:
            past_before: past use under the policy before, by pool, where another one is taken on.
        """
        for name in self.pools.keys() - self.facts.shapes.keys():
            self._drop(name)
        for name, shape in self.facts.shapes.items():
            if name in self.pools:
                self.pools[name].reshape(shape)
            else:
                self.pools[name] = ScoredPool(name, shape, self._policy())
                self._take_up_past(self.pools[name], past_before.get(name))

    def _drop(self, name: str) -> None:
        """Drops a pool that is no more. Its jobs are withdrawn here, and settled again where their queue leads."""
        for uid in [uid for uid, entry in self._entries.items() if entry.pool == name]:
            self._withdraw(uid)
        del self.pools[name]

    def _settle(self, uid: str) -> None:
        """Counts the job where it belongs now. A job that is counted so already leaves its pool as it is."""
        job = self.facts.jobs.get(uid)
        run = None if job is None else finished_run(job)
        if run is not None:
            self._end(run)
        before = self._entries.get(uid)
        after = None if job is None else self._entry(job)
        if after == before:
            return
        if before is not None:
            self._withdraw(uid)
        if after is not None:
            self._entries[uid] = after
            self.pools[after.pool].count(after.job, after.stated)
            self._charge(after, 1)

    def _withdraw(self, uid: str) -> None:
        entry = self._entries.pop(uid)
        self.pools[entry.pool].discount(entry.job)
        self._charge(entry, -1)

    def _entry(self, job: JobState) -> JobEntry | None:
        found = self.facts.charged(job)
        if found is None:
            return None
        counts: CountedJob
        if job.phase is Phase.RUNNING:
            counts = RunningJob(
                uid=job.uid,
                tenant=found.tenant,
                demand=found.weighs,
                flavors=found.flavors,
                started=job.started,
            )
        else:
            weighed = msgspec.structs.replace(job, demand=found.weighs)
            counts = self._policy().waiting_job(weighed, apart=found.apart)
        stated = job.cluster, found.queue.pool
        return JobEntry(pool=found.pool, stated=stated, job=counts, asked=job.demand)

    # Past use -----------------------------------------------------------------------------------------------------

    def _take_up_past(self, pool: ScoredPool, before: PoolPast | None) -> None:
        """Gives a new pool its past use: what we knew under the policy before, or what shard owners stated."""
        if pool.past is not None and before is not None:
            pool.past.take_over(before)
        for statement in self._persisted.under(pool.name, pool.policy):
            if statement.kept is not None:
                pool.follow(statement.shard, statement.kept)
        pool.start_from_other_policies(self._persisted.not_under(pool.name, pool.policy))

    def _end(self, run: FinishedRun) -> None:
        if self.rulebook is not None and self.rulebook.half_life is None:
            self._over.clear()
            return
        if self._over.note(run):
            self._remember(run)
        if self._over.many:
            self._over.tidy(self._pasts(), lambda one: self.facts.leads_to(one.cluster, one.queue))

    def _remember(self, run: FinishedRun) -> None:
        name = self.facts.leads_to(run.cluster, run.queue)
        if name is not None:
            cards = self.facts.cards.get(name)
            weighs = run.demand if cards is None else cards.demand_of(run.demand, run.pods, run.shapes)
            self.pools[name].remember(run.key, self._policy().tenant_of(run), run.ended, weighs)

    def _remember_anew(self, changed: PoolsChange) -> None:
        """Counts runs that are over in queues that were not known before, and where they may weigh something else."""
        for run in self._over.values() if changed.new_queues or changed.other_cards else ():
            is_new = (run.cluster, run.queue) in changed.new_queues
            if is_new or self.facts.leads_to(run.cluster, run.queue) in changed.other_cards:
                self._remember(run)

    def _pasts(self) -> dict[str, PoolPast]:
        return {name: pool.past for name, pool in self.pools.items() if pool.past is not None}

    def horizon(self, incarnation: str) -> Micros | None:
        """The instant from which on runs that are over must be known; None where nothing is settled yet."""
        return needed_from(self._pasts(), lambda pool: not self.unmarked(pool, incarnation))

    def _charge(self, entry: JobEntry, step: int) -> None:
        """Adds a job's amounts to its stated pool, or takes them off: the router sends jobs where most is left."""
        kept = [self._use, self._held] if isinstance(entry.job, RunningJob) else [self._use]
        for use in (amounts.setdefault(entry.stated, {}) for amounts in kept):
            for resource, amount in entry.asked.items():
                use[resource] = use.get(resource, 0) + step * amount

    def _policy(self) -> Rulebook:
        if self.rulebook is None:
            raise LookupError("no policy document has been read yet")
        return self.rulebook

    # What is known ------------------------------------------------------------------------------------------------

    def unmarked(self, pool: str, incarnation: str) -> list[str]:
        """The clusters of the pool that have not confirmed their state to this incarnation of the server."""
        return sorted(self.pools[pool].shape.clusters - self.facts.confirmed(incarnation))

    def find(self, name: str) -> list[JobState]:
        """The jobs, in any phase, that people may mean by a name.

        By its name, which is that of what it was made for, where it was made for something, alone or behind its kind; by its
        frontend's own id, its submission or its uid. Each with or without its scope.
        """
        found: dict[str, JobState] = {}
        for scope, rest in readings_of(name):
            named = map(self.facts.jobs.get, (rest, *self._names.of(rest)))
            jobs = (*named, *self._made_for(*rest.split("/", 1)))
            found |= {job.uid: job for job in jobs if job is not None and scope in (None, job.scope)}
        return list(found.values())

    def _made_for(self, kind: str, name: str = "") -> Iterator[JobState]:
        """The jobs that were made for an object, of a kind as Kubernetes or kubectl writes it: `RayJob`, `rayjob.ray.io`."""
        owner = f"{kind.partition('.')[0].lower()}/{name}"
        for job in map(self.facts.jobs.get, self._names.of(name)):
            of, _, made_for = (job.owner or "").partition("/") if job is not None else ("", "", "")
            if job is not None and f"{of.lower()}/{made_for}" == owner:
                yield job

    def beginning(self, name: str) -> list[JobState]:
        """Jobs, in any phase, whose names begin so, with or without the scope; of many the first few alone."""
        found: dict[str, JobState] = {}
        for scope, rest in readings_of(name):
            begun = islice(self._names.beginning(rest), _MOST_BEGINNING)
            jobs = (self.facts.jobs.get(uid) for uid in begun)
            found |= {
                job.uid: job
                for job in jobs
                if job is not None and job.name.startswith(rest) and scope in (None, job.scope)
            }
        return list(found.values())

    def job(self, uid: str) -> JobState | None:
        """A job that waits or runs, as it is counted."""
        return self.facts.jobs.get(uid) if uid in self._entries else None

    def approval_of(self, job: JobState) -> Approval | None:
        """The grant of a class to this job alone; None where nobody gave one."""
        if self.rulebook is None:
            return None
        grant = self.rulebook.grant_to(job, self.rulebook.tenant_of(job))
        return None if grant is None else Approval(job_class=grant.classes[0], by=grant.by, why=grant.why)

    def knows_tenant(self, tenant: str) -> bool:
        """Whether the policy names the tenant, a cluster has it, or it has jobs."""
        named = [] if self.rulebook is None else self.rulebook.document.tenants
        return (
            any(one.name == tenant for one in named)
            or tenant in self.facts.scopes()
            or any(tenant in pool.tenants_of(pool.shard_of(tenant)) for pool in self.pools.values())
        )

    def waiting_differ(self, queues: Iterable[QueueState]) -> bool:
        """Whether the jobs that wait in these queues differ in class or in what they ask for."""
        return self._waiting_kinds.differ((queue.cluster, queue.name) for queue in queues)

    def tenant_of(self, job: JobState) -> str:
        """The tenant whose job it is, by the policy."""
        return self._policy().tenant_of(job)

    def unranked_in(self, pool: str, tenant: str | None) -> list[JobState]:
        """The jobs of a policy pool that have not started and have no position.

        Args:
            pool: the policy pool.
            tenant: the only tenant; None for all.
        """
        return self._unranked_of(
            ((queue.cluster, queue.name) for queue in self.facts.queues_of(pool)), tenant
        )

    def awaiting_gang_fit(self, queues: Iterable[QueueState]) -> int:
        """The number of jobs of these queues that have their quota and wait for the check of gangs."""
        return self._unranked.awaiting_gang_fit((queue.cluster, queue.name) for queue in queues)

    def unranked_nowhere(self, tenant: str | None) -> list[JobState]:
        """The jobs whose queue leads to no pool; of this tenant, or of all."""
        lost = (queue for queue in self._unranked.queues() if self.facts.leads_to(*queue) is None)
        return self._unranked_of(lost, tenant)

    def _unranked_of(self, queues: Iterable[tuple[str, str]], tenant: str | None) -> list[JobState]:
        return [
            job
            for job in self._unranked.within(queues)
            if tenant is None or self._policy().tenant_of(job) == tenant
        ]

    def levels_in(self, queue: QueueState) -> int:
        """The number of the queue's jobs with another level than if nobody steered. Looks at each of them."""
        return sum(
            job.phase in (Phase.WAITING, Phase.HELD) and job.level != unsteered_level(job, queue)
            for job in self.facts.jobs_in(queue)
        )

    def quota_of(self, pool: str) -> dict[str, tuple[int, int]]:
        """The quota by resource, in base units, that the clusters of a policy pool give its jobs, and how much of it runs take."""
        parts = self.facts.parts_of(pool)
        held = [self._held.get((part.cluster, part.name), {}) for part in parts]
        names = {name for part in parts for name in part.capacity}
        return {
            name: (
                sum(part.capacity.get(name, 0) for part in parts),
                sum(amounts.get(name, 0) for amounts in held),
            )
            for name in names
        }

    def taken(self, cluster: str, pool: str) -> Mapping[str, int]:
        """Base units that running and waiting jobs take or ask for in a stated pool."""
        return self._use.get((cluster, pool), {})
