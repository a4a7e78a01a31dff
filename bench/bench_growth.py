"""Jobs come and go for a while: what each service's memory grows by, once all that it keeps for a time has come to its bound."""

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench_lines import resident, say

from fairlead_bus import Bus
from fairlead_testkit.fleets.fleet import Fleet, equal_jobs, one_pool, submit_all

RATE = 200
"""Jobs a second: ten times what the aim is stated for."""
AIM_RATE = 20
SECONDS = float(os.environ.get("FAIRLEAD_BENCH_SECONDS", "420"))
WARM_SECONDS = SECONDS / 2
"""Seconds in which more jobs end than a mirror remembers deletes."""
SAMPLE_SECONDS = 5.0
KEPT_SECONDS = 15.0
"""An ended job is stated for an hour by default: a bound that takes too long to reach."""
AIM_MIB_AN_HOUR = 2.0
TENANTS = [f"team-{number}" for number in range(20)]
POLICY = one_pool(TENANTS)


class ForgetfulFleet(Fleet):
    """A fleet whose cluster forgets what has ended soon."""

    def own_settings(self, service: str) -> Mapping[str, object]:
        """The base's settings, and how long the cluster states what has ended; names it keeps for a week, as always."""
        kept = {"ended_keep_seconds": KEPT_SECONDS}
        return dict(super().own_settings(service)) | (kept if service == "sim" else {})


async def growth() -> None:
    """Submit at a steady rate; fit a line through each service's memory after the warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = ForgetfulFleet(Path(folder), policy=POLICY, gpus=8, nodes=64)
        async with fleet.running() as bus:
            submitting = asyncio.create_task(_submit(bus))
            samples = await _watch(fleet)
            submitted = await submitting
            for name, points in samples.items():
                a_second = _slope(points)
                say(
                    "growth",
                    service=name,
                    jobs=submitted,
                    first_mib=points[0][1],
                    last_mib=points[-1][1],
                    bytes_a_job=a_second * 2**20 * SECONDS / submitted,
                    mib_an_hour_at_20=a_second * 3600 * AIM_RATE * SECONDS / submitted,
                    aim_mib_an_hour=AIM_MIB_AN_HOUR,
                )


async def _submit(bus: Bus) -> int:
    start, done = time.perf_counter(), 0
    while (now := time.perf_counter() - start) < SECONDS:
        due = int(now * RATE) - done
        for number, tenant in enumerate(TENANTS[: max(due // 10, 0)]):
            jobs = equal_jobs(f"job-{done}-{number}", 10, run_seconds=1.0)
            await submit_all(bus, tenant, jobs)
            done += len(jobs)
        await asyncio.sleep(0.1)
    return done


async def _watch(fleet: Fleet) -> dict[str, list[tuple[float, float]]]:
    """Samples by service, each (seconds, mebibytes), after the warm-up."""
    await asyncio.sleep(WARM_SECONDS)
    start = time.perf_counter()
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in fleet.services}
    while (now := time.perf_counter() - start) < SECONDS - WARM_SECONDS:
        for name, service in fleet.services.items():
            samples[name].append((now, resident(service.pid)))
        await asyncio.sleep(SAMPLE_SECONDS)
    return samples


def _slope(points: list[tuple[float, float]]) -> float:
    """Slope of the line of least squares."""
    mean_at = sum(at for at, _ in points) / len(points)
    mean = sum(value for _, value in points) / len(points)
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    return sum((at - mean_at) * (value - mean) for at, value in points) / spread
