"""The admitter's facts of its own cluster: what the cluster states, and its queued jobs by class and level.

A pass at 15,000 waiting jobs must not look at 15,000 jobs: per queue and class, the jobs of each level are kept in
the frontend's order as changes come in.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from fairlead_contracts import subjects
from fairlead_contracts.frontend.capabilities import TieRule
from fairlead_contracts.messages.state import CohortQuota, JobState, Phase, QueueState, State, SyncMark
from fairlead_policy.levels.adherence import charges
from fairlead_policy.levels.ties import Tie, TieIndex, tie_of
from fairlead_policy.levels.withholding import unsteered_level
from fairlead_policy.snapshot.stated_facts import StatedFacts
from fairlead_policy.snapshot.stated_jobs import JobChange

_QUEUED = (Phase.WAITING, Phase.HELD)


class RunningSizes:
    """The demands of running jobs, by queue. Of a resource they ask for few amounts: as many as there are kinds of jobs."""

    def __init__(self) -> None:
        self._amounts: dict[str, dict[str, Counter[int]]] = {}
        """Numbers of jobs, by queue, resource and amount."""
        self._jobs: dict[str, dict[str, JobState]] = {}
        self._charged: dict[str, Counter[tuple[str, str]]] = {}

    def of(self, queue: str) -> Collection[JobState]:
        """The jobs that run by the queue's quota."""
        return self._jobs.get(queue, {}).values()

    def charged(self, queue: str) -> Mapping[tuple[str, str], int]:
        """The quota of the queue that these jobs hold: by flavor and resource, in base units."""
        return self._charged.get(queue, {})

    def put(self, job: JobState) -> None:
        """Adds a job that runs now."""
        self._charged.setdefault(job.queue, Counter()).update(charges(job))
        self._jobs.setdefault(job.queue, {})[job.uid] = job
        amounts = self._amounts.setdefault(job.queue, {})
        for resource, amount in job.demand.items():
            amounts.setdefault(resource, Counter())[amount] += 1

    def take(self, job: JobState) -> None:
        """Takes out a job, as it was put, that runs no more."""
        self._charged[job.queue].subtract(charges(job))
        del self._jobs[job.queue][job.uid]
        amounts = self._amounts[job.queue]
        for resource, amount in job.demand.items():
            amounts[resource][amount] -= 1
            if not amounts[resource][amount]:
                del amounts[resource][amount]

    def freed(self, queues: Iterable[str], part: float = 0.0) -> dict[str, int]:
        """The amounts that the end of one running job of these queues frees, by resource, in base units.

        Args:
            part: part of their running jobs that holds so much of a resource, or more; 0 for any job.
        """
        amounts: dict[str, Counter[int]] = {}
        jobs = 0
        for queue in queues:
            jobs += len(self.of(queue))
            for resource, counts in self._amounts.get(queue, {}).items():
                amounts.setdefault(resource, Counter()).update(counts)
        least = max(1, math.ceil(part * jobs))
        return {resource: _held_by(least, counts) for resource, counts in amounts.items() if counts}


class QueuedJobs:
    """The waiting jobs of a class in a queue, in the frontend's own order within each level; and the held ones.

    Jobs share few levels: the default, those of the labelled heads, and the values of priority classes. So a pass looks
    at the first jobs of each level and never at all jobs.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, TieIndex] = {}
        """Waiting jobs by level."""
        self.held: dict[int, set[str]] = {}
        """Uids of held jobs by level."""

    def put(self, job: JobState, tie: Tie) -> None:
        """Adds a job that stands in the queue now."""
        if job.phase is Phase.WAITING:
            self.waiting.setdefault(job.level, TieIndex()).put(job.uid, tie)
        else:
            self.held.setdefault(job.level, set()).add(job.uid)

    def take(self, job: JobState) -> None:
        """Takes out a job, as it was put, that does not stand in the queue any more."""
        if job.phase is Phase.WAITING:
            ties = self.waiting[job.level]
            ties.discard(job.uid)
            if not ties:
                del self.waiting[job.level]
        else:
            uids = self.held[job.level]
            uids.discard(job.uid)
            if not uids:
                del self.held[job.level]

    def above(self, level: int) -> Iterator[str]:
        """The uids of all that stand above this level, held ones too; the highest first, then in the frontend's order."""
        for at in sorted({*self.waiting, *self.held}, reverse=True):
            if at <= level:
                return
            if at in self.waiting:
                yield from (uid for _, uid in self.waiting[at].in_order())
            yield from sorted(self.held.get(at, ()))


