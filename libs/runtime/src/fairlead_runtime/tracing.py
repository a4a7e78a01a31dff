"""Tracing: OpenTelemetry set up once, off without an endpoint.

Off means free: the API's no-op tracer stays, and neither SDK nor exporter is imported (a quarter of a second).
Spans leave by OTLP/HTTP in batches from a thread (see `exporting`); at the end they are flushed with a deadline, so
that a collector that is gone cannot keep a process from ending.
"""

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from opentelemetry import trace

from fairlead_contracts.messages.job_traces import TraceContext
from fairlead_runtime.settings import ServiceSettings
from fairlead_runtime.spans import Spans, otel_context

_NO_SPAN = contextlib.nullcontext()

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

        def set_flushed(done: bool) -> None:  # noqa: FBT001 # a callback
            if not flushed.done():
                flushed.set_result(done)

        def flush(provider: "TracerProvider") -> None:
            done = provider.force_flush(int(seconds * 1000))
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for us any more
                loop.call_soon_threadsafe(set_flushed, done)

        # A daemon thread, not the loop's executor: the exporter retries beyond the deadline that it is given, and the
        # end of the loop would wait for its executor.
        threading.Thread(target=flush, args=(self._provider,), name="flush", daemon=True).start()
        try:
            async with asyncio.timeout(seconds):
                return await flushed
        except TimeoutError:
            return False


def configure_tracing(
    settings: ServiceSettings, service: str, replica: str | None = None, spans: Spans | None = None
) -> Tracing:
    """Set the process's tracing up, if the settings name a collector; call it once.

    Args:
        settings: the collector's URL, and the part of the traces that is kept.
        service: its name.
        replica: the name of this process.
        spans: the receiver of finished spans: it sends them from now on.
    """
    if not settings.otel_endpoint:
        return Tracing()
    # Here: it costs a quarter of a second, and most processes do not trace.
    from fairlead_runtime import exporting

    return Tracing(
        exporting.begin(settings.otel_endpoint, settings.otel_sample_ratio, service, replica, spans)
    )


def within(context: TraceContext | None) -> contextlib.AbstractContextManager[object]:
    """Have a kept span be the current one: log lines and messages that leave meanwhile carry it."""
    if context is None or not context.kept:
        return _NO_SPAN
    return trace.use_span(trace.NonRecordingSpan(otel_context(context)))
