"""Writes of Fairlead to a real Kueue: as few as the order needs, and nothing that is not its own."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from fairlead_contracts.messages.events import LevelWritten
from fairlead_contracts.policyfile.document import Grant
from fairlead_testkit.chaos.audit import heard
from fairlead_testkit.fleets.fleet import all_wait
from fairlead_testkit.fleets.kube_fleet import (
    KUBE_CLUSTER,
    POOL,
    KubeFleet,
    fair_policy,
    heads_stand,
    level_patches,
)
from fairlead_testkit.kubelab import KubeLab, things
from fairlead_testkit.kubelab.audit import AuditLine
from fairlead_testkit.kueue.admissions import full_queue
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture, effective_priority
from fairlead_testkit.timing.awaiting import eventually, next_second

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

WEIGHTS = {"team-a": 1.0, "team-b": 1.0}
HEADS = 4
"""Number of GPUs that come free at once, and of positions that are labelled."""
NEXT = 1
"""Positions that are labelled at least; behind them the order is Kueue's own."""


def names(lines: Iterable[AuditLine]) -> list[str]:
    return [line.name for line in lines]


def level_in(line: AuditLine) -> int:
    """The level that a write gives a job with no priority of its own."""
    annotations = (line.body or {})["metadata"].get("annotations", {})
    return int(annotations[things.PRIORITY_BOOST] or 0)


async def test_where_first_come_first_served_is_right_nothing_is_written(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with full_queue(kube_lab, ["team-a"], 2) as (fixture, log, pool):
        mark = kube_lab.audit_mark()
        for number in range(4):
            fixture.workload("team-a", f"a-{number}")
        policy = fair_policy(fixture, {"team-a": 1}, pool, wake="never")
        fleet = KubeFleet(tmp_path, kube_lab, policy=policy)
        async with fleet.running() as bus:
            for number in range(4, 10):
                # Of one second, the younger may stand before the older: by its UID. Where a decision on such a one is
                # late by a second, what was decided on is lifted over it.
                await next_second()
                fixture.workload("team-a", f"a-{number}")
            fixture.finish("keeper", "keeper")
            for more in range(8):
                log.wait(1 + 2 + more)
                running = next(iter(fixture.admitted()))
                fixture.finish("team-a", running)
            log.wait(11)
            await all_wait(bus, POOL, 0)
        assert names(level_patches(fixture, mark)) == []


async def test_every_write_is_one_of_a_decision_and_the_order_stands(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    with full_queue(kube_lab, WEIGHTS, HEADS) as (fixture, log, pool):
        fixture.backlog("team-a", 6)
        # Within one second Kueue's own order is by chance, and might be the fair one: nothing would be written.
        await next_second()
        fixture.backlog("team-b", 6)
        mark = kube_lab.audit_mark()
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, WEIGHTS, pool))
        async with fleet.running() as bus, heard(bus, KUBE_CLUSTER, LevelWritten) as written:
            await eventually(lambda: alternating(fixture), 60, what="the tenants take turns")
            # Kueue would give quota that comes free to whom it just tries, and may so start two of one tenant.
            await heads_stand(bus, fixture, HEADS)
            fixture.finish("keeper", "keeper")
            log.wait(1 + HEADS)
            # An event comes after its write, and the order may stand before its last write.
            await heads_stand(bus, fixture, NEXT)

            def told() -> bool:
                events = Counter((event.job, event.level) for event in written if event.pool == POOL)
                writes = Counter((line.name, level_in(line)) for line in level_patches(fixture, mark))
                # One that reached its job as Kueue admitted it is none, and is not told.
                untold = {name for name, _ in writes - events} - fixture.admitted().keys()
                # A level that still stood when it was asked for again, after a lost lead, is told and not written.
                return bool(events) and not untold and events.keys() <= writes.keys()

            await eventually(told, 60, what="an event of each write, and of no other level")
            patches = level_patches(fixture, mark)
        # 12 jobs, each tenant's in its own order: half of them must be lifted, and no more than the window are. Four are woken.
        assert 0 < len(patches) <= 12 + HEADS
        for line in patches:
            assert set(line.body or {}) <= {"metadata"}
            annotations = (line.body or {})["metadata"].get("annotations", {})
            assert set(annotations) == {things.PRIORITY_BOOST}


