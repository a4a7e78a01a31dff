"""Jobs that Kueue refuses for another reason than that room is used up: beside a real Kueue, by its own words."""

from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_testkit import eventually
from fairlead_testkit.chaos.audit import stated_job
from fairlead_testkit.fleets.kube_fleet import KUBE_CLUSTER, KubeFleet, all_placed, fair_policy
from fairlead_testkit.kubelab import GPU, KubeLab, things
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture

pytestmark = [pytest.mark.kube, pytest.mark.timeout(240)]

JOBS = [f"fast-{number}" for number in range(4)]
DISK = "disk"


async def passed_by(bus: Bus, fixture: NamespaceFixture) -> set[str]:
    """The waiting jobs that are stated to be passed by."""
    found = [
        await stated_job(bus, KUBE_CLUSTER, fixture.namespaces["team-a"], name) for name in fixture.waiting()
    ]
    return {job.id for job in found if job is not None and job.passed_by}


async def test_all_jobs_of_a_shape_count_again_once_their_flavor_is_mended(
    kube_lab: KubeLab, tmp_path: Path
) -> None:
    """Kueue says what it thinks now of the first alone: of the others its old words stand."""
    with NamespaceFixture(kube_lab, ["team-a", "team-b"]) as fixture:
        kube_lab.api.apply(things.flavor(fixture.flavor, {DISK: "slow"}))
        pool = fixture.queue("shared", 2)
        fixture.workload("team-b", "runs")
        for name in JOBS:
            item = things.workload(name, fixture.namespaces["team-a"], QUEUE, {GPU: 1})
            item["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {DISK: "fast"}
            kube_lab.api.create(item)
        policy = fair_policy(fixture, {"team-a": 1, "team-b": 1}, pool)
        async with KubeFleet(tmp_path, kube_lab, policy=policy, scorers=1).running() as bus:

            async def all_passed_by() -> bool:
                return await passed_by(bus, fixture) == set(JOBS)

            async def all_count() -> bool:
                return len(fixture.waiting()) == len(JOBS) - 1 and not await passed_by(bus, fixture)

            await eventually(all_passed_by, 60, what="Kueue refuses all of them")
            kube_lab.api.apply(things.flavor(fixture.flavor, {DISK: "fast"}))
            await eventually(all_count, 30, what="one is admitted, and the others count")
            await all_placed(bus, fixture)
