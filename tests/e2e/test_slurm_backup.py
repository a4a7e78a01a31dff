"""A slurmctld with a backup, a real one: the order, the hooks and the gate go on where the other host takes over.

The backup has a host's name and an address of its own on this machine, and shares the state with the first.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_testkit.chaos.pod_watch import watched
from fairlead_testkit.fleets.pod_fleet import PodFleet, PodFleetSite
from fairlead_testkit.fleets.slurm_fleet import SlurmFleet, account_policy, order_stands
from fairlead_testkit.kubelab import KubeLab
from fairlead_testkit.pytest_plugin.slurmlab_fixtures import SlurmLabFactory
from fairlead_testkit.slurmlab import ACCOUNTS, SlurmCommandError, SlurmLab, SlurmOptions
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.deep,
    pytest.mark.timeout(480),
    pytest.mark.skipif(os.geteuid() != 0, reason="a host of its own for the backup needs root"),
]

WEIGHTS = {"vision": 3, "speech": 2, "robots": 1}
GPUS = 8
SAVED_SECONDS = 6
"""Seconds in which slurmctld saves all that it knows: it does so every five."""


async def _answers(lab: SlurmLab) -> None:
    """Waits until slurmctld answers a plain command, as everybody asks it."""

    async def answers() -> bool:
        try:
            await asyncio.to_thread(lab.jobs)
        except SlurmCommandError:
            return False
        return True

    await eventually(answers, 60, what="a slurmctld answers")


async def _one_takes_over(lab: SlurmLab, killed: str) -> None:
    await asyncio.sleep(SAVED_SECONDS)
    lab.process(killed).kill()
    await _answers(lab)


async def test_the_order_goes_on_at_the_backup(slurm_labs: SlurmLabFactory, tmp_path: Path) -> None:
    lab = slurm_labs(SlurmOptions(nodes=2, backup=True))
    lab.fill("spare")
    fleet = SlurmFleet(tmp_path, lab, policy=account_policy(WEIGHTS | {"spare": 1}), bridges=2)
    async with fleet.running() as bus:
        for account in reversed(ACCOUNTS):
            for _ in range(3):
                lab.submit(account, "--gres=gpu:8", "--nodes=1")
        before = await order_stands(bus, lab, 9, waiting=9)
        await _one_takes_over(lab, "slurmctld")
        assert await order_stands(bus, lab, 9, waiting=9) == before
        lab.submit("robots", "--gres=gpu:8", "--nodes=1")
        await order_stands(bus, lab, 10, waiting=10)
        lab.process("slurmctld").start()  # it takes the lead back
        await _answers(lab)
        lab.submit("vision", "--gres=gpu:8", "--nodes=1")
        await order_stands(bus, lab, 11, waiting=11)


@pytest.fixture
def site(kube_lab: KubeLab, slurm_programs: None) -> Iterator[PodFleetSite]:
    del slurm_programs
    with PodFleetSite(kube_lab, gpus=GPUS, tls_bridges=2, backup=True).running() as found:
        yield found


@pytest.mark.kube
async def test_jobs_run_as_pods_on_and_once_at_the_backup(site: PodFleetSite, tmp_path: Path) -> None:
    fleet = PodFleet(tmp_path, site, bridges=2)
    async with fleet.running(), watched(site, daemons_killed=True) as watch:
        running = [site.submit(gpus=2, seconds=25, code=code) for code in (0, 3)]
        await eventually(lambda: all(site.state_of(job) == "RUNNING" for job in running), 60, what="both run")
        await _one_takes_over(site.lab, "slurmctld")
        waiting = [site.submit(gpus=2, seconds=1, code=code) for code in (0, 3) * 3]
        await site.all_ended()
        assert [site.state(job)[1] for job in running] == ["0:0", "3:0"]
        assert [site.state(job)[1] for job in waiting] == ["0:0", "3:0"] * 3
        late = site.submit(gpus=2, seconds=12)
        await eventually(lambda: site.state_of(late) == "RUNNING", 60, what="it runs")
        site.lab.process("slurmctld").start()
        await _answers(site.lab)
        await site.all_ended()
        assert site.state(late) == ("COMPLETED", "0:0")
        assert [len(pods) for pods in watch.began.values()] == [1] * 9
        assert (watch.harm, watch.forgotten) == ([], 0)
