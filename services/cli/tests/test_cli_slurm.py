"""Slurm from a person's seat: which cluster a slurm.conf is of, what is found in its settings, and `up`."""

import asyncio
import base64
import json
import os
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bus
from fairlead_cli.client import leave
from fairlead_cli.errors import ClusterError, InputError
from fairlead_cli.findings import Severity
from fairlead_cli.local.examining import examined_slurm
from fairlead_cli.slurm.clusters import SlurmTarget, target
from fairlead_cli.slurm.examining import check, examine, weigh
from fairlead_cli.slurm.flags import SlurmCheckFlags
from fairlead_cli.slurm.survey import RestLook, SlurmSurvey, take, tiers_on_nodes
from fairlead_slurm.cluster import SlurmSettings, reservations
from fairlead_testkit.fleets.slurm_fleet import slurm_order
from fairlead_testkit.inputs.slurm_builders import a_node, a_partition, some_settings
from fairlead_testkit.processes.command import LocalInstance, fairlead
from fairlead_testkit.pytest_plugin.slurmlab_fixtures import SlurmLabFactory
from fairlead_testkit.slurmlab import OPERATOR, PEOPLE, SlurmCommandError, SlurmLab, SlurmOptions
from fairlead_testkit.telemetry import image_registry
from fairlead_testkit.timing.awaiting import eventually

PRINTED = """\
ReservationName=r1 StartTime=1700000000 EndTime=1700003600 Duration=01:00:00 Nodes=n[1-2] NodeCnt=2 Users=games
ReservationName=licences StartTime=1700000000 EndTime=1700003600 Nodes=(null) NodeCnt=0 Licenses=a:1
"""
RESERVED = reservations(PRINTED)
FIT = SlurmSurvey(
    settings=some_settings(Age=1000), waiting=40, held_by_admin=0, user="fairlead", administration="Operator"
)
AT = "http://127.0.0.1:6820"
ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


