"""A simulated cluster: pure, deterministic, and the same in virtual time and behind the service.

It does what Kueue does at admission: a waiting job is picked by level, then queue time, then uid; it starts when its
demand fits the free quota of its queue's pool; nothing that runs is preempted. It ends after its run time. Time is an
argument. Verbs only change what they name; `advance` lets jobs end and start.
"""

import heapq
from collections import Counter
from collections.abc import Iterable

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.frontend.verbs import (
    CreateJob,
    CreateOutcome,
    CreateReply,
    DeleteJob,
    SetLevel,
    VerbOutcome,
)
from fairlead_contracts.messages.state import Outcome, Phase
from fairlead_sim.changes import ClusterChanges, ClusterCounters, FindUsed, JobRetention, UsedName
from fairlead_sim.config import ClusterConfig, QueueConfig
from fairlead_sim.jobs import JobName, SimJob
from fairlead_sim.lines import QueueLine, line_of
from fairlead_sim.pool import SimNode, SimPool

UID_DIGITS = 12
"""Uids of one cluster sort by creation: a counter of fixed width."""
UNSTATED_RUN: Micros = 60 * SECOND
"""Run time of a job whose submission does not state it."""


class SimCluster:
    """Nodes, pools, queues, accounts and jobs of one simulated cluster."""

    def __init__(
        self,
        name: str,
        config: ClusterConfig,
        *,
        uid_prefix: str,
        retention: JobRetention | None = None,
        find_used: FindUsed = lambda _: None,
    ) -> None:
        """Creates an empty cluster.

        Args:
            uid_prefix: makes uids unique over all clusters and all time.
            find_used: asked for names of forgotten jobs, once their changes were taken; without it they are free then.
        """
        self.name = name
        self.config = config
        self.retention = retention or JobRetention()
        self.counters = ClusterCounters()
        self.nodes: dict[str, SimNode] = {}
        self.pools = {pool: SimPool(pool, config.capacity(pool)) for pool in config.pools()}
        self.queues = {queue.name: queue for queue in config.queues}
        self.jobs: dict[JobName, SimJob] = {}
        self._uid_prefix = uid_prefix
        self._find_used = find_used
        self._lines: dict[str, QueueLine] = {}
        self._due: list[tuple[Micros, str, SimJob]] = []
        self._expiring: list[tuple[Micros, JobName]] = []
        self._counts: Counter[Phase] = Counter()
        self._changes = ClusterChanges()
        self._equip()

    # Verbs

    def create(self, wanted: CreateJob, now: Micros) -> CreateReply:
        """Make a job. The same name with the same digest was done before; with another one it is a conflict."""
        name = JobName(wanted.scope, wanted.id)
        found = self.jobs.get(name) or self._used(name, now)
        if found is not None:
            same = found.digest == wanted.digest
            return CreateReply(
                outcome=CreateOutcome.EXISTS if same else CreateOutcome.CONFLICT, queue=found.queue
            )
        queue = wanted.queue if wanted.queue is not None else self.config.accounts.get(wanted.scope)
        if queue is None or queue not in self.queues or wanted.scope not in self.config.accounts:
            return CreateReply(outcome=CreateOutcome.NO_QUEUE)
        job = self._job_of(wanted, self.queues[queue])
        self.jobs[name] = job
        self._changes.gone.pop(name, None)  # a name that was forgotten since the last look names this job now
        self._counts[Phase.WAITING] += 1
        self._lines[queue].join(job)
        self._changed(job)
        self._changes.events.append(job.queued_event(self.name, now))
        return CreateReply(outcome=CreateOutcome.CREATED, queue=queue)

    def set_level(self, wanted: SetLevel) -> int | None:
        """Give a waiting job a level, or its queue's default; its revision then, or None where no such job waits."""
        job = self.jobs.get(JobName(wanted.scope, wanted.id))
        if job is None or job.uid != wanted.uid or job.phase is not Phase.WAITING:
            return None
        level = self.queues[job.queue].default_level if wanted.level is None else wanted.level
        if job.level != level:
            job.level = level
            self._lines[job.queue].relevel(job)
            self._changed(job)
        return job.rev

    def delete(self, wanted: DeleteJob, now: Micros) -> VerbOutcome:
        """Take a job away: a waiting one leaves its queue, a running one is cancelled."""
        job = self.jobs.get(JobName(wanted.scope, wanted.submission or wanted.id))
        if job is None or job.phase is Phase.ENDED or wanted.uid not in (None, job.uid):
            return VerbOutcome.GONE
        if wanted.spares(job.submitted):
            return VerbOutcome.LATER
        self._end(job, now, Outcome.CANCELLED)
        return VerbOutcome.DONE

    # Time

    def advance(self, now: Micros) -> None:
        """End what is due, each at its own instant; forget what ended long ago; start what fits, now."""
        while self._due and self._due[0][0] <= now:
            due, _, job = heapq.heappop(self._due)
            if job.phase is Phase.RUNNING:
                self._end(job, due, Outcome.FAILED if job.exceeds_limit else Outcome.SUCCEEDED)
        self._forget(now)
        self._changes.at = now
        for pool in self.pools.values():
            for job in pool.startable():
                self._start(job, pool, now)

    def next_due(self) -> Micros | None:
        """The instant at which time alone changes something next: a running job ends, or an ended one is forgotten."""
        while self._due and self._due[0][2].phase is not Phase.RUNNING:
            heapq.heappop(self._due)
        instants = [heap[0][0] for heap in (self._due, self._expiring) if heap]
        return min(instants, default=None)

    # Looking

    def take_changes(self) -> ClusterChanges:
        """Takes the changes since this was asked last."""
        changes, self._changes = self._changes, ClusterChanges()
        return changes

    def count(self, phase: Phase) -> int:
        """The number of stated jobs in a phase."""
        return self._counts[phase]

    def next_rev(self) -> int:
        """A revision above all that were given."""
        self.counters.rev += 1
        return self.counters.rev

    def restore(self, jobs: Iterable[SimJob], counters: ClusterCounters, now: Micros) -> None:
        """Take over what a store kept: the cluster goes on as if it had never stopped.

        A job that waits or runs in a queue which the configuration no longer has is cancelled.
        """
        self.counters = ClusterCounters(
            rev=max(self.counters.rev, counters.rev), created=counters.created, fence=counters.fence
        )
        for job in jobs:
            self.jobs[job.name] = job
            self._counts[job.phase] += 1
            self._resume(job, now)
        # Nodes and pools come from the configuration, which may be another one now: stated anew, above what was.
        for node in self.nodes.values():
            node.rev = self.next_rev()
        for pool in self.pools.values():
            pool.rev = self.next_rev()

    # How

    def _equip(self) -> None:
        for group in self.config.nodes:
            amounts = group.amounts()
            for number in range(group.count):
                node = SimNode(f"{group.name}-{number}", dict(amounts), dict(group.labels))
                node.rev = self.next_rev()
                self.nodes[node.name] = node
        for pool in self.pools.values():
            pool.rev = self.next_rev()
        for queue in self.config.queues:
            pool = self.pools[queue.pool]
            self._lines[queue.name] = line_of(
                queue.strategy, {name for name, has in pool.capacity.items() if has}
            )
            pool.lines.append(self._lines[queue.name])

    def _job_of(self, wanted: CreateJob, queue: QueueConfig) -> SimJob:
        self.counters.created += 1
        return SimJob(
            uid=f"{self._uid_prefix}-{self.counters.created:0{UID_DIGITS}d}",
            scope=wanted.scope,
            id=wanted.id,
            digest=wanted.digest,
            queue=queue.name,
            demand=wanted.demand,
            pods=wanted.pods,
            requested_class=wanted.requested_class,
            submission=wanted.submission,
            submitted=wanted.submitted,
            queue_time=wanted.submitted,
            run=UNSTATED_RUN if wanted.run is None else wanted.run,
            run_limit=wanted.run_limit,
            labels=wanted.labels,
            traceparent=wanted.traceparent,
            level=queue.default_level,
        )

    def _start(self, job: SimJob, pool: SimPool, now: Micros) -> None:
        self._move(job, Phase.RUNNING)
        job.started = now
        self._lines[job.queue].leave(job)
        pool.take(job.demand)
        heapq.heappush(self._due, (now + job.runs_for, job.uid, job))
        self._changed(job)
        self._changes.events.append(job.started_event(self.name, now))

    def _end(self, job: SimJob, at: Micros, outcome: Outcome) -> None:
        before = job.phase
        self._move(job, Phase.ENDED)
        if before is Phase.RUNNING:
            self.pools[self.queues[job.queue].pool].give_back(job.demand)
        else:
            self._lines[job.queue].leave(job)
        job.ended, job.outcome = at, outcome
        self._keep(job, at)
        self._changed(job)
        self._changes.events.append(job.ended_event(self.name, at))

    def _move(self, job: SimJob, phase: Phase) -> None:
        self._counts[job.phase] -= 1
        self._counts[phase] += 1
        job.phase = phase

    def _keep(self, job: SimJob, ended: Micros) -> None:
        if self.retention.ended is not None:
            heapq.heappush(self._expiring, (ended + self.retention.ended, job.name))

    def _forget(self, now: Micros) -> None:
        while self._expiring and self._expiring[0][0] <= now:
            at, name = heapq.heappop(self._expiring)
            job = self.jobs.pop(name)
            self._counts[job.phase] -= 1
            self._changes.jobs.pop(name, None)
            self._changes.gone[name] = UsedName(
                digest=job.digest, queue=job.queue, until=at + self.retention.names
            )

    def _used(self, name: JobName, now: Micros) -> UsedName | None:
        """The entry of a name that is not free yet."""
        found = self._changes.gone.get(name) or self._find_used(name)
        return found if found is not None and found.until > now else None

    def _resume(self, job: SimJob, now: Micros) -> None:
        match job.phase:
            case Phase.WAITING | Phase.RUNNING if job.queue not in self.queues:
                self._move(job, Phase.ENDED)
                job.ended, job.outcome = now, Outcome.CANCELLED
                self._keep(job, now)
                self._changed(job)
                self._changes.events.append(job.ended_event(self.name, now))
            case Phase.RUNNING:
                started = job.started or 0
                self.pools[self.queues[job.queue].pool].take(job.demand)
                heapq.heappush(self._due, (started + job.runs_for, job.uid, job))
            case Phase.ENDED:
                self._keep(job, job.ended or 0)
            case _:
                self._lines[job.queue].join(job)

    def _changed(self, job: SimJob) -> None:
        job.rev = self.next_rev()
        self._changes.jobs[job.name] = job
