"""Events of a job, made of the difference between two statements of it. Pure.

A transition that happened while nobody watched shows in the difference as well. Ids are made of the uid, the kind of
transition and the instant of the run that it is about: what is told again has the same ids.
"""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeIs

import msgspec

from fairlead_bus.facts.statement_publisher import OutgoingEvent, StateChange
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import Micros, to_seconds
from fairlead_contracts.messages.events import (
    Event,
    JobEnded,
    JobEvicted,
    JobQueued,
    JobStarted,
    about,
    run_of,
)
from fairlead_contracts.messages.state import JobState, Outcome, Phase, State

EVICTED = "Evicted"
"""The reason where the frontend's own is lost: the job was admitted again before anybody looked."""


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job that is stated no more, and its last run."""

    at: Micros
    outcome: Outcome
    started: Micros | None
    admitted: Micros | None = None
    """The instant at which the run's checks let it start, where it had some to wait for."""


class LastEviction(msgspec.Struct, frozen=True, kw_only=True):
    """The last eviction of a job."""

    reason: str
    at: Micros


class JobMemory(Protocol):
    """Knowledge that an owner of state has of its jobs beyond what it states."""

    def end_of(self, job: JobState) -> RunEnd | None:
        """The end of a job that is stated no more; None where nobody knows it."""

    def eviction_of(self, job: JobState) -> LastEviction | None:
        """The job's last eviction; None where nobody knows."""


class EventDiff:
    """Tells the steps of jobs.

    Args:
        memory: knows what became of a job.
        clock: the time now: the only instant that there is for a deletion.
        told: hears of each event; counts.
    """

    def __init__(self, memory: JobMemory, clock: Callable[[], Micros], told: Callable[[Event], None]) -> None:
        self._memory = memory
        self._clock = clock
        self._told = told

    def between(self, step: StateChange) -> list[OutgoingEvent]:
        """The events between the two statements, in order."""
        before = step.before if is_one_job(step.before) else None
        after = step.after if is_one_job(step.after) else None
        events: list[Event] = []
        if before is not None and (after is None or after.uid != before.uid):
            events += self._left(before)
            before = None
        if after is not None:
            events += self._went_on(before, after)
        for event in events:
            self._told(event)
        return [_outgoing(event) for event in events]

    def _left(self, job: JobState) -> list[Event]:
        """The events of a job that is stated no more: it was deleted, or ended so long ago that its end was never stated."""
        if is_told(job):
            return []
        end = self._memory.end_of(job)
        if end is None:
            return [_ended(job, self._clock(), Outcome.CANCELLED)]
        ended = msgspec.structs.replace(
            job, started=end.started, admitted=end.admitted or msgspec.UNSET, unchecked=""
        )
        return [*_begun(job, ended), _ended(ended, end.at, end.outcome)]

    def _went_on(self, before: JobState | None, after: JobState) -> list[Event]:
        events: list[Event] = []
        if before is None:
            events.append(_queued(after))
        elif before.started is not None and _lost_its_run(before, after):
            events.append(self._evicted(before, before.started, after))
        events += _begun(before, after)
        if after.outcome is not None and is_told(after) and (before is None or not is_told(before)):
            ended = self._clock() if after.ended is None else after.ended
            events.append(_ended(after, ended, after.outcome))
        return events

    def _evicted(self, before: JobState, started: Micros, after: JobState) -> Event:
        eviction = self._memory.eviction_of(after)
        if eviction is not None and eviction.at >= started:
            at, reason = eviction.at, eviction.reason
        else:
            at, reason = (self._clock() if after.started is None else after.started), EVICTED
        return JobEvicted(
            **about(before.cluster, before, at, f"evicted-{started}"),
            ran_seconds=_ran(before.began, at),
            reason=reason or EVICTED,
            run=run_of(before, started, at),
        )


def is_one_job(state: State | None) -> TypeIs[JobState]:
    """Whether this is one job, and not the rest of an array: its tasks have events, once each is stated by itself."""
    return isinstance(state, JobState) and state.array is None


def is_told(job: JobState) -> bool:
    """Whether it is stated how the job ended: of one that its frontend forgot that may come later, or never."""
    return job.phase is Phase.ENDED and job.outcome is not None


def _lost_its_run(before: JobState, after: JobState) -> bool:
    """Whether the run before was lost. A job that ended may state no start any more: that is no eviction."""
    if after.started is None:
        return after.phase in (Phase.WAITING, Phase.HELD)
    return after.started != before.started


def _queued(job: JobState) -> Event:
    return JobQueued(
        **about(job.cluster, job, job.submitted, "queued"),
        queue=job.queue,
        demand=job.demand,
        requested_class=job.requested_class,
    )


def _begun(before: JobState | None, after: JobState) -> Iterator[Event]:
    """The start of a run that had not begun before. With quota alone it has not: its checks may give that back."""
    known = before is not None and before.began is not None and before.started == after.started
    if after.began is None or known:
        return
    yield JobStarted(
        **about(after.cluster, after, after.began, f"started-{after.started}"),
        waited_seconds=max(0.0, to_seconds(after.began - after.submitted)),
        level=after.level,
        demand=after.demand,
    )


def _ended(job: JobState, at: Micros, outcome: Outcome) -> Event:
    """The event of a job's end. A uid has only one, so its id needs no instant."""
    return JobEnded(
        **about(job.cluster, job, at, "ended"),
        outcome=outcome,
        ran_seconds=_ran(job.began, at),
        run=None if job.started is None else run_of(job, job.started, at),
    )


def _ran(started: Micros | None, until: Micros) -> float:
    return 0.0 if started is None else max(0.0, to_seconds(until - started))


def _outgoing(event: Event) -> OutgoingEvent:
    return OutgoingEvent(
        subject=subjects.event(event.tenant, event.cluster, event.job),
        msg_id=event.id,
        payload=to_json(event),
    )
