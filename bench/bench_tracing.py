"""What tracing costs: the same jobs by turns on fleets without it, at the default sampling, and with every job traced.

Two fleets are without: what the one costs over the other is nothing but noise, and says how much a figure beside it is worth.
"""

import asyncio
import contextlib
import statistics
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web
from bench_lines import cpu_seconds, say

from fairlead_bus import Bus, Follower
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.events import EVENT, JobEnded
from fairlead_contracts.policyfile.document import PolicyDocument, Pool, Tenant
from fairlead_testkit.fleet import CLUSTER, Fleet, equal_jobs, submit_all

JOBS = 600
ROUNDS = 9
GPUS = 64
AIM_PER_CENT = 3.0
TENANTS = ["team-a", "team-b", "team-c"]
POLICY = PolicyDocument(
    pools=[Pool(name="gpu", members=[f"{CLUSTER}/gpu"])], tenants=[Tenant(name=name) for name in TENANTS]
)
CONFIG = {
    "nodes": [{"name": "node", "count": 8, "allocatable": {"nvidia.com/gpu": GPUS // 8}}],
    "queues": [{"name": "main"}],
    "accounts": dict.fromkeys(TENANTS, "main"),
}


@contextlib.asynccontextmanager
async def a_collector() -> AsyncIterator[str]:
    """The address of one that takes all and keeps nothing: its own work is none of ours."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(content_type="application/x-protobuf")

    application = web.Application(client_max_size=2**26)
    application.router.add_post("/v1/traces", take)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def tracing() -> None:
    """CPU seconds of all services for the same jobs from submit to end; the ratio of each round, and what every span would cost."""
    async with a_collector() as collector, contextlib.AsyncExitStack() as stack:
        fleets = {}
        for name, settings in (
            ("off", {}),
            ("off again", {}),
            ("default", {"otel_endpoint": collector}),
            ("all", {"otel_endpoint": collector, "otel_sample_ratio": 1}),
        ):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            fleet = Fleet(folder, policy=POLICY, cluster_config=CONFIG, scorers=1, settings=settings)
            fleets[name] = fleet, await stack.enter_async_context(fleet.running())
        spent: dict[str, list[float]] = {name: [] for name in fleets}
        for number in range(ROUNDS + 1):
            names = list(fleets)
            for name in [
                *names[number % len(names) :],
                *names[: number % len(names)],
            ]:  # none is always first
                fleet, bus = fleets[name]
                seconds = await _round(bus, fleet, number)
                if number:  # the first warms up
                    spent[name].append(seconds)
    for name in ("off again", "default", "all"):
        costs = [
            100 * (traced / untraced - 1) for traced, untraced in zip(spent[name], spent["off"], strict=True)
        ]
        say(
            f"tracing, {name}: CPU of all services over that without",
            median_of_rounds=round(statistics.median(costs), 2),
            quartiles=[round(one, 2) for one in statistics.quantiles(costs, n=4)[::2]],
            all_rounds=round(100 * (sum(spent[name]) / sum(spent["off"]) - 1), 2),
            least=round(min(costs), 2),
            most=round(max(costs), 2),
            aim=AIM_PER_CENT if name == "default" else None,
            jobs=JOBS,
            rounds=ROUNDS,
            cpu_seconds_without=round(sum(spent["off"]), 2),
        )


async def _round(bus: Bus, fleet: Fleet, number: int) -> float:
    """The CPU seconds of all services for some jobs."""
    before = _cpu(fleet)
    ended = asyncio.create_task(_ended(bus, number))
    for tenant in TENANTS:
        await submit_all(
            bus, tenant, equal_jobs(f"r{number}-{tenant}", JOBS // len(TENANTS), run_seconds=0.2)
        )
    await ended
    return _cpu(fleet) - before


async def _ended(bus: Bus, number: int) -> None:
    follower = Follower(bus, stream=topology.EVENT, filter=subjects.event_filter(CLUSTER), since=0)
    left = JOBS
    async for delivery in follower:
        event = EVENT.decode(delivery.payload)
        left -= isinstance(event, JobEnded) and event.job.startswith(f"r{number}-")
        if not left:
            return


def _cpu(fleet: Fleet) -> float:
    return sum(cpu_seconds(process.pid) for process in fleet.services.values())
