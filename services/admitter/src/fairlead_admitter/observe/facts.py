"""The admitter's facts of its own cluster, kept up change by change.

A pass at 15,000 waiting jobs must not look at 15,000 jobs: per queue and class, the jobs of each level are kept in
the frontend's order as changes come in.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from fairlead_admitter.observe.queued_jobs import QueuedJobs
from fairlead_admitter.observe.running_sizes import RunningSizes
from fairlead_contracts.frontend.capabilities import TieRule
from fairlead_contracts.messages.state import (
    ClassState,
    CohortQuota,
    JobState,
    Phase,
    PoolState,
    QueueState,
    State,
    SyncMark,
    TenantState,
)
from fairlead_policy.levels.ties import Tie, tie_of
from fairlead_policy.levels.withholding import unsteered_level
from fairlead_policy.snapshot.stated_jobs import StatedJobs

_QUEUED = (Phase.WAITING, Phase.HELD)


class JobChange(msgspec.Struct, frozen=True):
    """A job before and after a change; None where it wasn't there, or isn't any more."""

    before: JobState | None
    after: JobState | None

    @property
    def admitted(self) -> bool:
        """Whether the frontend admitted the job with this change. It may have waited unseen before."""
        return (
            self.after is not None
            and self.after.phase is Phase.RUNNING
            and (self.before is None or self.before.phase in _QUEUED)
        )


class ClusterFacts:
    """Facts of one cluster: its jobs, queues, pools and tenants."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.queues: dict[str, QueueState] = {}
        self.pools: dict[str, PoolState] = {}
        self.classes: dict[str, int] = {}
        """Levels by class that the cluster itself gives its jobs when nobody steers."""
        self.changes = 0
        """Number of changes that were taken in: while it stands, so do the facts."""
        self.mark: SyncMark | None = None
        """Says on which incarnation of the server the state was made equal to the cluster."""
        self._queues_by_scope: dict[str, dict[str, str]] = {}
        self._objects: dict[str, State] = {}
        self._jobs = StatedJobs()
        self._class_of: Callable[[JobState], str] = lambda _: ""  # every job's before a policy is known
        self._job_class: dict[str, str] = {}
        """The class under which a queued job is kept, by uid."""
        self._waiting: Counter[str] = Counter()
        """Number of jobs that wait or are held, by scope."""
        self._queued: dict[str, dict[str, QueuedJobs]] = {}
        """Queued jobs by queue and class."""
        self.running = RunningSizes()
        self._moved: dict[str, set[str]] = {}
        """Uids of queued jobs that have another level than if nobody steered, by queue."""

    def job(self, uid: str) -> JobState | None:
        """The job of that uid, in whatever phase."""
        return self._jobs.get(uid)

    def cohorts(self, queues: Iterable[QueueState]) -> list[CohortQuota]:
        """The nodes of quota above these queues."""
        pools = {queue.pool for queue in queues}
        return [cohort for name in pools if name in self.pools for cohort in self.pools[name].cohorts]

    def stated(self, subject: str) -> State | None:
        """The state that was last looked at under a subject."""
        return self._objects.get(subject)

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
        return self._queues_by_scope.get(scope, {})

    def queue_behind(self, scope: str, entry: str) -> str | None:
        """The queue that a tenant's entry queue leads to (in Kueue, a LocalQueue of a namespace); None for an unknown one."""
        return self._queues_by_scope.get(scope, {}).get(entry)

    def waiting(self, scope: str) -> int:
        """Number of jobs of a scope that wait or are held."""
        return self._waiting[scope]

    def queued_jobs(self) -> Iterator[JobState]:
        """Every job that waits or is held."""
        return (job for job in self._jobs if job.phase in _QUEUED)

    def all_jobs(self) -> Iterator[JobState]:
        """Every job that is stated."""
        return iter(self._jobs)

    def running_jobs(self) -> Iterator[JobState]:
        """Every job that runs."""
        return (job for job in self._jobs if job.phase is Phase.RUNNING)

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
        moved: set[str] = set()
        for subject, after in changes.items():
            before = self._objects.pop(subject, None)
            if after is not None:
                self._objects[subject] = after
            if isinstance(before, JobState) or isinstance(after, JobState):
                jobs += self._replace_job(subject, after)
            else:
                moved |= self._replace_other(before, after)
        self._look_for_moved(moved)
        return jobs

    def _replace_job(self, subject: str, after: State | None) -> Iterable[JobChange]:
        job = after if isinstance(after, JobState) else None
        changes = [JobChange(gone, come) for gone, come in self._jobs.replace(subject, job).values()]
        for change in changes:
            if change.before is not None:
                self._take(change.before)
            if change.after is not None:
                self._put(change.after)
        return changes

    def _put(self, job: JobState) -> None:
        if job.phase in _QUEUED:
            self._enter_queue(job)
        elif job.phase is Phase.RUNNING:
            self.running.put(job)

    def _take(self, job: JobState) -> None:
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

    def _replace_other(self, before: State | None, after: State | None) -> set[str]:
        """Takes in a fact other than a job; returns the queues whose jobs have other unsteered levels by it."""
        self._drop(before)
        match after:
            case QueueState():
                self.queues[after.name] = after
                self._tie_anew(before, after)
                return set() if _unsteered_alike(before, after) else {after.name}
            case PoolState():
                self.pools[after.name] = after
            case ClassState():
                self.classes[after.name] = after.value
            case TenantState():
                self._queues_by_scope.setdefault(after.scope, {})[after.name] = after.queue
            case SyncMark():
                self.mark = after
        return set()

    def _tie_anew(self, before: State | None, after: QueueState) -> None:
        """Gives a queue's jobs their ties anew: they may be known before their queue says how it breaks ties."""
        if isinstance(before, QueueState) and before.able.ties is after.able.ties:
            return
        for job in self.queued_jobs():
            if job.queue == after.name:
                self._leave_queue(job)
                self._enter_queue(job)

    def _drop(self, state: State | None) -> None:
        match state:
            case QueueState():
                self.queues.pop(state.name, None)
            case PoolState():
                self.pools.pop(state.name, None)
            case ClassState():
                self.classes.pop(state.name, None)
            case TenantState():
                self._queues_by_scope.get(state.scope, {}).pop(state.name, None)
            case SyncMark():
                self.mark = None

    def _look_for_moved(self, queues: set[str]) -> None:
        for queue in queues:
            self._moved[queue] = set()
        if queues:
            for job in self.queued_jobs():
                if job.queue in queues and job.level != self.unsteered(job):
                    self._moved[job.queue].add(job.uid)


def _unsteered_alike(before: State | None, after: QueueState) -> bool:
    return (
        isinstance(before, QueueState)
        and before.default_level == after.default_level
        and before.bands_by_class == after.bands_by_class
    )
