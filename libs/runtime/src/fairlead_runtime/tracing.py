"""Tracing: OpenTelemetry set up once, off without an endpoint.

Off means free: the API's no-op tracer stays, and neither SDK nor exporter is imported (a quarter of a second).
Spans leave by OTLP/HTTP in batches from a thread; at the end they are flushed with a deadline, so that a collector
that is gone cannot keep a process from ending.
"""

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from fairlead_runtime.settings import ServiceSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


class Tracing:
    """The process's tracing. Without a provider it is off and does nothing."""

    def __init__(self, provider: "TracerProvider | None" = None) -> None:
        self._provider = provider

    @property
    def on(self) -> bool:
        """Whether spans are exported."""
        return self._provider is not None

    async def flush(self, seconds: float) -> bool:
        """Export what is left, within the time given.

        Returns:
            Whether all of it was exported.
        """
        if self._provider is None:
            return True
        loop = asyncio.get_running_loop()
        flushed: asyncio.Future[bool] = loop.create_future()

        def settle(done: bool) -> None:  # noqa: FBT001 # a callback
            if not flushed.done():
                flushed.set_result(done)

        def flush(provider: "TracerProvider") -> None:
            done = provider.force_flush(int(seconds * 1000))
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for us any more
                loop.call_soon_threadsafe(settle, done)

        # A daemon thread, not the loop's executor: the exporter retries beyond the deadline that it is given, and the
        # end of the loop would wait for its executor.
        threading.Thread(target=flush, args=(self._provider,), name="flush", daemon=True).start()
        try:
            async with asyncio.timeout(seconds):
                return await flushed
        except TimeoutError:
            return False


def configure_tracing(settings: ServiceSettings, service: str, replica: str | None = None) -> Tracing:
    """Set the process's tracing up, if the settings name a collector; call it once."""
    if not settings.otel_endpoint:
        return Tracing()
    # Imported here: they cost a quarter of a second, and most processes do not trace.
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    attributes = {"service.namespace": "fairlead", "service.name": f"fairlead-{service}"}
    if replica is not None:
        attributes["service.instance.id"] = replica
    provider = TracerProvider(
        resource=Resource.create(attributes),
        sampler=ParentBasedTraceIdRatio(settings.otel_sample_ratio),
        shutdown_on_exit=False,  # its exit hook waits without a deadline; the service flushes with one
    )
    exporter = OTLPSpanExporter(endpoint=settings.otel_endpoint.rstrip("/") + "/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return Tracing(provider)
