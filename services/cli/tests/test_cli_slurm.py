"""Slurm from a person's seat: which cluster a slurm.conf is of, what is found in its settings, and `up`."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from fairlead_cli.errors import InputError
from fairlead_cli.slurm.checking import judge
from fairlead_cli.slurm.clusters import target
from fairlead_slurm import SlurmSettings
from fairlead_testkit.awaiting import eventually
from fairlead_testkit.slurm_fleet import slurm_order
from fairlead_testkit.slurmlab import SlurmLab

FIT = SlurmSettings(
    cluster="lab",
    version="22.05.8",
    priority_type="priority/multifactor",
    weights={"Age": 1000},
    preempt_type="preempt/none",
)


def test_a_cluster_is_called_as_its_slurm_conf_says(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("# ClusterName=no\nclustername = first # or so\nClusterName=second\nSlurmUser=slurm\n")
    assert target(conf).cluster == "second"
    conf.write_text("SlurmUser=slurm\n")
    with pytest.raises(InputError, match="no ClusterName"):
        target(conf)
    with pytest.raises(InputError, match="cannot be read"):
        target(tmp_path / "missing")


def test_settings_that_leave_room_have_no_finding() -> None:
    assert judge(FIT) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"priority_type": "priority/basic"}, "priority/basic"),
        ({"weights": {"Age": 1_000_000, "FairShare": 2_000_000}}, "FairShare 2000000"),
    ],
)
def test_settings_that_leave_none_are_errors(changes: dict[str, object], words: str) -> None:
    [finding] = judge(msgspec.structs.replace(FIT, **changes))
    assert finding.is_error
    assert words in finding.says


def started(command: list[str], environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """A process whose words go to a file."""
    with log.open("wb") as output:
        return subprocess.Popen(command, env=environ, stdout=output, stderr=output)


@pytest.mark.slurm
@pytest.mark.timeout(240)
async def test_up_orders_a_real_slurm(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    for _ in range(4):
        slurm_lab.submit("spare", "--gres=gpu:8", "--nodes=1")
    slurm_lab.until(lambda: len(slurm_lab.jobs("%i", "--states=RUNNING")) == 4, "the nodes are full")
    accounts = ["robots", "robots", "vision", "speech"]
    jobs = [slurm_lab.submit(account, "--gres=gpu:8", "--nodes=1") for account in accounts]
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    fairlead = [sys.executable, "-m", "fairlead_cli"]
    log = tmp_path / "up.log"
    up = started([*fairlead, "up", "--slurm-conf", str(slurm_lab.conf), "--scorers", "1"], environ, log)
    try:
        # The shipped policy weighs all accounts alike: the second of one account goes last.
        wanted = [jobs[0], jobs[2], jobs[3], jobs[1]]
        await eventually(lambda: slurm_order(slurm_lab) == wanted, 120, what="Slurm follows the order")
        asked = [*fairlead, "queue", "--output", "json"]
        shown = await asyncio.to_thread(
            subprocess.run, asked, env=environ, capture_output=True, text=True, check=True
        )
        places = [shown.stdout.index(f'"{job}"') for job in wanted]
        assert places == sorted(places)
    except BaseException:
        sys.stderr.write(log.read_text())  # pytest shows it with the failure
        raise
    finally:
        up.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(up.wait, 40) == 0, log.read_text()
