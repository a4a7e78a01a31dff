"""Levels and preemption: they go at once where they could stop what runs, and never say who loses what is reclaimed."""

import asyncio
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bucket, Bus
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.frontend.marks import BASE_PRIORITY
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.leave import Leave, Revocation
from fairlead_contracts.messages.questions import Steering
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_testkit.by_hand.people import give_leave, say
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, POOL, KubeFleet, fair_policy, heads_stand
from fairlead_testkit.kubelab import KubeLab, things
from fairlead_testkit.kueue.admissions import AdmissionLog
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture, effective_priority
from fairlead_testkit.timing.awaiting import eventually, next_second

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

WEIGHTS = {"team-x": 2.0, "team-y": 1.0}
HEADS = 1
"""Positions that are labelled where jobs are woken one by one and nothing starts."""
SAFE = {
    "withinClusterQueue": "Never",
    "reclaimWithinCohort": "Any",
    "borrowWithinCohort": {"policy": "Never"},
}
UNSAFE: list[tuple[str, Mapping[str, object]]] = [
    ("withinClusterQueue LowerPriority", {"withinClusterQueue": "LowerPriority"}),
    ("withinClusterQueue LowerOrNewerEqualPriority", {"withinClusterQueue": "LowerOrNewerEqualPriority"}),
    ("reclaimWithinCohort LowerPriority", {"reclaimWithinCohort": "LowerPriority"}),
    ("borrowWithinCohort LowerPriority", {"borrowWithinCohort": {"policy": "LowerPriority"}}),
]
"""Settings of the table in docs/kueue.md by which a level could stop a running job, and how each is told."""


def marked(fixture: NamespaceFixture) -> list[str]:
    """Names of Workloads that wait and carry a mark of ours."""
    marks = {things.PRIORITY_BOOST, BASE_PRIORITY}
    return [
        name
        for name, item in fixture.waiting().items()
        if marks & (item["metadata"].get("annotations") or {}).keys()
    ]


async def no_level_stands(fixture: NamespaceFixture) -> None:
    await eventually(lambda: not marked(fixture), 60, what="every level that waits is gone")


async def steered(bus: Bus, right: Callable[[Steering], bool], what: str) -> None:
    async def stated() -> bool:
        return all(right(said) for said in (await whole_queue(bus, POOL)).steering)

    await eventually(stated, 60, what=what)


def flip(lab: KubeLab, queue: str, preemption: Mapping[str, object]) -> None:
    path = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{queue}"
    lab.api.patch(path, {"spec": {"preemption": dict(preemption)}})


