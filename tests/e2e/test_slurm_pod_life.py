"""Pods of jobs: what they are given and leave behind, and how they end: claims, results, priority, limit, preemption.

KWOK plays the kubelet, so that a pod writes nothing: what it would leave on shared storage the test writes, where Slurm's
hosts have that storage.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_slurm.hooks.installing import EPILOG
from fairlead_testkit.chaos.forgetful_slurmctld import forget, saved_while
from fairlead_testkit.chaos.pod_watch import watched
from fairlead_testkit.fleets.pod_fleet import SECONDS, PodFleet, PodFleetSite
from fairlead_testkit.kubelab import KubeLab, KubeObject
from fairlead_testkit.slurmlab import PEOPLE, URGENT
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.slurm, pytest.mark.timeout(300)]

GPUS = 4
DATA = "data"
PRIORITY = "slurm-first"
LINES = ("PreemptType=preempt/qos", "PreemptMode=REQUEUE", "OverTimeLimit=0")


@pytest.fixture(scope="module")
def site(kube_lab: KubeLab, slurm_programs: None) -> Iterator[PodFleetSite]:
    """Slurm's one node has as many GPUs as Kubernetes: what is urgent has to take them from others."""
    del slurm_programs
    with PodFleetSite(kube_lab, gpus=GPUS, nodes=1, slurm_gpus=GPUS, lines=LINES).running() as found:
        found.lab.run("sacctmgr", "-i", "modify", "qos", URGENT, "set", "preempt=normal")
        found.add_claim(DATA)
        kube_lab.api.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": PRIORITY},
                "value": 1000,
            }
        )
        yield found


@pytest.fixture
def storage(site: PodFleetSite) -> Iterator[Path]:
    """The folder where Slurm's hosts have what the claim holds."""
    folder = site.lab.layout.folder / "storage"
    folder.mkdir()
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def the_pod(site: PodFleetSite) -> KubeObject:
    [pod] = site.pods()
    return pod


async def ended(site: PodFleetSite, job: str, *, seconds: float = 90) -> str:
    """State of a job, once it has ended and nothing of it is left but the user's own claim."""

    async def over() -> str:
        state = await asyncio.to_thread(site.state_of, job)
        if state in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING") or site.pods():
            return ""
        left = [claim for claim in site.claims() if claim["metadata"]["name"] != DATA]
        return "" if left else state

    return await eventually(over, seconds, what="it has ended, with its pod and its claim")


async def runs(site: PodFleetSite, job: str) -> None:
    await eventually(lambda: site.state_of(job) == "RUNNING", 60, what=f"{job} runs: {site.waiting()}")


async def test_what_a_pod_is_given_and_leaves_behind(
    site: PodFleetSite, storage: Path, tmp_path: Path
) -> None:
    settings = {
        "pods_storage": {DATA: str(storage)},
        "pods_priority_classes": {URGENT: PRIORITY},
    }
    async with PodFleet(tmp_path, site, settings=settings).running():
        await _results_of_a_users_claim_are_moved_and_checked(site, storage)
        await _a_claim_is_made_for_a_job_and_goes_with_it(site)
        await _urgent_jobs_have_the_priority_class(site)


async def _results_of_a_users_claim_are_moved_and_checked(site: PodFleetSite, storage: Path) -> None:
    out = storage / "run"
    job = site.submit(f"--comment=env={SECONDS} claim={DATA}:/data results=/data/run", seconds=8)
    await runs(site, job)
    site.lab.run(
        "sh",
        user=PEOPLE["vision"],
        given=f"mkdir {out}; echo 0.93 >{out}/score; ln -s /etc/shadow {out}/link",
    )
    [volume] = [one for one in the_pod(site)["spec"]["volumes"] if one["name"] == "claim-0"]
    assert volume["persistentVolumeClaim"]["claimName"] == DATA
    assert await ended(site, job) == "COMPLETED"
    target = site.lab.layout.folder / "out" / f"results-{job}"
    summary = json.loads((target / "fairlead-summary.json").read_text())
    assert (summary["job"], summary["exit_code"], summary["results"]["files"]) == (int(job), 0, 1)
    assert (target / "score").read_text() == "0.93\n"
    assert (target / "link").is_symlink()
    assert (target / "score").owner() == PEOPLE["vision"]
    assert not out.exists()
    checked = site.lab.run("env", f"--chdir={target}", "sha256sum", "--check", "--strict", "fairlead.sha256")
    assert checked == "score: OK\n"


