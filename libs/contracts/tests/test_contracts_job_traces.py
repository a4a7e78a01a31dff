"""A job's trace: ids that anybody finds anew, one parent, kept or dropped alike everywhere."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.base.instants import SECOND, from_datetime
from fairlead_contracts.messages.events import EventBase, JobEnded, JobQueued, JobStarted
from fairlead_contracts.messages.job_traces import (
    Span,
    TraceContext,
    exemplar_of,
    is_kept,
    is_own,
    new_trace,
    read_traceparent,
    spans_of_event,
    spans_told_again,
    stage_of,
    trace_of_job,
    trace_of_submission,
)
from fairlead_contracts.messages.state import JobState, Outcome, Phase
from fairlead_testkit.inputs import builders

AT = datetime(2026, 11, 23, 1, 2, 3, tzinfo=UTC)
T0 = from_datetime(AT)
CALLER = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", kept=True)


JOB = builders.a_job(
    "job", scope="team", uid="u-1", queue="q", demand={"cpu": 1}, submitted=T0, started=T0 + SECOND,
    ended=T0 + 3 * SECOND, outcome=Outcome.SUCCEEDED, level=7,
)  # fmt: skip


def a_job(traceparent: str | None = None, phase: Phase = Phase.ENDED, **changes: object) -> JobState:
    return msgspec.structs.replace(JOB, traceparent=traceparent, phase=phase, **changes)


def submitted(ratio: float, caller: TraceContext | None = None, *, submission: str = "s-1") -> TraceContext:
    root = trace_of_submission("team", submission, T0, ratio, caller)
    assert root is not None
    return root


def life(traceparent: str | None = None) -> list[Span]:
    about = EventBase(
        id="",
        at=AT,
        cluster="c1",
        tenant="team",
        scope="team",
        job="job",
        uid="u-1",
        submission=None,
        traceparent=traceparent,
    )
    queued = JobQueued(**about, queue="q", demand={})
    about["at"] = AT.replace(second=4)
    started = JobStarted(**about, waited_seconds=1.0, level=7, demand={})
    about["at"] = AT.replace(second=6)
    ended = JobEnded(**about, outcome=Outcome.SUCCEEDED, ran_seconds=2.0)
    return [span for event in (queued, started, ended) for span in spans_of_event(event, 1.0)]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-" + "0" * 16 + "-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        CALLER.traceparent + "-" + "x" * 600,
    ],
)
def test_what_is_no_traceparent_is_none(text: str | None) -> None:
    assert read_traceparent(text) is None


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8), st.booleans())
def test_a_traceparent_is_read_as_it_was_written(trace: bytes, span: bytes, kept: bool) -> None:
    context = TraceContext(trace.hex(), span.hex(), kept)
    valid = any(trace) and any(span)
    assert read_traceparent(context.traceparent) == (context if valid else None)


def test_each_stage_hangs_on_the_one_root_of_its_trace() -> None:
    root, *stages = life()
    assert (root.name, root.parent, is_own(root.context)) == ("submit", None, True)
    assert [span.name for span in stages] == ["observed", "started", "ended"]
    assert {span.parent for span in stages} == {root.context}
    assert len({span.context.span_id for span in (root, *stages)}) == 4


def test_a_job_that_carries_a_trace_has_its_stages_there_and_its_root_told_by_who_took_it_in() -> None:
    root = submitted(1.0)
    stages = life(root.traceparent)
    assert [span.name for span in stages] == ["observed", "started", "ended"]
    assert {span.parent for span in stages} == {root}


def test_a_sender_s_trace_is_gone_on_with_and_its_choice_followed() -> None:
    root = submitted(0.0, CALLER)
    assert (root.trace_id, root.kept, is_own(root)) == (CALLER.trace_id, True, False)
    other = submitted(0.0, CALLER, submission="s-2")
    assert root.span_id not in {other.span_id, CALLER.span_id}, "many jobs may share their sender's trace"
    unkept = submitted(1.0, CALLER._replace(kept=False))
    assert not unkept.kept
    assert list(spans_told_again(a_job(unkept.traceparent), 0, 1.0)) == []


@pytest.mark.parametrize("traceparent", [None, submitted(1.0).traceparent])
def test_what_is_told_again_is_the_same_span(traceparent: str | None) -> None:
    again = list(spans_told_again(a_job(traceparent), T0, 1.0))
    assert again == life(traceparent)


def test_only_what_happened_since_is_told_again() -> None:
    assert [span.name for span in spans_told_again(a_job(), T0 + 2 * SECOND, 1.0)] == ["ended"]
    running = a_job(phase=Phase.RUNNING)
    assert [span.name for span in spans_told_again(running, T0 + SECOND, 1.0)] == ["started"]


def test_a_job_of_kubectl_has_the_trace_that_its_uid_hashes_to() -> None:
    assert trace_of_job(a_job(), 1.0) == trace_of_job(a_job("nonsense"), 1.0)
    assert trace_of_job(a_job(), 1.0).trace_id != trace_of_job(a_job(uid="u-2"), 1.0).trace_id


def test_a_job_of_nats_whose_trace_is_not_kept_carries_nothing_and_is_told_by_nobody() -> None:
    assert trace_of_submission("team", "s-1", T0, 0.0) is None
    assert not trace_of_job(a_job(submission="s-1"), 1.0).kept
    assert list(spans_told_again(a_job(submission="s-1"), 0, 1.0)) == []


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_what_a_smaller_part_keeps_a_larger_one_keeps_too(uid: str, one: float, other: float) -> None:
    least, most = sorted((one, other))
    job = a_job(uid=uid)
    assert trace_of_job(job, least).kept <= trace_of_job(job, most).kept
    assert trace_of_job(job, 1.0).kept
    assert not trace_of_job(job, 0.0).kept


def test_about_the_part_that_is_asked_for_is_kept() -> None:
    kept = sum(is_kept(new_trace("job", number).trace_id, 0.05) for number in range(20_000))
    assert 850 < kept < 1150


def test_a_stage_that_happens_twice_is_two_spans() -> None:
    root = new_trace("job", "u")
    assert stage_of(root, "started", 1) != stage_of(root, "started", 2)
    assert stage_of(root, "started", 1) == stage_of(root, "started", 1)


def test_an_exemplar_leads_to_kept_traces_alone() -> None:
    assert exemplar_of(CALLER.traceparent) == {"trace_id": CALLER.trace_id}
    assert exemplar_of(CALLER._replace(kept=False).traceparent) is None
    assert exemplar_of(None) is None
