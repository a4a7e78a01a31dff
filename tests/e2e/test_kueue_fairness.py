"""A real Kueue admits in the order of weighted DRF at every step: raw Workloads, Jobs whose pods run, gangs."""

import asyncio
import random
import time
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts.policyfile.document import Grant
from fairlead_testkit.fleets.kube_fleet import KubeFleet, all_placed, fair_policy, heads_stand
from fairlead_testkit.kubelab import GPU, KubeLab, things
from fairlead_testkit.kueue.admissions import AdmissionLog, AdmissionStep, full_queue
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture
from fairlead_testkit.kueue.placements import PlacementReplay, QuotaNode
from fairlead_testkit.oracles.oracle import OracleRules
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(600)]

GPUS = 6
WEIGHTS = {"team-a": 3.0, "team-b": 2.0, "team-c": 1.0}
HEADS = {"team-a": 3, "team-b": 2, "team-c": 1}
"""Number of jobs of each tenant among the first, as many as there are GPUs."""
EACH = 12
EACH_JOBS = 6
URGENT = 3
"""Number of urgent Jobs that come, one after each `URGENT_EACH` ends."""
URGENT_EACH = 4
APART = 0.7
"""Seconds between two ends."""
SLOW = 0.5
"""Seconds after which an end has been ordered by, on a loaded machine."""


def oldest_running(fixture: NamespaceFixture, log: AdmissionLog) -> AdmissionStep:
    running = fixture.admitted()
    return next(step for step in log.steps if step.what == "admitted" and step.name in running)


async def test_raw_workloads_are_admitted_in_the_order_of_weighted_drf(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with full_queue(kube_lab, WEIGHTS, GPUS) as (fixture, log, pool):
        waiting = {}
        for tenant in WEIGHTS:  # one tenant after the other: first come, first served is quite another order
            for number in range(EACH):
                waiting[f"{tenant}-{number}"] = tenant
                fixture.workload(tenant, f"{tenant}-{number}")
        policy = fair_policy(fixture, WEIGHTS, pool)
        async with KubeFleet(tmp_path, kube_lab, policy=policy).running() as bus:
            await eventually(
                lambda: tenants_of_heads(fixture) == HEADS, 60, what="the front is shared by weight"
            )
            # Kueue would give quota that comes free to whom it just tries, whatever its position is.
            await heads_stand(bus, fixture, GPUS)
            fixture.finish("keeper", "keeper")
            log.wait(1 + GPUS)
            for _ in range(len(waiting) - GPUS):
                running = oldest_running(fixture, log)
                fixture.finish(running.tenant, running.name)
                await asyncio.sleep(APART)  # so long a job lasts, and no longer; no order is waited for
            log.wait(1 + len(waiting))
        judge = PlacementReplay(
            rules=OracleRules.of(policy, {GPU: GPUS}),
            nodes={"shared": QuotaNode(nominal=GPUS)},
            queues=dict.fromkeys(fixture.namespaces.values(), "shared"),
            reaction=SLOW,
            ignored=frozenset({"keeper"}),
        )
        placements = judge.replay(log.glimpses)
        assert sorted(one.name for one in placements) == sorted(waiting)
        wrong = [one for one in placements if one.missed]
        assert len(wrong) <= len(waiting) // 5, (
            wrong
        )  # a loaded machine; `bench/` has the figures of a quiet one


def tenants_of_heads(fixture: NamespaceFixture) -> dict[str, int]:
    """Number of each tenant's Workloads that Kueue would admit first."""
    waiting = fixture.waiting()
    heads = [fixture.tenant_of(waiting[name]) for name in fixture.kueue_order()[:GPUS] if name in waiting]
    return {tenant: heads.count(tenant) for tenant in WEIGHTS}


