"""The two levers: the annotation where Kueue's gate is on, `spec.priority` where it is off; no trace after a release."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.leave import LeverName
from fairlead_testkit.by_hand.people import give_leave, say
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, POOL, KubeFleet, fair_policy, heads_stand
from fairlead_testkit.kubelab import WORKLOADS_ALONE, KubeLab, KubeObject, things
from fairlead_testkit.kubelab.toolsets import OLDER
from fairlead_testkit.kueue.admissions import full_queue
from fairlead_testkit.kueue.namespace_fixture import effective_priority
from fairlead_testkit.pytest_plugin.kubelab_fixtures import LabFactory
from fairlead_testkit.timing.awaiting import eventually, next_second

pytestmark = [pytest.mark.kube, pytest.mark.timeout(480)]

WEIGHTS = {"team-a": 2.0, "team-b": 1.0}
LEVERS: list[tuple[LeverName, bool]] = [("boost", True), ("priority", False), ("priority", True)]
"""Levers, each with whether Kueue's gate is on."""
BASE = 100
"""Priority that a Workload has of its own."""


def plain(item: KubeObject) -> tuple[object, object]:
    """Values of a Workload that a level could have changed."""
    return item["spec"].get("priority"), item["metadata"].get("annotations") or {}


@pytest.mark.parametrize(
    ("lever", "gate", "kueue"),
    [
        ("boost", True, None),
        ("priority", False, None),
        *(
            pytest.param(lever, gate, kueue, marks=pytest.mark.deep)
            for lever, gate, kueue in [
                ("priority", True, None),
                *((lever, gate, kueue) for kueue in OLDER for lever, gate in LEVERS),
            ]
        ),
    ],
)
async def test_kueue_follows_by_either_lever_and_a_release_leaves_no_trace(
    kueue_lab: KubeLab,
    kube_labs: LabFactory,
    tmp_path: Path,
    lever: LeverName,
    kueue: str | None,
    *,
    gate: bool,
) -> None:
    lab, gates = kueue_lab, {"PriorityBoost": gate}
    if kueue is not None:
        lab = kube_labs(replace(WORKLOADS_ALONE, gates=gates, kueue=kueue))
    elif lab.gates != gates:
        lab.restart_kueue(gates=gates)
    with full_queue(lab, WEIGHTS, 4) as (fixture, log, pool):
        for tenant in WEIGHTS:
            fixture.backlog(tenant, 6, priority=BASE)
            # First come, first served is then all of the first tenant's before all of the second's.
            await next_second()
        before = {name: plain(item) for name, item in fixture.waiting().items()}
        fleet = KubeFleet(tmp_path, lab, policy=fair_policy(fixture, WEIGHTS, pool), lever=lever)
        async with fleet.running() as bus:
            await heads_stand(bus, fixture, 4)
            levelled = [item for item in fixture.waiting().values() if effective_priority(item) != BASE]
            assert levelled
            for item in levelled:
                boosted = things.PRIORITY_BOOST in (item["metadata"].get("annotations") or {})
                assert boosted == (lever == "boost")
            fixture.finish("keeper", "keeper")
            log.wait(1 + 4)
            await say(bus, Mode.RELEASED)

            def clean() -> bool:
                now = {item["metadata"]["name"]: plain(item) for item in fixture.workloads()}
                return all(now[name] == found for name, found in before.items())

            await eventually(clean, 60, what="nothing of ours is left, on what runs either")


class ProbingFleet(KubeFleet):
    """A fleet whose admitter asks often which lever Kueue obeys."""

    def own_settings(self, service: str) -> Mapping[str, object]:
        own = super().own_settings(service)
        return {**own, "lever_probe_seconds": 1} if service == "admitter" else own


async def test_a_kueue_that_lost_its_gate_is_followed_again_by_a_leave_for_the_other_lever(
    kueue_lab: KubeLab, tmp_path: Path
) -> None:
    """Boosts that stand from before are read by nobody, and must not be taken for levels that need no write."""
    lab = kueue_lab
    with full_queue(lab, WEIGHTS, 4) as (fixture, _log, pool):
        for tenant in WEIGHTS:
            fixture.backlog(tenant, 3)
            await next_second()
        fleet = ProbingFleet(tmp_path, lab, policy=fair_policy(fixture, WEIGHTS, pool))
        async with fleet.running() as bus:
            await heads_stand(bus, fixture, 4)
            assert any(effective_priority(item) for item in fixture.waiting().values())
            await asyncio.to_thread(lab.restart_kueue, gates={"PriorityBoost": False})

            async def withheld() -> bool:
                found = await whole_queue(bus, POOL)
                return any("no longer reads boosts" in steering.withheld for steering in found.steering)

            await eventually(withheld, 60, what="who asks for the queue is told")
            await give_leave(bus, "priority", cluster=KUBE_CLUSTER)

            async def by_priority() -> bool:
                positions = (await whole_queue(bus, POOL)).positions
                wanted = [one.position.id for one in positions][:4]
                waiting = fixture.waiting().values()
                by_kueue = sorted(
                    waiting,
                    key=lambda item: (
                        -(item["spec"].get("priority") or 0),
                        item["metadata"]["creationTimestamp"],
                        item["metadata"]["uid"],
                    ),
                )
                return wanted == [item["metadata"]["name"] for item in by_kueue][:4]

            await eventually(by_priority, 60, what="the priorities alone make the order")
