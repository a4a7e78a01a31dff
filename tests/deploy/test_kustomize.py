"""deploy/kustomize on a real API server with RBAC on: every overlay, the rights of every account, and what the production
overlay makes, run as the processes that its manifests say, on three nats-servers with its accounts and TLS."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import trustme
import yaml

from fairlead_bus.server.program import server_program
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_testkit.kubelab import Kit, KubeLab, LabOptions, things
from fairlead_testkit.kubelab.containers import ContainerRun, read_container
from fairlead_testkit.processes import fork_server
from fairlead_testkit.processes.command import fairlead
from fairlead_testkit.processes.fork_server import ForkedProcess
from fairlead_testkit.processes.free_ports import await_listening, free_ports
from fairlead_testkit.slurmlab import OPERATOR, SlurmLab, SlurmOptions

ROOT = Path(__file__).parents[2]
NAMESPACE = "fairlead"
KUEUE_ROOT = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{KUEUE_ROOT}/workloads"
STEP_SECONDS = 120
OVERLAYS = ("dev", "production", "site-example", "keda", "whole")
PODS, GUARDED = "pods", "guarded"
BESIDE = ("slurm-pods",)
"""Overlays that a site applies beside another, and that none of ours names."""
APPLIED = ("dev", "whole")
"""Overlays that tests apply one after the other; the others are only tried out."""


pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(900)]


@dataclass
class DeploymentSite:
    """A site that deploys: a copy of `deploy` with keys of its own, a cluster, and what it runs."""

    lab: KubeLab
    folder: Path
    nats: list[int]
    """Ports of the servers."""
    running: list[subprocess.Popen[bytes] | ForkedProcess] = field(default_factory=list)
    builds: dict[str, str] = field(default_factory=dict)

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
        """Runs kubectl as the cluster's admin; returns all that was printed, warnings included."""
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
        if overlay not in self.builds:
            self.builds[overlay] = self.kubectl("kustomize", str(self.overlays / overlay))
        return self.builds[overlay]

    def apply(self, overlay: str, *more: str) -> str:
        """Applies an overlay as the page says: the Job of the last time first, which cannot be changed."""
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
        done = fairlead(*words, environ=environ, seconds=STEP_SECONDS)
        assert done.returncode <= code, f"{words}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout + done.stderr

    def start(
        self, name: str, command: list[str], environ: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        process: subprocess.Popen[bytes] | ForkedProcess
        with (self.folder / f"{name}.log").open("ab") as log:
            match command:
                case [sys.executable, "-m", module, *words] if fork_server.serves_bare(module, environ):
                    process = fork_server.fork(module, words, environ, log)
                case _:
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
def site(
    kube_kit: Kit, deploy_kit: Kit, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeploymentSite]:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "deploy", folder / "deploy")
    options = LabOptions(crds=tuple(deploy_kit.manifests("kinds")))
    with KubeLab(options, kit=kube_kit) as lab:
        lab.apply_examples()
        found = DeploymentSite(lab, folder, free_ports(3))
        shutil.rmtree(found.keys, ignore_errors=True)  # of whoever builds the overlay in this checkout
        found.fairlead("operator.me", "nats", "config", str(found.keys), "prod", "hpc", "--operator=setup", "--operator=me", f"--url={found.url}")  # fmt: skip
        write_certificates(found.keys)
        write_autoscaled(found.overlays / "keda")
        write_whole(found.overlays)
        write_pods(found.overlays / PODS)
        write_guarded(found.overlays / GUARDED)
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


def write_whole(overlays: Path) -> None:
    """Production with all that it offers: what its lines say that begin with `#-`."""
    shutil.copytree(overlays / "production", overlays / "whole")
    path = overlays / "whole" / "kustomization.yaml"
    beside = "".join(f"  - ../../{name}\n" for name in BESIDE)
    path.write_text(
        path.read_text().replace("  #- ", "  - ").replace("  - ../../base\n", f"  - ../../base\n{beside}")
    )


def write_pods(folder: Path) -> None:
    """A namespace in which Slurm's jobs run as pods."""
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(
        "namespace: default\nresources: [../../slurm-pods-namespace]\n"
    )


def write_guarded(folder: Path) -> None:
    """What a site applies by itself where a namespace's label says who may name a priority class."""
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("resources: [../../class-guard]\n")


def taken_by(folder: Path) -> Iterator[Path]:
    """The folders that a kustomization takes, and those that they take."""
    found = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in (*found.get("resources", ()), *found.get("components", ())):
        if (folder / name).is_dir():
            yield (folder / name).resolve()
            yield from taken_by(folder / name)


