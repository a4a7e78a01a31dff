"""Real processes on a real nats-server: what runs stays within one job of weighted DRF at every step."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from fairlead_contracts.base.instants import from_datetime
from fairlead_contracts.messages.events import Event, JobEnded, JobQueued, JobStarted
from fairlead_contracts.policyfile.document import Aging, Grant
from fairlead_testkit.chaos.audit import heard
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all
from fairlead_testkit.oracles.fairness import FairReplay
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

GPUS = 6
WEIGHTS = {"team-a": 3.0, "team-b": 2.0, "team-c": 1.0}
ENTITLEMENT_PER_DAY = 1296.0
"""Four seconds of waiting are worth a hundredth of the pool over its weight: aging takes part within the time of a test."""
REACTION = 4.0
"""Seconds: somebody starts in the room there is while the order with who has just come, or ended, is on its way.

Mostly some tenths; but a busy machine lets a process stand still for seconds, while the cluster goes on.
"""
RUN_SECONDS = (3.0, 6.0)
"""Run times of the flood: with the reaction, so that what is judged by is mostly what everybody knew."""
POLICY = one_pool(
    WEIGHTS,
    aging=Aging(entitlement_per_day=ENTITLEMENT_PER_DAY),
    grants=[Grant(tenant="team-c", classes=["urgent"])],
)


def jobs_of(events: Sequence[Event], kind: type[Event]) -> int:
    """Number of jobs that came to wait, started or ended."""
    return sum(isinstance(event, kind) for event in events)


def replayed(events: Sequence[Event]) -> FairReplay:
    """The pool as the events tell it."""
    replay = FairReplay(WEIGHTS, GPUS, entitlement_per_day=ENTITLEMENT_PER_DAY, reaction=REACTION)
    for event in events:
        at = event.at.timestamp()
        match event:
            case JobQueued():
                replay.queued(event.tenant, event.job, from_datetime(event.at), at)
            case JobStarted():
                replay.started_one(event.tenant, event.job, at)
            case JobEnded():
                replay.ended_one(event.tenant, at)
            case _:
                pass
    return replay


def spread(jobs: Sequence[dict[str, object]], seed: int) -> list[Mapping[str, object]]:
    """The same jobs with run times that differ, so that not all end at one instant."""
    rng = random.Random(seed)
    return [job | {"run_seconds": rng.uniform(*RUN_SECONDS)} for job in jobs]


async def test_three_tenants_that_flood_at_different_times_stay_within_one_job(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, gpus=GPUS)
    async with fleet.running() as bus, heard(bus, CLUSTER, Event) as events:
        await submit_all(bus, "team-a", spread(equal_jobs("a", 20, run_seconds=1), 1))
        await asyncio.sleep(4)  # the flood of the second tenant comes later: that is the case, not a wait
        await submit_all(bus, "team-b", spread(equal_jobs("b", 12, run_seconds=1), 2))
        await asyncio.sleep(4)
        await submit_all(bus, "team-c", spread(equal_jobs("c", 10, run_seconds=1), 3))
        await eventually(lambda: jobs_of(events, JobEnded) == 42, 200, what="all have ended")
    replay = replayed(events)
    assert sorted(replay.started) == sorted(set(replay.started))
    assert len(replay.started) == 42
    assert replay.breaches == []


def passed_by(events: Sequence[Event], job: str) -> list[str]:
    """Jobs that started before one that had come so long before that every order knew it."""
    came = next(event.at for event in events if isinstance(event, JobQueued) and event.job == job)
    starts = [event for event in events if isinstance(event, JobStarted)]
    before = starts[: [event.job for event in starts].index(job)]
    return [event.job for event in before if event.at - came > timedelta(seconds=REACTION)]


async def test_urgent_goes_before_normal_and_who_comes_late_with_no_use_is_served_first(
    tmp_path: Path,
) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, gpus=GPUS)
    async with fleet.running() as bus, heard(bus, CLUSTER, Event) as events:
        # The first six last until the others' levels are long written, on a slow machine, too.
        lasting = [
            job | {"run_seconds": 10 + number / 10 if number < GPUS else 0.5}
            for number, job in enumerate(equal_jobs("a", 12, run_seconds=1))
        ]
        await submit_all(bus, "team-a", lasting[:GPUS])
        await eventually(lambda: jobs_of(events, JobStarted) == GPUS, 30, what="the cluster is full")
        await submit_all(bus, "team-a", lasting[GPUS:])
        # What is published later may be made before, where many are made at once.
        await eventually(lambda: jobs_of(events, JobQueued) == 12, 30, what="the flood waits")
        await submit_all(bus, "team-b", equal_jobs("b", 1, run_seconds=0.5))
        urgent = [job | {"class": "urgent"} for job in equal_jobs("c", 2, run_seconds=0.5)]
        await submit_all(bus, "team-c", urgent)
        await eventually(lambda: jobs_of(events, JobEnded) == 12 + 1 + 2, 200, what="all have ended")
    queued = [event.job for event in events if isinstance(event, JobQueued)]
    started = [event.job for event in events if isinstance(event, JobStarted)]
    assert all(job.startswith("a") for job in started[:GPUS])
    assert queued.index("b-0000") > queued.index("a-0011")
    for job in ("c-0000", "c-0001"):
        assert all(other.startswith("c") for other in passed_by(events, job)), started
    assert all(other.startswith("c") for other in passed_by(events, "b-0000")), started
