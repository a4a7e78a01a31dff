"""The metrics of a slurm-bridge."""

from collections.abc import Callable, Mapping

from fairlead_contracts.messages.events import Event
from fairlead_contracts.messages.state import Phase
from fairlead_runtime.metrics import Metrics


class BridgeInstruments:
    """Metrics that a slurm-bridge counts and measures."""

    def __init__(self, metrics: Metrics) -> None:
        """Declare the metrics in the process's registry."""
        self._metrics = metrics
        self._jobs = metrics.gauge(
            "stated", "Jobs that are stated of the cluster, by phase.", unit="jobs", labels=["phase"]
        )
        self._changes = metrics.counter("changes", "Objects that are stated differently than before.")
        self._events = metrics.counter("lifecycle_events", "Events told of jobs, by kind.", labels=["kind"])
        self._unreadable = metrics.gauge("unreadable", "Lines of the last squeue that could not be read.")
        self._hooks = metrics.counter(
            "hooks", "Hooks of Slurm that were answered, by hook and answer.", labels=["hook", "answer"]
        )
        self._hook_seconds = metrics.histogram("hook", "Time that a hook took to answer.", labels=["hook"])
        self.failures = metrics.counter("read_failures", "Readings of slurmctld that failed.")
        self.levels = metrics.counter(
            "level_writes", "Requests to set a level, by outcome.", labels=["outcome"]
        )
        self.creations = metrics.counter(
            "creations", "Jobs that were asked for, by outcome.", labels=["outcome"]
        )
        self.token_renewals = metrics.counter(
            "token_renewals",
            "JSON Web Tokens for slurmctld that were to be made, by outcome.",
            labels=["outcome"],
        )
        self.read_seconds = metrics.histogram("read", "Time that a reading of slurmctld took.")
        self.write_seconds = metrics.histogram("write", "Time that a batch of levels took to write.")

    def heard(self, age: Callable[[], float]) -> None:
        """Show how old the last reading is, in seconds."""
        gauge = self._metrics.gauge(
            "age",
            "Time since slurmctld was last read; where it never was, since this replica asks.",
            unit="seconds",
        )
        gauge.set_function(age)

    def role(self, leads: Callable[[], bool]) -> None:
        """Show whether this replica leads."""
        gauge = self._metrics.gauge("leads", "Whether this replica states the cluster; others stand by.")
        gauge.set_function(lambda: float(leads()))

    def told(self, event: Event) -> None:
        """Count an event of a job."""
        self._events.labels(type(event).__name__.removeprefix("Job").lower()).inc()

    def asked(self, hook: str, answer: str, seconds: float) -> None:
        """Count a hook of Slurm's that was answered, and its seconds."""
        self._hooks.labels(hook, answer).inc()
        self._hook_seconds.labels(hook).observe(seconds)

    def passed(self, phases: Mapping[Phase, int], changes: int, unreadable: int) -> None:
        """Show a reading's jobs and unreadable lines, and count changed statements."""
        self._changes.inc(changes)
        self._unreadable.set(unreadable)
        for phase in Phase:
            self._jobs.labels(phase).set(phases.get(phase, 0))
