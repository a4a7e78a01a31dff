"""Explaining one job: its facts from the state, its position from its shard's owner, its rank from all owners."""

from dataclasses import KW_ONLY, dataclass

import msgspec

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.job_traces import trace_of_job
from fairlead_contracts.messages.questions import Explanation, ShardQuestion
from fairlead_contracts.messages.state import JobState, Phase, task_uid
from fairlead_policy.explain.shard_explanation import query_shards, rename_jobs, standing_in, with_findings
from fairlead_policy.explain.waiting_text import waiting_in_words
from fairlead_policy.order.shares import divided_by
from fairlead_scorer.query import job_sentences
from fairlead_scorer.query.fitting import misfit_of
from fairlead_scorer.query.names import called, concealed_explanation
from fairlead_scorer.query.reservations import ReserveView
from fairlead_scorer.query.shard_asking import ShardAsker
from fairlead_scorer.query.steering_view import SteeringView, as_a_tenant_hears
from fairlead_scorer.state.cluster_cache import ClusterCache

_MOST_FOUND = 10
"""Jobs explained for one name; names are rarely shared by more than a few clusters."""
_MOST_NEAR = 3
_QUEUED = (Phase.WAITING, Phase.HELD)
_SHOWN_FIRST = (Phase.WAITING, Phase.HELD, Phase.RUNNING, Phase.ENDED)


