"""A real Slurm whose partition `pods` runs its jobs as pods of a real Kubernetes, with slurm-bridge's gate between them."""

import asyncio
import contextlib
import json
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import trustme

from fairlead_contracts.frontend.cards import ALLOCATED, CARD_CORES, CARD_MEMORY, HOLDER, REGISTER
from fairlead_slurm.cluster import licences
from fairlead_slurm.hooks.installing import JOB_SUBMIT, PROGRAM, HookSettings, conf_lines, hook_files
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.fleets.slurm_fleet import account_policy
from fairlead_testkit.kubelab import GPU, SLURM_BRIDGE, ApiError, KubeLab, KubeObject, NodeShape
from fairlead_testkit.kubelab.certificates import LOOPBACK
from fairlead_testkit.kubelab.furnishing import NODES
from fairlead_testkit.kubelab.things import namespace
from fairlead_testkit.processes.free_ports import free_ports
from fairlead_testkit.processes.process import ServiceProcess
from fairlead_testkit.slurmlab import ACCOUNTS, CLUSTER, SlurmCommandError, SlurmLab, SlurmOptions
from fairlead_testkit.slurmlab.options import PEOPLE
from fairlead_testkit.timing.awaiting import eventually

PARTITION = "pods"
SECONDS, EXIT = "FAIRLEAD_TEST_SECONDS", "FAIRLEAD_TEST_EXIT"
"""Variables that KWOK ends a pod by."""
SUBMISSION = "FAIRLEAD_TEST_SUBMISSION"
"""Variable with another value for each submission: a slurmctld that was killed gives the numbers of jobs that it has forgotten to others."""
_MARK = "fairlead.test/gate"
_CREATED = 201
_STOP_SECONDS = 5
_KILL_WAIT_SECONDS = 3 * _STOP_SECONDS
"""Slurm's KillWait in seconds, instead of a minute: a process that hangs is waited for so long. A pod has stopped
before."""


