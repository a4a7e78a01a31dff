"""deploy/kustomize on a real API server with RBAC on: every overlay, the rights of every account, and what the production
overlay makes, run as the processes that its manifests say, on three nats-servers with its accounts and TLS."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from fairlead_bus.server.program import server_program
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_testkit.free_ports import await_listening, free_ports
from fairlead_testkit.kubelab import Kit, KubeLab, LabOptions, things
from fairlead_testkit.kubelab.containers import Container, read_container

ROOT = Path(__file__).parents[2]
NAMESPACE = "fairlead"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
STEP_SECONDS = 120
OVERLAYS = ("dev", "production", "site-example", "keda")

type KubeObject = dict[str, Any]

pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(900)]


@dataclass
class Site:
    """A site that deploys: a copy of `deploy` with keys of its own, a cluster, and what it runs."""

    lab: KubeLab
    folder: Path
    nats: list[int]
    """Ports of the servers."""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def overlays(self) -> Path:
        return self.folder / "deploy" / "kustomize" / "overlays"

    @property
    def keys(self) -> Path:
        return self.overlays / "production" / "nats"

    @property
    def url(self) -> str:
        return ",".join(f"tls://127.0.0.1:{port}" for port in self.nats)

    def kubectl(self, *words: str, given: str | None = None) -> str:
        """As the cluster's admin; gives all that was printed, warnings included."""
        done = subprocess.run(
            [str(self.lab.kit.binary("kubectl")), f"--kubeconfig={self.lab.kubeconfig()}", *words],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=STEP_SECONDS,
        )
        assert done.returncode == 0, (
            f"kubectl {' '.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
        return done.stdout + done.stderr

    def built(self, overlay: str) -> str:
        return self.kubectl("kustomize", str(self.overlays / overlay))

    def apply(self, overlay: str, *more: str) -> str:
        """As the page says: the Job of the last time first, which cannot be changed."""
        self.kubectl("-n", NAMESPACE, "delete", "job", "fairlead-setup", "--ignore-not-found")
        words = ("apply", "--server-side", "--force-conflicts", *more, "-f", "-")
        return self.kubectl(*words, given=self.built(overlay))

    def fairlead(self, user: str, *words: str, code: int = 0) -> str:
        """The command, as one of NATS' users; it ends with the given code or better."""
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "FAIRLEAD_NATS_URL": self.url,
            "FAIRLEAD_NATS_NKEY_SEED": str(self.keys / "users" / f"{user}.nk"),
            "FAIRLEAD_NATS_TLS_CA": str(self.keys / "ca.crt"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "fairlead_cli", *words],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=STEP_SECONDS,
        )
        assert done.returncode <= code, f"{words}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout + done.stderr

    def start(self, name: str, command: list[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, env=environ, cwd=self.folder, stdout=log, stderr=log)
        self.running.append(process)
        return process

    def token(self, account: str) -> Path:
        """A kubeconfig with a token of a service account and nothing else."""
        found = yaml.safe_load(self.lab.kubeconfig().read_text())
        token = self.kubectl("-n", NAMESPACE, "create", "token", account).strip()
        found["users"][0]["user"] = {"token": token}
        path = self.folder / f"{account}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(found))
        return path

    def logs(self) -> str:
        return "\n".join(f"--- {one.name}\n{one.read_text()[-1500:]}" for one in self.folder.glob("*.log"))


@pytest.fixture(scope="module")
def site(kube_kit: Kit, deploy_kit: Kit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "deploy", folder / "deploy")
    options = LabOptions(crds=tuple(deploy_kit.manifests("kinds")))
    with KubeLab(options, kit=kube_kit) as lab:
        lab.apply_examples()
        found = Site(lab, folder, free_ports(3))
        shutil.rmtree(found.keys, ignore_errors=True)  # of whoever builds the overlay in this checkout
        found.fairlead("operator.me", "nats", "config", str(found.keys), "prod", "--operator=setup", "--operator=me", f"--url={found.url}")  # fmt: skip
        write_certificates(found.keys)
        write_autoscaled(found.overlays / "keda")
        try:
            yield found
        finally:
            for process in found.running:
                if process.poll() is None:
                    process.kill()
                    process.wait()


def write_certificates(folder: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "nats.fairlead.svc", "*.nats-nodes.fairlead.svc")
    authority.cert_pem.write_to_path(str(folder / "ca.crt"))
    certificate.private_key_pem.write_to_path(str(folder / "tls.key"))
    (folder / "tls.crt").write_bytes(b"".join(one.bytes() for one in certificate.cert_chain_pems))


def write_autoscaled(folder: Path) -> None:
    """The component that no overlay of ours uses."""
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(
        "resources: [../../base]\ncomponents: [../../components/autoscaling-keda]\n"
    )


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_overlay_is_accepted_by_the_server_and_asks_for_no_more_than_it_may(
    site: Site, overlay: str
) -> None:
    said = site.apply(overlay, "--dry-run=server")
    assert "serverside-applied (server dry run)" in said
    assert "Warning" not in said


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_scorers_are_never_more_than_shards(site: Site, overlay: str) -> None:
    objects = [one for one in yaml.safe_load_all(site.built(overlay)) if one]
    shards = PolicyDocument().shards
    most = [
        one["spec"].get("maxReplicas") or one["spec"].get("maxReplicaCount")
        for one in objects
        if one["kind"] in {"HorizontalPodAutoscaler", "ScaledObject"}
    ]
    assert all(2 < count <= shards for count in most)
    assert len(most) == (1 if overlay in {"site-example", "keda"} else 0)
    scorer = next(
        one for one in objects if one["metadata"]["name"] == "fairlead-scorer" and one["kind"] == "Deployment"
    )
    assert ("replicas" in scorer["spec"]) is not bool(most)


KUEUE = "kueue.x-k8s.io"
READS = ("get", "list", "watch")
WRITES = ("create", "update", "patch", "delete")
MAY: dict[str, set[tuple[str, str, str, str]]] = {
    # account: verb, group, resource, namespace ("" is all of them)
    "fairlead-watcher": {
        *((verb, KUEUE, kind, "") for verb in READS for kind in ("workloads", "clusterqueues", "localqueues", "cohorts")),
        *((verb, "", kind, "") for verb in READS for kind in ("nodes", "namespaces", "pods")),
        *((verb, "batch", "jobs", "") for verb in READS),
    },
    "fairlead-admitter": {
        *((verb, KUEUE, "workloads", "") for verb in (*READS, "patch")),
        ("create", "", "events", ""),
        ("create", KUEUE, "workloads", NAMESPACE),
    },
    "fairlead-operator": {
        *((verb, KUEUE, kind, "") for verb in READS for kind in ("workloads", "clusterqueues", "localqueues", "cohorts")),
        *((verb, "", kind, "") for verb in READS for kind in ("nodes", "namespaces", "pods")),
        *((verb, "batch", "jobs", "") for verb in READS),
        ("create", KUEUE, "workloads", NAMESPACE),
    },
    "fairlead-scorer": set(),
    "fairlead-setup": set(),
    "nats": set(),
}  # fmt: skip
ASKED = {
    *((verb, KUEUE, kind, "") for verb in (*READS, *WRITES) for kind in ("workloads", "clusterqueues", "localqueues", "cohorts")),
    *((verb, "", kind, "") for verb in (*READS, *WRITES) for kind in ("nodes", "namespaces", "pods", "secrets", "events")),
    *((verb, "batch", "jobs", "") for verb in (*READS, *WRITES)),
    *(("impersonate", "", kind, "") for kind in ("users", "groups", "serviceaccounts")),
    *((verb, "", "secrets", NAMESPACE) for verb in READS),
    ("create", "", "serviceaccounts/token", NAMESPACE),
    ("create", "", "pods/exec", NAMESPACE),
    *((verb, "rbac.authorization.k8s.io", "clusterroles", "") for verb in ("escalate", "bind", *WRITES)),
    ("create", KUEUE, "workloads", NAMESPACE),
}  # fmt: skip


@pytest.fixture(scope="module")
def dev(site: Site) -> Site:
    """With the overlay for who tries it applied."""
    assert "Warning" not in site.apply("dev")
    return site


@pytest.mark.parametrize("account", MAY)
def test_each_account_may_do_what_it_has_to_and_nothing_else(dev: Site, account: str) -> None:
    allowed = {asked for asked in ASKED if may(dev.lab, account, asked)}
    assert allowed == MAY[account]


def may(lab: KubeLab, account: str, asked: tuple[str, str, str, str]) -> bool:
    """What `kubectl auth can-i --as` asks."""
    verb, group, resource, namespace = asked
    kind, _, part = resource.partition("/")
    wish = {"verb": verb, "group": group, "resource": kind, "subresource": part, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "groups": [
                "system:serviceaccounts",
                f"system:serviceaccounts:{NAMESPACE}",
                "system:authenticated",
            ],
            "resourceAttributes": wish,
        },
    }
    return bool(lab.api.create(review)["status"]["allowed"])


