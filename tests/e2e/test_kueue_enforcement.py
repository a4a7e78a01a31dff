"""Exactness with which Kueue can follow across queues: found, said, and where it is exact, true."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_contracts.messages.questions import Steering
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.kube_fleet import POOL, KubeFleet, fair_policy, heads_stand
from fairlead_testkit.kubelab import GPU, KubeLab, things
from fairlead_testkit.kueue.admissions import AdmissionLog
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture
from fairlead_testkit.oracles.fairness import FairReplay
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

WEIGHTS = {"team-x": 2.0, "team-y": 1.0}
GPUS = 3
EACH = 6


async def steering(bus: Bus, right: Callable[[Steering], bool]) -> Steering:
    """The scorers' word on the pool's enforcement, once it is right."""

    async def stated() -> list[Steering]:
        return [said for said in (await whole_queue(bus, POOL)).steering if right(said)]

    return (await eventually(stated, 60, what="the right thing is said of the enforcement"))[0]


def fill(fixture: NamespaceFixture, log: AdmissionLog, gpus: int) -> None:
    """Waiting Workloads of each tenant behind others that hold everything."""
    fixture.backlog("keeper", gpus)
    log.wait(gpus)
    for tenant in WEIGHTS:
        fixture.backlog(tenant, EACH)


async def test_quota_on_the_cohort_alone_is_followed_exactly_over_two_queues(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with NamespaceFixture(kube_lab, [*WEIGHTS, "keeper"]) as fixture, AdmissionLog(fixture) as log:
        root = fixture.cohort("root", GPUS)
        fixture.queue("x", 0, tenants=["team-x", "keeper"], cohort="root")
        fixture.queue("y", 0, tenants=["team-y"], cohort="root")
        fill(fixture, log, GPUS)
        replay = FairReplay(WEIGHTS, GPUS)
        for name, item in fixture.waiting().items():
            replay.queued(fixture.tenant_of(item), name)
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, WEIGHTS, root))
        async with fleet.running() as bus:
            await steering(bus, lambda said: said.enforcement == "exact")
            # Of the same size, and yet tried by itself.
            other = things.workload("other", fixture.namespaces["keeper"], QUEUE, {GPU: 1})
            other["spec"]["podSets"][0]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
            kube_lab.api.create(other)
            said = await steering(bus, lambda said: said.enforcement == "close")
            assert "not all alike" in said.enforcement_why
            kube_lab.api.delete(f"{kube_lab.api.collection(other)}/other")
            await steering(bus, lambda said: said.enforcement == "exact")
            # One unit at a time: a burst is shared out by one head of each queue a cycle, whatever the levels are.
            for more in range(2 * EACH):
                await heads_stand(bus, fixture)
                oldest = next(name for name in log.admitted if name in fixture.admitted())
                fixture.finish(fixture.tenant_of(fixture.admitted()[oldest]), oldest)
                log.wait(GPUS + more + 1)
        for step in log.steps:
            if step.tenant != "keeper" and step.what == "admitted":
                replay.started_one(step.tenant, step.name)
            elif step.tenant != "keeper":
                replay.ended_one(step.tenant)
        assert replay.breaches == []


async def test_queues_with_quota_of_their_own_only_break_ties_and_that_is_said(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with NamespaceFixture(kube_lab, [*WEIGHTS, "keeper"]) as fixture:
        root = fixture.cohort("root")
        fixture.queue("x", 1, tenants=["team-x", "keeper"], cohort="root")
        fixture.queue("y", 1, tenants=["team-y"], cohort="root")
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, WEIGHTS, root))
        async with fleet.running() as bus:
            said = await steering(bus, lambda said: said.enforcement == "tie-break")
        assert "borrow" in said.enforcement_why


async def test_a_queue_under_admission_fair_sharing_is_said_to_break_ties(
    kueue_lab: KubeLab, tmp_path: Path
) -> None:
    kueue_lab.restart_kueue(
        config={"admissionFairSharing": {"usageHalfLifeTime": "1h", "usageSamplingInterval": "1m"}}
    )
    with NamespaceFixture(kueue_lab, [*WEIGHTS, "keeper"]) as fixture:
        scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
        pool = fixture.queue("shared", 2, admissionScope=scope)
        fleet = KubeFleet(tmp_path, kueue_lab, policy=fair_policy(fixture, WEIGHTS, pool))
        async with fleet.running() as bus:
            said = await steering(bus, lambda said: said.enforcement == "tie-break")
        assert "AdmissionFairSharing" in said.enforcement_why


@pytest.mark.parametrize(
    "preemption",
    [
        {"withinClusterQueue": "LowerPriority"},
        pytest.param({"withinClusterQueue": "LowerOrNewerEqualPriority"}, marks=pytest.mark.deep),
        pytest.param({"reclaimWithinCohort": "LowerPriority"}, marks=pytest.mark.deep),
        {"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}},
        pytest.param({"reclaimWithinCohort": "Any"}, marks=pytest.mark.deep),
    ],
    ids=lambda found: "-".join(f"{key}" for key in found),
)
async def test_with_default_settings_kueue_preempts_nothing_because_of_levels(
    kube_lab: KubeLab, tmp_path: Path, preemption: dict[str, object]
) -> None:
    with NamespaceFixture(kube_lab, [*WEIGHTS, "keeper"]) as fixture, AdmissionLog(fixture) as log:
        root = fixture.cohort("root")
        fixture.queue("x", 2, cohort="root", preemption=preemption)
        fixture.queue("y", 1, tenants=[], cohort="root")
        # Two run at the priority that everybody has; the rest wait, the second tenant's behind the first's.
        for tenant in WEIGHTS:
            fixture.backlog(tenant, 6)
        log.wait(3)
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, WEIGHTS, root))
        async with fleet.running() as bus:
            if preemption == {"reclaimWithinCohort": "Any"}:
                await steering(bus, lambda said: said.withheld == "")
                await heads_stand(bus, fixture, 2)
            else:
                await steering(bus, lambda said: next(reversed(preemption)) in said.withheld)
            last = next(iter(fixture.admitted().values()))
            fixture.finish(fixture.tenant_of(last), last["metadata"]["name"])
            log.wait(4)
            await fixture.settled()
        assert [step for step in log.steps if step.what == "evicted"] == []
        assert preempted(kube_lab, fixture.named("x")) == 0


def preempted(lab: KubeLab, queue: str) -> float:
    """Kueue's own count of what it preempted for this queue."""
    lines = [
        line
        for line in lab.kueue_metrics().splitlines()
        if line.startswith("kueue_preempted_workloads_total{") and f'="{queue}"' in line
    ]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)
