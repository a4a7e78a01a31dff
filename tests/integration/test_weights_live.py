"""Weights under backlog on real processes, in days of seconds."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts.messages.events import Event, JobEnded, JobQueued, JobStarted
from fairlead_contracts.policyfile.document import Aging, PolicyDocument
from fairlead_testkit.chaos.audit import heard
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

GPUS = 24
DAY_SECONDS = 3.0
REACTION = timedelta(seconds=4)
"""Time in which somebody starts by an order that does not know yet who has come: mostly some tenths, more on a busy
machine."""
RUN_SECONDS = (2.5, 4.0)
DEFAULT = Aging().entitlement_per_day
MANY_GPUS = 60
"""GPUs of a pool in which one card more or less is a tenth of what the lightest of weights 3, 2 and 1 is entitled to."""
HOURS_A_DAY = 24
LONG_DAY_SECONDS = 48.0
"""Seconds of a day whose jobs run an hour of it, two seconds: long beside a reaction."""


def a_policy(weights: Mapping[str, float], day_seconds: float) -> PolicyDocument:
    """The default rate, in days that are so short."""
    return one_pool(weights, aging=Aging(entitlement_per_day=DEFAULT * 86_400 / day_seconds))


async def flood(bus: Bus, tenant: str, jobs: int) -> None:
    """Jobs that end one by one."""
    rng = random.Random(tenant)
    made = equal_jobs(tenant, jobs, run_seconds=1)
    await submit_all(bus, tenant, [job | {"run_seconds": rng.uniform(*RUN_SECONDS)} for job in made])


def starts(events: Sequence[Event], tenant: str) -> list[JobStarted]:
    """The tenant's."""
    return [event for event in events if isinstance(event, JobStarted) and event.tenant == tenant]


def held(events: Sequence[Event], begin: datetime, end: datetime) -> Counter[str]:
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


def _changes(events: Sequence[Event]) -> Iterator[tuple[datetime, str, int]]:
    for event in sorted(events, key=lambda one: one.at):
        if isinstance(event, JobStarted | JobEnded):
            yield event.at, event.tenant, 1 if isinstance(event, JobStarted) else -1


async def test_a_queue_three_days_older_takes_58_percent_and_who_comes_with_nothing_is_next(
    tmp_path: Path,
) -> None:
    tenants = {"early": 1.0, "late": 1.0}
    fleet = Fleet(tmp_path, policy=a_policy(tenants, DAY_SECONDS), gpus=GPUS // 3, nodes=3)
    async with fleet.running() as bus, heard(bus, CLUSTER, Event) as events:
        await flood(bus, "early", 260)
        await eventually(lambda: len(starts(events, "early")) >= GPUS, 30, what="the cluster is full")
        await asyncio.sleep(3 * DAY_SECONDS)  # the age of the queue: that is the case, not a wait
        await flood(bus, "late", 120)
        await eventually(lambda: len(starts(events, "late")) >= 3 * GPUS, 90, what="both have long run")
    came = next(event.at for event in events if isinstance(event, JobQueued) and event.tenant == "late")
    first, last = starts(events, "late")[0].at, starts(events, "late")[-1].at
    passed = [one for one in starts(events, "early") if came + REACTION < one.at < first]
    assert not passed, "who has nothing is the next that starts"
    both = held(events, first + timedelta(seconds=RUN_SECONDS[1]), last)
    share = both["early"] / both.total()
    assert share <= 0.58 + 1 / GPUS, f"to within one card: {share:.3f}"
    assert starts(events, "early")[-1].at > last - timedelta(seconds=2), "both had jobs waiting all the while"


async def keep_backlogged(bus: Bus, tenant: str, events: Sequence[Event], backlog: int) -> None:
    """Keeps as many jobs of a tenant waiting at any time: one that starts is followed by another that is submitted."""
    made = 0
    while True:
        wanted = backlog + len(starts(events, tenant))
        names = [f"{tenant}-{number:05d}" for number in range(made, wanted)]
        run = LONG_DAY_SECONDS / HOURS_A_DAY
        await submit_all(
            bus,
            tenant,
            [{"id": name, "demand": {"nvidia.com/gpu": 1}, "run_seconds": run} for name in names],
        )
        made = max(made, wanted)
        await asyncio.sleep(run / 10)


@pytest.mark.deep
@pytest.mark.timeout(600)
async def test_shares_stay_within_a_tenth_of_the_weights_under_a_backlog_of_a_pool_day(
    tmp_path: Path,
) -> None:
    weights = {"team-a": 3.0, "team-b": 2.0, "team-c": 1.0}
    fleet = Fleet(tmp_path, policy=a_policy(weights, LONG_DAY_SECONDS), gpus=MANY_GPUS // 3, nodes=3)
    async with fleet.running() as bus, heard(bus, CLUSTER, Event) as events:
        backlog = MANY_GPUS * HOURS_A_DAY // len(weights)
        tasks = [asyncio.create_task(keep_backlogged(bus, name, events, backlog)) for name in weights]
        # The lightest works its first backlog off in two days; then all queues are as old as they become.
        await eventually(
            lambda: len(starts(events, "team-c")) >= 2.3 * backlog, 500, what="the queues have grown old"
        )
        for task in tasks:
            task.cancel()
    last = starts(events, "team-c")[-1].at
    shares = held(events, last - timedelta(seconds=1.8 * LONG_DAY_SECONDS), last)
    for name, weight in weights.items():
        entitled = weight / sum(weights.values())
        share = shares[name] / shares.total()
        # To within one card: a tag is that of the instant before a start.
        assert abs(share - entitled) <= 0.1 * entitled + 1 / MANY_GPUS, (name, share)
