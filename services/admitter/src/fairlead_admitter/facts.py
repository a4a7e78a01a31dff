"""What the admitter knows of its own cluster, kept up change by change.

A pass at 15,000 waiting jobs must not look at 15,000 jobs: per queue, the labelled ones and the order of the
unlabelled ones are kept as changes come in.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from fairlead_contracts.state import (
    JobState,
    Phase,
    PoolState,
    QueueState,
    State,
    SyncMark,
    TenantState,
)
from fairlead_policy import TieIndex

_QUEUED = (Phase.WAITING, Phase.HELD)


class JobChange(msgspec.Struct, frozen=True):
    """One job before and after a change; None where it wasn't there, or isn't any more."""

    before: JobState | None
    after: JobState | None

    @property
    def admitted(self) -> bool:
        """Whether the frontend started it: the thing that all of this is about. It may have waited unseen."""
        return (
            self.after is not None
            and self.after.phase is Phase.RUNNING
            and (self.before is None or self.before.phase in _QUEUED)
        )


class QueuedJobs:
    """The queued jobs of one queue, apart by whether they carry a level."""

    def __init__(self) -> None:
        self.default_level = 0
        self.waiting = 0
        self.labelled: dict[str, JobState] = {}
        """By uid: those whose level is not the default, held ones too."""
        self.unlabelled = TieIndex()
        """Those that wait at the default level."""

    def put(self, job: JobState) -> None:
        """The job stands in the queue now."""
        self.waiting += job.phase is Phase.WAITING
        if job.level != self.default_level:
            self.labelled[job.uid] = job
        elif job.phase is Phase.WAITING:
            self.unlabelled.put(job.uid, job.queue_time)

    def take(self, job: JobState) -> None:
        """The job, as it was put, doesn't stand in the queue any more."""
        self.waiting -= job.phase is Phase.WAITING
        self.labelled.pop(job.uid, None)
        self.unlabelled.discard(job.uid)


class ClusterFacts:
    """One cluster's jobs, queues, pools and tenants."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.queues: dict[str, QueueState] = {}
        self.pools: dict[str, PoolState] = {}
        self.mark: SyncMark | None = None
        """Says on which incarnation of the server the state was made equal to the cluster."""
        self._queues_by_scope: dict[str, dict[str, str]] = {}
        self._objects: dict[str, State] = {}
        self._jobs: dict[str, JobState] = {}
        self._shadowed: dict[str, list[JobState]] = {}
        """By uid, what older subjects still say of a job: rarely anything."""
        self._queued: dict[str, QueuedJobs] = {}

    def job(self, uid: str) -> JobState | None:
        """The job of that uid, in whatever phase."""
        return self._jobs.get(uid)

    def queued(self, queue: str) -> QueuedJobs:
        """The queued jobs of one queue."""
        return self._queued.get(queue) or QueuedJobs()

    def queue_of(self, scope: str) -> str | None:
        """The queue through which a scope's jobs go; the first tenant's by name where there are several."""
        queues = self._queues_by_scope.get(scope, {})
        return queues[min(queues)] if queues else None

    def queued_jobs(self) -> Iterator[JobState]:
        """Every job that waits or is held."""
        return (job for job in self._jobs.values() if job.phase in _QUEUED)

    def apply(self, changes: Mapping[str, State | None]) -> list[JobChange]:
        """Take in what changed, by state subject; None means deleted. Returns what happened to jobs."""
        jobs: list[JobChange] = []
        relabel: set[str] = set()
        for subject, after in changes.items():
            before = self._objects.pop(subject, None)
            if after is not None:
                self._objects[subject] = after
            if isinstance(before, JobState) or isinstance(after, JobState):
                jobs += self._replace_job(before, after)
            else:
                relabel |= self._replace_other(before, after)
        self._relabel(relabel)
        return jobs

    def _replace_job(self, before: State | None, after: State | None) -> Iterable[JobChange]:
        gone = before if isinstance(before, JobState) else None
        come = after if isinstance(after, JobState) else None
        stood = {job.uid: self._jobs.get(job.uid) for job in (gone, come) if job is not None}
        if gone is not None:
            self._retire(gone)
        if come is not None:
            self._enter(come)
        stands = {uid: self._jobs.get(uid) for uid in stood}
        return [JobChange(stood[uid], stands[uid]) for uid in stood if stood[uid] is not stands[uid]]

    def _enter(self, job: JobState) -> None:
        """Counts the job, unless another subject has a newer word on it.

        A job keeps its uid when its account changes, and then stands under two subjects until the old one's tombstone
        comes. It counts once, by its highest revision; what the other says waits in the shadow.
        """
        standing = self._jobs.get(job.uid)
        if standing is not None and _stamp(job) < _stamp(standing):
            self._shadowed.setdefault(job.uid, []).append(job)
            return
        if standing is not None:
            self._take(standing)
            self._shadowed.setdefault(job.uid, []).append(standing)
        self._put(job)

    def _retire(self, job: JobState) -> None:
        shadowed = self._shadowed.pop(job.uid, [])
        if self._jobs[job.uid] is not job:
            shadowed.remove(job)
        else:
            self._take(job)
            if shadowed:
                newest = max(shadowed, key=_stamp)
                shadowed.remove(newest)
                self._put(newest)
        if shadowed:
            self._shadowed[job.uid] = shadowed

    def _put(self, job: JobState) -> None:
        self._jobs[job.uid] = job
        if job.phase in _QUEUED:
            self._at(job.queue).put(job)

    def _take(self, job: JobState) -> None:
        del self._jobs[job.uid]
        if job.phase in _QUEUED:
            self._at(job.queue).take(job)

    def _replace_other(self, before: State | None, after: State | None) -> set[str]:
        """Returns the queues whose default level changed: their jobs must be sorted anew."""
        match before:
            case QueueState():
                self.queues.pop(before.name, None)
            case PoolState():
                self.pools.pop(before.name, None)
            case TenantState():
                self._queues_by_scope.get(before.scope, {}).pop(before.name, None)
            case SyncMark():
                self.mark = None
        match after:
            case QueueState():
                self.queues[after.name] = after
                return {after.name} if self._at(after.name).default_level != after.default_level else set()
            case PoolState():
                self.pools[after.name] = after
            case TenantState():
                self._queues_by_scope.setdefault(after.scope, {})[after.name] = after.queue
            case SyncMark():
                self.mark = after
        return set()

    def _relabel(self, queues: set[str]) -> None:
        for queue in queues:
            fresh = self._queued[queue] = QueuedJobs()
            fresh.default_level = self.queues[queue].default_level
        if queues:
            for job in self.queued_jobs():
                if job.queue in queues:
                    self._queued[job.queue].put(job)

    def _at(self, queue: str) -> QueuedJobs:
        return self._queued.setdefault(queue, QueuedJobs())


def _stamp(job: JobState) -> tuple[int, int]:
    return job.epoch, job.rev