async def counted(fleet: KubeFleet, name: str) -> float:
    """A metric of the admitter, over all labels."""
    [admitter] = fleet.named("admitter")
    port = await admitter.health_port()

    def read() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
            text: bytes = reply.read()
        return text.decode()

    lines = (await asyncio.to_thread(read)).splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{name}{{"))


async def test_levels_go_at_every_setting_by_which_they_could_preempt_and_at_every_word_that_ends_them(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with NamespaceFixture(kube_lab, [*WEIGHTS, "keeper"]) as fixture, AdmissionLog(fixture) as log:
        root = fixture.cohort("root")
        queue = fixture.queue("shared", 2, cohort="root", preemption=SAFE)
        # Who came first has something already, so that the fair order begins with the other: a level must be written.
        for tenant in ("keeper", "team-x"):
            fixture.workload(tenant, f"{tenant}-runs")
        log.wait(2)
        for tenant in WEIGHTS:
            fixture.backlog(tenant, 4)
            # First come, first served is then all of the first tenant's before all of the second's: not the fair order.
            await next_second()
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, WEIGHTS, root))
        async with fleet.running() as bus:
            for told, preemption in UNSAFE:
                await heads_stand(bus, fixture, HEADS)
                assert marked(fixture)
                flip(kube_lab, queue, {**SAFE, **preemption})
                await no_level_stands(fixture)
                await steered(bus, lambda one, told=told: told in one.withheld and one.levels_left == 0, told)  # type: ignore[misc] # binds the loop's value
                flip(kube_lab, queue, SAFE)
                await steered(bus, lambda one: one.withheld == "", "levels are written again")
            await released_revoked_and_by_another_lever(bus, fixture)
            # On a quiet machine levels are gone before Kueue looks at what waits. What it manages to do is counted.
            evicted = sum(step.what == "evicted" for step in log.steps)

            async def told_of_all() -> bool:
                told_of = await counted(fleet, "fairlead_admitter_preemptions_by_left_levels_total")
                told_of += await counted(fleet, "fairlead_admitter_preemptions_seen_total")
                return told_of == evicted

            await eventually(told_of_all, 30, what=f"{evicted} preemptions are counted")


async def released_revoked_and_by_another_lever(bus: Bus, fixture: NamespaceFixture) -> None:
    await heads_stand(bus, fixture, HEADS)
    await say(bus, Mode.RELEASED)
    await no_level_stands(fixture)
    await say(bus, Mode.ACTIVE)
    await heads_stand(bus, fixture, HEADS)

    bucket = Bucket(bus, topology.POLICY)
    taken = Revocation(cluster=KUBE_CLUSTER, lever="boost", at=datetime.now(UTC), by="ann")
    await bucket.put(subjects.revocation_key(KUBE_CLUSTER), to_json(taken))
    await bucket.delete(subjects.leave_key(KUBE_CLUSTER))
    await no_level_stands(fixture)
    await steered(bus, lambda one: "taken back by ann" in one.withheld, "who took the leave back is said")
    await give_leave(bus, "boost", cluster=KUBE_CLUSTER)
    await heads_stand(bus, fixture, HEADS)

    leave = Leave(cluster=KUBE_CLUSTER, lever="priority", at=datetime.now(UTC), replaced="boost")
    await bucket.put(subjects.leave_key(KUBE_CLUSTER), to_json(leave))

    def by_priority_alone() -> bool:
        waiting = fixture.waiting().values()
        annotations = [item["metadata"].get("annotations") or {} for item in waiting]
        return any(BASE_PRIORITY in one for one in annotations) and not any(
            things.PRIORITY_BOOST in one for one in annotations
        )

    await eventually(by_priority_alone, 60, what="levels stand by the other lever, and no boost does")
    await heads_stand(bus, fixture, HEADS)


BORROWERS = {"early": 1.0, "late": 1.0}


def stopped(fixture: NamespaceFixture) -> set[str]:
    """Names of Workloads that were stopped for others. Raw ones keep their quota until somebody takes it."""
    return {item["metadata"]["name"] for item in fixture.workloads() if things.condition(item, "Preempted")}


def levels_of_running(fixture: NamespaceFixture) -> set[int]:
    return {effective_priority(item) for item in fixture.admitted().values()}


def lent(fixture: NamespaceFixture, reclaims: str) -> str:
    """A Cohort of four units, half of them of a queue that has no jobs and takes them back so; the other half borrows."""
    root = fixture.cohort("root")
    owned = {**SAFE, "reclaimWithinCohort": reclaims}
    fixture.queue("owned", 2, tenants=["owner"], cohort="root", preemption=owned)
    fixture.queue("borrows", 2, tenants=BORROWERS, cohort="root", preemption=SAFE)
    return root


async def test_what_is_reclaimed_is_taken_from_who_started_last_as_without_levels(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with NamespaceFixture(kube_lab, [*BORROWERS, "owner"]) as fixture, AdmissionLog(fixture) as log:
        root = lent(fixture, "Any")
        fixture.backlog("early", 6)
        log.wait(4)
        await next_second()
        fixture.backlog("late", 2)
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, BORROWERS, root))
        async with fleet.running() as bus:
            # These come before the other tenant's that wait, so they start with a level.
            await heads_stand(bus, fixture, HEADS)
            for name in log.admitted[:2]:
                fixture.finish("early", name)
            log.wait(6)
            assert set(log.admitted[4:]) == {"late-0", "late-1"}
            await eventually(lambda: levels_of_running(fixture) == {0}, 60, what="what runs has no level")
            fixture.workload("owner", "owner-0", gpus=2)
            await eventually(
                lambda: stopped(fixture) == {"late-0", "late-1"}, 60, what="the last to start go"
            )


async def test_what_runs_is_protected_in_queues_that_preempt_nobody_too(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with NamespaceFixture(kube_lab, [*BORROWERS, "owner"]) as fixture, AdmissionLog(fixture) as log:
        root = lent(fixture, "LowerPriority")
        fixture.backlog("early", 6)
        log.wait(4)
        policy: PolicyDocument = msgspec.structs.replace(
            fair_policy(fixture, {**BORROWERS, "owner": 1.0}, root), preemption="protect"
        )
        async with KubeFleet(tmp_path, kube_lab, policy=policy).running() as bus:
            fixture.workload("owner", "owner-0", gpus=2)
            await heads_stand(bus, fixture, HEADS)
            [waits] = [item for name, item in fixture.waiting().items() if name == "owner-0"]
            assert effective_priority(waits) > 0
            assert stopped(fixture) == set()