def alternating(fixture: NamespaceFixture) -> bool:
    """Whether the tenants take turns at the front."""
    waiting = fixture.waiting()
    heads = [name for name in fixture.kueue_order() if name in waiting][:HEADS]
    tenants = [fixture.tenant_of(waiting[name]) for name in heads]
    pairs = [set(tenants[place : place + 2]) for place in range(0, len(tenants) - 1, 2)]
    return bool(tenants) and all(pair == set(WEIGHTS) for pair in pairs)


async def test_a_level_that_is_overwritten_is_put_back(kube_lab: KubeLab, tmp_path: Path) -> None:
    with full_queue(kube_lab, WEIGHTS, HEADS) as (fixture, _log, pool):
        for tenant in WEIGHTS:
            fixture.backlog(tenant, 3)
        fleet = KubeFleet(tmp_path, kube_lab, policy=fair_policy(fixture, WEIGHTS, pool))
        async with fleet.running():
            await eventually(lambda: alternating(fixture), 60, what="the tenants take turns")
            last = fixture.kueue_order()[-1]
            tenant = fixture.tenant_of(fixture.waiting()[last])
            path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{fixture.namespaces[tenant]}/workloads/{last}"
            kube_lab.api.patch(path, {"metadata": {"annotations": {things.PRIORITY_BOOST: "99000000"}}})
            # Where nobody saw our level before it was overwritten, it takes the admitter ten seconds to doubt it.
            await eventually(
                lambda: fixture.kueue_order()[0] != last and alternating(fixture), 60, what="it is put back"
            )


async def test_a_boost_never_lifts_a_job_over_a_higher_class(kube_lab: KubeLab, tmp_path: Path) -> None:
    with full_queue(kube_lab, WEIGHTS, HEADS) as (fixture, _log, pool):
        fixture.priority_class("urgent", 100_000)
        for number in range(6):
            fixture.job("team-a", f"a-{number}", seconds=1)
        await eventually(lambda: len(fixture.waiting()) == 6, 60, what="Kueue has made all Workloads")
        await next_second()
        for number in range(6):
            fixture.job("team-b", f"b-{number}", seconds=1)
        policy = fair_policy(
            fixture, WEIGHTS, pool, grants=[Grant(tenant=fixture.namespaces["team-b"], classes=["urgent"])]
        )
        fleet = KubeFleet(tmp_path, kube_lab, policy=policy)
        async with fleet.running():
            await eventually(lambda: alternating(fixture), 60, what="the tenants take turns")
            fixture.job("team-b", "now", labels={things.PRIORITY_CLASS: "urgent"}, seconds=1)
            await eventually(lambda: len(fixture.waiting()) == 13, 60, what="its Workload is there")
            first = fixture.kueue_order()[0]
            assert first.startswith("job-now-")
            levels = [effective_priority(item) for name, item in fixture.waiting().items() if name != first]
            assert 0 < max(levels) < 100_000
            # Asked for and not granted: it stays in its own class's band, and its object says why.
            fixture.job("team-a", "pushy", labels={things.PRIORITY_CLASS: "urgent"}, seconds=1)

            def pushy() -> bool:
                found = [item for name, item in fixture.waiting().items() if name.startswith("job-pushy-")]
                return bool(found) and effective_priority(found[0]) < 100_000

            await eventually(pushy, 60, what="the ungranted job is in everybody's class")
            await eventually(
                lambda: (
                    "ClassNotGranted"
                    in kube_lab.kubectl(
                        "get",
                        "events",
                        "-n",
                        fixture.namespaces["team-a"],
                        "-o",
                        "jsonpath={.items[*].reason}",
                    )
                ),
                60,
                what="its object says why",
            )
