"""Cost of tracing: the same jobs by turns on fleets without it and at the default sampling, many times over in one run.

Two fleets of three are without: what the one costs over the other is nothing but noise, and says how much a figure beside
it is worth. Fleets differ for as long as they live, in what order their sets have and where their objects lie: the first is
made the same for all, and now and then there are new fleets.
"""

import asyncio
import contextlib
import math
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench_lines import cpu_seconds, say

from fairlead_bus import Bus, PublishFailedError
from fairlead_contracts.messages.events import JobEnded
from fairlead_testkit.chaos.audit import events_of
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all
from fairlead_testkit.processes.fresh_interpreter import child_running

JOBS = 900
"""Jobs of a round."""
BLOCKS = 7
"""Number of times that there are new fleets."""
ROUNDS = 6
"""Rounds of a block, after one that warms up: each fleet is first, second and third twice."""
RUN_SECONDS = 0.05
"""Run time of a job, so short that services are what jobs wait for, not cards."""
GPUS = 64
AIM_PER_CENT = 3.0
_EACH_TAIL = 0.025
_ATTEMPTS = 4
TENANTS = ["team-a", "team-b", "team-c"]
POLICY = one_pool(TENANTS)


_COLLECTOR = """
import http.server
class Take(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Take)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextlib.asynccontextmanager
async def a_collector() -> AsyncIterator[str]:
    """The address of one that takes all and keeps nothing, in a process of its own: its CPU is none of ours."""
    async with child_running(_COLLECTOR) as (_, told):
        yield f"http://127.0.0.1:{int(await told.readline())}"


class Spent(NamedTuple):
    """Time that was spent on some jobs."""

    cpu: float
    """Seconds, of all services."""
    wall: float
    """Seconds, from the first submission to the last end."""


type Round = dict[str, Spent]
"""Time spent, by fleet."""


async def tracing() -> None:
    """CPU and time for the same jobs from submit to end, over those without tracing: the median of rounds, and its interval."""
    os.environ["PYTHONHASHSEED"] = "0"  # of the services
    async with a_collector() as collector:
        rounds = [one for _ in range(BLOCKS) for one in await _block(collector)]
    figures = {"blocks": BLOCKS, "rounds": len(rounds), "jobs": JOBS * len(rounds)}
    without = statistics.median(one["off"].cpu for one in rounds) / JOBS
    say("tracing, off: CPU of all services for each job", milliseconds=1e3 * without, **figures)
    for name, others in (("off again", ("off",)), ("default", ("off", "off again"))):
        cpu, wall = (
            [
                100 * (one[name][of] / statistics.mean(one[other][of] for other in others) - 1)
                for one in rounds
            ]
            for of in range(len(Spent._fields))
        )
        say(
            f"tracing, {name}: per cent over that without",
            cpu=statistics.median(cpu),
            cpu_interval=interval_of_median(cpu),
            seconds=statistics.median(wall),
            seconds_interval=interval_of_median(wall),
            aim=AIM_PER_CENT if name == "default" else None,
        )


def interval_of_median(values: Sequence[float]) -> list[float]:
    """The interval in which the median of all possible values lies, in 95 of 100 runs at least; whatever their distribution.

    By the sign test: that the median lies below the k-th smallest of n is as likely as fewer than k heads of n coins.
    """
    ordered = sorted(values)
    number = len(ordered)
    tail, below = 0.0, 0
    while (tail := tail + math.comb(number, below) / 2**number) <= _EACH_TAIL:
        below += 1
    return [round(one, 2) for one in (ordered[max(0, below - 1)], ordered[min(number - 1, number - below)])]


async def _block(collector: str) -> list[Round]:
    """New fleets; the same jobs on each by turns."""
    async with contextlib.AsyncExitStack() as stack:
        fleets = {}
        for name, settings in (("off", {}), ("off again", {}), ("default", {"otel_endpoint": collector})):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            fleet = Fleet(folder, policy=POLICY, gpus=GPUS // 8, nodes=8, scorers=1, settings=settings)
            fleets[name] = fleet, await stack.enter_async_context(fleet.running())
        rounds: list[Round] = []
        for number in range(ROUNDS + 1):
            first = number % len(fleets)  # none is always first
            names = (list(fleets) * 2)[first : first + len(fleets)]
            rounds.append({name: await spent_on(fleets[name][1], fleets[name][0], number) for name in names})
        return rounds[1:]


async def spent_on(bus: Bus, fleet: Fleet, number: int) -> Spent:
    """Time that some jobs cost."""
    before, began = _cpu(fleet), time.perf_counter()
    ended = asyncio.create_task(_ended(bus, number))
    for tenant in TENANTS:
        await _submit(bus, tenant, number)
    await ended
    return Spent(_cpu(fleet) - before, time.perf_counter() - began)


async def _submit(bus: Bus, tenant: str, number: int) -> None:
    """Submits; what a busy machine does not acknowledge in time is sent again: the same job twice is one job."""
    jobs = equal_jobs(f"r{number}-{tenant}", JOBS // len(TENANTS), run_seconds=RUN_SECONDS)
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(PublishFailedError):
            await submit_all(bus, tenant, jobs)
            return
    await submit_all(bus, tenant, jobs)


async def _ended(bus: Bus, number: int) -> None:
    left = JOBS
    async for event in events_of(bus, CLUSTER):
        left -= isinstance(event, JobEnded) and event.job.startswith(f"r{number}-")
        if not left:
            return


def _cpu(fleet: Fleet) -> float:
    return sum(cpu_seconds(process.pid) for process in fleet.services.values())
