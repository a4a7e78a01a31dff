"""A day of arrivals, in ten seconds: how much it costs to keep a real Kueue in order."""

import asyncio
import math
import random
import time
from pathlib import Path

import pytest

from fairlead_testkit.fleets.kube_fleet import KubeFleet, fair_policy
from fairlead_testkit.kubelab import ADMITTER, KubeLab
from fairlead_testkit.kueue.admissions import AdmissionLog
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

WEIGHTS = {"team-a": 3.0, "team-b": 2.0, "team-c": 1.0}
RUN_SECONDS = (2.0, 8.0)
"""Run times of jobs of one GPU each: 16 hold about 32 of them in ten seconds, in which 40 come, so the middle of the day is
overloaded and its night is not."""


def arrivals(rng: random.Random, count: int, a_second: float) -> list[float]:
    """Instants of a day with its busiest hour at noon (rejection sampling of a raised cosine)."""
    found: list[float] = []
    while len(found) < count:
        at = rng.random()
        if rng.random() < 0.5 - 0.5 * math.cos(2 * math.pi * at):
            found.append(at * count / a_second)
    return sorted(found)


@pytest.mark.parametrize(
    ("jobs", "gpus"), [pytest.param(20, 8), pytest.param(240, 16, marks=pytest.mark.deep)]
)
async def test_a_day_costs_less_than_two_writes_an_admission(
    kube_lab: KubeLab, tmp_path: Path, jobs: int, gpus: int
) -> None:
    rng = random.Random(7)
    with NamespaceFixture(kube_lab, list(WEIGHTS)) as fixture, AdmissionLog(fixture) as log:
        pool = fixture.queue("shared", gpus)
        fleet = KubeFleet(
            tmp_path, kube_lab, policy=fair_policy(fixture, WEIGHTS, pool, entitlement_per_day=0.1)
        )
        async with fleet.running():
            mark = kube_lab.audit_mark()
            start = time.monotonic()
            for number, at in enumerate(arrivals(rng, jobs, gpus / 4)):
                await asyncio.sleep(max(0.0, start + at - time.monotonic()))  # the day's own pace
                tenant = rng.choice(list(WEIGHTS))
                seconds = round(rng.uniform(*RUN_SECONDS), 1)
                await asyncio.to_thread(fixture.job, tenant, f"job-{number}", seconds=seconds)
            await asyncio.to_thread(log.wait, jobs, 300)
            lines = kube_lab.audit_lines(user=ADMITTER, verb="patch", resource="workloads", after=mark)
        writes = sum(line.code == 200 for line in lines)
        print(f"{writes} writes for {jobs} admissions: {writes / jobs:.2f} each")  # noqa: T201 # the figure
        assert writes < 2 * jobs
