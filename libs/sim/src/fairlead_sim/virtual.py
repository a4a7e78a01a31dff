"""A workload in virtual time: the same cluster, driven from event to event instead of by the clock.

With the orders to compare with, first come first served and strict priority.
"""

from collections.abc import Callable, Sequence

import msgspec

from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.frontend.verbs import SetLevel
from fairlead_contracts.messages.events import JobStarted
from fairlead_contracts.messages.state import Phase
from fairlead_sim.changes import ClusterChanges, JobRetention
from fairlead_sim.cluster import SimCluster
from fairlead_sim.errors import StuckError
from fairlead_sim.jobs import JobName, SimJob
from fairlead_sim.meter import PoolSample, ShareMeter, jain, quantile
from fairlead_sim.workload import POOL, SimWorkload, WorkloadJob

type Discipline = Callable[[SimJob], int | None]
"""A queueing discipline: the level that a job is created with; None leaves its queue's default."""


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """The life of one job; instants count from the start of the workload."""

    id: str
    tenant: str
    job_class: str | None
    submitted: Micros
    started: Micros
    ended: Micros

    @property
    def waited(self) -> float:
        """Seconds from submission to start."""
        return to_seconds(self.started - self.submitted)


class WaitQuantiles(msgspec.Struct, frozen=True, kw_only=True):
    """Waits of some jobs, in seconds; nearest-rank quantiles."""

    jobs: int
    p50: float
    p90: float


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a workload under one discipline."""

    jobs: list[JobResult]
    """Jobs in the order in which they started."""
    samples: list[PoolSample]
    shares: dict[str, float]
    """Time-mean share of each tenant while all were backlogged (see `ShareMeter`)."""
    entitlements: dict[str, float]
    backlogged_seconds: float
    makespan_seconds: float

    @property
    def jain(self) -> float:
        """Jain's index over share / entitlement."""
        return jain(self.shares[tenant] / part for tenant, part in self.entitlements.items() if part)

    def waits(self) -> dict[tuple[str, str | None], WaitQuantiles]:
        """Waits by tenant and class; under class `*` those of all of the tenant's jobs."""
        groups: dict[tuple[str, str | None], list[float]] = {}
        for job in self.jobs:
            groups.setdefault((job.tenant, job.job_class), []).append(job.waited)
            groups.setdefault((job.tenant, "*"), []).append(job.waited)
        return {
            group: WaitQuantiles(jobs=len(found), p50=quantile(found, 0.5), p90=quantile(found, 0.9))
            for group, found in groups.items()
        }


class VirtualRun:
    """A run of one workload under one discipline, from the first submission to the last end."""

    def __init__(self, workload: SimWorkload, discipline: Discipline) -> None:
        """Prepare a run; the discipline gives the levels."""
        self._workload = workload
        self._discipline = discipline
        self.cluster = SimCluster(
            "sim", workload.cluster, uid_prefix="virtual", retention=JobRetention(ended=None)
        )
        self.meter = ShareMeter(self.cluster.pools[POOL].capacity, workload.tenants)
        self._arrivals = list(reversed(workload.jobs))
        self._started: list[SimJob] = []

    def run(self) -> RunResult:
        """Runs to the end.

        Raises:
            StuckError: a job waits that nothing can start any more.
        """
        while (now := self.next_instant()) is not None:
            self.step(now)
        if self.cluster.jobs and any(job.phase is Phase.WAITING for job in self.cluster.jobs.values()):
            stuck = next(job for job in self.cluster.jobs.values() if job.phase is Phase.WAITING)
            raise StuckError(f"job {stuck.scope}/{stuck.id} can never start: it asks for {stuck.demand}")
        return self._result()

    def step(self, now: Micros) -> None:
        """Does everything that happens at one instant."""
        while self._arrivals and self._arrivals[-1].offset <= now:
            self._arrive(self._arrivals.pop(), now)
        self.cluster.advance(now)
        self.observe()

    def next_instant(self) -> Micros | None:
        """The next instant at which anything happens; None where nothing will."""
        instants = [self.cluster.next_due(), self._arrivals[-1].offset if self._arrivals else None]
        return min((instant for instant in instants if instant is not None), default=None)

    def _arrive(self, job: WorkloadJob, now: Micros) -> None:
        self.cluster.create(job.create(0), now)
        made = self.cluster.jobs[JobName(job.tenant, job.id)]
        level = self._discipline(made)
        if level is not None:
            self.cluster.set_level(SetLevel(scope=made.scope, id=made.id, uid=made.uid, level=level))

    def observe(self) -> ClusterChanges:
        """Takes and measures what has changed since the last look."""
        changes = self.cluster.take_changes()
        for event in changes.events:
            self.meter.observe(event)
            if isinstance(event, JobStarted):
                self._started.append(self.cluster.jobs[JobName(event.scope, event.job)])
        return changes

    def _result(self) -> RunResult:
        end = max((job.ended or 0 for job in self._started), default=0)
        return RunResult(
            jobs=[_result_of(job) for job in self._started],
            samples=self.meter.samples,
            shares=self.meter.means(),
            entitlements=self._workload.entitlements(),
            backlogged_seconds=to_seconds(self.meter.backlogged),
            makespan_seconds=to_seconds(end),
        )


def _result_of(job: SimJob) -> JobResult:
    return JobResult(
        id=job.id,
        tenant=job.scope,
        job_class=job.requested_class,
        submitted=job.submitted,
        started=job.started or 0,
        ended=job.ended or 0,
    )


def fifo(job: SimJob) -> int | None:
    """First come, first served: nobody gets a level."""
    del job
    return None


def strict_priority(classes: Sequence[str]) -> Discipline:
    """A level for each class, of which the first goes first, then first come first served: what priority classes alone give.

    Grants are not looked at: who asks for a class has it.
    """
    levels = {name: len(classes) - rank for rank, name in enumerate(classes)}
    return lambda job: levels.get(job.requested_class or "", 1)
