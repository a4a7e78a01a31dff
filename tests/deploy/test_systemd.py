"""The units for a slurmctld's host: systemd takes them, and the settings beside them are the services' own."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_admitter.settings import AdmitterSettings
from fairlead_runtime.settings import ServiceSettings
from fairlead_runtime.sources import load_settings
from fairlead_scorer.settings import ScorerSettings
from fairlead_slurm_bridge.settings import SlurmBridgeSettings

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
ROOTS = "fairlead-slurm-submitting.service"
"""The only one that runs as root."""
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
SETTINGS: dict[str, type[ServiceSettings]] = {
    "slurm-bridge.env": SlurmBridgeSettings,
    "admitter.env": AdmitterSettings,
    "scorer.env": ScorerSettings,
}


def directives(unit: str) -> dict[str, str]:
    lines = (FOLDER / unit).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def environ(name: str) -> dict[str, str]:
    lines = (FOLDER / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and line[0] != "#")


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_takes_the_unit(unit: str, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None and os.environ.get("CI") != "true":
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    assert analyze is not None, "systemd-analyze is missing: apt-get install systemd"
    # Where it is installed is the site's choice: a program has to be there for systemd to take the unit.
    here = (FOLDER / unit).read_text().replace("/opt/fairlead/bin/python", sys.executable)
    (tmp_path / unit).write_text(here)
    said = subprocess.run(
        [analyze, "verify", "--man=no", str(tmp_path / unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_runs_a_service_of_ours_without_rights_of_the_machine(unit: str) -> None:
    found = directives(unit)
    module = re.match(r"/opt/fairlead/bin/python -m ([\w.]+)", found["ExecStart"])
    assert module is not None
    assert importlib.util.find_spec(f"{module[1]}.__main__") is not None
    if unit == ROOTS:
        return
    assert found["User"] == "fairlead"
    assert found["CapabilityBoundingSet"] == ""
    assert (found["NoNewPrivileges"], found["ProtectSystem"]) == ("yes", "strict")
    assert Path(found["EnvironmentFile"]).name in SETTINGS


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_are_those_of_the_service(name: str) -> None:
    given = environ(name)
    settings = load_settings(SETTINGS[name], environ=given)
    fields = {f"FAIRLEAD_{field.upper()}" for field in SETTINGS[name].__struct_fields__}
    assert given.keys() <= fields
    assert getattr(settings, "cluster", "hpc") == "hpc"
    if isinstance(settings, SlurmBridgeSettings):
        state = directives("fairlead-slurm-bridge.service")["StateDirectory"]
        assert Path(settings.store).parent == Path("/var/lib") / state, "the one folder that it may write to"


def test_services_of_one_host_have_ports_of_their_own() -> None:
    ports = [environ(name).get("FAIRLEAD_HEALTH_PORT") for name in ("slurm-bridge.env", "admitter.env")]
    scorer = directives("fairlead-scorer@.service")["ExecStart"]
    assert scorer.endswith(" --health-port 808%i")
    assert ports == ["8081", "8084"]  # and scorers 2 and 3, as docs/production.md has it


def test_the_helper_that_submits_may_become_others_and_nothing_else() -> None:
    found = directives(ROOTS)
    assert set(found["CapabilityBoundingSet"].split()) == {"CAP_SETUID", "CAP_SETGID"}
    assert (found["NoNewPrivileges"], found["ProtectSystem"]) == ("yes", "strict")
    assert "--allow fairlead" in found["ExecStart"]
    socket = re.search(r"--socket (\S+)", found["ExecStart"])
    assert socket is not None
    assert f"FAIRLEAD_SUBMIT_SOCKET={socket[1]}\n" in (FOLDER / "slurm-bridge.env").read_text()
