"""Weights under backlog on real processes: a queue that is three days older, in days of three seconds."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from fairlead_bus import Bus, Follower
from fairlead_contracts import subjects, topology
from fairlead_contracts.document import Aging, PolicyDocument, Pool, Tenant
from fairlead_contracts.events import EVENT, AnyEvent, JobEnded, JobQueued, JobStarted
from fairlead_testkit.awaiting import eventually
from fairlead_testkit.fleet import CLUSTER, Fleet, equal_jobs, submit_all

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

GPUS = 24
DAY_SECONDS = 3.0
REACTION = timedelta(seconds=4)
"""Within it somebody starts by an order that does not know yet who has come: mostly some tenths, more on a busy machine."""
RUN_SECONDS = (2.5, 4.0)
DEFAULT = Aging().entitlement_per_day
POLICY = PolicyDocument(
    aging=Aging(entitlement_per_day=DEFAULT * 86_400 / DAY_SECONDS),
    pools=[Pool(name="gpu", members=[f"{CLUSTER}/gpu"])],
    tenants=[Tenant(name="early"), Tenant(name="late")],
)
CONFIG = {
    "nodes": [{"name": "node", "count": 3, "allocatable": {"nvidia.com/gpu": GPUS // 3}}],
    "queues": [{"name": "main"}],
    "accounts": {"early": "main", "late": "main"},
}


async def gather(bus: Bus, events: list[AnyEvent]) -> None:
    """Add the cluster's events as they come, from its first on."""
    follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER), since=0)
    async for delivery in follower:
        event = EVENT.decode(delivery.payload)
        events.append(event)


async def flood(bus: Bus, tenant: str, jobs: int) -> None:
    """Jobs that end one by one."""
    rng = random.Random(tenant)
    made = equal_jobs(tenant, jobs, run_seconds=1)
    await submit_all(bus, tenant, [job | {"run_seconds": rng.uniform(*RUN_SECONDS)} for job in made])


def starts(events: Sequence[AnyEvent], tenant: str) -> list[JobStarted]:
    """The tenant's."""
    return [event for event in events if isinstance(event, JobStarted) and event.tenant == tenant]


def held(events: Sequence[AnyEvent], begin: datetime, end: datetime) -> Counter[str]:
    """Card seconds of each tenant between two instants."""
    running: Counter[str] = Counter()
    found: Counter[str] = Counter()
    last = begin
    for at, tenant, change in _changes(events):
        until = min(max(at, begin), end)
        for name, count in running.items():
            found[name] += round(count * (until - last).total_seconds() * 1000)
        last = until
        running[tenant] += change
    return found


def _changes(events: Sequence[AnyEvent]) -> Iterator[tuple[datetime, str, int]]:
    for event in sorted(events, key=lambda one: one.at):
        if isinstance(event, JobStarted | JobEnded):
            yield event.at, event.tenant, 1 if isinstance(event, JobStarted) else -1


async def test_a_queue_three_days_older_takes_58_percent_and_who_comes_with_nothing_is_next(
    tmp_path: Path,
) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, cluster_config=CONFIG)
    events: list[AnyEvent] = []
    async with fleet.running() as bus:
        gathering = asyncio.create_task(gather(bus, events))
        await flood(bus, "early", 260)
        await eventually(lambda: len(starts(events, "early")) >= GPUS, 30, what="the cluster is full")
        await asyncio.sleep(3 * DAY_SECONDS)  # the age of the queue: that is the case, not a wait
        await flood(bus, "late", 120)
        await eventually(lambda: len(starts(events, "late")) >= 3 * GPUS, 90, what="both have long run")
        gathering.cancel()
    came = next(event.at for event in events if isinstance(event, JobQueued) and event.tenant == "late")
    first, last = starts(events, "late")[0].at, starts(events, "late")[-1].at
    passed = [one for one in starts(events, "early") if came + REACTION < one.at < first]
    assert not passed, "who has nothing is the next that starts"
    both = held(events, first + timedelta(seconds=RUN_SECONDS[1]), last)
    share = both["early"] / both.total()
    assert share <= 0.58 + 1 / GPUS, f"to within one card: {share:.3f}"
    assert starts(events, "early")[-1].at > last - timedelta(seconds=2), "both had jobs waiting all the while"
