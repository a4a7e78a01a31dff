"""Spans that the owner of a cluster's state tells of its jobs' traces: that they were observed, started, ended."""

from collections.abc import Callable, Iterable, Mapping

from fairlead_contracts.base.instants import SECOND, Micros
from fairlead_contracts.messages.events import Event
from fairlead_contracts.messages.job_traces import (
    newest_instant,
    spans_of_event,
    spans_told_again,
    trace_of_job,
)
from fairlead_contracts.messages.state import JobState, State
from fairlead_runtime.spans import Spans

TOLD_AGAIN: Micros = 10 * SECOND
"""Time before the last statement of the owner before us from which on spans are told again: its last may have
died with it."""


class FrontendSpans:
    """Tells the stages of a cluster's jobs.

    Args:
        spans: the receiver of the stages.
        clock: gives the present instant.
        cluster: the cluster that this process states.
    """

    def __init__(self, spans: Spans, clock: Callable[[], Micros], cluster: str) -> None:
        self._spans = spans
        self._clock = clock
        self._cluster = cluster

    def happened(self, events: Iterable[Event]) -> None:
        """Takes in events that are told of jobs."""
        if self._spans.on:
            now, ratio = self._clock(), self._spans.ratio
            for event in events:
                self._spans.tell(spans_of_event(event, ratio, now))

    def taken_over(self, stood: Mapping[str, State], truth: Mapping[str, State | None] | None = None) -> None:
        """Tells the last stages again, as the same spans: this process leads from now on.

        Args:
            stood: the state that stood on NATS: the leader before had come so far.
            truth: all that is so, where this is known by itself; else `stood` is taken for it.
        """
        if not self._spans.on:
            return
        since = max(map(newest_instant, _jobs(stood)), default=0) - TOLD_AGAIN
        jobs = _jobs(stood if truth is None else truth)
        newest = sorted(jobs, key=newest_instant, reverse=True)
        self._spans.trouble(
            "take over",
            {"fairlead.cluster": self._cluster, "fairlead.role": "watcher"},
            links=(trace_of_job(job, self._spans.ratio) for job in newest),
        )
        for job in jobs:
            self._spans.tell(spans_told_again(job, since, self._spans.ratio))


def _jobs(states: Mapping[str, State | None]) -> list[JobState]:
    return [state for state in states.values() if isinstance(state, JobState)]
