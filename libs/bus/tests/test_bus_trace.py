import pytest
from opentelemetry import trace
from opentelemetry.context import attach, detach
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from fairlead_bus import Bus
from fairlead_bus.connection.trace import extract, inject
from fairlead_contracts import subjects

SPAN = NonRecordingSpan(
    SpanContext(trace_id=0xABC, span_id=0xDEF, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
)
TRACEPARENT = f"00-{0xABC:032x}-{0xDEF:016x}-01"


def test_without_a_span_headers_stay_as_they_are() -> None:
    mine = {"Mine": "1"}
    assert inject(mine) is mine
    assert inject() is None


def test_with_a_span_its_context_goes_along() -> None:
    mine = {"Mine": "1"}
    with trace.use_span(SPAN):
        assert inject(mine) == {"Mine": "1", "traceparent": TRACEPARENT}
    assert mine == {"Mine": "1"}


def test_absent_headers_give_an_empty_context() -> None:
    assert trace.get_current_span(extract(None)).get_span_context().is_valid is False
    found = trace.get_current_span(extract({"traceparent": TRACEPARENT})).get_span_context()
    assert (found.trace_id, found.span_id) == (0xABC, 0xDEF)


@pytest.mark.parametrize("name", ["traceparent", "tracestate", "baggage"])
def test_nothing_long_that_a_sender_chose_goes_along_with_what_follows(name: str) -> None:
    long = ",".join(
        f"k{number}={'v' * 40}" for number in range(30)
    )  # as many entries as the propagators take
    token = attach(extract({"traceparent": TRACEPARENT, "tracestate": "a=b"} | {name: long}))
    try:
        assert long not in (inject() or {}).values()
        if name != "traceparent":
            found = trace.get_current_span().get_span_context()
            assert found.trace_id == 0xABC
            assert (found.trace_state.get("a") == "b") is (name == "baggage")
    finally:
        detach(token)


@pytest.mark.integration
async def test_the_context_survives_a_stream(bus: Bus) -> None:
    subject = subjects.state("c1", "node", "n1")
    with trace.use_span(SPAN):
        await bus.publish(subject, b"x")
    found = await bus.last("state", subject)
    assert found is not None
    assert found.headers["traceparent"] == TRACEPARENT
