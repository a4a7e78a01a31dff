"""The base of each Fairlead service: settings, logs, health, metrics, signals, tracing, and how loops wait.

A service is `run_service(ItsSettings, main)` in its `__main__`; `main(settings, lifecycle)` is its composition root:

    async def main(settings: ScorerSettings, lifecycle: Lifecycle) -> None:
        async with connect(ConnectionSettings.of(settings), name="scorer", observer=lifecycle.observer) as bus:
            scorer = Scorer(bus, settings, lifecycle.replica)
            lifecycle.readiness.add("state", scorer.why_not_ready)
            async with lifecycle.supervise() as tasks:
                tasks.start("connection", bus.wait_closed())    # closed for good: the process ends
                tasks.start("score", scorer.run())

This library knows nothing of NATS: the `nats_*` settings and the observer fit the bus's protocols by their shape.
"""

from fairlead_runtime.clock import wall_clock
from fairlead_runtime.errors import PortTakenError, ServiceError, SettingsError, TaskEndedError
from fairlead_runtime.frontend_spans import FrontendSpans
from fairlead_runtime.health import HealthCheck, HealthReport, HealthServer, Readiness, ask_health
from fairlead_runtime.lifecycle import Lifecycle, Tasks
from fairlead_runtime.logs import configure_logging
from fairlead_runtime.metrics import LATENCY_BUCKETS, Metrics, MetricsObserver, exemplar
from fairlead_runtime.service import run_service
from fairlead_runtime.settings import (
    PREFIX,
    Secret,
    SecretMark,
    ServiceSettings,
    Setting,
    describe,
    new_replica,
    redacted,
)
from fairlead_runtime.sources import add_arguments, given_arguments, load_settings
from fairlead_runtime.spans import Spans
from fairlead_runtime.tracing import Tracing, configure_tracing, within
from fairlead_runtime.waiting import Allowance, Pacing, RestReason, pause_after, wake_or_timeout

__all__ = [
    "LATENCY_BUCKETS",
    "PREFIX",
    "Allowance",
    "FrontendSpans",
    "HealthCheck",
    "HealthReport",
    "HealthServer",
    "Lifecycle",
    "Metrics",
    "MetricsObserver",
    "Pacing",
    "PortTakenError",
    "Readiness",
    "RestReason",
    "Secret",
    "SecretMark",
    "ServiceError",
    "ServiceSettings",
    "Setting",
    "SettingsError",
    "Spans",
    "TaskEndedError",
    "Tasks",
    "Tracing",
    "add_arguments",
    "ask_health",
    "configure_logging",
    "configure_tracing",
    "describe",
    "exemplar",
    "given_arguments",
    "load_settings",
    "new_replica",
    "pause_after",
    "redacted",
    "run_service",
    "wake_or_timeout",
    "wall_clock",
    "within",
]