async def _a_claim_is_made_for_a_job_and_goes_with_it(site: PodFleetSite) -> None:
    site.add_volume()
    job = site.submit(f"--comment=env={SECONDS} scratch=1Mi", seconds=1)
    await runs(site, job)
    assert [claim["metadata"]["name"] for claim in site.claims() if claim["metadata"]["name"] != DATA] == [
        the_pod(site)["metadata"]["name"]
    ]
    assert await ended(site, job) == "COMPLETED"


async def _urgent_jobs_have_the_priority_class(site: PodFleetSite) -> None:
    job = site.submit(f"--qos={URGENT}", seconds=1)
    await runs(site, job)
    assert (the_pod(site)["spec"]["priorityClassName"], the_pod(site)["spec"]["priority"]) == (PRIORITY, 1000)
    assert await ended(site, job) == "COMPLETED"


async def test_what_is_urgent_takes_the_place_of_others(site: PodFleetSite, tmp_path: Path) -> None:
    """The pod of the other job is stopped in its time; the job goes back and runs anew."""
    async with PodFleet(tmp_path, site).running():
        await _one_is_preempted(site)


async def _one_is_preempted(site: PodFleetSite) -> None:
    first = site.submit(gpus=GPUS, seconds=12)
    await runs(site, first)
    urgent = site.submit(f"--qos={URGENT}", gpus=GPUS, seconds=1)
    await runs(site, urgent)
    assert site.state_of(first) == "PENDING"
    [line] = [line for line in site.waiting() if line.split()[0] == first]
    assert "held" not in line.lower()
    assert [pod["metadata"]["labels"]["slurm.fairlead.dev/job"] for pod in site.pods()] == [urgent]
    site.lab.run("scontrol", "update", f"jobid={first}", "starttime=now")
    await runs(site, first)
    site.lab.run("scancel", first)
    assert await ended(site, first) == "CANCELLED"
    assert site.state(urgent) == ("COMPLETED", "0:0")


@pytest.mark.deep
async def test_the_time_limit_ends_a_pod(site: PodFleetSite, tmp_path: Path) -> None:
    """Slurm looks every half minute, and knows no limit below a minute."""
    async with PodFleet(tmp_path, site).running():
        job = site.submit("--time=1", seconds=3600)
        await runs(site, job)
        pod = the_pod(site)["metadata"]["name"]
        assert await ended(site, job, seconds=200) == "TIMEOUT"
        asked = [line for line in site.kube.audit_lines(verb="delete", resource="pods") if line.name == pod]
        assert asked, "and by the bridge, not by force"


async def test_a_job_that_slurmctld_takes_for_running_goes_back(site: PodFleetSite, tmp_path: Path) -> None:
    """The job has ended, and a killed slurmctld comes back without that: by itself it would look after ten minutes."""
    async with PodFleet(tmp_path, site).running(), watched(site) as watch:
        job = site.submit(seconds=6)
        await runs(site, job)
        saved = await asyncio.to_thread(saved_while, site, job, "RUNNING")
        assert await ended(site, job) == "COMPLETED"
        forget(site, saved)
        await eventually(lambda: site.state_of(job) == "RUNNING", 60, what="slurmctld takes it for running")
        assert await ended(site, job) == "COMPLETED"
    assert watch.harm == []
    assert site.pods_made_for(job) == 1, "its program has run, and is not run again"


