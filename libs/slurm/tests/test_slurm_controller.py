"""The port to Slurm on a real slurmctld."""

import asyncio
import os
import re
import shlex
import shutil
import socket
import struct
from pathlib import Path

import pytest

from fairlead_contracts.base.instants import MINUTE, SECOND
from fairlead_slurm import SlurmJob
from fairlead_slurm.commands import Commands
from fairlead_slurm.controller import CommandController
from fairlead_slurm.errors import (
    CommandFailedError,
    ProgramMissingError,
    SlurmUnreachableError,
    UnreadableError,
)
from fairlead_slurm.job_ends import ended_jobs, submitted_jobs
from fairlead_slurm.licences import AccountedLicence, LicenceName
from fairlead_slurm.partition import PodPartition
from fairlead_slurm.slurm_token import SlurmToken
from fairlead_slurm.updates import NotAnIdError
from fairlead_testkit.slurmlab import CLUSTER, OPERATOR, PEOPLE, SlurmCommandError, SlurmLab, SlurmOptions
from fairlead_testkit.timing.awaiting import eventually

pytestmark = pytest.mark.slurm

AS_OPERATOR = ("setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", "--clear-groups")
NAMES = ["$(touch owned)", "`id`;'\"\\", "two\nlines\x1e\x1f|", "日本語 🙂"]


async def test_names_that_users_chose_are_read_and_never_run(slurm_lab: SlurmLab) -> None:
    submitted = [
        slurm_lab.submit("vision", f"--job-name={name}", f"--comment={name}", "--hold") for name in NAMES
    ]
    found = {job.id: job for job in (await CommandController(slurm_lab.conf).jobs()).jobs}
    assert [found[number].name for number in submitted] == NAMES
    assert [found[number].comment for number in submitted] == NAMES
    assert not list(slurm_lab.layout.folder.rglob("owned"))


def test_ends_are_read_as_accounting_prints_them() -> None:
    own = "1795878420|vision|games|gpu|normal|1"
    held = "billing=2,cpu=2,gres/gpu=1,mem=200M,node=1|billing=2,cpu=1"
    printed = f"""\
93|93|CANCELLED by 0|None|1795878429|{own}||billing=2,cpu=1
94_1|97|COMPLETED|1795878425|1795878426|{own}|{held}
94_[0,2]|94|CANCELLED by 0|None|1795878429|{own}||cpu=1
95+0|95|TIMEOUT|1795878425|1795878426|{own}|{held}
95+1|96|TIMEOUT|1795878425|1795878426|{own}|{held}
98|98|RUNNING|1795878425|Unknown|{own}|{held}
"""
    started, ended = 1795878425 * SECOND, 1795878426 * SECOND
    found = ended_jobs(printed)
    assert [(job.id, job.state, job.started, job.ends) for job in found] == [
        ("93", "CANCELLED", None, 1795878429 * SECOND),
        ("94_1", "COMPLETED", started, ended),
        ("95", "TIMEOUT", started, ended),
    ]
    assert [job.resources["cpu"] for job in found] == [1000, 2000, 4000]
    assert (found[1].account, found[1].user, found[1].partitions) == ("vision", "games", ("gpu",))
    with pytest.raises(UnreadableError):
        ended_jobs("93|93\n")
    line = f"93|93|FAILED|{started // SECOND}|{ended // SECOND}|{own}|{held}|sbatch --comment=fairlead=tune digest=dd x"
    forged = [line.replace("|93|", "|x|"), line.replace("cpu=2", "cpu=x"), line.replace("93|93", "x+1|93")]
    assert [job.id for job in submitted_jobs("\n".join([*forged, line]))] == ["93"]


