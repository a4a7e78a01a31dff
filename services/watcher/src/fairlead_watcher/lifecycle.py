"""Ends and evictions of Workloads, for the events between two statements of a job."""

from fairlead_bus.facts.event_diff import LastEviction, RunEnd
from fairlead_contracts.messages.state import JobState
from fairlead_kube.reflector import Key
from fairlead_watcher.cluster_view import ClusterView


class Memory:
    """The view's knowledge of a job beyond its statement; see the bus's `JobMemory`."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def end_of(self, job: JobState) -> RunEnd | None:
        """The end of a Workload that is stated no more; None where nobody knows it."""
        end = self._view.end_of(Key(job.scope, job.id), job.uid)
        return None if end is None else RunEnd(at=end.at, outcome=end.outcome, started=end.started)

    def eviction_of(self, job: JobState) -> LastEviction | None:
        """The job's last eviction, by Kueue's own word."""
        eviction = self._view.eviction_of(Key(job.scope, job.id), job.uid)
        return None if eviction is None else LastEviction(reason=eviction.reason, at=eviction.at)