async def test_what_ended_jobs_leave_goes_to_the_first_of_the_order_and_to_urgent_ones_before(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    """Pods of the ended jobs end one after the other, in no order of their starts, and nobody waits for an order to stand."""
    rng = random.Random(5)
    with NamespaceFixture(kube_lab, list(WEIGHTS)) as fixture, AdmissionLog(fixture) as log:
        fixture.priority_class("urgent", 100_000)
        pool = fixture.queue("shared", GPUS)
        grant = Grant(tenant=fixture.namespaces["team-c"], classes=["urgent"])
        policy = fair_policy(fixture, WEIGHTS, pool, grants=[grant])
        for tenant in WEIGHTS:
            for number in range(EACH_JOBS):
                fixture.job(tenant, f"{tenant}-{number}", seconds=3600)
        count = EACH_JOBS * len(WEIGHTS)
        log.wait(GPUS)
        await eventually(
            lambda: len(fixture.waiting()) == count - GPUS, 60, what="Kueue has made all Workloads"
        )
        async with KubeFleet(tmp_path, kube_lab, policy=policy).running() as bus:
            await all_placed(bus, fixture)
            begun, over = time.monotonic(), set[str]()
            for turn in range(count - GPUS + URGENT):
                if turn % URGENT_EACH == 0 and turn < URGENT * URGENT_EACH:
                    await parked_urgent(bus, fixture, f"now-{turn}", over)
                running = await eventually(
                    lambda: sorted(fixture.admitted().keys() - over), 60, what="some run"
                )
                over.add(name := rng.choice(running))
                await ends(fixture, name)
                await asyncio.sleep(rng.uniform(0.1, APART))
            log.wait(count + URGENT)
            for name in fixture.admitted().keys() - over:
                await ends(fixture, name)
            await eventually(lambda: not fixture.admitted(), 60, what="every Job has ended")
        judge = PlacementReplay(
            rules=OracleRules.of(policy, {GPU: GPUS}),
            nodes={"shared": QuotaNode(nominal=GPUS)},
            queues=dict.fromkeys(fixture.namespaces.values(), "shared"),
            reaction=SLOW,
        )
        placements = [one for one in judge.replay(log.glimpses) if one.at >= begun]
        assert len(placements) == count - GPUS + URGENT
        wrong = [one for one in placements if one.missed]
        assert len(wrong) <= len(placements) // 5, wrong
        urgent = [one for one in placements if one.name.startswith("job-now-")]
        assert [one.missed for one in urgent] == [0] * URGENT, urgent


async def parked_urgent(bus: Bus, fixture: NamespaceFixture, name: str, over: set[str]) -> None:
    """A Job of the highest class comes while nothing is free, and waits as all others do."""

    def full() -> bool:
        running = fixture.admitted().keys()
        return len(running) == GPUS and not running & over

    await eventually(full, 60, what="all whose pods ended have made room, and it is taken")
    fixture.job("team-c", name, labels={things.PRIORITY_CLASS: "urgent"}, seconds=3600)
    made = f"job-{name}-"
    await eventually(
        lambda: any(one.startswith(made) for one in fixture.waiting()), 60, what="Kueue has made its Workload"
    )
    await all_placed(bus, fixture)


async def ends(fixture: NamespaceFixture, name: str) -> None:
    """The pods of an admitted Job run, and end."""
    item = fixture.admitted()[name]
    await eventually(lambda: fixture.complete(fixture.tenant_of(item), item), 60, what=f"{name} runs")


async def test_gangs_are_admitted_whole_and_in_their_place(kube_lab: KubeLab, tmp_path: Path) -> None:
    """A pod group of team-b and a PyTorchJob of team-c, three GPUs each, before a flood of team-a."""
    with full_queue(kube_lab, WEIGHTS, GPUS) as (fixture, log, pool):
        for number in range(4):
            fixture.job("team-a", f"a-{number}", seconds=1)
        one = {GPU: 1}
        group = things.pod_group("gang", fixture.namespaces["team-b"], QUEUE, one, pods=3, seconds=1)
        for pod in group:
            kube_lab.api.create(pod)
        kube_lab.api.create(things.pytorch_job("torch", fixture.namespaces["team-c"], QUEUE, one))
        await eventually(lambda: len(fixture.waiting()) == 6, 60, what="Kueue has made all Workloads")
        fleet = KubeFleet(
            tmp_path, kube_lab, policy=fair_policy(fixture, {"team-a": 1, "team-b": 3, "team-c": 2}, pool)
        )
        async with fleet.running():

            def heads() -> set[str]:
                waiting = fixture.waiting()
                return {fixture.tenant_of(waiting[name]) for name in fixture.kueue_order()[:3]}

            await eventually(lambda: heads() == set(WEIGHTS), 60, what="one of each tenant stands in front")
            fixture.finish("keeper", "keeper")
            log.wait(3)
        first = [step.tenant for step in log.steps if step.what == "admitted"][1:3]
        assert set(first) <= set(WEIGHTS)
        # One GPU of a's is never let in the way of a gang for good: both gangs got all their pods at once.
        by_tenant = {
            fixture.tenant_of(item): item
            for item in fixture.workloads()
            if things.condition(item, "Admitted")
        }
        counts = {
            tenant: sum(part["count"] for part in item["status"]["admission"]["podSetAssignments"])
            for tenant, item in by_tenant.items()
        }
        assert counts.get("team-b", 3) == 3
        assert counts.get("team-c", 3) == 3