@pytest.mark.skipif(os.geteuid() != 0, reason="accounting needs root")
async def test_accounting_knows_how_jobs_ended(slurm_lab: SlurmLab) -> None:
    controller = CommandController(slurm_lab.conf)
    array, waits = slurm_lab.submit("vision", "--array=3-4", seconds=0), slurm_lab.submit("vision", "--hold")
    told = ("sacct", "-n", "-X", "-o", "state", "-j", array)
    slurm_lab.until(lambda: slurm_lab.run(*told).count("COMPLETED") == 2, "slurmdbd has heard of both")
    found = await controller.ended(["tune", array, waits])
    assert [(one.array, one.task, one.state) for one in found] == [
        (int(array), task, "COMPLETED") for task in (3, 4)
    ]
    assert (found[0].account, found[0].resources["node"]) == ("vision", 1000)
    times = [found[0].submitted, *(job.ends for job in found if job.ends is not None)]
    between = await controller.ended_between(min(times), max(times))
    assert [job in between for job in found] == [True, True]
    assert waits not in {job.id for job in between}
    comment = f"--comment=fairlead=tune digest={'d' * 16}"
    made = slurm_lab.submit("vision", "--job-name=tune", comment, seconds=0)
    slurm_lab.submit("vision", "--job-name=tune", "--comment=a\n1|2|3", seconds=0)

    async def marked() -> list[SlurmJob]:
        return await controller.ended_of("vision", ["other", "tune"], min(times))

    assert [(one.id, one.comment) for one in await eventually(marked, 60)] == [(made, comment[10:])]
    assert await controller.ended_of("speech", ["tune"], min(times)) == []
    before = await controller.ended_between(min(times) - MINUTE, min(times) - SECOND)
    assert not {job.array for job in before} & {int(array), int(waits)}, (
        "only what other tests of the lab left"
    )


