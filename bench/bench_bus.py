"""Time in which a mirror replays what stands on a real server."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench_lines import say

from fairlead_bus import ConnectionSettings, Publisher, connect
from fairlead_bus.facts.mirrors import state_mirror
from fairlead_bus.server.provision import provision
from fairlead_contracts import topology
from fairlead_contracts.messages.state import JobState, Phase, encode_state, subject_of
from fairlead_testkit.nats_servers.nats_server import NatsServer

JOBS = 100_000


def a_job(number: int) -> JobState:
    """A waiting job as a cluster states it."""
    return JobState(
        cluster="sim",
        epoch=1,
        rev=number,
        id=f"job-{number}",
        uid=f"5f0c1c9e-{number:012d}",
        scope=f"team-{number % 200}",
        queue="main",
        demand={"cpu": 4000, "memory": 2**34, "nvidia.com/gpu": 1000},
        phase=Phase.WAITING,
        submitted=1_760_000_000_000_000 + number,
        queue_time=1_760_000_000_000_000 + number,
    )


async def replay() -> None:
    """Publish 100 k jobs, then replay them into an empty mirror until it knows that it is complete."""
    with tempfile.TemporaryDirectory() as folder, NatsServer(Path(folder)) as server:
        async with connect(ConnectionSettings(url=server.url), name="bench") as bus:
            await provision(bus, topology.topology(["sim"]))
            publisher, start = Publisher(bus), time.perf_counter()
            for number in range(JOBS):
                job = a_job(number)
                await publisher.put(subject_of(job), encode_state(job))
            await publisher.flush()
            published = time.perf_counter() - start
            rates = []
            for _ in range(3):
                mirror = state_mirror(bus)
                start = time.perf_counter()
                running = asyncio.create_task(mirror.run())
                await mirror.wait_complete()
                rates.append(len(mirror.values) / (time.perf_counter() - start))
                running.cancel()
    say("replay", jobs=JOBS, per_second=max(rates), aim=80_000, published_per_second=JOBS / published)
