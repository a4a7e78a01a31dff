"""A site whose hooks ask two bridges over TLS, and whose jobs take a token for each GPU, on a real slurmctld and Kubernetes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_testkit.chaos.forgetful_slurmctld import forget, saved_while
from fairlead_testkit.chaos.pod_watch import watched
from fairlead_testkit.fleets.pod_fleet import PodFleet, PodFleetSite
from fairlead_testkit.kubelab import KubeLab
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.slurm, pytest.mark.deep, pytest.mark.timeout(600)]

GPUS = 8
TOKENS = "fairlead_gpu@fairlead"


@pytest.fixture(scope="module")
def site(kube_lab: KubeLab, slurm_programs: None) -> Iterator[PodFleetSite]:
    """Slurm has eight times the GPUs of Kubernetes."""
    del slurm_programs
    with PodFleetSite(kube_lab, gpus=GPUS, tls_bridges=2, tokens=TOKENS).running() as found:
        yield found


def restarts(site: PodFleetSite, jobs: list[str]) -> int:
    """Number of starts of these jobs that were in vain."""
    shown = [site.lab.run("scontrol", "--oneliner", "show", "job", job) for job in jobs]
    return sum(int(text.partition(" Restarts=")[2].split()[0]) for text in shown)


async def test_few_jobs_are_started_in_vain_and_either_bridge_may_be_killed(
    site: PodFleetSite, tmp_path: Path
) -> None:
    fleet = PodFleet(tmp_path, site, bridges=2)
    async with fleet.running(), watched(site) as watch:
        await _tokens_follow_what_is_free(site)
        jobs = [site.submit(gpus=2, seconds=1.5, code=code) for code in (0, 3) * 8]
        await site.all_ended()
        ends = {site.state(job) for job in jobs}
        assert ends == {("COMPLETED", "0:0"), ("FAILED", "3:0")}
        assert restarts(site, jobs) <= len(jobs) // 4, "without tokens there are more of them than jobs"
        assert site.licence() == (GPUS, 0), "no job holds one any more"
        for bridge in fleet.named("slurm_bridge"):  # one of them leads
            await _one_may_be_killed(site, bridge)
        await _jobs_that_are_starting_go_on(site, fleet)
        await _what_slurmctld_forgets_the_next_leader_knows(site, fleet)
    assert watch.harm == []


async def _one_may_be_killed(site: PodFleetSite, bridge: ServiceProcess) -> None:
    running = site.submit(seconds=6)
    await eventually(lambda: site.state_of(running) == "RUNNING", 60, what="it runs")
    bridge.kill()
    waiting = site.submit(seconds=0.5)
    await site.all_ended()
    assert {site.state(job) for job in (running, waiting)} == {("COMPLETED", "0:0")}
    await bridge.start().ready()


async def _leader(fleet: PodFleet) -> ServiceProcess:
    async def leads() -> list[ServiceProcess]:
        bridges = fleet.named("slurm_bridge")
        return [one for one in bridges if (await one.health()).details.get("role") == "leader"]

    [leader] = await eventually(leads, 30, what="one leads")
    return leader


async def _jobs_that_are_starting_go_on(site: PodFleetSite, fleet: PodFleet) -> None:
    """Kills the leader once the jobs' pods are made, before any prolog is answered; and again once their programs begin."""
    scheduler = site.kube.process("kube-scheduler")
    scheduler.pause()
    try:
        jobs = [site.submit(gpus=2, seconds=6, code=code) for code in (0, 3, 0)]
        await eventually(lambda: len(site.pods()) == len(jobs), 60, what="their pods are made")
        first = await _leader(fleet)
        first.kill()
    finally:
        scheduler.resume()
    await eventually(lambda: any(site.state_of(job) == "RUNNING" for job in jobs), 60, what="one begins")
    await first.start().ready()
    second = await _leader(fleet)
    second.kill()
    await site.all_ended()
    await second.start().ready()
    assert [site.state(job) for job in jobs] == [
        ("COMPLETED", "0:0"),
        ("FAILED", "3:0"),
        ("COMPLETED", "0:0"),
    ]
    assert [site.pods_made_for(job) for job in jobs] == [1, 1, 1], "no program has begun twice"
    assert restarts(site, jobs) == 0


async def _what_slurmctld_forgets_the_next_leader_knows(site: PodFleetSite, fleet: PodFleet) -> None:
    """The host of both is gone, with the store of the one that led."""
    job = site.submit("--begin=now+10", seconds=0.5, code=3)
    saved = await asyncio.to_thread(saved_while, site, job, "PENDING")
    await eventually(lambda: site.state_of(job) == "FAILED", 60, what="it has ended")
    leader = await _leader(fleet)
    leader.kill()
    forget(site, saved)
    await site.all_ended()
    await leader.start().ready()
    assert site.state(job) == ("FAILED", "3:0")
    assert site.pods_made_for(job) == 1, "its program is not run again"


async def _tokens_follow_what_is_free(site: PodFleetSite) -> None:
    await eventually(lambda: site.licence() == (GPUS, 0), 60, what="there are as many tokens as GPUs")
    site.add_stranger(gpus=5)
    await eventually(lambda: site.licence() == (GPUS - 5, 0), 60, what="somebody else's pod takes five")
    job = site.submit(gpus=4, seconds=0.5)
    await eventually(
        lambda: f"{job} PENDING Licenses" in site.waiting(), 60, what="it waits, and is not refused"
    )
    site.remove_stranger()
    await site.all_ended()
    assert (site.state(job), restarts(site, [job])) == (("COMPLETED", "0:0"), 0)


async def test_a_users_own_number_of_tokens_does_not_count(site: PodFleetSite, tmp_path: Path) -> None:
    async with PodFleet(tmp_path, site, bridges=2).running():
        job = site.submit(f"--licenses={TOKENS}:1", gpus=2, seconds=0.5)
        assert f"Licenses={TOKENS}:2 " in site.lab.run("scontrol", "--oneliner", "show", "job", job)
        parts = site.submit("--comment=gpu-cores=30 env=FAIRLEAD_TEST_SECONDS", "--hold", seconds=0.5)
        assert "Licenses=(null) " in site.lab.run("scontrol", "--oneliner", "show", "job", parts)
        site.lab.run("scancel", parts)
        await site.all_ended()
