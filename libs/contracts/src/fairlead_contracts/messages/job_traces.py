"""The trace of a job's life: the ids of its spans, what they hang on, and what each of them says. Pure.

A job has one trace. Its root is the span `submit`; each stage after that is a short child of the root, sent by whoever
sees the stage end. No span is ever open: a job waits for days, and its processes die. Every id is a hash of what anybody
knows of the job, so that a stage that is told again after a restart is the same span, and no span lacks its parent.

Ids and flags are those of W3C Trace Context (https://www.w3.org/TR/trace-context/); a trace is kept by the low 64 bits
of its id, as in OpenTelemetry's TraceIdRatioBased sampler.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from fairlead_contracts.base.instants import Micros, from_datetime
from fairlead_contracts.messages.events import Event, JobEnded, JobEvicted, JobQueued, JobStarted, TracedJob
from fairlead_contracts.messages.state import JobState, Phase

type Attributes = dict[str, str | int | float | bool]

SUBMIT, OBSERVED, SCORED, LEVEL = "submit", "observed", "scored", "level"
ADMITTED, STARTED, EVICTED, ENDED = "admitted", "started", "evicted", "ended"
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
_LONGEST = 512
_SAMPLED = 1
_REMEMBERED = 4096
"""Number of jobs whose traces are remembered, the last asked for: each is asked for at every stage of its
life, most of them for nothing."""
_LOW_BITS = 1 << 64
"""Number of values of an id's low 64 bits."""


class TraceContext(NamedTuple):
    """One span, as other spans refer to it."""

    trace_id: str
    """The trace's id, 32 hexadecimal digits."""
    span_id: str
    """The span's id, 16 hexadecimal digits."""
    kept: bool
    """Whether the trace is exported."""

    @property
    def traceparent(self) -> str:
        """The W3C header's value."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.kept else '00'}"


_DROPPED = TraceContext("0" * 32, "0" * 16, kept=False)
"""The trace of each job that is not kept and has no id that anybody would look for."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A finished span."""

    name: str
    context: TraceContext
    parent: TraceContext | None = None
    start: Micros
    end: Micros
    attributes: Attributes = {}
    links: tuple[TraceContext, ...] = ()
    error: str = ""
    """Reason for which it failed; empty where it did not."""


def read_traceparent(text: str | None) -> TraceContext | None:
    """The context in a W3C `traceparent`; None where there is none that can be read."""
    return _read(text) if text and len(text) <= _LONGEST else None


@lru_cache(maxsize=_REMEMBERED)
def _read(text: str) -> TraceContext | None:
    found = _TRACEPARENT.fullmatch(text)
    if found is None:
        return None
    return TraceContext(found[1], found[2], bool(int(found[3], 16) & _SAMPLED))


def is_kept(trace_id: str, ratio: float) -> bool:
    """Whether a trace of this id is kept where a part `ratio` of all is: the same answer everywhere."""
    return int(trace_id[16:], 16) < round(ratio * _LOW_BITS)


def new_trace(*parts: str | int, ratio: float = 1.0) -> TraceContext:
    """The root of the trace that these parts name."""
    trace_id = _digest(16, "trace", *parts)
    return _root(trace_id, kept=is_kept(trace_id, ratio))


def kept_trace(*parts: str | int, ratio: float, anyway: bool) -> TraceContext | None:
    """The root of the trace that these parts name, where it is kept: as one of a part `ratio` of all, or `anyway`."""
    trace_id = _digest(16, "trace", *parts)
    return _root(trace_id, kept=True) if anyway or is_kept(trace_id, ratio) else None


def _root(trace_id: str, *, kept: bool) -> TraceContext:
    return TraceContext(trace_id, _digest(8, trace_id, "root"), kept)


def is_own(root: TraceContext) -> bool:
    """Whether a root began its trace: no sender's span is above it."""
    return root.span_id == _digest(8, root.trace_id, "root")


def trace_of_submission(
    tenant: str, submission: str, at: Micros, ratio: float, caller: TraceContext | None = None
) -> TraceContext | None:
    """The root that a job carries that was submitted on NATS: in its sender's trace, where that has one.

    Args:
        at: the instant at which the server took it in: the same at each delivery.
        ratio: the part of all traces that is kept; a sender's own choice is followed.
        caller: the sender's span.

    Returns:
        None where the trace would begin here and is not kept: most jobs, which then carry nothing from service to service.
    """
    if caller is None:
        trace_id = _digest(16, "trace", "submission", tenant, submission, at)
        return _root(trace_id, kept=True) if is_kept(trace_id, ratio) else None
    return TraceContext(
        caller.trace_id, _digest(8, caller.trace_id, caller.span_id, tenant, submission, at), caller.kept
    )


def trace_of_job(job: TracedJob, ratio: float) -> TraceContext:
    """The root of a job's trace: the one that it carries, else the one that its uid hashes to.

    Of a job that was submitted on NATS it was decided then: where it carries none, none is kept.
    """
    if job.traceparent is None and job.submission is not None:
        return _DROPPED
    return read_traceparent(job.traceparent) or _trace_of_uid(job.uid, ratio)


