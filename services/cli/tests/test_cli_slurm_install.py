"""`fairlead slurm install`, as it is typed."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from fairlead_cli.findings import Severity
from fairlead_cli.slurm.examining import examine
from fairlead_cli.slurm.survey import SlurmSurvey
from fairlead_slurm.cluster import BACKUP_CONTROLLER
from fairlead_slurm.hooks.installing import ALLOW_NONE, NO_HOLD, asks_over_tls, pods_partition, pods_tokens
from fairlead_testkit.inputs.slurm_builders import some_settings
from fairlead_testkit.processes.command import fairlead

HOOKS = {
    "PrologSlurmctld": "/opt/hooks/prolog-slurmctld",
    "EpilogSlurmctld": "/opt/hooks/epilog-slurmctld",
    "Epilog": "/opt/hooks/epilog",
    "JobSubmitPlugins": "lua",
    "PrologEpilogTimeout": "300",
    "BatchStartTimeout": "600 sec",
    "KillWait": "60 sec",
    "RequeueExit": "75",
}


def install(*words: object) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    return fairlead("slurm", "install", *map(str, words), environ=environ)


def test_the_files_are_written_and_nothing_else(tmp_path: Path) -> None:
    folder, conf = tmp_path / "hooks", tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=hpc\nKillWait=120 # long\nRequeueExit=42\nSchedulerParameters=bf_interval=30\n"
    )
    before = conf.read_text()
    ran = install(folder, "--partition", "pods", "--slurm-conf", conf)
    assert ran.returncode == 1, ran.stderr
    assert f"PrologSlurmctld={folder}/prolog-slurmctld" in ran.stdout
    assert "RequeueExit=42,75" in ran.stdout, "the site's own codes stay"
    assert "KillWait" not in ran.stdout
    assert conf.read_text() == before
    wanted = {"prolog-slurmctld", "epilog-slurmctld", "epilog", "fairlead-gate.py", "fairlead-results.py", "fairlead.lua", "job_submit.lua", "slurm.conf.add"}  # fmt: skip
    assert {path.name for path in folder.iterdir()} == wanted
    assert os.access(folder / "epilog", os.X_OK)
    assert "SchedulerParameters=bf_interval=30,nohold_on_prolog_fail" in ran.stdout
    conf.write_text(before + (folder / "slurm.conf.add").read_text())
    again = install(folder, "--partition", "pods", "--slurm-conf", conf)
    assert again.returncode == 0, again.stdout


def test_what_the_lines_would_take_from_a_site_is_said(tmp_path: Path) -> None:
    folder, conf = tmp_path / "hooks", tmp_path / "slurm.conf"
    conf.write_text(
        "Epilog=/opt/site/epilog\nProlog=/opt/site/prolog\nJobSubmitPlugins=lua,all_partitions\n"
        "PreemptMode=GANG,SUSPEND\nPrologFlags=Alloc,Serial\nInclude nodes.conf\n"
    )
    (tmp_path / "job_submit.lua").write_text("return slurm.SUCCESS\n")
    said = install(folder, "--slurm-conf", conf).stdout
    assert f"ln -s /opt/site/epilog {folder}/epilog.site" in said
    assert "job_submit.lua beside it does not call fairlead.lua." in said
    for what in ("Prolog is /opt/site/prolog.", "PreemptMode is GANG,SUSPEND.", "PrologFlags is Alloc,Serial."):  # fmt: skip
        assert what in said
    assert "includes other files" in said
    assert "JobSubmitPlugins" not in said.partition("Before you restart")[0], "lua is there already"
    (tmp_path / "job_submit.lua").write_text((folder / "job_submit.lua").read_text())
    conf.write_text((folder / "slurm.conf.add").read_text())
    assert "Before you restart" not in install(folder, "--slurm-conf", conf).stdout


def test_what_slurm_could_not_read_is_refused(tmp_path: Path) -> None:
    for words in ((tmp_path / "a b",), (tmp_path / "hooks", "--partition", "x;y")):
        ran = install(*words)
        assert ran.returncode == 2
        assert not (tmp_path / "hooks").exists()


def survey_of(hooks: dict[str, str], *scheduler: str) -> SlurmSurvey:
    settings = msgspec.structs.replace(
        some_settings(Age=1000), hooks=hooks, scheduler=dict.fromkeys(scheduler or (NO_HOLD,), "")
    )
    return SlurmSurvey(
        settings=settings, waiting=4, held_by_admin=0, user="fairlead", administration="Operator"
    )


def found(survey: SlurmSurvey) -> list[tuple[str, Severity, str]]:
    return [(one.name, one.severity, one.subject) for one in examine(survey) if one.severity != Severity.OK]


def test_hooks_that_a_backup_controller_could_not_use_are_found() -> None:
    backup = survey_of(HOOKS | {BACKUP_CONTROLLER: "slurm2(10.0.0.2)"})
    assert found(backup) == [("hooks", Severity.WARNING, "slurm.conf/SlurmctldHost")]
    assert found(msgspec.structs.replace(backup, over_tls=True)) == []


def tokens(*, known: bool, allowed: bool) -> list[tuple[str, Severity, str]]:
    survey = survey_of(HOOKS, *((NO_HOLD, ALLOW_NONE) if allowed else (NO_HOLD,)))
    return found(msgspec.structs.replace(survey, tokens="gpus@fairlead", tokens_known=known))


def test_tokens_that_slurm_would_refuse_jobs_over_are_found() -> None:
    assert tokens(known=True, allowed=True) == []
    assert tokens(known=False, allowed=True) == [("tokens", Severity.ERROR, "licence/gpus@fairlead")]
    assert tokens(known=True, allowed=False) == [("tokens", Severity.ERROR, "slurm.conf/SchedulerParameters")]


def test_what_was_installed_is_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "hooks"
    ran = install(
        folder, "--tokens", "gpus@fairlead", "--endpoint", "a:1", "--endpoint", "b:2", "--ca", "/ca"
    )
    assert ran.returncode == 0, ran.stderr
    prolog = str(folder / "prolog-slurmctld")
    assert (pods_partition(prolog), pods_tokens(prolog)) == ("pods", "gpus@fairlead")
    assert "ENDPOINTS = ('a:1', 'b:2')" in (folder / "fairlead-gate.py").read_text()
    assert asks_over_tls(prolog)
    assert "allow_zero_lic" in (folder / "slurm.conf.add").read_text()
    assert install(folder).returncode == 0
    assert pods_tokens(prolog) is None
    assert not asks_over_tls(prolog)


def test_hooks_that_are_set_as_written_are_no_finding() -> None:
    assert found(survey_of(HOOKS)) == []
    assert found(survey_of(HOOKS, "bf_continue")) == [
        ("hooks", Severity.WARNING, "slurm.conf/SchedulerParameters")
    ]
    assert found(survey_of({})) == [], "and without our prolog nothing is asked"


@pytest.mark.parametrize(("key", "value", "name", "severity"), [
    ("EpilogSlurmctld", "", "hooks", Severity.ERROR),
    ("Epilog", "(null)", "hooks", Severity.ERROR),
    ("JobSubmitPlugins", "(null)", "hooks", Severity.ERROR),
    ("RequeueExit", "(null)", "hooks", Severity.ERROR),
    ("PrologEpilogTimeout", "65534", "hook-times", Severity.WARNING),
    ("BatchStartTimeout", "10 sec", "hook-times", Severity.WARNING),
    ("KillWait", "20 sec", "hook-times", Severity.WARNING),
    ("Prolog", "/opt/site/prolog", "hooks", Severity.INFO),
    ("PreemptMode", "GANG,SUSPEND", "hooks", Severity.WARNING),
    ("PrologFlags", "Alloc,Serial", "hooks", Severity.WARNING),
])  # fmt: skip
def test_what_is_missing_or_dangerous_is_found(key: str, value: str, name: str, severity: Severity) -> None:
    assert found(survey_of(HOOKS | {key: value})) == [(name, severity, f"slurm.conf/{key}")]
