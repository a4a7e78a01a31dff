"""W3C trace context in message headers."""

import sys
from collections.abc import Mapping

_CONTEXTS = "opentelemetry.context"
"""Module that holds the active span. In a process that has not imported it no span is active: a short command need
not wait for its import."""


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