async def test_levels_arrive_and_each_refusal_names_its_job(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    controller = CommandController(slurm_lab.conf)
    room = "--gres=gpu:8"
    for _ in range(4):
        slurm_lab.submit("robots", room)
    single = slurm_lab.submit("vision", room)
    array = slurm_lab.submit("speech", room, "--array=1-20")
    factors = [(single, 50_000), (f"{array}_3", 40_000), ("4000000", 40_000), (f"{array}_99", 1)]
    refused = await controller.set_site_factors(factors)
    assert refused.keys() == {"4000000", f"{array}_99"}
    found = {job.id: job for job in (await controller.jobs()).jobs}
    assert found[single].priority // 10_000 == 5
    assert found[f"{array}_3"].priority // 10_000 == 4
    assert found[f"{array}_4"].priority < 10_000
    assert (await controller.cancel([single, "4000000"])).keys() == {"4000000"}
    half_written = tmp_path / "slurm.conf"
    half_written.write_text("NodeName=\n")
    assert (await CommandController(half_written).cancel([single])).keys() == {single}


async def test_a_job_that_has_ended_meanwhile_is_not_put_back(slurm_lab: SlurmLab) -> None:
    job = slurm_lab.submit("vision", seconds=0)
    await eventually(lambda: _state(slurm_lab, job) == "COMPLETED", 60, what="it has ended")
    await PodPartition(slurm_lab.conf, "gpu").requeue(job)
    assert _state(slurm_lab, job) == "COMPLETED"


def _state(lab: SlurmLab, job: str) -> str:
    return lab.run("squeue", "-h", "-j", job, "--states=all", "-o", "%T").strip()


async def test_a_script_that_slurmctld_does_not_give_is_not_an_empty_one(slurm_lab: SlurmLab) -> None:
    jobs = PodPartition(slurm_lab.conf, "gpu")
    assert "sleep" in await jobs.script(int(slurm_lab.submit("vision", "--hold")))
    with pytest.raises(CommandFailedError, match="Invalid job id"):
        await jobs.script(4_000_000)


async def test_what_is_no_id_goes_nowhere(slurm_lab: SlurmLab) -> None:
    with pytest.raises(NotAnIdError):
        await CommandController(slurm_lab.conf).cancel(["--state=PENDING"])


async def test_a_paused_slurmctld_is_unreachable_and_comes_back(slurm_lab: SlurmLab) -> None:
    controller = CommandController(slurm_lab.conf, seconds=1.0)
    slurmctld = slurm_lab.process("slurmctld")
    await asyncio.to_thread(slurmctld.pause)
    try:
        with pytest.raises(SlurmUnreachableError):
            await controller.jobs()
    finally:
        slurmctld.resume()
    assert (await CommandController(slurm_lab.conf).jobs()).unreadable == 0


async def test_a_slurmctld_that_dies_while_it_is_asked_is_unreachable(
    slurm_lab: SlurmLab, tmp_path: Path
) -> None:
    """The kernel resets a killed process's connections; scontrol then writes no script, and ends with 0."""
    async with await asyncio.start_server(_reset, "127.0.0.1", 0) as dying:
        port = dying.sockets[0].getsockname()[1]
        conf = tmp_path / "slurm.conf"
        text = slurm_lab.conf.read_text()
        conf.write_text(re.sub(r"^SlurmctldPort=.*$", f"SlurmctldPort={port}", text, flags=re.MULTILINE))
        with pytest.raises(SlurmUnreachableError, match=r"reset by peer|Zero Bytes"):
            await CommandController(conf).jobs()
        with pytest.raises(SlurmUnreachableError, match=r"reset by peer|Zero Bytes"):
            await PodPartition(conf, "gpu").script(1)


async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_the_cluster_is_read(slurm_lab: SlurmLab) -> None:
    controller = CommandController(slurm_lab.conf)
    nodes = await controller.nodes()
    assert [node.name for node in nodes] == ["n1", "n2", "n3", "n4"]
    assert nodes[0].resources["gres/gpu"] == 8000
    assert [partition.name for partition in await controller.partitions()] == ["gpu"]
    settings = await controller.settings()
    assert (settings.cluster, settings.own_priority) == ("lab", 3500)
    if SlurmOptions().accounting:
        accounts = await controller.accounts()
        assert {"research", "vision", "robots"} <= set(accounts)
        assert "root" not in accounts


async def test_many_levels_are_written_by_several_at_a_time_and_refusals_are_of_their_jobs(
    slurm_lab: SlurmLab,
) -> None:
    for _ in range(4):
        slurm_lab.submit("robots", "--gres=gpu:8")
    array = slurm_lab.submit("vision", "--gres=gpu:8", "--array=1-120")
    wanted = {f"{array}_{task}": 10_000 * task for task in range(1, 121)}
    gone = ["999999", "999998"]
    controller = CommandController(slurm_lab.conf)
    refused = await controller.set_site_factors([*wanted.items(), *((job, 7) for job in gone), ("999997", 8)])
    assert set(refused) == {*gone, "999997"}
    jobs = [job for job in (await controller.jobs()).jobs if job.array == int(array)]
    assert {job.task: job.priority // 10_000 for job in jobs} == {task: task for task in range(1, 121)}
    with pytest.raises(SlurmUnreachableError):
        await CommandController(slurm_lab.conf, seconds=0.001).set_site_factors(list(wanted.items()))


@pytest.fixture
def operating(slurm_lab: SlurmLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmLab:
    """Slurm's programs run as the lab's operator; only the licence was made by an administrator."""
    which = ("name=token", "server=fairlead", "servertype=fairlead", "type=license")
    slurm_lab.run(
        "sacctmgr", "-i", "add", "resource", *which, "count=0", f"cluster={CLUSTER}", "percentallowed=100"
    )
    for name in ("squeue", "scontrol", "scancel", "sacctmgr"):
        wrapper = tmp_path / name
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(AS_OPERATOR)} {shutil.which(name)} "$@"\n')
        wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return slurm_lab


@pytest.mark.skipif(os.geteuid() != 0, reason="other users' words need root")
async def test_all_that_the_bridge_does_an_operator_may(operating: SlurmLab) -> None:
    lab = operating
    controller, jobs = CommandController(lab.conf), PodPartition(lab.conf, "gpu")
    held, running = (lab.submit("vision", *words, user=PEOPLE["vision"]) for words in (["--hold"], []))
    await eventually(lambda: _state(lab, running) == "RUNNING", 60, what="one runs")
    assert await controller.nodes()
    assert await controller.partitions()
    assert "vision" in await controller.accounts()
    assert (await controller.settings()).cluster
    assert await controller.set_site_factors([(held, 77)]) == {}
    assert {held, running} <= {job.id for job in (await controller.jobs()).jobs}
    assert "sleep" in await jobs.script(int(running))
    await jobs.requeue(running)
    await eventually(lambda: _state(lab, running) == "PENDING", 60, what="it has gone back")
    await asyncio.sleep(1)  # in the second in which its node was told its end, slurmd refuses it

    async def runs_again() -> bool:
        await jobs.wake([running])  # what is said while it goes back Slurm overwrites
        return _state(lab, running) == "RUNNING"

    await eventually(runs_again, 60, what="it does not wait for two minutes")
    await jobs.cancel(int(running))
    assert await controller.cancel([held]) == {}
    await eventually(lambda: _state(lab, running) == "CANCELLED", 60, what="it is cancelled")
    tokens = AccountedLicence(lab.conf, LicenceName.read("token@fairlead"))
    await tokens.set_total(5)
    assert await tokens.now() is not None
    with pytest.raises(CommandFailedError, match=r"Invalid user|denied"):
        await PodPartition(lab.conf, "gpu").resume(["n1"])


@pytest.mark.skipif(os.geteuid() != 0, reason="other users' words need root")
def test_an_operator_may_not_touch_nodes_and_a_user_sets_no_level(slurm_lab: SlurmLab) -> None:
    job = slurm_lab.submit("vision", "--hold")
    for refused, user in (
        (("scontrol", "update", f"jobid={job}", "sitefactor=77"), PEOPLE["vision"]),
        (("scontrol", "update", "nodename=n1", "state=drain", "reason=x"), OPERATOR),
    ):
        with pytest.raises(SlurmCommandError, match=r"Invalid user|denied"):
            slurm_lab.run(*refused, user=user)


async def test_a_missing_program_is_said() -> None:
    with pytest.raises(ProgramMissingError, match="no-such-program"):
        await Commands(None).run("no-such-program")


async def test_settings_of_the_person_do_not_change_what_is_read(
    slurm_lab: SlurmLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm_lab.submit("vision", "--hold")
    for name in ("SQUEUE_FORMAT", "SQUEUE_FORMAT2", "SQUEUE_STATES", "SLURM_TIME_FORMAT"):
        monkeypatch.setenv(name, "%j")
    assert "SQUEUE_FORMAT" in os.environ
    assert len((await CommandController(slurm_lab.conf).jobs()).jobs) >= 1


async def test_where_no_munge_runs_a_token_says_who_asks(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    text = re.sub(r"socket=[^,\s]+", "socket=/nonexistent", slurm_lab.conf.read_text())
    assert "/nonexistent" in text
    conf.write_text(text)
    job, token = slurm_lab.submit("vision", "--hold"), tmp_path / "token"
    controller = CommandController(conf, token=SlurmToken(token))
    with pytest.raises(SlurmUnreachableError, match="no token"):
        await controller.jobs()
    given = slurm_lab.run("scontrol", "token", f"username={OPERATOR}", "lifespan=600")
    token.touch(mode=0o600)
    token.write_text(given.strip().removeprefix("SLURM_JWT="))
    assert job in {found.id for found in (await controller.jobs()).jobs}
    assert await controller.set_site_factors([(job, 77)]) == {}
    token.write_text("not.a.token")
    with pytest.raises(SlurmUnreachableError):
        await controller.jobs()
