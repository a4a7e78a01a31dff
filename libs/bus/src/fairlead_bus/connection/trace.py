"""W3C trace context in message headers."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.context import Context

_CONTEXTS = "opentelemetry.context"
"""Module that holds the active span. In a process that has not imported it no span is active: a short command need
not wait for its import."""

MAX_CONTEXT = 512
"""Characters of a header: W3C Trace Context has 55 in `traceparent` and asks for 512 to be kept of `tracestate`."""
_CONTEXT = frozenset({"traceparent", "tracestate"})


def inject(headers: Mapping[str, str] | None = None) -> Mapping[str, str] | None:
    """The headers with the active span's context; unchanged where no span is active.

    A `traceparent` header costs a third of the publish rate, so none is made up.
    """
    found = sys.modules.get(_CONTEXTS)
    # Most messages have no span: this look-up finds that without a walk to one.
    if found is None or not found.get_current():
        return headers
    from opentelemetry import propagate, trace  # no sooner, as above

    if not trace.get_current_span().get_span_context().is_valid:
        return headers

    carrier = dict(headers or {})
    propagate.inject(carrier)
    return carrier


def extract(headers: Mapping[str, str] | None) -> "Context":
    """The context that a message came with. Trap: absent headers are None, which the propagator does not take.

    Whoever sends a message chooses its headers, and what is extracted goes on to each message that follows from it: no
    more is taken than a trace needs. Baggage is not.
    """
    from opentelemetry import propagate
    from opentelemetry.context import get_current

    taken = {
        name: value
        for name, value in (headers or {}).items()
        if name.lower() in _CONTEXT and len(value) <= MAX_CONTEXT
    }
    return propagate.extract(taken) if taken else get_current()
