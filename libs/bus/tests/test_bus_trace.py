import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from fairlead_bus import Bus
from fairlead_bus.connection.trace import inject
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


@pytest.mark.integration
async def test_the_context_survives_a_stream(bus: Bus) -> None:
    subject = subjects.state("c1", "node", "n1")
    with trace.use_span(SPAN):
        await bus.publish(subject, b"x")
    found = await bus.last("state", subject)
    assert found is not None
    assert found.headers["traceparent"] == TRACEPARENT
