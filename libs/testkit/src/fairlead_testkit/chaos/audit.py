"""Outcomes of submitted jobs: told by the simulated cluster's own file, by their states, and by the events of their lives."""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairlead_bus import Bus, Follower
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.events import EVENT, AnyEvent, Event, JobEnded, JobStarted
from fairlead_contracts.messages.state import STATE, JobState
from fairlead_sim.jobs import SimJob
from fairlead_testkit.timing.in_hand import beside


def simulated_jobs(store: Path) -> list[SimJob]:
    """Every job that the simulated cluster has not forgotten, from its own file."""
    rows = _rows(store, "SELECT body FROM jobs")
    return [msgspec.msgpack.decode(body, type=SimJob) for (body,) in rows]


def made_in(store: Path, scope: str) -> list[str]:
    """The ids of all jobs that a scope ever had, also of those that ended so long ago that the cluster keeps their names alone.

    In one question: a job that is forgotten between two would be counted twice.
    """
    both = "SELECT id FROM jobs WHERE scope = ? UNION ALL SELECT id FROM names WHERE scope = ?"
    return [name for (name,) in _rows(store, both, scope, scope)]


def _rows(store: Path, query: str, *values: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        return database.execute(query, values).fetchall()


async def stated_job(bus: Bus, cluster: str, scope: str, job: str) -> JobState | None:
    """The state of a job as NATS has it now; None where it has none."""
    found = await bus.last(topology.STATE, subjects.state(cluster, "job", job, scope=scope))
    if found is None or not found.payload:  # deleted
        return None
    state = STATE.decode(found.payload)
    return state if isinstance(state, JobState) else None


async def events_of(bus: Bus, cluster: str) -> AsyncIterator[AnyEvent]:
    """The events of a cluster from its first on, as they come."""
    async for delivery in Follower(
        bus, stream=topology.EVENT, filter=subjects.event_filter(cluster), since=0
    ):
        yield EVENT.decode(delivery.payload)


@contextlib.asynccontextmanager
async def heard[E: Event](bus: Bus, cluster: str, kind: type[E]) -> AsyncIterator[list[E]]:
    """The events of one kind, or of all (`Event`), as they come, for the time of the block."""
    found: list[E] = []

    async def listen() -> None:
        async for event in events_of(bus, cluster):
            if isinstance(event, kind):
                found.append(event)  # noqa: PERF401 # it never ends: each is seen as it comes

    async with beside(listen()):
        yield found


async def history(
    bus: Bus, cluster: str, jobs: Iterable[str], until: type[JobStarted | JobEnded] = JobEnded
) -> list[AnyEvent]:
    """Events of a cluster, all of them, once these jobs have ended, or have started."""
    events: list[AnyEvent] = []
    left = set(jobs)
    async for event in events_of(bus, cluster):
        events.append(event)
        if isinstance(event, until):
            left.discard(event.job)
        if not left:
            break
    return events


def check_each_ran_once(jobs: Sequence[SimJob], events: Sequence[AnyEvent], submitted: set[str]) -> None:
    """Checks that each submission became one job, and that no job started twice."""
    lost = submitted - {job.id for job in jobs}
    assert not lost, f"submissions were lost: {sorted(lost)}"  # noqa: S101 # a check of tests
    doubled = [job for job, times in Counter(job.id for job in jobs).items() if times > 1]
    assert not doubled, f"submissions became several jobs: {doubled}"  # noqa: S101 # as above
    started = {event.uid: event.at for event in events if isinstance(event, JobStarted)}
    again = [event for event in events if isinstance(event, JobStarted) and started[event.uid] != event.at]
    assert not again, f"jobs ran twice: {again}"  # noqa: S101 # as above
    idle = [job.id for job in jobs if job.id in submitted and job.uid not in started]
    assert not idle, f"no start is told of {idle}"  # noqa: S101 # as above
