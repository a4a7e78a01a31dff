"""Traces of jobs: submitted, level written, admitted; and, always kept, refusals, failures, takeovers."""

import heapq
import time
from collections.abc import Iterable, Iterator

from fairlead_admitter.report.replies import SubmissionRefusal
from fairlead_bus import Delivery
from fairlead_contracts.base.instants import SECOND, Micros, from_datetime, from_seconds
from fairlead_contracts.messages.decisions import Decision
from fairlead_contracts.messages.events import LevelWritten
from fairlead_contracts.messages.job_traces import (
    ADMITTED,
    LEVEL,
    Attributes,
    Span,
    TraceContext,
    about_job,
    is_own,
    read_traceparent,
    stage_span,
    submit_span,
    trace_of_job,
    trace_of_submission,
)
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.messages.submissions import Submission
from fairlead_runtime.spans import Spans

_TOLD_AGAIN: Micros = 600 * SECOND
"""Time before a takeover from which spans are told again: the leader before may have died without telling them."""
_MOST_TOLD_AGAIN = 1000


class JobTraces:
    """Tells the stages of a cluster's jobs that end with the admitter."""

    def __init__(self, spans: Spans, cluster: str) -> None:
        self._spans = spans
        self._cluster = cluster

    # Intake -------------------------------------------------------------------------------------------------------

    def caller(self, delivery: Delivery, ruled: Submission | SubmissionRefusal) -> TraceContext | None:
        """The span that a submission was sent in: in its headers, else in its body."""
        found = read_traceparent(delivery.headers.get("traceparent"))
        if found is None and isinstance(ruled, Submission):
            found = read_traceparent(ruled.traceparent)
        return found

    def submitted(self, ruled: Submission, at: Micros, caller: TraceContext | None) -> TraceContext | None:
        """The root that the job carries; its sender's span where nobody traces here, None where the trace is not kept."""
        if not self._spans.on:
            return caller
        return trace_of_submission(ruled.tenant, ruled.id, at, self._spans.ratio, caller)

    def taken(
        self, ruled: Submission, at: Micros, root: TraceContext | None, caller: TraceContext | None
    ) -> None:
        """Notes that the submission's job stands in the frontend."""
        if root is not None and root.kept and self._spans.on:
            about = about_job(self._cluster, ruled.tenant, ruled.id)
            self._spans.tell([submit_span(root, at, about, caller)])

    def refused(self, refusal: SubmissionRefusal, caller: TraceContext | None) -> None:
        """Tells that no job was made of a submission."""
        said: Attributes = {
            "fairlead.cluster": self._cluster,
            "fairlead.tenant": refusal.sender.tenant,
            "fairlead.submission": refusal.sender.submission,
            "fairlead.field": refusal.field,
            "fairlead.why": refusal.label,
        }
        self._spans.trouble("refuse", said, links=(caller,), error=refusal.reason)

    # Steering -----------------------------------------------------------------------------------------------------

    def wrote(self, event: LevelWritten, decision: Decision | None) -> None:
        """Tells that a level was written."""
        root = trace_of_job(event, self._spans.ratio)
        if not root.kept or not self._spans.on:
            return
        said: Attributes = {
            "fairlead.pool": event.pool,
            "fairlead.shard": event.shard,
            "fairlead.epoch": event.epoch,
            "fairlead.turn": event.turn,
            "fairlead.rank": event.rank,
            "fairlead.level": event.level,
            "fairlead.before": event.before,
            "fairlead.because": event.because,
        }
        about = about_job(event.cluster, event.scope, event.job, event.uid)
        decided = None if decision is None else read_traceparent(decision.traceparent)
        now = from_datetime(event.at)
        self._spans.tell(
            [
                stage_span(
                    root,
                    LEVEL,
                    now if decision is None else min(now, decision.at),
                    now,
                    about | said,
                    which=(event.level,),
                    links=() if decided is None else (decided,),
                )
            ]
        )

    def admitted(self, job: JobState) -> dict[str, str] | None:
        """Tells that the frontend let a job start; returns the exemplar that leads to its trace, where that is kept."""
        if not self._spans.on:
            return None
        root = trace_of_job(job, self._spans.ratio)
        if not root.kept:
            return None
        self._spans.tell(self._admission(job, root))
        return {"trace_id": root.trace_id}

    def failed(self, pool: str, failed: int, why: str, jobs: Iterable[JobState]) -> None:
        """Tells that levels of these jobs of a pool could not be written."""
        said: Attributes = {
            "fairlead.cluster": self._cluster,
            "fairlead.pool": pool,
            "fairlead.writes": failed,
        }
        self._spans.trouble("write levels", said, links=self._roots(jobs), error=why)

    def held(self, scope: str, why: str) -> None:
        """Tells that no job can be made just now for what was submitted there."""
        said: Attributes = {"fairlead.cluster": self._cluster, "fairlead.scope": scope}
        self._spans.trouble("create", said, error=why)

    def took_over(self, epoch: int, jobs: Iterable[JobState]) -> None:
        """Tells spans again that the leader before may have left untold; they are the same ones."""
        if not self._spans.on:
            return
        since = from_seconds(time.time()) - _TOLD_AGAIN
        newest = heapq.nlargest(
            _MOST_TOLD_AGAIN,
            (job for job in jobs if max(job.submitted, job.started or 0) >= since),
            key=lambda job: (job.submitted, job.uid),
        )
        said: Attributes = {
            "fairlead.cluster": self._cluster,
            "fairlead.role": "admitter",
            "fairlead.epoch": epoch,
        }
        self._spans.trouble("take over", said, links=self._roots(newest))
        for job in newest:
            self._spans.tell(self._told_again(job))

    def _roots(self, jobs: Iterable[JobState]) -> Iterator[TraceContext]:
        return (trace_of_job(job, self._spans.ratio) for job in jobs)

    def _told_again(self, job: JobState) -> Iterator[Span]:
        root = read_traceparent(job.traceparent)
        # A sender's span above the root is stated nowhere: such a root is not told again.
        if root is not None and root.kept and job.submission is not None and is_own(root):
            about = about_job(self._cluster, job.scope, job.submission)
            yield submit_span(root, job.submitted, about, None)
        told = trace_of_job(job, self._spans.ratio)
        if told.kept:
            yield from self._admission(job, told)

    def _admission(self, job: JobState, root: TraceContext) -> Iterator[Span]:
        """The span of the job's admission. Its instant is stated of the job, so that whoever tells it tells the same span."""
        if job.started is None:
            return
        said: Attributes = {
            "fairlead.level": job.level,
            "fairlead.queue": job.queue,
            "fairlead.waited_seconds": max(0, job.started - job.submitted) / SECOND,
        }
        about = about_job(job.cluster, job.scope, job.id, job.uid)
        yield stage_span(root, ADMITTED, job.started, job.started, about | said, which=(job.started,))
