"""Metrics: one Prometheus registry a process, names with their unit, labels with few values.

Names are `fairlead_<subsystem>_<name>_<unit>`. A label's values must be few and known (a pool, a cluster, a class, a
reason), never a job or a person. Exemplars carry trace ids where a span is sampled.
"""

from collections.abc import Sequence
from functools import cache
from typing import Literal, Self

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder

from fairlead_contracts.messages.job_traces import Attributes
from fairlead_runtime.spans import Spans

NAMESPACE = "fairlead"
type Unit = Literal[
    "", "seconds", "bytes", "ratio", "jobs", "messages", "shards", "levels", "tenants", "timestamp_seconds"
]
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds. Around the aims: an event becomes a level in 50 ms, a replica's shards are taken over in 4 s."""


class Metrics:
    """Declares metrics of one subsystem in the process's registry.

    Args:
        subsystem: the service or library that the metrics are of.
        registry: an existing one; by default a new one with the standard process, platform and GC metrics.
    """

    def __init__(self, subsystem: str, *, registry: CollectorRegistry | None = None) -> None:
        # A Prometheus of 3.0 or later would read `slurm-bridge` as it stands, an earlier one with an underscore: two names.
        self.subsystem = subsystem.replace("-", "_")
        if registry is None:
            registry = CollectorRegistry(auto_describe=True)
            ProcessCollector(registry=registry)
            PlatformCollector(registry=registry)
            GCCollector(registry=registry)
        self.registry = registry

    def of(self, subsystem: str) -> Self:
        """Metrics of another subsystem in the same registry."""
        return type(self)(subsystem, registry=self.registry)

    def counter(
        self, name: str, documentation: str, *, unit: Unit = "", labels: Sequence[str] = ()
    ) -> Counter:
        """A metric that only grows: `fairlead_<subsystem>_<name>[_<unit>]_total`."""
        return Counter(name, documentation, labels, NAMESPACE, self.subsystem, unit, registry=self.registry)

    def gauge(self, name: str, documentation: str, *, unit: Unit = "", labels: Sequence[str] = ()) -> Gauge:
        """A metric that goes up and down: `fairlead_<subsystem>_<name>[_<unit>]`."""
        return Gauge(name, documentation, labels, NAMESPACE, self.subsystem, unit, registry=self.registry)

    def histogram(
        self,
        name: str,
        documentation: str,
        *,
        unit: Unit = "seconds",
        labels: Sequence[str] = (),
        buckets: Sequence[float] = LATENCY_BUCKETS,
    ) -> Histogram:
        """A distribution: `fairlead_<subsystem>_<name>_<unit>`."""
        return Histogram(
            name, documentation, labels, NAMESPACE, self.subsystem, unit, self.registry, buckets=buckets
        )

    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """The metrics as text, and their content type, by the Accept header; exemplars are in the OpenMetrics form alone."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


class MetricsObserver:
    """Counts and logs what a library tells its observer: a `LibraryObserver`.

    Args:
        metrics: the metrics of the process; the counter is `fairlead_<subsystem>_events_total{what=...}`.
        subsystem: the library that is observed.
        spans: the receiver of errors that it meets, each in a trace of its own.
    """

    def __init__(self, metrics: Metrics, subsystem: str = "bus", spans: Spans | None = None) -> None:
        self._events = metrics.of(subsystem).counter(
            "events", f"What {subsystem} met, by kind.", labels=["what"]
        )
        # To find a labelled counter costs more than to count with it.
        self._event = cache(self._events.labels)
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._subsystem = subsystem
        self._spans = spans

    def count(self, what: str, amount: int = 1) -> None:
        """Count something that happens too often to log."""
        self._event(what).inc(amount)

    def note(self, what: str, **facts: object) -> None:
        """Count and log something that an operator should hear of; nobody counts it beside that."""
        self._event(what).inc()
        self._log.bind(**facts).info(what, subsystem=self._subsystem)
        if self._spans is not None and (error := facts.get("error")):
            said: Attributes = {
                f"fairlead.{name}": str(value) for name, value in facts.items() if name != "error"
            }
            self._spans.trouble(what, said, error=str(error))