@lru_cache(maxsize=_REMEMBERED)
def _trace_of_uid(uid: str, ratio: float) -> TraceContext:
    return new_trace("job", uid, ratio=ratio)


def stage_of(root: TraceContext, name: str, *which: str | int) -> TraceContext:
    """A stage of the job's life; `which` tells those apart that can happen more than once."""
    return TraceContext(root.trace_id, _digest(8, root.trace_id, root.span_id, name, *which), root.kept)


def stage_span(
    root: TraceContext,
    name: str,
    start: Micros,
    end: Micros,
    attributes: Attributes,
    *,
    which: tuple[str | int, ...] = (),
    links: tuple[TraceContext, ...] = (),
) -> Span:
    """A stage that ended, as a child of the job's root."""
    return Span(
        name=name,
        context=stage_of(root, name, *which),
        parent=root,
        start=start,
        end=max(start, end),
        attributes=attributes,
        links=links,
    )


def submit_span(root: TraceContext, at: Micros, attributes: Attributes, caller: TraceContext | None) -> Span:
    """The root: an instant, so that it is the same whoever tells it, and whenever."""
    return Span(name=SUBMIT, context=root, parent=caller, start=at, end=at, attributes=attributes)


def about_job(cluster: str, scope: str, job: str, uid: str = "") -> Attributes:
    """The attributes of a span that name its job."""
    said: Attributes = {"fairlead.cluster": cluster, "fairlead.scope": scope, "fairlead.job": job}
    return said | {"fairlead.uid": uid} if uid else said


def spans_of_event(event: Event, ratio: float, seen: Micros | None = None) -> Iterator[Span]:
    """The stages that an event of a job's frontend ends; of a job that nobody submitted on NATS the root, too.

    Args:
        ratio: the part that is kept of the traces that begin here.
        seen: the instant at which the event was noticed; None where it is told again.
    """
    root = trace_of_job(event, ratio)
    if not root.kept:
        return
    at = from_datetime(event.at)
    about = about_job(event.cluster, event.scope, event.job, event.uid)
    match event:
        case JobQueued():
            if read_traceparent(event.traceparent) is None:
                yield submit_span(root, at, about, None)
            yield stage_span(root, OBSERVED, at, seen or at, about | {"fairlead.queue": event.queue})
        case JobStarted():
            said: Attributes = {
                "fairlead.waited_seconds": event.waited_seconds,
                "fairlead.level": event.level,
            }
            yield stage_span(root, STARTED, at, at, about | said, which=(at,))
        case JobEvicted():
            said = {"fairlead.ran_seconds": event.ran_seconds, "fairlead.reason": event.reason}
            yield stage_span(root, EVICTED, at, at, about | said, which=(event.id,))
        case JobEnded():
            said = {"fairlead.ran_seconds": event.ran_seconds, "fairlead.outcome": event.outcome.value}
            yield stage_span(root, ENDED, at, at, about | said)
        case _:
            return


def spans_told_again(job: JobState, since: Micros, ratio: float) -> Iterator[Span]:
    """The spans that a job's frontend saw end from an instant on, by what is stated of the job.

    Whoever takes over tells it again: the process before may have died before its spans were exported.
    """
    root = trace_of_job(job, ratio)
    if not root.kept:
        return
    about = about_job(job.cluster, job.scope, job.id, job.uid)
    if job.submitted >= since:
        if read_traceparent(job.traceparent) is None:
            yield submit_span(root, job.submitted, about, None)
        yield stage_span(root, OBSERVED, job.submitted, job.submitted, about | {"fairlead.queue": job.queue})
    if job.began is not None and job.began >= since:
        waited = max(0, job.began - job.submitted) / 1e6
        said: Attributes = {"fairlead.waited_seconds": waited, "fairlead.level": job.level}
        yield stage_span(root, STARTED, job.began, job.began, about | said, which=(job.began,))
    if job.phase is Phase.ENDED and job.ended is not None and job.ended >= since:
        ran = 0.0 if job.began is None else max(0, job.ended - job.began) / 1e6
        said = {
            "fairlead.ran_seconds": ran,
            "fairlead.outcome": "" if job.outcome is None else job.outcome.value,
        }
        yield stage_span(root, ENDED, job.ended, job.ended, about | said)


def newest_instant(job: JobState) -> Micros:
    """The last thing that is stated to have happened to a job."""
    return max(job.submitted, job.began or 0, job.ended or 0)


def exemplar_of(traceparent: str | None) -> dict[str, str] | None:
    """The exemplar by which a graph leads to a trace; None where the trace is not kept."""
    found = read_traceparent(traceparent)
    return {"trace_id": found.trace_id} if found is not None and found.kept else None


def _digest(size: int, *parts: str | int) -> str:
    text = "\0".join(map(str, parts)).encode(errors="surrogatepass")
    digest = hashlib.blake2b(text, digest_size=size).hexdigest()
    return digest if digest.strip("0") else "1" * 2 * size  # all zeros is no id
