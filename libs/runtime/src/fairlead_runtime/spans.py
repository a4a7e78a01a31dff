"""Finished spans on their way to a collector: what was told is sent; nothing waits, and what does not fit is counted."""

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Literal, Self

from opentelemetry import trace

from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.messages.job_traces import Attributes, Span, TraceContext, new_trace

type ExportOutcome = Literal["exported", "failed", "dropped"]
"""The fate of a span: taken by the collector, refused by it, or never sent."""
type SpanSink = Callable[[Span], bool]
"""Takes a span without waiting; False where there is no room for it."""

_TROUBLES_A_SECOND = 5.0
_TROUBLES_AT_ONCE = 50.0
_LINKS = 32
"""The most links of one span: nobody looks through more."""


class Spans:
    """The receiver of a service's spans. Off until `send_to`: then a call costs an attribute's look-up.

    Args:
        service: the service whose spans they are.
        replica: the process that tells them.
        count: hears the fate of spans, and their number.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        service: str,
        replica: str,
        count: Callable[[ExportOutcome, int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.on = False
        """Whether anybody hears of spans: where not, none need be made."""
        self.ratio = 0.0
        """Part that is kept of the traces that begin here."""
        self._service = service
        self._replica = replica
        self._count = count
        self._clock = clock
        self._sink: SpanSink | None = None
        self._room = _TROUBLES_AT_ONCE
        self._looked = clock()
        self._troubles = 0

    def send_to(self, sink: SpanSink, ratio: float) -> Self:
        """Send them there from now on."""
        self._sink, self.ratio, self.on = sink, ratio, True
        return self

    def tell(self, spans: Iterable[Span]) -> None:
        """Send what is to be kept of these; those for which there is no room are counted."""
        if self._sink is None:
            return
        for span in spans:
            if span.context.kept and not self._sink(span):
                self._count("dropped", 1)

    def trouble(
        self,
        name: str,
        attributes: Attributes,
        *,
        links: Iterable[TraceContext | None] = (),
        error: str = "",
    ) -> None:
        """Tell of an error, a refusal or a takeover, in a trace of its own that is always kept.

        Whoever causes errors could fill a collector: only some a second are told, and more are counted as dropped.

        Args:
            name: the name of the event, as `refuse`.
            attributes: details: to whom and why.
            links: the traces that it concerns; None and those that are not kept are left out.
            error: the reason for which it failed; empty where it did not.
        """
        if self._sink is None:
            return
        if not self._has_room():
            self._count("dropped", 1)
            return
        self._troubles += 1
        now = from_seconds(time.time())
        context = new_trace(self._service, self._replica, name, now, self._troubles)
        linked = tuple(islice((link for link in links if link is not None and link.kept), _LINKS))
        self.tell(
            [
                Span(
                    name=name,
                    context=context,
                    start=now,
                    end=now,
                    attributes=attributes,
                    links=linked,
                    error=error,
                )
            ]
        )

    def settled(self, outcome: ExportOutcome, number: int) -> None:
        """Count what became of spans; called by the thread that sends them."""
        self._count(outcome, number)

    def _has_room(self) -> bool:
        now = self._clock()
        self._room = min(_TROUBLES_AT_ONCE, self._room + (now - self._looked) * _TROUBLES_A_SECOND)
        self._looked = now
        if self._room < 1.0:
            return False
        self._room -= 1.0
        return True


def otel_context(context: TraceContext) -> trace.SpanContext:
    """The context of a kept span as OpenTelemetry has it."""
    return trace.SpanContext(
        int(context.trace_id, 16),
        int(context.span_id, 16),
        is_remote=False,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
