from pathlib import Path

import pytest

from fairlead_cli.demo.feeding import held_back, lap_of
from fairlead_contracts.base.tokens import encode_token
from fairlead_sim.demo import demo_workload
from fairlead_testkit import eventually
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all


def test_each_lap_has_jobs_of_its_own_and_all_else_is_equal() -> None:
    workload = demo_workload(5)
    first, second = lap_of(workload, 1_000.4), lap_of(workload, 1_276.0)
    names = [job.id for lap in (first, second) for job in lap.jobs]
    assert len(set(names)) == len(names) == 2 * len(workload.jobs)
    assert all(encode_token(name) for name in names)
    assert [(job.offset, job.demand, job.run) for job in second.jobs] == [
        (job.offset, job.demand, job.run) for job in workload.jobs
    ]
    assert second.policy == workload.policy


@pytest.mark.integration
async def test_a_lap_waits_until_the_submissions_before_it_are_taken_up(tmp_path: Path) -> None:
    policy = one_pool(["team-a"])
    fleet = Fleet(tmp_path, policy=policy, gpus=4, scorers=1)
    async with fleet.running() as bus:
        assert await held_back(bus, CLUSTER) == ""
        [cluster] = fleet.named("sim")
        cluster.kill()
        await submit_all(bus, "team-a", equal_jobs("job", 3, run_seconds=60))

        async def waits() -> bool:
            return await held_back(bus, CLUSTER) == "submissions not taken up yet: 3"

        await eventually(waits, 60, what="the lap waits for them")
        await cluster.start().ready()

        async def goes_on() -> bool:
            return not await held_back(bus, CLUSTER)

        await eventually(goes_on, 60, what="they are taken up")
        for scorer in fleet.named("scorer"):
            scorer.kill()
        assert "no scorer" in await held_back(bus, CLUSTER)
