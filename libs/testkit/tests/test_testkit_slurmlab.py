"""The Slurm lab: what it has, who may use it, and that nothing of it is left behind."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fairlead_testkit.labs.processes import born
from fairlead_testkit.slurmlab import (
    PEOPLE,
    SlurmCommandError,
    SlurmLab,
    SlurmMissingError,
    SlurmOptions,
    packages,
)
from fairlead_testkit.slurmlab.console import SlurmConsole
from fairlead_testkit.timing.awaiting import until

pytestmark = pytest.mark.slurm
ROOT = os.geteuid() == 0


def test_jobs_with_gpus_run_and_wait_and_are_cleared_away(slurm_lab: SlurmLab) -> None:
    running = slurm_lab.fill("vision")
    waiting = slurm_lab.submit("speech", "--gres=gpu:8", "--nodes=1")
    assert set(slurm_lab.jobs("%i|%a|%T")) == {
        *(f"{number}|vision|RUNNING" for number in running),
        f"{waiting}|speech|PENDING",
    }
    slurm_lab.clear()
    assert slurm_lab.jobs() == []


@pytest.mark.skipif(not ROOT, reason="a lab of a plain user has no accounts of its own")
def test_plain_users_submit_for_their_own_account_alone(slurm_lab: SlurmLab) -> None:
    for account, person in PEOPLE.items():
        slurm_lab.submit(account, user=person)
    assert sorted(slurm_lab.jobs("%a %u")) == sorted(
        f"{account} {person}" for account, person in PEOPLE.items()
    )
    with pytest.raises(SlurmCommandError, match="Invalid account"):
        slurm_lab.submit("vision", user=PEOPLE["robots"])


def test_an_open_scontrol_tells_jobs_and_nodes_as_they_are_now(slurm_lab: SlurmLab) -> None:
    with SlurmConsole(slurm_lab) as console:
        assert not [line for line in console.jobs() if "PENDING JobHeld" in line]
        assert not [line for line in console.nodes() if "DRAIN" in line or "DOWN" in line]
        held = slurm_lab.submit("vision", "--hold")
        slurm_lab.run("scontrol", "update", "nodename=n1", "state=drain", "reason=Duplicate jobid")
        try:
            assert f"{held} PENDING JobHeldUser" in console.jobs()
            [drained] = [line for line in console.nodes() if "DRAIN" in line]
            assert drained.startswith("n1 IDLE+DRAIN Duplicate jobid")
        finally:
            slurm_lab.run("scontrol", "update", "nodename=n1", "state=resume")
        slurm_lab.clear()
        assert f"{held} CANCELLED JobHeldUser" in console.jobs()


def test_nothing_of_a_lab_is_left_behind() -> None:
    lab = SlurmLab(SlurmOptions(accounting=False, nodes=1))
    lab.start()
    lab.submit("vision", seconds=4242.75)
    lab.until(lambda: lab.jobs("%i", "--states=RUNNING"), "the job runs")
    pids = [*lab.pids().values(), *_sleepers("4242.75")]
    assert len(pids) == 4  # munged, slurmctld, one slurmd, the job
    lab.stop()
    until(lambda: not any(born(pid) for pid in pids), 20, "all processes end")
    assert not lab.layout.folder.exists()


def test_what_is_missing_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", "false")
    monkeypatch.setattr(packages, "_SYSTEM_FOLDERS", str(tmp_path))
    with pytest.raises(SlurmMissingError, match=r"apt-get install .* munge slurm-wlm$"):
        packages.ensure(accounting=False)


@pytest.mark.timeout(300)
def test_the_detached_lab_stays_until_it_is_told_to_end(
    slurm_programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del slurm_programs
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # munged insists on folders that others can pass through, which a test's own is not.
    open_folder = Path(tempfile.mkdtemp(prefix="slurmlab-"))
    open_folder.chmod(0o711)
    monkeypatch.setenv("TMPDIR", str(open_folder))

    def command_line(word: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "fairlead_testkit.slurmlab", word]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout

    assert command_line("down") == (0, "No Slurm lab is up.\n")
    try:
        code, said = command_line("up")
        assert code == 0
        [line] = [line for line in said.splitlines() if "export SLURM_CONF=" in line]
        conf = line.partition("=")[2]
        asked = subprocess.run(
            [packages.program("sinfo"), "-h", "-o", "%D %T"],
            env=os.environ | {"SLURM_CONF": conf},
            capture_output=True,
            text=True,
            check=True,
        )
        assert asked.stdout == "4 idle\n"
        assert "is up already" in command_line("up")[1]
    finally:
        assert command_line("down") == (0, "The Slurm lab has ended; nothing of it runs.\n")
        shutil.rmtree(open_folder)
    assert command_line("status")[0] == 1


@pytest.mark.skipif(not ROOT, reason="any run of a plain user shows it")
@pytest.mark.timeout(300)
def test_a_plain_user_gets_the_smaller_lab(slurm_programs: None, tmp_path: Path) -> None:
    """The plain user is one in a namespace where root's files are that user's own; CI has no other who may read them."""
    del slurm_programs
    user = pwd.getpwnam(PEOPLE["vision"])
    plain = ["unshare", "--user", f"--map-user={user.pw_uid}", f"--map-group={user.pw_gid}"]
    if subprocess.run([*plain, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody make user namespaces")
    open_folder = Path(tempfile.mkdtemp(prefix="slurmlab-"))
    open_folder.chmod(0o711)
    environ = os.environ | {
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "TMPDIR": str(open_folder),
    }

    def ran(*command: str, **more: str) -> str:
        words = [*plain, *command]
        return subprocess.run(words, env=environ | more, capture_output=True, text=True, check=True).stdout

    lab = (sys.executable, "-m", "fairlead_testkit.slurmlab")
    try:
        said = ran(*lab, "up")
        assert "none: that needs root" in said
        [line] = [line for line in said.splitlines() if "export SLURM_CONF=" in line]
        conf = line.partition("=")[2]
        ran(
            "sbatch",
            "--account=anything",
            "--gres=gpu:8",
            "--output=/dev/null",
            "--wrap=sleep 60",
            SLURM_CONF=conf,
        )
        until(
            lambda: (
                ran("squeue", "-h", "-o", "%a %u %T", SLURM_CONF=conf) == f"anything {user.pw_name} RUNNING\n"
            ),
            30,
            "the job runs",
        )
    finally:
        assert ran(*lab, "down") == "The Slurm lab has ended; nothing of it runs.\n"
        shutil.rmtree(open_folder)


def _sleepers(seconds: str) -> list[int]:
    found: list[int] = []
    deadline = time.monotonic() + 20
    while not found and time.monotonic() < deadline:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", seconds.encode()]:
                found.append(int(folder.name))
    return found
