"""A real Kueue admits in the order of weighted DRF at every step: raw Workloads, Jobs whose pods run, gangs."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fairlead_testkit.admissions import AdmissionLog, Step
from fairlead_testkit.awaiting import eventually
from fairlead_testkit.estate import QUEUE, Estate
from fairlead_testkit.fairness import FairReplay
from fairlead_testkit.kube_fleet import KubeFleet, fair_policy, front_stands
from fairlead_testkit.kubelab import GPU, KubeLab, things
from fairlead_testkit.oracle import OracleRules
from fairlead_testkit.placements import PlacementReplay, QuotaNode

pytestmark = [pytest.mark.kube, pytest.mark.timeout(600)]

GPUS = 6
WEIGHTS = {"team-a": 3.0, "team-b": 2.0, "team-c": 1.0}
FRONT = {"team-a": 3, "team-b": 2, "team-c": 1}
"""Of the first jobs, as many as there are GPUs."""
EACH = 12
EACH_JOBS = 8
APART = 0.7
"""Seconds between two ends."""
SLOW = 0.5
"""After so many seconds an end has been ordered by, on a loaded machine."""


def replayed(steps: Sequence[Step], waiting: Mapping[str, str]) -> FairReplay:
    """The pool as its admissions tell it; `waiting` are tenants by job."""
    replay = FairReplay(WEIGHTS, GPUS)
    for job, tenant in waiting.items():
        replay.queued(tenant, job)
    for step in steps:
        if step.name not in waiting:
            continue  # it only kept the queue full
        if step.what == "admitted":
            replay.started_one(step.tenant, step.name)
        else:
            replay.ended_one(step.tenant)
    return replay


def oldest_running(estate: Estate, log: AdmissionLog) -> Step:
    running = estate.admitted()
    return next(step for step in log.steps if step.what == "admitted" and step.name in running)


async def test_raw_workloads_are_admitted_in_the_order_of_weighted_drf(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with Estate(kube_lab, [*WEIGHTS, "keeper"]) as estate, AdmissionLog(estate) as log:
        pool = estate.queue("shared", GPUS)
        estate.workload("keeper", "keeper", GPUS)
        log.wait(1)
        waiting = {}
        for tenant in WEIGHTS:  # one tenant after the other: first come, first served is quite another order
            for number in range(EACH):
                waiting[f"{tenant}-{number}"] = tenant
                estate.workload(tenant, f"{tenant}-{number}")
        policy = fair_policy(estate, WEIGHTS, pool)
        async with KubeFleet(tmp_path, kube_lab, policy=policy).running() as bus:
            await eventually(
                lambda: tenants_of_front(estate) == FRONT, 60, what="the front is shared by weight"
            )
            # Kueue would give quota that comes free to whom it just tries, whatever its place is.
            await front_stands(bus, estate, GPUS)
            estate.finish("keeper", "keeper")
            log.wait(1 + GPUS)
            for _ in range(len(waiting) - GPUS):
                running = oldest_running(estate, log)
                estate.finish(running.tenant, running.name)
                await asyncio.sleep(APART)  # so long a job lasts, and no longer; no order is waited for
            log.wait(1 + len(waiting))
        judge = PlacementReplay(
            rules=OracleRules.of(policy, {GPU: GPUS}),
            nodes={"shared": QuotaNode(nominal=GPUS)},
            queues=dict.fromkeys(estate.namespaces.values(), "shared"),
            reaction=SLOW,
            ignored=frozenset({"keeper"}),
        )
        placements = judge.replay(log.glimpses)
        assert sorted(one.name for one in placements) == sorted(waiting)
        wrong = [one for one in placements if one.missed]
        assert len(wrong) <= len(waiting) // 5, (
            wrong
        )  # a loaded machine; `bench/` has the figures of a quiet one


def tenants_of_front(estate: Estate) -> dict[str, int]:
    """How many of each tenant's Workloads Kueue would admit first."""
    waiting = estate.waiting()
    front = [estate.tenant_of(waiting[name]) for name in estate.kueue_order()[:GPUS] if name in waiting]
    return {tenant: front.count(tenant) for tenant in WEIGHTS}


