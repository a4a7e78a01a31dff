"""The metrics of a simulated cluster."""

from fairlead_runtime.metrics import Metrics


class SimInstruments:
    """The counters and gauges of a simulated cluster."""

    def __init__(self, metrics: Metrics) -> None:
        """Declares the metrics in the process's registry."""
        self.jobs = metrics.gauge(
            "stated", "Jobs that the cluster states, by phase.", unit="jobs", labels=["phase"]
        )
        self.creates = metrics.counter("creates", "Requests to make a job, by outcome.", labels=["outcome"])
        self.levels = metrics.counter("level_writes", "Levels asked for, by outcome.", labels=["outcome"])
        self.starts = metrics.counter("starts", "Jobs that started.")
        self.ends = metrics.counter("ends", "Jobs that ended, by outcome.", labels=["outcome"])
        self.commit_seconds = metrics.histogram("commit", "How long a commit to the file took.")
