"""The metrics of a watcher."""

from collections.abc import Callable, Mapping

from fairlead_contracts.messages.events import Event
from fairlead_contracts.messages.state import Phase
from fairlead_runtime.metrics import Metrics
from fairlead_watcher.cluster_view import ClusterView


class WatcherInstruments:
    """Counts and measurements of the watcher."""

    def __init__(self, metrics: Metrics) -> None:
        """Declare the watcher's metrics in the process's registry."""
        self._metrics = metrics
        self._jobs = metrics.gauge(
            "stated", "Jobs that are stated of the cluster, by phase.", unit="jobs", labels=["phase"]
        )
        self._cards_refused = metrics.gauge(
            "cards_refused", "Nodes and pods whose words on cards cannot be read.", labels=["of"]
        )
        self._changes = metrics.counter("changes", "Objects that are stated differently than before.")
        self._events = metrics.counter("lifecycle_events", "Events told of jobs, by kind.", labels=["kind"])
        self.settle_seconds = metrics.histogram(
            "settle", "Time that it took to translate what changed, turns of other tasks included."
        )

    def heard(self, ages: Mapping[str, Callable[[], float]]) -> None:
        """Shows how long nothing could be heard of each kind."""
        gauge = self._metrics.gauge(
            "age",
            "Time for which the API server has said nothing of a kind; 0 while it is listened to.",
            unit="seconds",
            labels=["kind"],
        )
        for kind, age in ages.items():
            gauge.labels(kind).set_function(age)

    def role(self, leads: Callable[[], bool]) -> None:
        """Shows whether this replica leads."""
        gauge = self._metrics.gauge("leads", "Whether this replica states the cluster; others stand by.")
        gauge.set_function(lambda: float(leads()))

    def told(self, event: Event) -> None:
        """Counts an event of a job."""
        self._events.labels(type(event).__name__.removeprefix("Job").lower()).inc()

    def settled(self, view: ClusterView, changes: int) -> None:
        """Counts changed statements."""
        self._changes.inc(changes)
        for phase in Phase:
            self._jobs.labels(phase).set(view.phases[phase])
        for what, number in view.cards_refused.items():
            self._cards_refused.labels(what).set(number)