class PodFleetSite:
    """A Slurm lab with the hooks installed, and nodes and a namespace of its own in a Kubernetes lab.

    Args:
        kube: runs already; shared with others.
        gpus: number of GPUs that Kubernetes has for these pods, on one node.
        slurm_gpus: GPUs of each of these; by default so many that Slurm alone would start more than there is room for.
        away: see `HookSettings`.
        tokens: see `HookSettings`; accounting gets the licence.
        tls_bridges: number of bridges that listen over TLS; hooks ask there alone.
        backup: whether a second slurmctld stands by.
    """

    def __init__(
        self,
        kube: KubeLab,
        *,
        gpus: int = 8,
        nodes: int = 2,
        slurm_gpus: int = 32,
        lines: Sequence[str] = (),
        away: str = "requeue",
        tokens: str = "",
        tls_bridges: int = 0,
        backup: bool = False,
    ) -> None:
        self.kube = kube
        self.mark = uuid.uuid4().hex[:8]
        self.namespace = f"gate-{self.mark}"
        self._folder = Path(tempfile.mkdtemp(prefix="slurmpods-"))
        self._folder.chmod(0o755)  # plain users run the hooks' program as the body of their jobs
        self.socket = self._folder / "gate.sock"
        self.endpoints = [f"{LOOPBACK}:{port}" for port in free_ports(tls_bridges)]
        self.settings = HookSettings(
            folder=str(self._folder / "hooks"),
            partition=PARTITION,
            socket=str(self.socket),
            # One that plain users may run: that of a checkout below somebody's home is none.
            python=shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable,
            away=away,
            timeout=60,
            tokens=tokens,
            endpoints=self.endpoints,
            authority=str(self._folder / "ca.pem") if tls_bridges else "",
            munge_socket=str(self._folder / "lab" / "munge" / "socket") if tls_bridges else "",
        )
        self._volumes: list[str] = []
        self.gpus = gpus
        taint = {"key": _MARK, "value": self.mark, "effect": "NoSchedule"}
        self._shape = NodeShape(
            self.namespace, cpu="256", gpus=gpus, labels={_MARK: self.mark}, taints=(taint,)
        )
        self.lab = SlurmLab(
            _slurm_options(self.settings, nodes=nodes, gpus=slurm_gpus, lines=lines, backup=backup),
            self._folder / "lab",
        )

    @contextlib.contextmanager
    def running(self) -> Iterator["PodFleetSite"]:
        """Runs the Slurm lab, with its place in the Kubernetes lab, for the time of the block."""
        self._install()
        self.kube.api.apply(namespace(self.namespace))
        self.kube.open_to_slurm(self.namespace)
        self.kube.add_nodes(self._shape)
        try:
            with self.lab:
                self._add_licence()
                yield self
        finally:
            for pod in self.pods():
                with contextlib.suppress(ApiError):
                    self.kube.api.delete(f"{self._path}/{pod['metadata']['name']}")
            for claim in self.claims():
                self.kube.api.delete(f"{self._claims}/{claim['metadata']['name']}")
            for name in self._volumes:
                self.kube.api.delete(f"/api/v1/persistentvolumes/{name}")
            self.kube.api.delete(f"{NODES}/{self.namespace}-0")
            shutil.rmtree(self._folder, ignore_errors=True)

    def bridge_settings(self) -> Mapping[str, object]:
        """Settings of the bridge that concern the gate."""
        return {
            "pods_partition": PARTITION,
            "hooks_socket": self.socket,
            "images": "off",  # none of them is anywhere
            "kubeconfig": self.kube.kubeconfig(SLURM_BRIDGE),
            "pods_namespace": self.namespace,
            "pods_node_labels": {_MARK: self.mark},
            "pods_tolerations": [f"{_MARK}={self.mark}:NoSchedule"],
            "pods_image": "busybox",
            "pods_ready_seconds": 30,
            "pods_stop_seconds": _STOP_SECONDS,
            "pods_gone_seconds": 30,
            "pods_sweep_seconds": 2,
            "pods_lost_seconds": 8,
            **({"pods_tokens": self.settings.tokens} if self.settings.tokens else {}),
        }

    def tls_settings(self, number: int) -> Mapping[str, object]:
        """Settings of one of several bridges: where it listens for hooks on other hosts."""
        if not self.endpoints:
            return {}
        return {
            "hooks_socket": self._folder / f"gate-{number}.sock",
            "hooks_listen": self.endpoints[number],
            "hooks_tls_cert": self._folder / "gate.crt",
            "hooks_tls_key": self._folder / "gate.key",
            "hooks_munge_socket": self.settings.munge_socket,
        }

    def licence(self) -> tuple[int, int]:
        """Number of tokens there are, and of those that jobs hold."""
        shown = self.lab.run("scontrol", "--oneliner", "show", "licenses")
        [found] = [one for one in licences(shown) if one.name == self.settings.tokens]
        return found.total, found.used

    def submit(
        self,
        *words: str,
        gpus: int = 1,
        seconds: float = 1,
        code: int = 0,
        account: str = ACCOUNTS[0],
        script: str = "#!/bin/sh\necho hello\n",
    ) -> str:
        """Submit a job as its account's plain user; KWOK runs its pod so long, and ends it with that code."""
        return self.lab.run(
            "env", f"{SECONDS}={seconds:g}", f"{EXIT}={code}", f"{SUBMISSION}={uuid.uuid4().hex}",
            "sbatch", "--parsable", "--output=%u-%j.out", f"--account={account}", f"--gres=gpu:{gpus}", "--ntasks=1",
            *(() if any(word.startswith("--comment") for word in words) else (f"--comment=env={SECONDS},{EXIT},{SUBMISSION}",)),
            *words, user=PEOPLE[account], given=script,
        ).strip()  # fmt: skip

    def output(self, job: str) -> str:
        """Text that a job printed."""
        found = (self.lab.layout.folder / "out").glob(f"*-{job}.out")
        return "".join(path.read_text(errors="replace") for path in found)

    def state(self, job: str) -> tuple[str, str]:
        """A job's state and exit code, as Slurm has it; it forgets none for five minutes."""
        shown = self.lab.run("scontrol", "--oneliner", "show", "job", job)
        words = dict(word.partition("=")[::2] for word in shown.split())
        return words["JobState"], words["ExitCode"]

    def state_of(self, job: str) -> str:
        """A job's state alone, whatever its name and comment hold."""
        return self.lab.run("squeue", "-h", "-j", job, "--states=all", "-o", "%T").strip()

    def waiting(self) -> list[str]:
        """Jobs that have not ended."""
        return self.lab.jobs("%i %T %r", "--states=PENDING,RUNNING,CONFIGURING,COMPLETING")

    async def all_ended(self) -> None:
        """Wait until all jobs have ended and no pod is left; slurmctld may be away meanwhile."""

        async def ended() -> bool:
            with contextlib.suppress(SlurmCommandError):
                return not await asyncio.to_thread(self.waiting) and not await asyncio.to_thread(self.pods)
            return False

        await eventually(ended, 120, what="all jobs have ended, and no pod is left")

    def story(self, job: str) -> str:
        """The state that Slurm has of a job now, and what its daemons wrote of it: for the message of a failure."""
        number = job.partition("_")[0]
        word = re.compile(rf"(JobId=|[Jj]ob |\[){number}\b")
        lines = [self.lab.run("scontrol", "--oneliner", "show", "job", number)]
        for log in sorted(self.lab.layout.logs.glob("slurm*.log")):
            found = log.read_text(errors="replace").splitlines()
            lines += [line for line in found if word.search(line) or "started on cluster" in line]
        return "\n".join(lines)

    def pods(self) -> list[KubeObject]:
        """Pods of the namespace."""
        return self.kube.api.items(self._path)

    def pods_and_version(self) -> tuple[dict[str, KubeObject], str]:
        """Pods of the namespace by their UIDs, and the version from which `pod_events` goes on."""
        listed = self.kube.api.get(self._path)
        return {pod["metadata"]["uid"]: pod for pod in listed["items"]}, listed["metadata"]["resourceVersion"]

    def pod_events(self, since: str, *, seconds: int) -> Iterator[KubeObject]:
        """Events of the pods from a version on, for so long; see `Api.watch`."""
        return self.kube.api.watch(self._path, since, seconds=seconds)

    def pods_made(self) -> list[str]:
        """Names of all pods that the API server has made for the bridge, once for each time."""
        lines = self.kube.audit_lines(user=SLURM_BRIDGE, verb="create", resource="pods")
        return [
            line.body["metadata"]["name"]
            for line in lines
            if line.namespace == self.namespace and line.code == _CREATED and line.body is not None
        ]

    def pods_made_for(self, job: str) -> int:
        """Number of pods that were made for a job."""
        return sum(f"-{job}-r" in name for name in self.pods_made())

    def add_stranger(self, *, gpus: int) -> None:
        """A pod on the site's first node that is of no job of Slurm's, in another namespace."""
        amounts = {GPU: str(gpus)}
        container = {
            "name": "main",
            "image": "busybox",
            "resources": {"requests": amounts, "limits": amounts},
        }
        spec = {"nodeName": f"{self.namespace}-0", "containers": [container]}
        metadata = {"name": f"stranger-{self.mark}", "namespace": "default"}
        self.kube.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def remove_stranger(self) -> None:
        """Removes the stranger at once."""
        self.kube.api.delete(f"/api/v1/namespaces/default/pods/stranger-{self.mark}")

    def add_cards(self, *uuids: str, memory: int) -> str:
        """Adds a node whose cards, of so many MiB each, HAMi lets ten pods share each; gives its name."""
        card = {"count": 10, "devmem": memory, "devcore": 100, "type": "NVIDIA-A30", "mode": "hami-core"}
        taints = self._shape.taints
        [node] = NodeShape(f"{self.namespace}-cards", labels={_MARK: self.mark}, taints=taints).nodes()
        register = [{"id": uuid, "health": True, **card} for uuid in uuids]
        node["metadata"]["annotations"] = {REGISTER: json.dumps(register)}
        # HAMi's scheduler looks at cards alone; Kubernetes' own wants the resources to be there.
        amounts = {GPU: 10, CARD_MEMORY: memory, CARD_CORES: 100}
        for kind in ("capacity", "allocatable"):
            node["status"][kind] |= {name: str(each * len(uuids)) for name, each in amounts.items()}
        self.kube.api.create(node)
        name: str = node["metadata"]["name"]
        return name

    def remove_cards(self) -> None:
        """Removes the node with cards."""
        self.kube.api.delete(f"{NODES}/{self.namespace}-cards-0")

    def give_card(self, pod: KubeObject, node: str, held: str) -> None:
        """Plays HAMi's scheduler for a pod: writes down which part of which card the pod gets, and binds it."""
        path = f"{self._path}/{pod['metadata']['name']}"
        self.kube.api.patch(path, {"metadata": {"annotations": {HOLDER: node, ALLOCATED: held}}})
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}}
        self.kube.api.request("POST", f"{path}/binding", binding | {"target": target})

    def add_volume(self) -> str:
        """A volume that the next claim of the namespace is bound to; gives its name. It goes with the site."""
        name = f"{self.namespace}-{len(self._volumes)}"
        self._volumes.append(name)
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/nowhere"},
        }
        self.kube.api.create(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
        )
        return name

    def add_claim(self, name: str) -> None:
        """A claim as a user has one, bound to a volume of its own."""
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "volumeName": self.add_volume(),
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Mi"}},
        }
        metadata = {"name": name, "namespace": self.namespace}
        self.kube.api.create(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
        )

    def claims(self) -> list[KubeObject]:
        """Volume claims of the namespace."""
        return self.kube.api.items(self._claims)

    def hook_processes(self) -> dict[int, tuple[str, str]]:
        """The hooks and bodies of this site that run now: by pid which of them it is, and for which job."""
        mark = f"{self.settings.folder}/{PROGRAM}".encode()
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                    if mark in words:
                        environ = (folder / "environ").read_bytes().split(b"\0")
                        job = dict(pair.partition(b"=")[::2] for pair in environ).get(b"SLURM_JOB_ID", b"")
                        found[int(folder.name)] = words[-1].decode(), job.decode()
        return found

    def hooks_of(self, job: str) -> list[str]:
        """Kinds of hooks that run for a job now."""
        return [kind for kind, of in self.hook_processes().values() if of == job]

    def gpus_of(self, pods: Iterable[KubeObject]) -> int:
        """The GPUs of those pods that are not over."""
        return sum(
            int(pod["spec"]["containers"][0]["resources"]["requests"].get(GPU, 0))
            for pod in pods
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
        )

    @property
    def _claims(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def _add_licence(self) -> None:
        if self.settings.tokens:
            name, _, server = self.settings.tokens.partition("@")
            which = (f"name={name}", f"server={server}", "servertype=fairlead", "type=license")
            self.lab.run("sacctmgr", "-i", "add", "resource", *which, "count=0", f"cluster={CLUSTER}", "percentallowed=100")  # fmt: skip

    def _certify(self) -> None:
        authority = trustme.CA()
        pair = authority.issue_cert(LOOPBACK)
        authority.cert_pem.write_to_path(self._folder / "ca.pem")
        pair.cert_chain_pems[0].write_to_path(self._folder / "gate.crt")
        pair.private_key_pem.write_to_path(self._folder / "gate.key")
        (self._folder / "ca.pem").chmod(0o644)

    def _install(self) -> None:
        if self.endpoints:
            self._certify()
        folder = Path(self.settings.folder)
        folder.mkdir()
        for name, file in hook_files(self.settings).items():
            path = folder / name
            path.write_text(file.text)
            path.chmod(0o755 if file.executable else 0o644)
        etc = self.lab.layout.conf.parent
        etc.mkdir(parents=True)
        (etc / JOB_SUBMIT).write_text((folder / JOB_SUBMIT).read_text())


def _slurm_options(
    settings: HookSettings, *, nodes: int, gpus: int, lines: Sequence[str], backup: bool
) -> SlurmOptions:
    words = conf_lines(settings) | {"KillWait": str(_KILL_WAIT_SECONDS)}
    scheduler = words.pop("SchedulerParameters")
    return SlurmOptions(
        backup=backup,
        nodes=nodes,
        cpus=64,
        gpus=gpus,
        partitions=(f"PartitionName={PARTITION} Nodes={{nodes}} Default=YES State=UP",),
        scheduler=(scheduler,),
        lines=(*(f"{key}={value}" for key, value in words.items()), *lines),
    )


class PodFleet(ProcessFleet):
    """A nats-server, and the bridges of a site.

    Args:
        bridges: number of bridges; one leads.
    """

    def __init__(
        self,
        directory: Path,
        site: PodFleetSite,
        *,
        bridges: int = 1,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        policy = account_policy(dict.fromkeys(ACCOUNTS, 1.0))
        super().__init__(directory, cluster=CLUSTER, policy=policy, counts={"slurm_bridge": bridges})
        self.site = site
        self._more = dict(settings or {})

    def story(self, job: str) -> str:
        """Lines that the bridges wrote of a job, and when each bridge began: for the message of a failure."""
        marks = (f'"job":{job},', f'"job":"{job}"', f"-{job}-r", '"event":"health listening"')
        lines = [line for bridge in self.named("slurm_bridge") for line in bridge.log.splitlines()]
        return "\n".join(line for line in lines if any(mark in line for mark in marks))

    def own_settings(self, service: str) -> Mapping[str, object]:
        """Adds to the base's: the bridge is told where Slurm is, and of the gate."""
        return {
            **super().own_settings(service),
            "slurm_conf": self.site.lab.conf,
            "poll_seconds": 1,
            **self.site.bridge_settings(),
            **self._more,
        }

    def _process(
        self, service: str, name: str, own: Mapping[str, object], sources: Sequence[Path] = ()
    ) -> ServiceProcess:
        number = len(self.services)
        each = {"store": self.directory / f"{name}.db", **self.site.tls_settings(number)}
        return super()._process(service, name, {**own, **each}, sources)
