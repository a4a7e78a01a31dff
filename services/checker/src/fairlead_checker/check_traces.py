"""Traces of the checker's own, always kept: that it answers from now on, and answers that failed."""

from collections.abc import Iterable

from fairlead_checker.facts import Checked
from fairlead_contracts.messages.job_traces import TraceContext, trace_of_job
from fairlead_runtime.spans import Spans


class CheckTraces:
    """Tells takeovers and failures, linked to the jobs that they concern.

    Args:
        spans: the receiver of them.
        cluster: the cluster whose checks are answered.
    """

    def __init__(self, spans: Spans, cluster: str) -> None:
        self._spans = spans
        self._cluster = cluster

    def took_over(self, workloads: Iterable[Checked]) -> None:
        """Tells that we answer from now on, for these jobs."""
        said = {"fairlead.cluster": self._cluster, "fairlead.role": "checker"}
        self._spans.trouble("take over", {**said}, links=map(self._root, workloads))

    def failed(self, workload: Checked, why: str) -> None:
        """Tells that an answer could not be written."""
        said = {
            "fairlead.cluster": self._cluster,
            "fairlead.scope": workload.namespace,
            "fairlead.job": workload.name,
        }
        self._spans.trouble("write check", {**said}, links=(self._root(workload),), error=why)

    def _root(self, workload: Checked) -> TraceContext:
        return trace_of_job(workload, self._spans.ratio)
