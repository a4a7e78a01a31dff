"""Spans as they are told: free while off, bounded, and never a reason to wait."""

from collections import Counter

from fairlead_contracts.messages.job_traces import Span, new_trace
from fairlead_runtime.frontend_spans import FrontendSpans
from fairlead_runtime.metrics import Metrics, MetricsObserver
from fairlead_runtime.spans import ExportOutcome, Spans
from fairlead_testkit.inputs.builders import NOW, a_job


class ToldSpans:
    def __init__(self) -> None:
        self.now = 0.0
        self.spans: list[Span] = []
        self.counted: Counter[str] = Counter()
        self.room = 1000
        self.told = Spans("scorer", "one", self.count, lambda: self.now)

    def count(self, outcome: ExportOutcome, number: int) -> None:
        self.counted[outcome] += number

    def take(self, span: Span) -> bool:
        if len(self.spans) >= self.room:
            return False
        self.spans.append(span)
        return True


def a_span(ratio: float = 1.0) -> Span:
    return Span(name="observed", context=new_trace("x", ratio=ratio), start=1, end=2)


def test_while_off_nothing_is_told_or_counted() -> None:
    told = ToldSpans()
    told.told.tell([a_span()])
    told.told.trouble("refuse", {})
    assert not told.told.on
    assert not told.counted


def test_what_is_not_kept_is_not_sent_and_what_has_no_room_is_counted() -> None:
    told = ToldSpans()
    told.room = 2
    told.told.send_to(told.take, 0.5)
    told.told.tell([a_span(ratio=0.0), a_span(), a_span(), a_span()])
    assert len(told.spans) == 2
    assert told.counted == {"dropped": 1}


def test_troubles_are_always_kept_each_in_a_trace_of_its_own_and_linked() -> None:
    told = ToldSpans()
    told.told.send_to(told.take, 0.0)
    kept, dropped = new_trace("kept"), new_trace("dropped", ratio=0.0)
    told.told.trouble("refuse", {"fairlead.field": "id"}, links=(kept, None, dropped), error="bad id")
    told.told.trouble("refuse", {})
    first, second = told.spans
    assert (first.links, first.error, first.parent) == ((kept,), "bad id", None)
    assert first.context.trace_id != second.context.trace_id


def test_whoever_causes_errors_fills_no_collector() -> None:
    told = ToldSpans()
    told.told.send_to(told.take, 0.0)
    for _ in range(1000):
        told.told.trouble("refuse", {})
    assert len(told.spans) == 50
    assert told.counted == {"dropped": 950}
    told.now += 2.0
    for _ in range(1000):
        told.told.trouble("refuse", {})
    assert len(told.spans) == 60


def test_who_takes_a_cluster_over_says_so_linked_to_its_newest_jobs() -> None:
    told = ToldSpans()
    told.told.send_to(told.take, 1.0)
    dropped = new_trace("dropped", ratio=0.0).traceparent
    jobs = [a_job("old"), a_job("new", started=NOW + 1), a_job("dropped", traceparent=dropped)]
    FrontendSpans(told.told, lambda: NOW + 2, "c").taken_over({job.uid: job for job in jobs})
    [taken] = [span for span in told.spans if span.name == "take over"]
    assert taken.links == (new_trace("job", jobs[1].uid), new_trace("job", jobs[0].uid))


def test_an_error_that_a_library_meets_is_told_and_what_is_none_is_not() -> None:
    told = ToldSpans()
    told.told.send_to(told.take, 0.0)
    observer = MetricsObserver(Metrics("scorer"), "kube", told.told)
    observer.note("reflector.error", kind="Workload", error="gone away")
    observer.note("leadership.gained", epoch=3)
    [span] = told.spans
    assert (span.name, span.error, span.attributes) == (
        "reflector.error",
        "gone away",
        {"fairlead.kind": "Workload"},
    )
