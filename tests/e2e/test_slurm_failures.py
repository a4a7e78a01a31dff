"""Failures around a Slurm, each that may come: jobs are made once, and levels stay, as the table of docs/slurm.md says."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_testkit.fleets.fleet import submit_all
from fairlead_testkit.fleets.slurm_fleet import SlurmFleet, account_policy, order_stands
from fairlead_testkit.fleets.slurm_submitting import submitting_helper
from fairlead_testkit.pytest_plugin.slurmlab_fixtures import SlurmLabFactory
from fairlead_testkit.slurmlab import CLUSTER, SlurmCommandError, SlurmLab, SlurmOptions
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(480),
    pytest.mark.skipif(os.geteuid() != 0, reason="submitting as other users needs root"),
]

WEIGHTS = {"vision": 3, "speech": 2}
STEP = 10_000
"""The priority of one level: the lab's weights add up to 3500."""


class FullSlurmSite:
    """A lab whose nodes are full, and the submissions that wait before it."""

    def __init__(self, lab: SlurmLab, fleet: SlurmFleet, bus: Bus) -> None:
        self.lab = lab
        self.fleet = fleet
        self.bus = bus
        self.made: list[str] = []

    async def submit(self) -> None:
        """Submits one job of each account; whoever listens takes it in."""
        for tenant in WEIGHTS:
            name = f"{tenant}-{len(self.made)}"
            self.made.append(name)
            body = {"id": name, "demand": {"nvidia.com/gpu": 8}, "template": {"command": ["sleep", "60"]}}
            await submit_all(self.bus, tenant, [body], cluster=CLUSTER)

    async def settled(self) -> dict[str, int]:
        """Wait until each submission is one job, and all have their levels; gives these by job."""
        await eventually(lambda: self._by_name().keys() >= set(self.made), 90, what="all are jobs")
        await order_stands(self.bus, self.lab, len(self.made), waiting=len(self.made))
        assert self._by_name() == Counter(self.made)
        return self.levels()

    def levels(self) -> dict[str, int]:
        lines = (line.split() for line in self.lab.jobs("%i %Q", "--states=PENDING"))
        return {job: int(priority) // STEP for job, priority in lines}

    def _by_name(self) -> Counter[str]:
        return Counter(self.lab.jobs("%j", "--states=PENDING"))


def slurmctld_restarts(site: FullSlurmSite) -> None:
    _restart(site.lab, "slurmctld")


def munge_stops_for_a_while(site: FullSlurmSite) -> None:
    site.lab.process("munged").end()
    with pytest.raises(SlurmCommandError):
        site.lab.jobs()
    site.lab.process("munged").start()


def a_slurmd_is_killed(site: FullSlurmSite) -> None:
    site.lab.process("slurmd-n1").kill()
    site.lab.process("slurmd-n1").start()


def the_bridge_is_killed(site: FullSlurmSite) -> None:
    [bridge] = site.fleet.named("slurm_bridge")
    bridge.kill()
    bridge.start()


def slurmdbd_is_away(site: FullSlurmSite) -> None:
    site.lab.process("slurmdbd").end(grace=20)
    site.lab.run("scancel", site.lab.submit("vision", "--hold"))  # slurmctld goes on by what it knows
    site.lab.process("slurmdbd").start()


def the_token_is_refused(site: FullSlurmSite) -> None:
    words, _, signature = site.fleet.token.read_text().strip().rpartition(".")
    site.fleet.token.write_text(f"{words}.{signature[::-1]}")


def slurmrestd_is_killed(site: FullSlurmSite) -> None:
    site.lab.process("slurmrestd").kill()
    site.lab.process("slurmrestd").start()


def nats_is_away(site: FullSlurmSite) -> None:
    site.fleet.server.kill()
    site.fleet.server.start()


FAULTS: tuple[Callable[[FullSlurmSite], None], ...] = (
    slurmctld_restarts,
    munge_stops_for_a_while,
    slurmdbd_is_away,
    a_slurmd_is_killed,
    the_bridge_is_killed,
    nats_is_away,
)
OF_SLURMRESTD = (the_token_is_refused, slurmrestd_is_killed)


def _restart(lab: SlurmLab, name: str) -> None:
    lab.process(name).end(grace=20)
    with pytest.raises(SlurmCommandError):
        lab.jobs()
    lab.process(name).start()


@pytest.mark.deep
@pytest.mark.parametrize("by_rest", [False, True])
async def test_faults_submit_nothing_twice_and_take_no_level_away(
    slurm_labs: SlurmLabFactory, tmp_path: Path, *, by_rest: bool
) -> None:
    lab = slurm_labs(SlurmOptions(nodes=2, rest=by_rest))
    lab.fill("robots")
    policy = account_policy(WEIGHTS | {"robots": 1})
    with submitting_helper(tmp_path, lab) as socket:
        fleet = SlurmFleet(tmp_path, lab, policy=policy, submit_socket=socket, by_rest=by_rest)
        async with fleet.running() as bus:
            site = FullSlurmSite(lab, fleet, bus)
            await site.submit()
            await site.settled()
            for fault in (*OF_SLURMRESTD, *FAULTS) if by_rest else FAULTS:
                before = site.levels()
                await site.submit()  # on its way while it happens
                await asyncio.to_thread(fault, site)
                await eventually(lambda: _answers(site), 60, what=f"Slurm answers after {fault.__name__}")
                stands = site.levels()
                assert {job for job, level in before.items() if level and not stands.get(job)} == set(), fault
                await site.settled()


def _answers(site: FullSlurmSite) -> bool:
    try:
        return bool(site.lab.jobs())
    except SlurmCommandError:
        return False
