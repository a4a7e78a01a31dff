"""Cost of telling a job's spans, by itself: the calls that services make for it, with a real exporter, in one process.

The fleets of `tracing` decide differently often from one round to the next, which moves their CPU by more than tracing
does. Here the work is the same to the call: what differs between two turns is tracing alone.
"""

import statistics
import time
from typing import NamedTuple

from bench_lines import say
from bench_tracing import a_collector

from fairlead_admitter.report.job_traces import JobTraces
from fairlead_contracts.base.instants import SECOND, from_datetime
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.events import Event, LevelWritten
from fairlead_contracts.messages.job_traces import trace_of_submission
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.messages.submissions import Submission
from fairlead_runtime.frontend_spans import FrontendSpans
from fairlead_runtime.settings import ServiceSettings
from fairlead_runtime.spans import Spans
from fairlead_runtime.tracing import configure_tracing
from fairlead_scorer.decide.decision import DecisionContent
from fairlead_scorer.decide.shard_ownership import ShardDecision, ShardName
from fairlead_scorer.report.pass_traces import PassTraces
from fairlead_testkit.inputs.builders import (
    NOW,
    a_basis,
    a_decision,
    a_job,
    a_level_event,
    a_position,
    a_queue_heads,
    a_queued_event,
    a_started_event,
    a_submission,
    an_ended_event,
)

JOBS = 2000
A_PASS = 4
"""Number of jobs that are new among the heads of each decision."""
HEADS = 32
TURNS = 15
SHARD = ShardName("c1/gpu", 0)


class ToldJob(NamedTuple):
    """A job with all that is told of it."""

    submission: Submission
    job: JobState
    events: list[Event]
    level: LevelWritten
    decision: Decision


class Pages:
    """The diary of passes, which nobody reads here."""

    def claimed(self, shard: ShardName, epoch: int) -> None:
        """See `ShardObserver`."""

    def lost(self, shard: ShardName) -> None:
        """See `ShardObserver`."""

    def published(self, shard: ShardName, decided: ShardDecision) -> None:
        """See `ShardObserver`."""

    def failed(self, shard: ShardName, error: Exception) -> None:
        """See `ShardObserver`."""

    def moved(self, shard: ShardName, jobs: int) -> None:
        """See `PassObserver`."""


def lives(ratio: float) -> list[ToldJob]:
    """The jobs, as they stand where that part of them has a trace."""
    found = []
    for number in range(JOBS):
        submission = a_submission(id=f"job-{number}")
        root = trace_of_submission(submission.tenant, submission.id, NOW, ratio)
        uid, carried = f"uid-{number}", None if root is None else root.traceparent
        job = a_job(
            submission.id, uid=uid, started=NOW + SECOND, submission=submission.id, traceparent=carried
        )
        of_job = {"uid": uid, "job": submission.id, "submission": submission.id, "traceparent": carried}
        events: list[Event] = [a_queued_event(**of_job), a_started_event(**of_job), an_ended_event(**of_job)]
        found.append(ToldJob(submission, job, events, a_level_event(**of_job), a_decision()))
    return found


def contents(told: list[ToldJob]) -> list[DecisionContent]:
    """Decisions whose heads go forward by a few jobs each."""
    positions = [a_position(uid=life.job.uid, id=life.job.id) for life in told]
    return [
        DecisionContent(
            basis=a_basis(),
            queue_heads=[a_queue_heads(positions=positions[number : number + HEADS], waiting=HEADS)],
            standings=[],
        )
        for number in range(0, JOBS, A_PASS)
    ]


def tell(spans: Spans, told: list[ToldJob], decided: list[DecisionContent]) -> None:
    """Tells what admitter, scorer and the frontend's owner say of all of them."""
    jobs = {life.job.uid: life.job for life in told}
    admitter, frontend = JobTraces(spans, "c1"), FrontendSpans(spans, lambda: NOW, "c1")
    passes = PassTraces(Pages(), spans, jobs.get, "one", lambda: NOW)
    for life in told:
        at = from_datetime(life.level.at)
        root = admitter.submitted(life.submission, at, None)
        admitter.taken(life.submission, at, root, None)
        admitter.wrote(life.level, life.decision)
        admitter.admitted(life.job)
        frontend.happened(life.events)
    for turn, content in enumerate(decided):
        passes.begin(SHARD, content, 1, turn)
        passes.published(SHARD, ShardDecision(content=content, state_seq=turn, clusters=("c1",)))


async def telling() -> None:
    """Microseconds of CPU for each job, over those without tracing: the median of turns, and their quartiles."""
    async with a_collector() as endpoint:
        for ratio in (ServiceSettings().otel_sample_ratio, 1.0):
            costs = await _costs(endpoint, ratio)
            say(
                f"tracing, {ratio:g} of jobs kept: CPU of telling, for each job",
                microseconds=statistics.median(costs),
                quartiles=[round(one, 1) for one in statistics.quantiles(costs, n=4)[::2]],
                jobs=JOBS,
                turns=TURNS,
            )


async def _costs(endpoint: str, ratio: float) -> list[float]:
    """Microseconds for each job over those of the turn without, of each turn."""
    without, spans = Spans("bench", "one", lambda *_: None), Spans("bench", "one", lambda *_: None)
    settings = ServiceSettings(otel_endpoint=endpoint, otel_sample_ratio=ratio)
    tracing = configure_tracing(settings, "bench", "one", spans)
    told = lives(ratio)
    decided = contents(told)

    async def spent(where: Spans) -> float:
        """Seconds of this process, its exporting thread's with them."""
        before = time.process_time()
        tell(where, told, decided)
        if where.on:
            await tracing.flush(30.0)
        return time.process_time() - before

    await spent(spans)  # warms up
    costs = []
    for _ in range(TURNS):
        off = await spent(without)
        costs.append(1e6 * (await spent(spans) - off) / JOBS)
    return costs