async def test_a_job_whose_process_does_not_ask_goes_back_and_its_program_goes_on(
    site: PodFleetSite, tmp_path: Path
) -> None:
    """The process hangs, so that a new bridge hears nothing of it."""
    fleet = PodFleet(tmp_path, site)
    async with fleet.running(), watched(site) as watch:
        job = site.submit(seconds=30)
        await eventually(lambda: bool(watch.began), 60, what="its program runs")
        await eventually(lambda: site.hooks_of(job) == ["body"], 60, what="its process stands on the node")
        [body] = [pid for pid, (_, of) in site.hook_processes().items() if of == job]
        [bridge] = fleet.named("slurm_bridge")
        bridge.kill()
        os.kill(body, signal.SIGSTOP)  # Slurm lets it go on before it ends it
        bridge.start()
        await eventually(lambda: "Restarts=1" in site.story(job), 60, what="it has gone back")
        assert await ended(site, job, seconds=150) == "COMPLETED"
    assert watch.harm == []
    assert site.pods_made_for(job) == 1, "its program does not begin again"


async def test_jobs_that_slurmctld_forgets_to_have_started_run_once(
    site: PodFleetSite, tmp_path: Path
) -> None:
    """A slurmctld that is killed starts them again; Slurm alone would run both twice, and drain the node over the first."""
    async with PodFleet(tmp_path, site).running(), watched(site) as watch:
        long, short = (
            site.submit("--begin=now+10", seconds=seconds, code=code) for seconds, code in ((25, 0), (0.5, 3))
        )
        saved = await asyncio.to_thread(saved_while, site, short, "PENDING")
        # The pod of a program that has not begun may be made anew.
        await eventually(lambda: len(watch.began) == 2, 60, what="both programs have begun")
        await eventually(lambda: site.state_of(short) == "FAILED", 60, what="the short one has ended")
        forget(site, saved)
        assert (await ended(site, long), site.state(short)) == ("COMPLETED", ("FAILED", "3:0"))
        assert site.state(long) == ("COMPLETED", "0:0")
    assert [len(pods) for pods in watch.began.values()] == [1, 1]
    assert [site.pods_made_for(job) for job in (long, short)] == [1, 1]
    assert watch.harm == []


async def test_a_program_begins_once_where_the_epilog_of_its_forgotten_process_is_late(
    site: PodFleetSite, tmp_path: Path
) -> None:
    """slurmctld, back from its kill, has slurmd end a process that it does not know, and starts the job again meanwhile."""
    fleet = PodFleet(tmp_path, site)
    async with fleet.running(), watched(site) as watch:
        job = site.submit("--begin=now+8", seconds=20)
        saved = await asyncio.to_thread(saved_while, site, job, "PENDING")
        await eventually(lambda: bool(watch.began), 60, what="its program runs")
        with epilog_held(site):
            forget(site, saved)
            await eventually(
                lambda: "job_began_again" in fleet.story(job), 60, what="its prolog is asked again"
            )
        assert await ended(site, job) == "COMPLETED"
    assert [len(pods) for pods in watch.began.values()] == [1]
    assert watch.harm == []


@pytest.mark.deep
async def test_a_node_is_not_drained_where_slurmd_has_not_done_with_a_forgotten_process(
    site: PodFleetSite, tmp_path: Path
) -> None:
    """slurmctld hears at once that the job's refused start has ended there, and begins the next one meanwhile."""
    fleet = PodFleet(tmp_path, site)
    async with fleet.running(), watched(site) as watch:
        job = site.submit("--begin=now+8", seconds=40)
        saved = await asyncio.to_thread(saved_while, site, job, "PENDING")
        await eventually(lambda: bool(watch.began), 60, what="its program runs")
        with epilog_held(site):
            forget(site, saved)
            await eventually(lambda: "Restarts=1" in site.story(job), 60, what="its start is refused")
            await eventually(lambda: site.state_of(job) == "PENDING", 30, what="slurmctld takes it for ended")
            site.lab.run("scontrol", "update", f"jobid={job}", "starttime=now")
            await eventually(lambda: "slurmd_awaited" in fleet.story(job), 30, what="its prolog waits")
        assert await ended(site, job) == "COMPLETED"
    assert [len(pods) for pods in watch.began.values()] == [1]
    assert watch.harm == []


