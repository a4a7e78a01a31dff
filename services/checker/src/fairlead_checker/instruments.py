"""The metrics of a checker, and traces of its own, always kept: that it answers from now on, and answers that failed."""

from collections.abc import Callable, Iterable

from fairlead_checker.facts import CheckedWorkload
from fairlead_contracts.messages.job_traces import TraceContext, trace_of_job
from fairlead_runtime.metrics import Metrics
from fairlead_runtime.spans import Spans


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


class CheckTraces:
    """Tells takeovers and failures, linked to the jobs that they concern.

    Args:
        spans: the receiver of them.
        cluster: the cluster whose checks are answered.
    """

    def __init__(self, spans: Spans, cluster: str) -> None:
        self._spans = spans
        self._cluster = cluster

    def took_over(self, workloads: Iterable[CheckedWorkload]) -> None:
        """Tells that we answer from now on, for these jobs."""
        said = {"fairlead.cluster": self._cluster, "fairlead.role": "checker"}
        self._spans.trouble("take over", {**said}, links=map(self._root, workloads))

    def failed(self, workload: CheckedWorkload, why: str) -> None:
        """Tells that an answer could not be written."""
        said = {
            "fairlead.cluster": self._cluster,
            "fairlead.scope": workload.namespace,
            "fairlead.job": workload.name,
        }
        self._spans.trouble("write check", {**said}, links=(self._root(workload),), error=why)

    def _root(self, workload: CheckedWorkload) -> TraceContext:
        return trace_of_job(workload, self._spans.ratio)
