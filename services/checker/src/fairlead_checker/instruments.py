"""The metrics of a checker."""

from collections.abc import Callable

from fairlead_runtime.metrics import Metrics


class CheckerInstruments:
    """The counters and gauges of a checker."""

    def __init__(self, metrics: Metrics) -> None:
        """Declare the checker's metrics in the process's registry."""
        self._answers = metrics.counter("answers", "Answers written, by state.", labels=["state"])
        self._awaiting = metrics.gauge(
            "awaiting", "Workloads kept out of their queue as they do not fit now."
        )
        self._held = metrics.gauge("held", "Workloads for whose pods room is kept.")
        self.look_seconds = metrics.histogram("look", "Time that it took to place one gang.")
        self._metrics = metrics

    def role(self, leads: Callable[[], bool]) -> None:
        """Show whether this replica leads."""
        gauge = self._metrics.gauge("leads", "Whether this replica answers; others stand by.")
        gauge.set_function(lambda: float(leads()))

    def answered(self, state: str) -> None:
        """Count an answer that was written."""
        self._answers.labels(state).inc()

    def stand(self, *, awaiting: int, held: int) -> None:
        """Show the numbers of gangs that wait, and that are let through and not on nodes yet."""
        self._awaiting.set(awaiting)
        self._held.set(held)