def test_what_production_makes_orders_a_cluster_survives_an_upgrade_and_leaves_no_trace(site: Site) -> None:
    lab = site.lab
    said = site.apply("production")
    assert "Warning" not in said
    start_nats(site)
    set_up(site)
    site.fairlead("operator.me", "nats", "check", str(site.keys))

    old = [start_service(site, f"fairlead-{name}", "old") for name in ("watcher", "scorer", "admitter")]
    await_ready(site, old)
    doctor = ["doctor", f"--kubeconfig={site.token('fairlead-operator')}", "--cluster=prod"]
    assert "levels may be written" in site.fairlead(
        "operator.me", *doctor, f"--service-accounts={NAMESPACE}", code=1
    )
    submit(site, "team-c", 8)
    submit(site, "team-a", 2)
    lab.until(lambda: boosts(lab), 120, "a level is written")

    # As a rolling update does it: the new pods are ready, then the old ones go, one after the other.
    new = [start_service(site, f"fairlead-{name}", "new") for name in ("watcher", "scorer", "admitter")]
    await_ready(site, new)
    for service in old:
        service.process.terminate()
        assert service.process.wait(60) == 0, site.logs()
    before = boosts(lab)
    submit(site, "team-b", 1)  # of a tenant who has nothing: first, before all that wait
    lab.until(lambda: set(boosts(lab)) - set(before), 120, "the order goes on")

    written = {line.user for line in lab.audit_lines(verb="patch", resource="workloads") if line.code == 200}
    assert (
        written & {f"system:serviceaccount:{NAMESPACE}:fairlead-{name}" for name in ("watcher", "operator")}
        == set()
    )
    assert f"system:serviceaccount:{NAMESPACE}:fairlead-admitter" in written

    site.fairlead("operator.me", "release")
    lab.until(lambda: not boosts(lab), 120, "no level is left")
    for service in new:
        service.process.terminate()
        assert service.process.wait(60) == 0, site.logs()
    site.kubectl("delete", "--wait=false", "--ignore-not-found", "-f", "-", given=site.built("production"))
    lab.until(lambda: not left(lab), 120, "nothing is left of it")