def test_every_folder_is_tried_by_some_overlay(site: DeploymentSite) -> None:
    kustomize = site.overlays.parent.resolve()
    offered = {path.parent for path in kustomize.rglob("kustomization.yaml")}
    overlays = [site.overlays / name for name in (*OVERLAYS, PODS, GUARDED)]
    tried = {one for overlay in overlays for one in (overlay, *taken_by(overlay))}
    assert offered <= {one.resolve() for one in tried}


@pytest.mark.parametrize("overlay", [*(one for one in OVERLAYS if one not in APPLIED), PODS, GUARDED])
def test_every_overlay_is_accepted_by_the_server(site: DeploymentSite, overlay: str) -> None:
    said = site.apply(overlay, "--dry-run=server")
    assert "serverside-applied (server dry run)" in said
    assert "Warning" not in said


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_scorers_are_never_more_than_shards(site: DeploymentSite, overlay: str) -> None:
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
        *((verb, KUEUE, kind, "") for verb in READS for kind in ("workloads", "clusterqueues", "localqueues", "cohorts", "admissionchecks")),
        *((verb, "", kind, "") for verb in READS for kind in ("nodes", "namespaces", "pods")),
        *((verb, "batch", "jobs", "") for verb in READS),
    },
    "fairlead-admitter": {
        *((verb, KUEUE, "workloads", "") for verb in (*READS, "patch")),
        ("create", "", "events", ""),
        ("create", KUEUE, "workloads", NAMESPACE),
    },
    "fairlead-operator": {
        *((verb, KUEUE, kind, "") for verb in READS for kind in ("workloads", "clusterqueues", "localqueues", "cohorts", "admissionchecks")),
        *((verb, "", kind, "") for verb in READS for kind in ("nodes", "namespaces", "pods")),
        *((verb, "batch", "jobs", "") for verb in READS),
        ("create", KUEUE, "workloads", NAMESPACE),
    },
    "fairlead-checker": {
        *((verb, KUEUE, kind, "") for verb in ("list", "watch") for kind in ("workloads", "admissionchecks")),
        *(("patch", KUEUE, f"{kind}/status", "") for kind in ("workloads", "admissionchecks")),
        *((verb, "", kind, "") for verb in ("list", "watch") for kind in ("nodes", "pods")),
    },
    "fairlead-check-watchdog": {
        *((verb, KUEUE, "workloads", "") for verb in ("list", "watch")),
        ("patch", KUEUE, "workloads/status", ""),
    },
    "fairlead-slurm-bridge": {*((verb, "", kind, "") for verb in ("list", "watch") for kind in ("nodes", "pods"))},
    **{name: set() for name in ("fairlead-scorer", "fairlead-setup", "fairlead-slurm-admitter", "fairlead-slurm", "nats")},
}  # fmt: skip
ASKED = {
    *((verb, KUEUE, kind, "") for verb in (*READS, *WRITES) for kind in ("workloads", "clusterqueues", "localqueues", "cohorts")),
    *((verb, "", kind, "") for verb in (*READS, *WRITES) for kind in ("nodes", "namespaces", "pods", "secrets", "events")),
    *((verb, KUEUE, kind, "") for verb in (*READS, *WRITES) for kind in ("admissionchecks", "workloads/status", "admissionchecks/status")),
    *((verb, "batch", "jobs", "") for verb in (*READS, *WRITES)),
    *(("impersonate", "", kind, "") for kind in ("users", "groups", "serviceaccounts")),
    *((verb, "", "secrets", NAMESPACE) for verb in READS),
    ("create", "", "serviceaccounts/token", NAMESPACE),
    ("create", "", "pods/exec", NAMESPACE),
    *((verb, "rbac.authorization.k8s.io", "clusterroles", "") for verb in ("escalate", "bind", *WRITES)),
    ("create", KUEUE, "workloads", NAMESPACE),
}  # fmt: skip


@pytest.fixture(scope="module")
def deployed(site: DeploymentSite) -> DeploymentSite:
    """The site with production applied, and all that it offers, over what somebody tried before."""
    for overlay in APPLIED:
        assert "Warning" not in site.apply(overlay)
    return site


@pytest.mark.parametrize("account", MAY)
def test_each_account_may_do_what_it_has_to_and_nothing_else(deployed: DeploymentSite, account: str) -> None:
    allowed = {asked for asked in ASKED if may(deployed.lab, account, asked)}
    assert allowed == MAY[account]


def may(lab: KubeLab, account: str, asked: tuple[str, str, str, str]) -> bool:
    """Whether an account may do something, as `kubectl auth can-i --as` asks."""
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


@pytest.fixture(scope="module")
def served(deployed: DeploymentSite) -> DeploymentSite:
    """The site with NATS running, and what the Job of the overlay makes on it."""
    start_nats(deployed)
    set_up(deployed)
    deployed.fairlead("operator.me", "nats", "check", str(deployed.keys))
    return deployed


