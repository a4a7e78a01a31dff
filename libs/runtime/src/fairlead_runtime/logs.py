"""Logs: JSON, one object a line, on standard error. An event name and key-values; ids bound by contextvars.

Records of other libraries, which use the standard `logging`, come out in the same form.
"""

import datetime as dt
import logging
import sys
from collections.abc import Callable

import msgspec
import structlog
from opentelemetry import trace
from structlog.typing import EventDict, WrappedLogger

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_OTHERS_LEVEL = logging.WARNING
"""Level from which on other libraries speak, whatever our own: their details are not about scheduling."""
_encoder = msgspec.json.Encoder(enc_hook=repr)


def configure_logging(level: str, service: str, replica: str | None = None) -> None:
    """Set the process's logging up; call it once, before the first line is logged.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        service: bound to every line.
        replica: bound to every line where given.
    """
    fixed = {"service": service} | ({} if replica is None else {"replica": replica})
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _add(fixed),
            _add_time_and_trace,
            structlog.processors.format_exc_info,
            _to_json,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    logging.captureWarnings(capture=True)
    logging.basicConfig(handlers=[_Forward()], level=max(_OTHERS_LEVEL, _LEVELS[level]), force=True)


class _Forward(logging.Handler):
    """Hands records of the standard library's logging on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record as our own; one that cannot be formatted is reported by logging itself."""
        logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 # whatever another library's arguments raise when formatted
            self.handleError(record)
            return
        logger.log(record.levelno, message, logger=record.name, exc_info=record.exc_info)


def _add(fixed: dict[str, str]) -> Callable[[WrappedLogger, str, EventDict], EventDict]:
    def add(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {**fixed, **event}

    return add


def _add_time_and_trace(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event["at"] = dt.datetime.now(dt.UTC)
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


def _to_json(_logger: WrappedLogger, _method: str, event: EventDict) -> bytes:
    """Encode; what JSON cannot hold (lone surrogates, odd keys) is shown by its repr: a log line never raises."""
    try:
        return _encoder.encode(event)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return _encoder.encode({str(key): ascii(value) for key, value in event.items()})