@dataclass
class Service:
    """A container that runs as a process."""

    name: str
    process: subprocess.Popen[bytes]
    container: Container
    port: int


def start_nats(site: Site) -> None:
    """The servers of the StatefulSet, with its configuration; what is another pod's address there is a port here."""
    template = site.lab.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/nats")["spec"][
        "template"
    ]["spec"]
    routes = free_ports(len(site.nats))
    secret = {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "fairlead-nats-tls", "namespace": NAMESPACE},
        "data": {name: base64.b64encode((site.keys / name).read_bytes()).decode() for name in ("tls.crt", "tls.key", "ca.crt")},
    }  # fmt: skip
    site.lab.api.apply(secret)
    [container] = template["containers"]
    container["env"] = []
    template["volumes"] = [*template["volumes"], {"name": "data"}]
    for number, port in enumerate(site.nats):
        folder = site.folder / f"nats-{number}"
        folder.mkdir()
        told = read_container(site.lab.api, NAMESPACE, template, container, folder)
        path = Path(told.command[told.command.index("--config") + 1])
        path.write_text(on_loopback(path.read_text(), path.parents[1], port, routes[number], routes))
        command = [str(server_program()), *told.command[1:]]
        site.start(f"nats-{number}", command, told.environ | {"POD_NAME": f"nats-{number}"})
    for port in site.nats:
        await_listening(port, STEP_SECONDS)


def on_loopback(text: str, mounted: Path, port: int, route: int, routes: list[int]) -> str:
    """A server's configuration with addresses and paths of this machine; nothing else of it changes."""
    for name, address in (
        ("4222", f"127.0.0.1:{port}"),
        ("6222", f"127.0.0.1:{route}"),
        ("8222", "127.0.0.1:-1"),
    ):
        text = text.replace(f'"0.0.0.0:{name}"', f'"{address}"')
    for number, other in enumerate(routes):
        text = text.replace(f"nats-{number}.nats-nodes.fairlead.svc:6222", f"127.0.0.1:{other}")
    assert ".svc" not in text
    return text.replace('"/etc/nats/', f'"{mounted}/').replace('"/data"', f'"{mounted}/data"')