async def test_jobs_run_to_their_end_within_one_job_of_weighted_drf(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    """Their pods end one after the other, in no order of their starts, each when the one before is ordered by."""
    rng = random.Random(5)
    with Estate(kube_lab, [*WEIGHTS, "keeper"]) as estate, AdmissionLog(estate) as log:
        pool = estate.queue("shared", GPUS)
        estate.workload("keeper", "keeper", GPUS)
        log.wait(1)
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(estate, WEIGHTS, pool))
        async with fleet.running() as bus:
            for tenant in WEIGHTS:
                for number in range(EACH_JOBS):
                    estate.job(tenant, f"{tenant}-{number}", seconds=3600)
            count = EACH_JOBS * len(WEIGHTS)
            await eventually(lambda: len(estate.waiting()) == count, 60, what="Kueue has made all Workloads")
            await eventually(
                lambda: tenants_of_front(estate) == FRONT, 60, what="the front is shared by weight"
            )
            await front_stands(bus, estate, GPUS)
            estate.finish("keeper", "keeper")
            log.wait(1 + GPUS)
            for more in range(count - GPUS):
                await front_stands(bus, estate)
                await ends(estate, rng.choice(sorted(estate.admitted())))
                log.wait(1 + GPUS + more + 1)
            for name in estate.admitted():
                await ends(estate, name)
            await eventually(lambda: not estate.admitted(), 60, what="every Job has ended")
        jobs = {
            step.name: step.tenant for step in log.steps if step.what == "admitted" and step.name != "keeper"
        }
        replay = replayed(log.steps, jobs)
        assert len(replay.started) == count
        assert replay.breaches == []


async def ends(estate: Estate, name: str) -> None:
    """The pods of an admitted Job run, and end."""
    item = estate.admitted()[name]
    await eventually(lambda: estate.complete(estate.tenant_of(item), item), 60, what=f"{name} runs")


async def test_gangs_are_admitted_whole_and_in_their_place(kube_lab: KubeLab, tmp_path: Path) -> None:
    """A pod group of team-b and a PyTorchJob of team-c, three GPUs each, before a flood of team-a."""
    with Estate(kube_lab, [*WEIGHTS, "keeper"]) as estate, AdmissionLog(estate) as log:
        pool = estate.queue("shared", GPUS)
        estate.workload("keeper", "keeper", GPUS)
        log.wait(1)
        for number in range(4):
            estate.job("team-a", f"a-{number}", seconds=1)
        one = {GPU: 1}
        group = things.pod_group("gang", estate.namespaces["team-b"], QUEUE, one, pods=3, seconds=1)
        for pod in group:
            kube_lab.api.create(pod)
        kube_lab.api.create(things.pytorch_job("torch", estate.namespaces["team-c"], QUEUE, one, workers=2))
        await eventually(lambda: len(estate.waiting()) == 6, 60, what="Kueue has made all Workloads")
        fleet = KubeFleet(
            tmp_path, kube_lab, policy=fair_policy(estate, {"team-a": 1, "team-b": 3, "team-c": 2}, pool)
        )
        async with fleet.running():

            def front() -> set[str]:
                waiting = estate.waiting()
                return {estate.tenant_of(waiting[name]) for name in estate.kueue_order()[:3]}

            await eventually(lambda: front() == set(WEIGHTS), 60, what="one of each tenant stands in front")
            estate.finish("keeper", "keeper")
            log.wait(3)
        first = [step.tenant for step in log.steps if step.what == "admitted"][1:3]
        assert set(first) <= set(WEIGHTS)
        # One GPU of a's is never let in the way of a gang for good: both gangs got all their pods at once.
        by_tenant = {
            estate.tenant_of(item): item for item in estate.workloads() if things.condition(item, "Admitted")
        }
        counts = {
            tenant: sum(part["count"] for part in item["status"]["admission"]["podSetAssignments"])
            for tenant, item in by_tenant.items()
        }
        assert counts.get("team-b", 3) == 3
        assert counts.get("team-c", 3) == 3