@contextlib.contextmanager
def epilog_held(site: PodFleetSite) -> Iterator[None]:
    """The site has an epilog of its own on the nodes, which runs before the bridge's: for the time of the block it does not end."""
    own = Path(site.settings.folder) / f"{EPILOG}.site"
    held = own.with_suffix(".held")
    held.touch()
    own.write_text(f"#!/bin/sh\nwhile [ -e {held} ]; do sleep 0.05; done\n")
    own.chmod(0o755)
    try:
        yield
    finally:
        held.unlink()


async def test_a_program_begins_once_where_slurmd_is_killed_while_it_starts_the_job(
    site: PodFleetSite, tmp_path: Path
) -> None:
    """Slurm puts the job back, and the first attempt's process never comes."""
    slurmd = site.lab.process("slurmd-n1")
    put_back = False
    async with PodFleet(tmp_path, site).running(), watched(site) as watch:
        for _ in range(
            4
        ):  # on a busy machine it may be killed before it is sent anything: then nothing is put back
            slurmd.pause()  # it is sent the job, and does not take it
            jobs = [site.submit(seconds=1, code=code) for code in (0, 3)]
            for job in jobs:
                await runs(site, job)
            await asyncio.sleep(1)
            slurmd.kill()
            slurmd.start()
            assert [await ended(site, job) for job in jobs] == ["COMPLETED", "FAILED"]
            put_back = all("Restarts=1" in site.story(job) for job in jobs)
            if put_back:
                break
    assert put_back, "Slurm has put none back"
    assert {len(pods) for pods in watch.began.values()} == {1}
    assert watch.harm == []


@pytest.mark.deep
async def test_a_program_is_not_run_again_where_the_prolog_is_killed_that_would_have_said_so(
    site: PodFleetSite, tmp_path: Path
) -> None:
    """Slurm takes that for success, and puts the job back because its last process has not been heard of."""
    fleet = PodFleet(tmp_path, site, settings={"pods_resume_nodes": True})
    slurmctld = site.lab.process("slurmctld")
    async with fleet.running(), watched(site, daemons_killed=True) as watch:
        job = site.submit("--begin=now+8", seconds=6, code=3)
        saved = await asyncio.to_thread(saved_while, site, job, "PENDING")
        await eventually(lambda: bool(watch.began), 60, what="its program runs")
        slurmctld.kill()
        await eventually(lambda: not site.hooks_of(job), 60, what="its process has ended")
        forget(site, saved)
        await eventually(lambda: "job_began_again" in fleet.story(job), 60, what="the gate looks what it is")
        [prolog] = [pid for pid, (kind, of) in site.hook_processes().items() if (kind, of) == ("prolog", job)]
        os.kill(prolog, signal.SIGKILL)
        await eventually(lambda: "Restarts=1" in site.story(job), 60, what="Slurm puts it back")
        assert await ended(site, job) == "FAILED"
        assert site.state(job) == ("FAILED", "3:0")
    assert site.pods_made_for(job) == 1
    assert [len(pods) for pods in watch.began.values()] == [1]
    assert watch.harm == []


@pytest.mark.deep
async def test_where_it_is_set_so_a_job_starts_without_the_gate_and_waits_for_it(
    kube_lab: KubeLab, slurm_programs: None, tmp_path: Path
) -> None:
    del slurm_programs
    with PodFleetSite(kube_lab, gpus=GPUS, nodes=1, away="start").running() as site:
        fleet = PodFleet(tmp_path, site)
        async with fleet.running(), watched(site) as watch:
            [bridge] = fleet.named("slurm_bridge")
            bridge.kill()
            job = site.submit(seconds=1)
            await runs(site, job)
            assert site.pods() == []
            await bridge.start().ready()
            assert await ended(site, job) == "COMPLETED"
            shown = site.lab.run("scontrol", "--oneliner", "show", "job", job)
            assert " Restarts=1 " in shown, "it had no pod, went back, and ran with one"
        assert watch.harm == []