def set_up(site: Site) -> None:
    """The containers of the Job, one after the other."""
    job = site.lab.api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/fairlead-setup")["spec"]["template"][
        "spec"
    ]
    for container in (*job["initContainers"], *job["containers"]):
        told = read_container(
            site.lab.api, NAMESPACE, job, container, site.folder / "setup", FAIRLEAD_NATS_URL=site.url
        )
        site.lab.until(partial(ended_well, told), 120, f"{container['name']}: {told.command}")


def ended_well(told: Container) -> bool:
    """A Job's container is started again until it ends well: the three servers elect their leaders first."""
    done = subprocess.run(
        told.command, env=told.environ, capture_output=True, check=False, timeout=STEP_SECONDS
    )
    return done.returncode == 0


def start_service(site: Site, name: str, mark: str) -> Service:
    """A pod of a Deployment: its command and environment, its keys, a token of its service account."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}"
    pod = site.lab.api.get(path)["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [port] = free_ports(1)
    folder = site.folder / f"{name}-{mark}"
    instead = {"FAIRLEAD_NATS_URL": site.url, "FAIRLEAD_HEALTH_PORT": str(port)}
    if pod["automountServiceAccountToken"]:
        instead["FAIRLEAD_KUBECONFIG"] = str(site.token(pod["serviceAccountName"]))
    told = read_container(site.lab.api, NAMESPACE, pod, container, folder, **instead)
    assert set(told.probes) == {"startupProbe", "livenessProbe", "readinessProbe"}
    return Service(name, site.start(f"{name}-{mark}", told.command, told.environ), told, port)


def await_ready(site: Site, services: list[Service]) -> None:
    """Every probe is answered with 200."""
    for service in services:
        assert service.process.poll() is None, site.logs()
        for kind, path in service.container.probes.items():
            site.lab.until(partial(answers, service.port, path), 120, f"{service.name}: {kind}")


def answers(port: int, path: str) -> bool:
    url = f"http://127.0.0.1:{port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=3) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def submit(site: Site, tenant: str, times: int) -> None:
    path = site.folder / "deploy" / "examples" / "kueue" / f"{tenant}.yaml"
    for _ in range(times):
        site.kubectl("create", "-f", str(path))


def boosts(lab: KubeLab) -> dict[str, str]:
    return {
        item["metadata"]["name"]: value
        for item in lab.api.items(WORKLOADS)
        if (value := item["metadata"].get("annotations", {}).get(things.PRIORITY_BOOST))
    }


def left(lab: KubeLab) -> list[str]:
    """What is still there of ours."""
    kinds = ("clusterroles", "clusterrolebindings")
    root = "/apis/rbac.authorization.k8s.io/v1"
    found = [item["metadata"]["name"] for kind in kinds for item in lab.api.items(f"{root}/{kind}")]
    found += [item["metadata"]["name"] for item in lab.api.items("/api/v1/namespaces")]
    return [name for name in found if re.match(r"fairlead\b", name)]


def test_every_dashboard_and_the_rules_go_along(site: Site) -> None:
    dashboards = (ROOT / "deploy" / "monitoring" / "grafana" / "dashboards").glob("*.json")
    objects = [one for one in yaml.safe_load_all(site.built("production")) if one]
    [found] = [one for one in objects if one["metadata"]["name"] == "fairlead-dashboards"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"] == {path.name: path.read_text() for path in dashboards}
    assert {"PrometheusRule", "PodMonitor"} <= {one["kind"] for one in objects}


def test_manifests_name_only_settings_that_there_are(site: Site) -> None:
    known = json.dumps((ROOT / "docs" / "settings.md").read_text())
    for overlay in OVERLAYS:
        for item in yaml.safe_load_all(site.built(overlay)):
            if (
                item
                and item["kind"] == "ConfigMap"
                and item["metadata"]["name"].startswith("fairlead-config")
            ):
                for name in item["data"]:
                    assert f"--{name.removeprefix('FAIRLEAD_').lower().replace('_', '-')}`" in known, name
