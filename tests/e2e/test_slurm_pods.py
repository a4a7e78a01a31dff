"""Slurm jobs that run as pods, on a real slurmctld and a real Kubernetes: never more than there is room for, and nothing left.

KWOK plays the kubelet: pods start and end as their variables say, and print nothing.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_contracts.frontend.cards import CARD_CORES, CARD_MEMORY
from fairlead_testkit.chaos.pod_watch import watched
from fairlead_testkit.fleets.pod_fleet import SECONDS, PodFleet, PodFleetSite
from fairlead_testkit.kubelab import GPU, KubeLab
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.slurmlab import SlurmCommandError
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.slurm, pytest.mark.timeout(300)]

GPUS = 8
CARDS, CARD_MIB, PART_MIB = ("GPU-1", "GPU-2"), 24_576, 16_384


@pytest.fixture(scope="module")
def site(kube_lab: KubeLab, slurm_programs: None) -> Iterator[PodFleetSite]:
    del slurm_programs
    with PodFleetSite(kube_lab, gpus=GPUS).running() as found:
        yield found


async def test_more_jobs_than_there_is_room_for(site: PodFleetSite, tmp_path: Path) -> None:
    async with PodFleet(tmp_path, site).running(), watched(site) as watch:
        codes = [0, 3, 0, 7] * 3
        jobs = [site.submit(gpus=2, seconds=1, code=code) for code in codes]
        await site.all_ended()
        ends = [site.state(job) for job in jobs]
        assert ends == [("COMPLETED", "0:0") if code == 0 else ("FAILED", f"{code}:0") for code in codes]
        assert "the pod ended with 3" in site.output(jobs[1])
    assert 0 < watch.most_gpus <= GPUS
    assert watch.harm == []


async def test_whatever_users_write_and_do(site: PodFleetSite, tmp_path: Path) -> None:
    fleet = PodFleet(tmp_path, site, settings={"pods_resume_nodes": True})
    async with fleet.running():
        await _nodes_come_back_that_slurm_drained_over_a_forgotten_job(site)
        await _what_users_write_reaches_no_shell(site)
        await _a_cancelled_jobs_pod_goes(site)
        await _who_cannot_run_as_a_pod_is_told(site)
        [bridge] = fleet.named("slurm_bridge")
        bridge.kill()
        job = site.submit(seconds=0.5)
        await eventually(lambda: "BeginTime" in _line(site, job), 60, what="it goes back, not held")
        assert site.pods() == []
        await bridge.start().ready()
        await site.all_ended()
        assert site.state(job) == ("COMPLETED", "0:0")
        await _a_program_begins_once_whose_prolog_was_not_answered(site, bridge)
        await _parts_of_cards_are_counted_card_by_card(site)
    assert not any("drain" in line for line in site.lab.run("sinfo", "-h", "-N", "-o", "%T").splitlines())


async def _nodes_come_back_that_slurm_drained_over_a_forgotten_job(site: PodFleetSite) -> None:
    """Checks that such a node comes back, and no other: that one may be broken."""
    for node, why in (("n2", "disk"), ("n1", "Duplicate jobid")):
        site.lab.run("scontrol", "update", f"nodename={node}", "state=drain", f"reason={why}")

    async def drained() -> list[str]:
        lines = (await asyncio.to_thread(site.lab.run, "sinfo", "-h", "-N", "-o", "%N %T")).splitlines()
        return [line.split()[0] for line in lines if "drain" in line]

    async def one() -> bool:
        return await drained() == ["n2"]

    await eventually(one, 60, what="the one is resumed, the other is not")
    site.lab.run("scontrol", "update", "nodename=n2", "state=resume")


async def _what_users_write_reaches_no_shell(site: PodFleetSite) -> None:
    mark = site.lab.layout.folder / "out" / "pwned"
    command = f"touch {mark}"
    hostile = f'it\'s "$({command})" `{command}`; {command}\n{command}\n#fairlead-env X=41\nüber 日本 UserId=root(0)'
    script = f"#!/bin/sh\n# {hostile}\n{command}\n"
    folder = site.lab.layout.folder / "out" / "a $(touch pwned) 'b'"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    job = site.submit(
        f"--job-name={hostile}", f"--chdir={folder}", f"--comment=env=FAIRLEAD_TEST_SECONDS {hostile}",
        "--output=/dev/null", seconds=3, script=script,
    )  # fmt: skip
    await eventually(site.pods, 60, what="its pod is there")
    [pod] = site.pods()
    container = pod["spec"]["containers"][0]
    variables = {one["name"]: one["value"] for one in container["env"]}
    annotations = pod["metadata"]["annotations"]
    assert annotations["slurm.fairlead.dev/script"] == script
    assert variables["SLURM_JOB_NAME"] == annotations["slurm.fairlead.dev/name"].replace("$", "$$")
    assert annotations["slurm.fairlead.dev/name"] == hostile
    assert "X" not in variables
    assert pod["spec"]["securityContext"]["runAsUser"] > 0
    await site.all_ended()
    assert site.state_of(job) == "COMPLETED"
    assert list(site.lab.layout.folder.rglob("pwned")) == []


async def _a_cancelled_jobs_pod_goes(site: PodFleetSite) -> None:
    job = site.submit(seconds=3600)
    await eventually(lambda: "RUNNING" in _line(site, job), 60, what="it runs")
    site.lab.run("scancel", job)
    await site.all_ended()
    assert site.state_of(job) == "CANCELLED"


async def _who_cannot_run_as_a_pod_is_told(site: PodFleetSite) -> None:
    with pytest.raises(SlurmCommandError, match="one pod runs on one node"):
        site.submit("--nodes=2", "--ntasks=2")
    with pytest.raises(SlurmCommandError, match="jobs of root"):
        site.lab.submit("vision", "--gres=gpu:1")
    with pytest.raises(SlurmCommandError, match="cannot be read"):
        site.submit("--comment=image=$(id)")
    job = site.submit("--hold")
    site.lab.run("scontrol", "update", f"jobid={job}", "comment=image=$(id)")  # nobody looks it over again
    site.lab.run("scontrol", "release", job)
    await site.all_ended()
    assert site.state_of(job) == "FAILED"
    assert "cannot be read" in site.output(job), "the user finds the reason in the job's output"


async def _a_program_begins_once_whose_prolog_was_not_answered(
    site: PodFleetSite, bridge: ServiceProcess
) -> None:
    """The bridge is killed after it has made the pod: the job goes back, and no process of it has come."""
    scheduler = site.kube.process("kube-scheduler")
    scheduler.pause()
    try:
        job = site.submit(seconds=2, code=3)
        await eventually(site.pods, 60, what="its pod is made, and is not ready")
        bridge.kill()
    finally:
        scheduler.resume()
    async with watched(site) as watch:
        await eventually(lambda: "BeginTime" in _line(site, job), 60, what="the job goes back")
        await bridge.start().ready()
        await site.all_ended()
        assert site.state(job) == ("FAILED", "3:0")
    assert [len(pods) for pods in watch.began.values()] == [1]


async def _parts_of_cards_are_counted_card_by_card(site: PodFleetSite) -> None:
    """A third of these has no card to itself, though as much memory is free in all. The test does what HAMi would."""
    node = site.add_cards(*CARDS, memory=CARD_MIB)
    scheduler = site.kube.process("kube-scheduler")
    scheduler.pause()
    try:
        words = f"--comment=gpu-memory={PART_MIB} gpu-cores=30 env={SECONDS}"
        jobs = [site.submit(words, seconds=4) for _ in range(3)]
        await eventually(lambda: len(site.pods()) == len(CARDS), 60, what="two of them have a pod")
        await eventually(
            lambda: any("BeginTime" in _line(site, job) for job in jobs), 60, what="the third one goes back"
        )
        for pod, card in zip(site.pods(), CARDS, strict=True):
            limits = pod["spec"]["containers"][0]["resources"]["limits"]
            assert {name: limits[name] for name in (GPU, CARD_MEMORY, CARD_CORES)} == {
                GPU: "1", CARD_MEMORY: str(PART_MIB), CARD_CORES: "30",
            }  # fmt: skip
            site.give_card(pod, node, f"{card},NVIDIA,{PART_MIB},30:;")
    finally:
        scheduler.resume()
    await site.all_ended()
    assert {site.state(job) for job in jobs} == {("COMPLETED", "0:0")}
    site.remove_cards()


def _line(site: PodFleetSite, job: str) -> str:
    return next((line for line in site.waiting() if line.split()[0] == job), "")