@dataclass(eq=False)
class Explainer:
    """Says of jobs why they stand where they stand."""

    cache: ClusterCache
    asker: ShardAsker
    steering: SteeringView
    reserved: ReserveView
    _: KW_ONLY
    traced: float
    """The part that is kept of the traces that begin here."""

    async def explain(self, name: str, tenant: str | None, at: Micros) -> list[Explanation]:
        """The jobs of that name, those that wait first.

        Args:
            name: id, uid, submission, or what it was made for; of an array it means the next task.
            tenant: the tenant whose jobs alone are told; the names of others' jobs are then left out.
            at: the instant.
        """
        jobs = sorted(self.cache.find(name), key=_shown_first) or self._tasks(name)
        known = [self._facts(job, at) for job in jobs]
        asked = [fact for fact in known if tenant in (None, fact.tenant)][:_MOST_FOUND]
        found = [await self._complete(fact, at, open_names=tenant is None) for fact in asked]
        return [self._with_admitters_word(fact, open_names=tenant is None) for fact in found]

    def _tasks(self, name: str) -> list[JobState]:
        """The task that is next of each array of that name; where none is queued, all that are known."""
        known = [job for job in self.cache.beginning(f"{name}_") if _is_task(job)]
        arrays: dict[str, list[JobState]] = {}
        for job in sorted(known, key=lambda one: (_SHOWN_FIRST.index(one.phase), one.uid)):
            arrays.setdefault(job.uid.rpartition("_")[0], []).append(job)
        return [job for of in arrays.values() for job in (of[:1] if of[0].phase in _QUEUED else of)]

    def near(self, name: str, tenant: str | None) -> list[str]:
        """A few jobs whose names begin so, with their scopes: Kubernetes adds letters to a `generateName`."""
        rulebook = self.cache.rulebook
        begin = sorted(self.cache.beginning(name), key=_shown_first)
        asked = [
            f"{job.scope}/{job.name}"
            for job in begin
            if tenant in (None, None if rulebook is None else rulebook.tenant_of(job))
        ]
        return list(dict.fromkeys(asked))[:_MOST_NEAR]

    def _with_admitters_word(self, fact: Explanation, *, open_names: bool) -> Explanation:
        if fact.steering is not None and not open_names:
            fact = msgspec.structs.replace(fact, steering=as_a_tenant_hears(fact.steering))
        told = self.reserved.reasons(fact, open_names=open_names)
        if fact.left_alone:
            told = [*job_sentences.left_alone(fact.left_alone, fact.level, fact.pool or ""), *told]
        if fact.phase == Phase.HELD:  # that it is held says more
            return msgspec.structs.replace(fact, reasons=[*fact.reasons, *told])
        return msgspec.structs.replace(fact, reasons=[*told, *fact.reasons])

    def _facts(self, job: JobState, at: Micros) -> Explanation:
        until = at if job.unchecked else job.began or job.ended or at
        rulebook = self.cache.rulebook
        tenant = None if rulebook is None else rulebook.tenant_of(job)
        refused = None if rulebook is None or tenant is None else rulebook.class_of(job, tenant).refused
        pool = self.cache.facts.leads_to(job.cluster, job.queue)
        misfit = misfit_of(job, self.cache, None if pool is None else self.cache.pools.get(pool))
        trace = trace_of_job(job, self.traced)
        reasons = _reasons(job)
        if self.steering.is_unanswered(job):
            reasons.append(job_sentences.unanswered(job))
        return Explanation(
            cluster=job.cluster,
            scope=job.scope,
            id=job.id,
            uid=job.uid,
            phase=job.phase.value,
            queue=job.queue,
            submission=job.submission,
            pool=pool,
            tenant=tenant,
            level=job.level,
            base=job.base,
            owner=job.owner,
            name=msgspec.UNSET if job.name == job.id else job.name,
            said=job.said,
            unchecked=job.unchecked or msgspec.UNSET,
            # Of a job that starts the lease says so for a moment longer.
            left_alone=(self.steering.left_alone_since(job.uid) if job.phase in _QUEUED else None)
            or msgspec.UNSET,
            steering=None if pool is None else self.steering.of_cluster(pool, job.cluster),
            waited_seconds=to_seconds(max(0, until - job.submitted)),
            refused_class=refused,
            approved=self.cache.approval_of(job),
            reasons=reasons,
            never=misfit.never,
            no_quota=misfit.no_quota,
            no_room=misfit.no_room,
            shortfalls=misfit.shortfalls,
            trace=trace.trace_id if trace.kept else msgspec.UNSET,
        )

    async def _complete(self, fact: Explanation, at: Micros, *, open_names: bool) -> Explanation:
        """Adds the standing in the pool and, of a waiting job, the position and the rank."""
        pool = None if fact.pool is None else self.cache.pools.get(fact.pool)
        if pool is None or fact.tenant is None:
            return fact
        if fact.phase != Phase.WAITING:
            question = ShardQuestion(at=at, tenant=fact.tenant)
            own = await self.asker.ask(pool, "explain", question, [pool.shard_of(fact.tenant)])
            standing = standing_in(own.replies, pool.rules.top_of(fact.tenant))
            return msgspec.structs.replace(fact, standing=standing, divide_by=divided_by(pool.rules))
        query = query_shards(fact.uid, fact.tenant, pool.rules, at)
        findings, silent = await self.asker.explain(pool, query)
        spoken = rename_jobs(findings, lambda one: called(one, self.cache))
        fact = with_findings(fact, findings, pool.rules, at)
        told = fact if spoken == findings else with_findings(fact, spoken, pool.rules, at)
        if not open_names:
            fact, told = (concealed_explanation(one, fact.tenant or "") for one in (fact, told))
        reasons = waiting_in_words(told, pool.rules, at)
        job = self.cache.job(fact.uid)
        if job is not None and job.passed_by:
            reasons.insert(0, job_sentences.passed_by(job))  # whatever else is said of it, this keeps it
        if silent:
            reasons.append(job_sentences.silent(silent))
        return msgspec.structs.replace(fact, reasons=reasons)


def _is_task(job: JobState) -> bool:
    array, _, task = job.uid.rpartition("_")
    return task.isdecimal() and job.id.endswith(f"_{int(task)}") and job.uid == task_uid(array, int(task))


def _shown_first(job: JobState) -> tuple[int, Micros, str]:
    return _SHOWN_FIRST.index(job.phase), -job.submitted, job.uid


def _reasons(job: JobState) -> list[str]:
    """The reasons in the job's own facts; of a waiting one its position says more."""
    match job.phase:
        case Phase.HELD:
            return job_sentences.held(job)
        case Phase.RUNNING:
            return job_sentences.running(job)
        case Phase.ENDED:
            return job_sentences.ended(job)
        case Phase.WAITING:
            return job_sentences.nowhere(job)