def test_a_cluster_is_called_as_its_slurm_conf_says(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("# ClusterName=no\nclustername = first # or so\nClusterName=second\nSlurmUser=slurm\n")
    assert target(conf).cluster == "second"
    conf.write_text("SlurmUser=slurm\n")
    with pytest.raises(InputError, match="no ClusterName"):
        target(conf)
    with pytest.raises(InputError, match="cannot be read"):
        target(tmp_path / "missing")
    with pytest.raises(
        InputError, match=r"^--slurm-conf: [.] is a directory, and not a slurm.conf$"
    ) as empty:
        target(Path())
    assert "is SLURM_CONF set?" in empty.value.hint


def test_a_fit_cluster_has_no_finding_but_what_was_looked_at() -> None:
    found = examine(FIT)
    assert {one.severity for one in found} == {Severity.OK}
    [weights] = [one for one in found if one.name == "priority-weights"]
    assert "Age 1000" in weights.what


def changed(**changes: object) -> SlurmSurvey:
    """The fit cluster but for these, of its settings or of the survey."""
    known = {name: value for name, value in changes.items() if name in SlurmSettings.__struct_fields__}
    rest = {name: value for name, value in changes.items() if name not in known}
    settings = msgspec.structs.replace(FIT.settings, **known)
    return msgspec.structs.replace(FIT, settings=settings, **rest)


@pytest.mark.parametrize(
    ("changes", "name", "severity", "words"),
    [
        ({"priority_type": "priority/basic"}, "priority-type", ERROR, "priority/basic"),
        (
            {"weights": {"Age": 1_000_000, "FairShare": 2_000_000}},
            "priority-weights",
            ERROR,
            "FairShare 2000000",
        ),
        ({"weights": {"Age": 1_500_000}}, "priority-weights", ERROR, "room for 213 levels"),
        (
            {"priority_flags": ("NO_NORMAL_QOS", "FAIR_TREE")},
            "priority-flags",
            ERROR,
            "PriorityFlags has NO_NORMAL_QOS.",
        ),
        ({"administration": "None"}, "rights", ERROR, "fairlead has AdminLevel None"),
        ({"administration": ""}, "rights", ERROR, "not known to accounting"),
        ({"administration": "", "has_accounting": False}, "rights", ERROR, "there is no slurmdbd"),
        ({"administration": None}, "rights", WARNING, "could not be looked up"),
        ({"version": "21.08.8"}, "version", WARNING, "21.08.8"),
        ({"version": ""}, "version", WARNING, "unknown"),
        ({"preempt_type": "preempt/qos"}, "preemption", WARNING, "wherever it stands in the order"),
        ({"waiting": 501}, "backfill-depth", WARNING, "the first 500"),
        ({"waiting": 40, "scheduler": {"bf_max_job_test": "39"}}, "backfill-depth", WARNING, "the first 39"),
        ({"waiting": 101}, "queue-depth", INFO, "the first 100"),
        ({"scheduler": {"bf_interval": "31"}}, "interval", WARNING, "every 31 s"),
        ({"scheduler": {"sched_interval": "-1"}}, "interval", WARNING, "never"),
        ({"enforced": ("none",)}, "associations", WARNING, "whatever a job says"),
        ({"enforced": ()}, "associations", WARNING, "whatever a job says"),
        ({"held_by_admin": 2}, "held", INFO, "2 jobs are held"),
        ({"tiers": {"gpu": ("hi",), "hi": ("gpu",)}}, "tiers", INFO, "several tiers: gpu, hi"),
        (
            {"reservations": RESERVED},
            "reservations",
            INFO,
            "r1 (n[1-2], 2023-11-14 22:13 to 2023-11-14 23:13 UTC)",
        ),
        (
            {"rest": RestLook(address=AT, trouble="connection refused")},
            "slurmrestd",
            ERROR,
            "connection refused",
        ),
        ({"rest": RestLook(address=AT, reads="v0.0.38", seconds=1.84)}, "slurmrestd", WARNING, "takes 1.8 s"),
        ({"rest": RestLook(address=AT, reads="v0.0.38", tasks_cut=True)}, "slurmrestd", INFO, "all tasks"),
    ],
)
def test_what_is_missing_or_dangerous_is_found(
    changes: dict[str, object], name: str, severity: Severity, words: str
) -> None:
    found = [one for one in examine(changed(**changes)) if one.severity is not Severity.OK]
    [finding] = [one for one in found if one.name == name]
    assert finding.severity is severity
    assert words in f"{finding.what} {finding.why}"
    assert finding.why
    assert finding.mend


def test_tiers_that_share_nodes_are_found_and_others_are_not() -> None:
    partitions = [
        a_partition("gpu"),
        a_partition("hi", tier=10),
        a_partition("long"),
        a_partition("own", tier=5),
    ]
    nodes = [a_node("n1", "gpu", "hi"), a_node("n2", "gpu", "long"), a_node("n3", "own")]
    assert tiers_on_nodes(partitions, nodes) == {"gpu": ("hi",), "hi": ("gpu",)}


@pytest.mark.parametrize(
    "changes",
    [
        {"waiting": 100},
        {"scheduler": {"bf_interval": "30", "sched_interval": "60", "bf_max_job_test": "many"}},
        {"waiting": 5000, "scheduler": {"bf_max_job_test": "5000", "default_queue_depth": "5000"}},
        {"user": "slurm", "administration": ""},
        {"user": "root", "administration": "", "has_accounting": False},
        {"weights": {"Age": 999_000}},
        {"version": "25.11.0-0rc1"},
        {"rest": RestLook(address=AT, reads="v0.0.38", seconds=0.02)},
    ],
)
def test_what_is_fine_is_not_found(changes: dict[str, object]) -> None:
    assert {one.severity for one in examine(changed(**changes))} == {Severity.OK}


def test_the_worst_finding_stands_first_and_decides() -> None:
    fine = weigh(FIT)
    assert (fine.passed, fine.exit_code) == (True, 0)
    known = weigh(changed(held_by_admin=1))
    assert (known.passed, known.exit_code) == (True, 0)
    warned = weigh(changed(waiting=501, scheduler={"bf_interval": "31"}))
    assert (warned.passed, warned.exit_code) == (True, 1)
    assert [one.severity for one in warned.findings[:3]] == [WARNING, WARNING, INFO]
    failed = weigh(changed(administration="None", enforced=()))
    assert (failed.passed, failed.exit_code) == (False, 2)
    assert [one.severity for one in failed.findings[:2]] == [ERROR, WARNING]


async def test_who_cannot_look_says_so(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("nonsense\n")
    with pytest.raises(ClusterError):
        await take(conf, "root")


GOOD = "#!/bin/sh\n#SBATCH --partition=gpu --account=vision --gres=gpu:h100:8 --cpus-per-task=16\n#SBATCH --time=1-2 --mem=64000\nsleep 1\n"


def validated(conf: Path, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`fairlead slurm validate` in a process of its own."""
    return said(conf, "validate", str(script), *words)


def test_without_slurmctld_the_form_alone_is_looked_at(tmp_path: Path) -> None:
    script, missing = tmp_path / "job.sh", tmp_path / "slurm.conf"
    script.write_text(GOOD)
    passed = validated(missing, script)
    assert passed.returncode == 0
    assert "only its form was checked" in passed.stdout
    script.write_text(GOOD.replace("--mem", "--mme"))
    refused = validated(missing, script, "--output", "json")
    assert refused.returncode == 1
    verdict = msgspec.json.decode(refused.stdout)
    assert (verdict["refused"], verdict["cluster"]) == (True, None)
    [remark] = verdict["remarks"]
    assert (remark["line"], remark["mend"]) == (3, "Did you mean --mem?")
    assert validated(missing, tmp_path / "none.sh").returncode == 2


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("--partition=gpu", "--partition=cpu"),
        ("gpu:h100:8", "gpu:h100:9"),
        ("gpu:h100:8", "gpu:a100:1"),
        ("--cpus-per-task=16", "--cpus-per-task=17"),
        ("--mem=64000", "--mem=64001"),
        ("--mem=64000", "--nodes=5"),
        ("--mem=64000", "--ntasks=5"),
        ("--gres=gpu:h100:8", "--gpus=33"),
        ("--time", "--tme"),
        pytest.param(
            "--account=vision",
            "--account=visoin",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="accounting needs root"),
        ),
    ],
)
def test_a_real_sbatch_says_the_same(slurm_lab: SlurmLab, tmp_path: Path, old: str, new: str) -> None:
    script = tmp_path / "job.sh"
    script.write_text(GOOD.replace(old, new))
    found = validated(slurm_lab.conf, script)
    assert "checked against cluster lab" in found.stdout
    try:
        slurm_lab.run("sbatch", "--test-only", given=script.read_text())
        taken = True
    except SlurmCommandError:
        taken = False
    assert taken == (not new)
    assert found.returncode == (0 if taken else 1), found.stdout


@pytest.mark.slurm
def test_a_real_registry_is_asked_for_the_image_of_a_pod(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    image_registry.ensure_image_registry()
    script, known = tmp_path / "job.sh", tmp_path / "config.json"
    with image_registry.image_registry(tmp_path, behind="words") as registry:
        registry.push("team/train", "3")
        script.write_text(f"#!/bin/sh\n#SBATCH --comment=image={registry.host}/team/train:3\ntrue\n")
        word = base64.b64encode(f"{image_registry.USER}:{image_registry.WORD}".encode()).decode()
        known.write_text(msgspec.json.encode({"auths": {registry.host: {"auth": word}}}).decode())
        words = ("--pods-partition=gpu", f"--registry-auth={known}", "--images=strict")
        assert validated(slurm_lab.conf, script, *words).returncode == 0
        assert "image" not in validated(slurm_lab.conf, script).stdout  # nothing says that its jobs are pods
        script.write_text(script.read_text().replace("train:3", "train:4"))
        missing = validated(slurm_lab.conf, script, *words)
        assert missing.returncode == 1, missing.stdout
        assert f"job.sh:2: refused: image {registry.host}/team/train:4 is not there" in missing.stdout
        assert "warning: image" in validated(slurm_lab.conf, script, *words[:2], "--images=warn").stdout
    away = validated(slurm_lab.conf, script, "--pods-partition=gpu")
    assert away.returncode == 0
    assert "warning: whether the image is there is not known" in away.stdout
    assert validated(slurm_lab.conf, script, *words).returncode == 1


def checked(conf: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`fairlead slurm check` in a process of its own."""
    return said(conf, "check", *words)


def said(conf: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`fairlead slurm` in a process of its own."""
    return fairlead("slurm", *words, environ=os.environ | {"SLURM_CONF": str(conf)})


@pytest.mark.slurm
def test_a_real_slurm_is_checked(slurm_lab: SlurmLab) -> None:
    slurm_lab.run("scontrol", "hold", slurm_lab.submit("vision", "--begin=now+1hour"))
    passed = checked(slurm_lab.conf, "--output", "json")
    report = msgspec.json.decode(passed.stdout)
    assert (report["cluster"], report["passed"]) == ("lab", True)
    found = {one["name"]: one["severity"] for one in report["findings"]}
    with_accounting = SlurmOptions().accounting
    assert found.pop("held") == "info"  # by root, or by SlurmUser
    assert found.pop("associations") == ("ok" if with_accounting else "warning")
    assert set(found.values()) == {"ok"}
    assert passed.returncode == report["exit_code"] == (0 if with_accounting else 1)
    stranger = checked(slurm_lab.conf, "--user", "nobody", "--output", "name")
    assert stranger.returncode == 2
    assert stranger.stdout.startswith("rights\n")
    if with_accounting:
        assert checked(slurm_lab.conf, "--user", OPERATOR).returncode == 0
        refused = checked(slurm_lab.conf, "--user", PEOPLE["vision"])
        assert refused.returncode == 2
        assert f"{PEOPLE['vision']} has AdminLevel None" in refused.stdout


@pytest.mark.slurm
def test_where_no_munge_runs_a_token_says_who_looks(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    conf, token = tmp_path / "slurm.conf", tmp_path / "token"
    conf.write_text(re.sub(r"socket=[^,\s]+", "socket=/nonexistent", slurm_lab.conf.read_text()))
    given = slurm_lab.run("scontrol", "token", f"username={OPERATOR}", "lifespan=600")
    token.write_text(given.strip().removeprefix("SLURM_JWT="))
    looked = checked(conf, "--user", OPERATOR, "--slurm-token", str(token))
    assert "cluster lab: Slurm" in looked.stdout, looked.stderr
    assert checked(conf, "--user", OPERATOR).returncode == 3


@pytest.mark.slurm
async def test_a_start_does_not_give_leave_that_somebody_took_back(
    slurm_lab: SlurmLab, nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [SlurmTarget(cluster="hpc", conf=slurm_lab.conf)]
    async with examined_slurm(found, bus, dry_run=False, end=asyncio.Event()):
        pass
    assert await leave.standing(bus, "hpc") is not None
    assert "leave is taken back" in await leave.take_back(bus, "hpc", by="ann")
    async with examined_slurm(found, bus, dry_run=False, end=asyncio.Event()):
        pass
    assert await leave.standing(bus, "hpc") is None
    assert "hpc: leave was taken back by ann" in capsys.readouterr().err
    flags = SlurmCheckFlags(slurm_conf=slurm_lab.conf, user=OPERATOR, cluster="hpc", by="bob")
    assert await check(flags, nats, "name") in (0, 1)
    assert await leave.standing(bus, "hpc") is not None


@pytest.mark.slurm
async def test_a_slurmctld_that_is_away_at_the_start_gets_leave_once_it_answers(
    slurm_labs: SlurmLabFactory, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = slurm_labs(SlurmOptions(accounting=False, nodes=1))
    lab.process("slurmctld").end()
    found = [SlurmTarget(cluster="hpc", conf=lab.conf)]
    async with examined_slurm(found, bus, dry_run=False, end=asyncio.Event()):
        assert "hpc: scontrol: " in capsys.readouterr().err
        assert await leave.standing(bus, "hpc") is None
        lab.process("slurmctld").start()

        async def given() -> bool:
            return await leave.standing(bus, "hpc") is not None

        await eventually(given, 60, what="leave is given once slurmctld answers")
    assert "hpc: levels may be written" in capsys.readouterr().err


@pytest.mark.slurm
@pytest.mark.timeout(240)
async def test_up_orders_a_real_slurm(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    slurm_lab.fill("spare")
    accounts = ["robots", "robots", "vision", "speech"]
    jobs = [slurm_lab.submit(account, "--gres=gpu:8", "--nodes=1") for account in accounts]
    with LocalInstance(tmp_path, "--slurm-conf", str(slurm_lab.conf), "--scorers", "1") as up:
        # The shipped policy weighs all accounts alike: the second of one account goes last.
        wanted = [jobs[0], jobs[2], jobs[3], jobs[1]]
        await eventually(lambda: slurm_order(slurm_lab) == wanted, 120, what="Slurm follows the order")
        shown = await asyncio.to_thread(up.ask, "queue", "--output", "json")
        [pool] = json.loads(shown.stdout)["pools"]
        # By the field: a short job number may stand elsewhere, too.
        assert [one["place"]["id"] for one in pool["places"] if one["place"]["id"] in wanted] == wanted