@pytest.mark.slurm
@pytest.mark.skipif(
    not SlurmOptions().accounting, reason="an operator of Slurm needs accounting, and that root"
)
def test_a_bridge_in_the_cluster_orders_a_slurm_elsewhere(
    served: DeploymentSite, slurm_lab: SlurmLab
) -> None:
    token = slurm_lab.run("scontrol", "token", f"username={OPERATOR}", "lifespan=3600").strip()
    without_munge = re.sub(r"socket=[^,\s]+", "socket=/nonexistent", slurm_lab.conf.read_text())
    words = ("create", "secret", "generic", "fairlead-slurm", f"--from-literal=slurm.conf={without_munge}")
    served.kubectl("-n", NAMESPACE, *words, f"--from-literal=token={token.removeprefix('SLURM_JWT=')}")
    running = [
        start_service(served, "fairlead-slurm-bridge", "slurm", "statefulsets"),
        start_service(served, "fairlead-slurm-admitter", "slurm"),
        start_service(served, "fairlead-scorer", "slurm"),
    ]
    await_ready(served, running)
    check = ("slurm", "check", "--cluster=hpc", f"--user={OPERATOR}", f"--slurm-conf={slurm_lab.conf}")
    assert "levels may be written" in served.fairlead("operator.me", *check)
    slurm_lab.fill("spare")
    many = [slurm_lab.submit("vision", "--gres=gpu:8") for _ in range(3)]
    other = slurm_lab.submit("speech", "--gres=gpu:8")

    def fair() -> bool:
        stands = dict(line.split() for line in slurm_lab.jobs("%i %Q"))
        return int(stands[other]) > max(int(stands[job]) for job in many[1:])

    slurm_lab.until(fair, "the tenant who has nothing is not behind all of who came first")
    revoked = served.fairlead("operator.me", "slurm", "check", "--cluster=hpc", "--revoke")
    assert "takes away the levels that stand" in revoked
    slurm_lab.until(lambda: no_levels(slurm_lab), "every level is taken away")
    stop(served, running)


def test_what_production_makes_orders_a_cluster_survives_an_upgrade_and_leaves_no_trace(
    served: DeploymentSite,
) -> None:
    lab, names = served.lab, [f"fairlead-{name}" for name in ("watcher", "scorer", "admitter", "checker")]
    old = [start_service(served, name, "old") for name in names]
    watchdog = start_service(served, "fairlead-check-watchdog", "only")
    await_ready(served, old)
    doctor = ["doctor", f"--kubeconfig={served.token('fairlead-operator')}", "--cluster=prod"]
    assert "levels may be written" in served.fairlead(
        "operator.me", *doctor, f"--service-accounts={NAMESPACE}", code=1
    )
    submit(served, "team-c", 8)
    submit(served, "team-a", 2)
    tenant = ("-n", "team-a", "-k", str(served.overlays.parent / "tenant"))
    served.kubectl("apply", *tenant)
    lab.until(lambda: boosts(lab), 120, "a level is written")
    lab.until(lambda: is_answered(lab), 120, "the check has somebody who answers")

    # As a rolling update does it: the new pods are ready, then the old ones go, one after the other.
    new = [start_service(served, name, "new") for name in names]
    await_ready(served, new)
    stop(served, old)
    before = boosts(lab)
    submit(served, "team-b", 1)  # of a tenant who has nothing: first, before all that wait
    lab.until(lambda: set(boosts(lab)) - set(before), 120, "the order goes on")
    assert watchdog.process.poll() is None, served.logs()

    written = {line.user for line in lab.audit_lines(verb="patch", resource="workloads") if line.code == 200}
    assert (
        written & {f"system:serviceaccount:{NAMESPACE}:fairlead-{name}" for name in ("watcher", "operator")}
        == set()
    )
    assert f"system:serviceaccount:{NAMESPACE}:fairlead-admitter" in written

    served.fairlead("operator.me", "release")
    lab.until(lambda: not boosts(lab), 120, "no level is left")
    stop(served, [*new, watchdog])
    served.kubectl("delete", *tenant)
    served.kubectl("delete", "--wait=false", "--ignore-not-found", "-f", "-", given=served.built("whole"))
    lab.until(lambda: not left(lab), 120, "nothing is left of it")


def no_levels(lab: SlurmLab) -> bool:
    return all(line.split()[1] == "0" for line in lab.run("sprio", "-h", "-o", "%i %S").splitlines())


def is_answered(lab: KubeLab) -> bool:
    return things.condition(lab.api.get(f"{KUEUE_ROOT}/admissionchecks/gang-fit"), "Active")


@dataclass
class Service:
    """A container that runs as a process."""

    name: str
    process: subprocess.Popen[bytes] | ForkedProcess
    container: ContainerRun
    port: int


