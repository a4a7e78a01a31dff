"""Events of a live run as job histories, measured with the same code as a run in virtual time."""

from collections.abc import Collection

import msgspec

from fairlead_contracts.base.instants import SECOND, Micros, from_datetime, to_datetime, to_seconds
from fairlead_contracts.messages.events import AnyEvent, JobEnded, JobQueued, JobStarted, LevelWritten
from fairlead_contracts.messages.state import Outcome
from fairlead_contracts.messages.submissions import AnyAnswer, Refused
from fairlead_sim.meter import ShareMeter
from fairlead_sim.virtual import JobResult, RunResult
from fairlead_sim.workload import SimWorkload

_STEPS: tuple[type[AnyEvent], ...] = (JobQueued, JobStarted, JobEnded)
"""The steps of a job, in their order where they happen at one instant."""


class Recording:
    """Takes events and answers, each at least once, and knows which submissions are still open."""

    def __init__(self, submissions: Collection[str]) -> None:
        self._submissions = frozenset(submissions)
        self._lives: dict[str, dict[type[AnyEvent], AnyEvent]] = {}
        self.refused: dict[str, Refused] = {}
        self.level_writes = 0

    def take_event(self, event: AnyEvent) -> None:
        """Note one event; a second copy changes nothing."""
        if isinstance(event, LevelWritten):
            self.level_writes += 1
        elif event.submission in self._submissions:
            self._lives.setdefault(event.submission, {}).setdefault(type(event), event)

    def take_answer(self, answer: AnyAnswer) -> None:
        """Note a refusal."""
        if isinstance(answer, Refused) and answer.id in self._submissions:
            self.refused[answer.id] = answer

    @property
    def finished(self) -> int:
        """The number of jobs that ran to a good end."""
        ended = (life.get(JobEnded) for life in self._lives.values())
        return sum(isinstance(one, JobEnded) and one.outcome is Outcome.SUCCEEDED for one in ended)

    def open(self) -> set[str]:
        """Submissions that neither ended nor were refused."""
        ended = {name for name, life in self._lives.items() if JobEnded in life}
        return set(self._submissions) - ended - set(self.refused)

    @property
    def done(self) -> bool:
        """Whether none is open."""
        ended = sum(JobEnded in life for life in self._lives.values())
        return ended + len(self.refused) >= len(self._submissions)

    def result(self, workload: SimWorkload) -> RunResult:
        """The run as the virtual ones are told: instants count from its first submission."""
        events = sorted(
            (event for life in self._lives.values() for event in life.values()),
            key=lambda event: (event.at, _STEPS.index(type(event))),
        )
        origin = min((from_datetime(event.at) for event in events), default=0)
        meter = ShareMeter(workload.capacity(), workload.tenants)
        for event in events:
            meter.observe(msgspec.structs.replace(event, at=to_datetime(from_datetime(event.at) - origin)))
        jobs = sorted(self._results(workload, origin), key=lambda job: job.started)
        makespan = max((job.ended for job in jobs), default=0)
        return RunResult(
            jobs=jobs,
            samples=meter.samples,
            shares=meter.means(),
            entitlements=workload.entitlements(),
            backlogged_seconds=to_seconds(meter.backlogged),
            makespan_seconds=to_seconds(makespan),
        )

    def delays(self, workload: SimWorkload) -> list[float]:
        """Seconds by which each job was late through no order: it came into the queue, or ended, after its time.

        On a machine that keeps up it is in the queue at its offset, and its simulated run takes what it asked for.
        """
        lives = [(job, self._lives.get(job.id, {})) for job in workload.jobs]
        queued = [(job, from_datetime(life[JobQueued].at)) for job, life in lives if JobQueued in life]
        origin = min((at - job.offset for job, at in queued), default=0)
        late = {job.id: to_seconds(at - job.offset - origin) for job, at in queued}
        for job, life in lives:
            if isinstance(ended := life.get(JobEnded), JobEnded):
                late[job.id] = max(late.get(job.id, 0.0), ended.ran_seconds - to_seconds(job.run))
        return list(late.values())

    def _results(self, workload: SimWorkload, origin: Micros) -> list[JobResult]:
        found = []
        for job in workload.jobs:
            life = self._lives.get(job.id, {})
            started, ended = life.get(JobStarted), life.get(JobEnded)
            if not isinstance(started, JobStarted):
                continue
            begin = from_datetime(started.at) - origin
            found.append(
                JobResult(
                    id=job.id,
                    tenant=job.tenant,
                    job_class=job.job_class,
                    submitted=begin - round(started.waited_seconds * SECOND),
                    started=begin,
                    ended=begin if ended is None else from_datetime(ended.at) - origin,
                )
            )
        return found