class ClusterFacts:
    """Facts of one cluster: its jobs, queues, pools and tenants."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.changes = 0
        """Number of changes that were taken in: while it stands, so do the facts."""
        self._stated = StatedFacts()
        self._own = self._stated.cluster(cluster)
        self.queues, self.pools = self._own.queues, self._own.pools
        self._class_of: Callable[[JobState], str] = lambda _: ""  # every job's before a policy is known
        self._job_class: dict[str, str] = {}
        """The class under which a queued job is kept, by uid."""
        self._waiting: Counter[str] = Counter()
        """Number of jobs that wait or are held, by scope."""
        self._queued: dict[str, dict[str, QueuedJobs]] = {}
        """Queued jobs by queue and class."""
        self.running = RunningSizes()
        self._submitted: dict[tuple[str, str], str] = {}
        """The uid of the job of each submission that is stated, by scope and submission."""
        self._moved: dict[str, set[str]] = {}
        """Uids of queued jobs that have another level than if nobody steered, by queue."""

    @property
    def classes(self) -> Mapping[str, int]:
        """Levels by class that the cluster itself gives its jobs when nobody steers."""
        return self._own.class_values

    @property
    def mark(self) -> SyncMark | None:
        """Says on which incarnation of the server the state was made equal to the cluster."""
        return self._own.mark

    def job(self, uid: str) -> JobState | None:
        """The job of that uid, in whatever phase."""
        return self._stated.jobs.get(uid)

    def submitted(self, scope: str, submission: str) -> JobState | None:
        """The job that was made of a submission, in whatever phase."""
        uid = self._submitted.get((scope, submission))
        return None if uid is None else self.job(uid)

    def named(self, scope: str, job: str) -> JobState | None:
        """The job that its frontend knows by this name."""
        return self.stated(subjects.state(self.cluster, "job", job, scope=scope))

    def cohorts(self, queues: Iterable[QueueState]) -> list[CohortQuota]:
        """The nodes of quota above these queues."""
        pools = {queue.pool for queue in queues}
        return [cohort for name in pools if name in self.pools for cohort in self.pools[name].cohorts]

    def stated(self, subject: str) -> JobState | None:
        """The job that was stated under a subject at the last look."""
        return self._stated.jobs.stated(subject)

    def queued(self, queue: str) -> Mapping[str, QueuedJobs]:
        """The queued jobs of one queue, by class."""
        return self._queued.get(queue, {})

    def moved(self, queue: str) -> Iterable[str]:
        """The uids of the queue's jobs that have another level than if nobody steered."""
        return self._moved.get(queue, ())

    def job_class(self, uid: str) -> str | None:
        """The class of a queued job."""
        return self._job_class.get(uid)

    def unsteered(self, job: JobState) -> int:
        """The level that the job would have if nobody steered."""
        return unsteered_level(job, self.queues.get(job.queue))

    def tie(self, job: JobState) -> Tie:
        """The rank of the job among those of its level, as its frontend has them in line."""
        queue = self.queues.get(job.queue)
        rule = TieRule.INSTANT if queue is None else queue.able.ties
        return tie_of(rule, job.queue_time, name=job.id, uid=job.uid)

    def entries(self, scope: str) -> Mapping[str, str]:
        """The entry queues of a scope, by name, with the queue that each leads to: its accounts, or its LocalQueues."""
        return {name: account.queue for name, account in self._own.accounts.get(scope, {}).items()}

    def waiting(self, scope: str) -> int:
        """Number of jobs of a scope that wait or are held."""
        return self._waiting[scope]

    def queued_jobs(self) -> Iterator[JobState]:
        """Every job that waits or is held."""
        return (job for job in self._stated.jobs if job.phase in _QUEUED)

    def all_jobs(self) -> Iterator[JobState]:
        """Every job that is stated."""
        return iter(self._stated.jobs)

    def running_jobs(self) -> Iterator[JobState]:
        """Every job that runs."""
        return (job for job in self._stated.jobs if job.phase is Phase.RUNNING)

    def classify(self, class_of: Callable[[JobState], str]) -> None:
        """Gives every queued job its class anew, as another policy holds. Costs a look at each."""
        self._class_of = class_of
        for job in self.queued_jobs():
            if class_of(job) != self._job_class[job.uid]:
                self._leave_queue(job)
                self._enter_queue(job)

    def apply(self, changes: Mapping[str, State | None]) -> list[JobChange]:
        """Takes in what changed, by state subject; None means deleted. Returns the changes of jobs."""
        self.changes += len(changes)
        jobs: list[JobChange] = []
        for change in self._stated.learning(changes):
            for _, before, after in change.statements:
                if isinstance(after, QueueState) and not _ranked_alike(before, after):
                    self._enter_anew(after)
            for before, after in change.jobs:
                if before is not None:
                    self._take(before)
                if after is not None:
                    self._put(after)
            jobs += change.jobs
        return jobs

    def _put(self, job: JobState) -> None:
        if job.submission is not None:
            self._submitted[job.scope, job.submission] = job.uid
        if job.phase in _QUEUED:
            self._enter_queue(job)
        elif job.phase is Phase.RUNNING:
            self.running.put(job)

    def _take(self, job: JobState) -> None:
        if job.submission is not None and self._submitted.get((job.scope, job.submission)) == job.uid:
            del self._submitted[job.scope, job.submission]
        if job.phase in _QUEUED:
            self._leave_queue(job)
        elif job.phase is Phase.RUNNING:
            self.running.take(job)

    def _enter_queue(self, job: JobState) -> None:
        job_class = self._job_class[job.uid] = self._class_of(job)
        self._queued.setdefault(job.queue, {}).setdefault(job_class, QueuedJobs()).put(job, self.tie(job))
        self._waiting[job.scope] += 1
        if job.level != self.unsteered(job):
            self._moved.setdefault(job.queue, set()).add(job.uid)

    def _leave_queue(self, job: JobState) -> None:
        self._queued[job.queue][self._job_class.pop(job.uid)].take(job)
        self._waiting[job.scope] -= 1
        if not self._waiting[job.scope]:
            del self._waiting[job.scope]
        self._moved.get(job.queue, set()).discard(job.uid)

    def _enter_anew(self, queue: QueueState) -> None:
        """Ranks a queue's jobs anew: they may be known before their queue says how it breaks ties, and its levels."""
        for job in self._stated.jobs_in(queue):
            if job.phase in _QUEUED:
                self._leave_queue(job)
                self._enter_queue(job)


def _ranked_alike(before: State | None, after: QueueState) -> bool:
    """Whether ties and unsteered levels of a queue's jobs are as they were."""
    return (
        isinstance(before, QueueState)
        and before.able.ties is after.able.ties
        and before.default_level == after.default_level
        and before.bands_by_class == after.bands_by_class
    )


def _held_by(jobs: int, amounts: Counter[int]) -> int:
    """The most that so many jobs hold, or more; 0 where fewer hold any."""
    for amount in sorted(amounts, reverse=True):
        jobs -= amounts[amount]
        if jobs <= 0:
            return amount
    return 0
