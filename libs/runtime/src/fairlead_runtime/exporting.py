"""Sending spans by OTLP/HTTP: the one module that imports OpenTelemetry's SDK, loaded where tracing is on."""

import logging
from collections.abc import Sequence
from typing import Self, override

import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from requests.utils import get_netrc_auth

from fairlead_contracts.messages.job_traces import Span
from fairlead_runtime.spans import ExportOutcome, Spans, otel_context

QUEUED = 8192
"""Spans that wait to be sent; more are dropped and counted."""
_AT_ONCE = 512
_EVERY_MILLIS = 2000
"""Longest wait of a span for others, in milliseconds: spans that a killed process has not sent are lost, or
told again by its successor. A request costs as much as fifteen of the spans in it."""
_NANOS = 1000
_SCOPE = InstrumentationScope("fairlead")


def begin(
    endpoint: str, ratio: float, service: str, replica: str | None, spans: Spans | None
) -> TracerProvider:
    """Set OpenTelemetry up for this process, and have `spans` sent.

    Args:
        endpoint: base URL of the collector.
        ratio: the part that is kept of the traces that begin here.
        service: its name.
        replica: the name of this process.
        spans: the receiver of finished spans; None where the service tells none.
    """
    attributes = {"service.namespace": "fairlead", "service.name": f"fairlead-{service}"}
    if replica is not None:
        attributes["service.instance.id"] = replica
    resource = _HashedOnce.of(Resource.create(attributes))
    provider = TracerProvider(
        resource=resource,
        sampler=ParentBasedTraceIdRatio(ratio),
        shutdown_on_exit=False,  # its exit hook waits without a deadline; the service flushes with one
    )
    url = endpoint.rstrip("/") + "/v1/traces"
    session = requests.Session()
    queue = BoundedQueue(OTLPSpanExporter(endpoint=url, session=session), spans)
    read_environment_once(session, url)  # after the exporter has told it about certificates
    provider.add_span_processor(queue)
    trace.set_tracer_provider(provider)
    if spans is not None:
        spans.send_to(lambda span: queue.put(_readable(span, resource)), ratio)
    return provider


def read_environment_once(session: requests.Session, url: str) -> None:
    """Read the proxies, certificates and password of an address from the environment once, for all requests of the session.

    `requests` looks for proxies, certificates and passwords at each request, which is two fifths of what one costs.
    """
    found = session.merge_environment_settings(url, {}, None, None, None)
    session.proxies, session.verify = found["proxies"], found["verify"]
    session.auth = session.auth or get_netrc_auth(url)
    session.trust_env = False


class BoundedQueue(SpanProcessor):
    """Spans that wait for a thread of OpenTelemetry's; `spans` hears how many were sent and failed. Never waits itself."""

    def __init__(self, exporter: SpanExporter, spans: Spans | None) -> None:
        self._counting = _Counting(exporter, spans)
        self._batches = BatchSpanProcessor(
            self._counting,
            max_queue_size=QUEUED,
            schedule_delay_millis=_EVERY_MILLIS,
            max_export_batch_size=_AT_ONCE,
        )
        self._taken = 0

    def put(self, span: ReadableSpan) -> bool:
        """Take a span; False where there is no room."""
        if self._taken - self._counting.settled >= QUEUED - _AT_ONCE:
            return False
        self._taken += 1
        self._batches.on_end(span)
        return True

    @override
    def on_end(self, span: ReadableSpan) -> None:
        self.put(span)

    @override
    def shutdown(self) -> None:
        self._batches.shutdown()  # type: ignore[no-untyped-call] # the SDK's own gap

    @override
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._batches.force_flush(timeout_millis)


class _Counting(SpanExporter):
    """Counts what the exporter could send. `settled` is written by the sending thread alone, `_taken` by all others."""

    def __init__(self, exporter: SpanExporter, spans: Spans | None) -> None:
        self._exporter = exporter
        self._spans = spans
        self._complaints = _FirstOfAnOutage()
        logging.getLogger(type(exporter).__module__).addFilter(self._complaints)
        self.settled = 0

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        outcome: ExportOutcome = "failed"
        try:
            result = self._exporter.export(spans)
            if result is SpanExportResult.SUCCESS:
                outcome = "exported"
                self._complaints.told = False
        finally:
            self.settled += len(spans)
            if self._spans is not None:
                self._spans.settled(outcome, len(spans))
        return result

    @override
    def shutdown(self) -> None:
        self._exporter.shutdown()

    @override
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class _FirstOfAnOutage(logging.Filter):
    """Lets the exporter say once, until it has sent something again, why nobody takes spans: what is lost is counted.

    It tries each batch four times, and says so each time.
    """

    told = False

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        told, self.told = self.told, True
        return not told


class _HashedOnce(Resource):
    """The resource of the process. The encoder looks it up for each span, and the SDK's own writes it as JSON for each hash."""

    _hash: int

    @classmethod
    def of(cls, resource: Resource) -> Self:
        """The resource of another, with its hash made once."""
        found = cls(resource.attributes, resource.schema_url)
        found._hash = hash(resource)
        return found

    @override
    def __hash__(self) -> int:
        return self._hash

    @override
    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    """A span as the SDK hands it to exporters: its own tracers make ids by chance, and ours are hashes."""
    return ReadableSpan(
        span.name,
        context=otel_context(span.context),
        parent=None if span.parent is None else otel_context(span.parent),
        resource=resource,
        attributes=span.attributes,
        links=[trace.Link(otel_context(link)) for link in span.links],
        kind=trace.SpanKind.INTERNAL,
        status=trace.Status(trace.StatusCode.ERROR, span.error) if span.error else trace.Status(),
        start_time=span.start * _NANOS,
        end_time=span.end * _NANOS,
        instrumentation_scope=_SCOPE,
    )