def start_nats(site: DeploymentSite) -> None:
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


def set_up(site: DeploymentSite) -> None:
    """The containers of the Job, one after the other."""
    job = site.lab.api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/fairlead-setup")["spec"]["template"][
        "spec"
    ]
    for container in (*job["initContainers"], *job["containers"]):
        told = read_container(
            site.lab.api, NAMESPACE, job, container, site.folder / "setup", FAIRLEAD_NATS_URL=site.url
        )
        site.lab.until(partial(ended_well, told), 120, f"{container['name']}: {told.command}")


def ended_well(told: ContainerRun) -> bool:
    """A Job's container is started again until it ends well: the three servers elect their leaders first."""
    done = subprocess.run(
        told.command, env=told.environ, capture_output=True, check=False, timeout=STEP_SECONDS
    )
    return done.returncode == 0


def start_service(site: DeploymentSite, name: str, mark: str, kind: str = "deployments") -> Service:
    """A pod of a Deployment or another kind: its command and environment, its keys, a token of its service account."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}/{name}"
    pod = site.lab.api.get(path)["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [port] = free_ports(1)
    folder = site.folder / f"{name}-{mark}"
    instead = {"FAIRLEAD_NATS_URL": site.url, "FAIRLEAD_HEALTH_PORT": str(port)}
    if pod["automountServiceAccountToken"]:
        instead["KUBECONFIG"] = str(site.token(pod["serviceAccountName"]))
    told = read_container(site.lab.api, NAMESPACE, pod, container, folder, **instead)
    assert bool(told.probes) is (name != "fairlead-check-watchdog")
    return Service(name, site.start(f"{name}-{mark}", told.command, told.environ), told, port)


def stop(site: DeploymentSite, services: list[Service]) -> None:
    """Stops services as a pod ends: each is asked to, and does."""
    for service in services:
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0, site.logs()


def await_ready(site: DeploymentSite, services: list[Service]) -> None:
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


def submit(site: DeploymentSite, tenant: str, times: int) -> None:
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
    """Names of objects of ours that are still there."""
    root = "/apis/rbac.authorization.k8s.io/v1"
    kinds = [f"{root}/{kind}" for kind in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")]
    kinds += [f"{KUEUE_ROOT}/admissionchecks", "/api/v1/namespaces", "/api/v1/serviceaccounts"]
    found = [item["metadata"] for kind in kinds for item in lab.api.items(kind)]
    ours = [one for one in found if one.get("labels", {}).get("app.kubernetes.io/part-of") == "fairlead"]
    ours += [one for one in found if re.match(r"fairlead\b", one["name"])]
    return [f"{one.get('namespace', '')}/{one['name']}" for one in ours]


def test_every_dashboard_and_the_rules_go_along(site: DeploymentSite) -> None:
    dashboards = (ROOT / "deploy" / "monitoring" / "grafana" / "dashboards").glob("*.json")
    objects = [one for one in yaml.safe_load_all(site.built("production")) if one]
    [found] = [one for one in objects if one["metadata"]["name"] == "fairlead-dashboards"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"] == {path.name: path.read_text() for path in dashboards}
    assert {"PrometheusRule", "PodMonitor"} <= {one["kind"] for one in objects}


def test_whoever_has_metrics_is_scraped_and_reaches_nats(site: DeploymentSite) -> None:
    objects = [one for one in yaml.safe_load_all(site.built("whole")) if one]
    services = {
        one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
        for one in objects
        if one["kind"] in {"Deployment", "StatefulSet"}
        for container in one["spec"]["template"]["spec"]["containers"]
        if {"name": "health", "containerPort": 8080} in container.get("ports", [])
    }
    assert {"watcher", "slurm-bridge", "slurm-admitter", "checker"} <= services
    [monitor] = [one["spec"]["selector"] for one in objects if one["kind"] == "PodMonitor"]
    [chosen] = monitor["matchExpressions"]
    assert services == set(chosen["values"])
    policies = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "NetworkPolicy"}
    for name in ("fairlead-to-nats", "fairlead-to-collector"):
        assert services <= set(policies[name]["podSelector"]["matchExpressions"][0]["values"]), name
    assert {one["port"] for one in policies["fairlead-default"]["egress"][0]["ports"]} == {53, 5353, 8053}


def test_keys_are_the_pods_own_and_what_is_not_ready_holds_up_no_node(site: DeploymentSite) -> None:
    built = site.built("whole")
    assert built.count("secretName:") == built.count("defaultMode: 288") > 6  # 0440
    careful = built.count("kind: PodDisruptionBudget") - built.count("EvictionPolicy: AlwaysAllow")
    assert careful == 1  # NATS: a server that comes back must not go while another is away


def test_manifests_name_only_settings_that_there_are(site: DeploymentSite) -> None:
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
