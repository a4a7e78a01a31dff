"""The whole of Fairlead under 15 k waiting jobs: how long an event takes, a start, a takeover; what memory it needs."""

import asyncio
import functools
import itertools
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench_lines import pids_of, quantile, resident, say, use_of

from fairlead_bus import Bus, Follower
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.decisions import DECISION
from fairlead_contracts.messages.events import EVENT, AnyEvent, JobQueued, JobStarted, LevelWritten
from fairlead_contracts.policyfile.document import Grant
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, all_wait, equal_jobs, one_pool, submit_all
from fairlead_testkit.timing.awaiting import eventually

WAITING = 15_000
IDLE = 5_000
SETTLE_SECONDS = 12.0
IDLE_SECONDS = 30.0
SAMPLES = 200
TENANTS = [f"team-{number}" for number in range(20)]
URGENT = "on-call"
GPUS = 64
POLICY = one_pool([*TENANTS, URGENT], grants=[Grant(tenant=URGENT, classes=["urgent"])])


async def stack() -> None:
    """Measures two scorers, one admitter and the simulated cluster; 15 k jobs wait behind 64 cards that turn over."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), policy=POLICY, gpus=8, nodes=GPUS // 8)
        async with fleet.running() as bus:
            await _fill(bus)
            for service in fleet.services.values():
                say("memory", service=service.name, waiting=WAITING, rss_mib=resident(service.pid))
            await _starts(bus)
            await _levels(bus)
            await _owners(bus, fleet)


async def idle() -> None:
    """5 k jobs wait behind cards that nobody gives back: what each service costs while nothing happens."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), policy=POLICY, gpus=8, nodes=GPUS // 8)
        async with fleet.running() as bus:
            for tenant in TENANTS:
                await submit_all(bus, tenant, equal_jobs(tenant, IDLE // len(TENANTS) + 4, run_seconds=3600))
            await all_wait(bus, "gpu", IDLE, 240, or_more=True)
            await asyncio.sleep(SETTLE_SECONDS)
            _, cores = await use_of(pids_of(fleet), asyncio.sleep(IDLE_SECONDS))
            say("idle", waiting=IDLE, aim_admitter=0.01, **cores)


async def submit_backlog(bus: Bus) -> None:
    """Submits more jobs than shall wait. Cards turn over 30 times a second: the backlog stays, and samples start soon."""
    for number, tenant in enumerate(TENANTS):
        jobs = [
            {
                "id": f"{tenant}-{n}",
                "demand": {"nvidia.com/gpu": 1},
                "run_seconds": 2.0 + 0.01 * ((n * 7 + number) % 20),
            }
            for n in range(WAITING // len(TENANTS) + 100)
        ]
        await submit_all(bus, tenant, jobs)


async def _fill(bus: Bus) -> None:
    start = time.perf_counter()
    await submit_backlog(bus)
    await all_wait(bus, "gpu", WAITING * 97 // 100, 240, or_more=True)
    say("intake", jobs=WAITING, per_second=WAITING / (time.perf_counter() - start))


async def _follow(bus: Bus, told: Callable[[AnyEvent], bool], cause: Callable[[], Awaitable[object]]) -> None:
    """Cause something once we listen, and listen until told enough."""
    follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER))

    async def causing() -> None:
        await follower.ready.wait()
        await cause()

    task = asyncio.create_task(causing())
    async for delivery in follower:
        if told(EVENT.decode(delivery.payload)):
            break
    await task


async def _starts(bus: Bus) -> None:
    """Submit to started of an urgent job, one after another, while cards turn over."""
    waits = []
    for number in range(SAMPLES):
        job = {"id": f"now-{number}", "class": "urgent", "demand": {"nvidia.com/gpu": 1}, "run_seconds": 0.2}
        start = time.perf_counter()

        def told(event: AnyEvent, job: dict[str, object] = job) -> bool:
            return isinstance(event, JobStarted) and event.job == job["id"]

        await _follow(bus, told, functools.partial(submit_all, bus, URGENT, [job]))
        waits.append(time.perf_counter() - start)
    say(
        "submit_to_started",
        waiting=WAITING,
        p50_ms=quantile(waits, 0.5) * 1e3,
        p99_ms=quantile(waits, 0.99) * 1e3,
    )


async def _levels(bus: Bus) -> None:
    """Measures from the cluster's own event (queued) to the level written, by the clocks of one machine.

    One urgent job at a time, the next once that one started. Of several that wait in line only those get a level that may
    start before the admitter reacts again: the others' time would be that of the jobs before them.
    """
    taken: list[float] = []
    queued: dict[str, float] = {}
    gone = asyncio.Event()

    def told(event: AnyEvent) -> bool:
        if event.job.startswith("soon-"):
            match event:
                case JobQueued():
                    queued[event.job] = event.at.timestamp()
                case LevelWritten() if event.job in queued:
                    taken.append(event.at.timestamp() - queued.pop(event.job))
                case JobStarted():  # two cards were free: without a level, it is no sample
                    queued.pop(event.job, None)
                    gone.set()
        if enough := len(taken) >= SAMPLES:
            gone.set()  # nobody hears of the last one's start
        return enough

    async def one_by_one() -> None:
        for number in itertools.count():
            if len(taken) >= SAMPLES:
                return
            # Too large to start at once: it waits for its level.
            job = {
                "id": f"soon-{number}",
                "class": "urgent",
                "demand": {"nvidia.com/gpu": 2},
                "run_seconds": 0.2,
            }
            gone.clear()
            await submit_all(bus, URGENT, [job])
            await gone.wait()

    await _follow(bus, told, one_by_one)
    say(
        "event_to_level",
        waiting=WAITING,
        samples=len(taken),
        p50_ms=quantile(taken, 0.5) * 1e3,
        p99_ms=quantile(taken, 0.99) * 1e3,
        longest_ms=max(taken) * 1e3,
        aim_p99_ms=50,
    )


async def _owners(bus: Bus, fleet: Fleet) -> None:
    """Takeover after kill -9, join, and handover after a clean end: until another owner decided for every shard."""
    first, second = fleet.named("scorer")
    for name, deed, left, aim in (
        ("takeover", second.kill, {first.name}, 4.0),
        ("join", second.start, {first.name, second.name}, None),
        ("handover", lambda: second.signal(signal.SIGTERM), {first.name}, 0.3),
    ):
        start = time.perf_counter()
        deed()

        async def settled(left: set[str] = left) -> bool:
            owners = set()
            for shard in range(POLICY.shards):
                stored = await bus.last(topology.DECISION, subjects.decision("gpu", shard))
                decision = None if stored is None else DECISION.decode(stored.payload)
                owners.add(decision.owner if decision is not None and decision.basis is not None else "")
            return owners == left

        await eventually(settled, 60, what=name)
        say(name, seconds=time.perf_counter() - start, **({} if aim is None else {"aim": aim}))
