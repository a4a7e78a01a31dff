"""The command lines of the lab's processes; every flag that is not obvious says why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fairlead_testkit.kubelab.building import Kit
from fairlead_testkit.kubelab.certificates import LOOPBACK, Certificates
from fairlead_testkit.kubelab.options import LabOptions
from fairlead_testkit.processes.free_ports import free_ports

CONTROLLERS = (
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",  # without which no claim that is deleted ever goes
    "node-lifecycle-controller",  # takes the not-ready taint off new nodes
    "serviceaccount-controller",  # the `default` account of each namespace, without which no pod is made
    "ttl-after-finished-controller",
)
ETCD, APISERVER, KUEUE = "etcd", "kube-apiserver", "kueue"
CONTROLLER_MANAGER, SCHEDULER, KWOK = "kube-controller-manager", "kube-scheduler", "kwok"


@dataclass(frozen=True)
class Ports:
    """The ports of one lab, kept over restarts of its parts."""

    etcd: int
    etcd_peer: int
    apiserver: int
    webhook: int
    metrics: int
    health: int

    @classmethod
    def free(cls) -> Self:
        """Ports that nobody listens on now."""
        return cls(*free_ports(len(cls.__dataclass_fields__)))


class KubeLabPaths:
    """The paths of one lab's files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        """Folder of the logs: `<part>.log` of each part."""
        self.audit_log = self.logs / "audit.jsonl"
        self.audit_policy = folder / "audit-policy.yaml"
        self.tokens = folder / "tokens.csv"
        """Token file of the API server."""
        self.stages = folder / "stages.yaml"
        """Stages of KWOK."""
        self.kueue_configuration = folder / "kueue.yaml"
        self.kubeconfigs = folder / "kubeconfig"
        """Folder of the kubeconfigs: `<user>.yaml` of each user."""

    def kubeconfig(self, user: str) -> Path:
        """Kubeconfig of one user."""
        return self.kubeconfigs / f"{user}.yaml"


def environ(name: str, options: LabOptions) -> dict[str, str]:
    """Environment of one part, beside its owner's."""
    return {"GOGC": str(options.garbage_percent)} if name in {ETCD, APISERVER} else {}


def etcd(kit: Kit, layout: KubeLabPaths, ports: Ports) -> list[str]:
    """The store. It is not synced to disk: a lab survives kills of processes, not of the machine."""
    client, peer = f"http://{LOOPBACK}:{ports.etcd}", f"http://{LOOPBACK}:{ports.etcd_peer}"
    return [
        str(kit.binary("etcd")),
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        # What the log of writes holds goes into the database in one piece, not ten times a second; and alone, it beats slower.
        "--backend-batch-interval=2s",
        "--backend-batch-limit=100000",
        "--heartbeat-interval=500",
        "--election-timeout=5000",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def apiserver(
    kit: Kit, layout: KubeLabPaths, ports: Ports, certificates: Certificates, options: LabOptions
) -> list[str]:
    """The API server, with RBAC, users from a file, and an audit log."""
    pair = certificates.pair("apiserver")
    flags = {
        "etcd-servers": f"http://{LOOPBACK}:{ports.etcd}",
        "bind-address": LOOPBACK,
        "secure-port": ports.apiserver,
        "tls-cert-file": pair / "tls.crt",
        "tls-private-key-file": pair / "tls.key",
        "cert-dir": layout.folder,
        "service-account-issuer": f"https://{LOOPBACK}:{ports.apiserver}",
        "service-account-key-file": certificates.service_account_key,
        "service-account-signing-key-file": certificates.service_account_key,
        "service-cluster-ip-range": "10.96.0.0/24",
        "token-auth-file": layout.tokens,
        "authorization-mode": "RBAC",
        "audit-policy-file": layout.audit_policy,
        "audit-log-path": layout.audit_log,
        "audit-log-maxsize": 100_000,  # megabytes: a log that rotates would lose the requests that a test counts
    }
    if not options.workers:
        flags["disable-admission-plugins"] = "ServiceAccount"  # nobody makes the accounts that it asks for
    if options.requests_in_flight is not None:
        flags["max-requests-inflight"] = options.requests_in_flight
        flags["max-mutating-requests-inflight"] = options.requests_in_flight // 2
    return [str(kit.binary("kube-apiserver")), *(f"--{name}={value}" for name, value in flags.items())]


def kueue(kit: Kit, layout: KubeLabPaths) -> list[str]:
    """Command of Kueue; needs `kueue_setup.with_certificates` around it."""
    return [
        str(kit.binary("kueue")),
        f"--config={layout.kueue_configuration}",
        f"--kubeconfig={layout.kubeconfig(KUEUE)}",
        "--zap-log-level=2",  # 5 says why each workload was not admitted
    ]


def controller_manager(kit: Kit, layout: KubeLabPaths) -> list[str]:
    """Command of the controllers that Jobs need."""
    return [
        str(kit.binary("kube-controller-manager")),
        f"--kubeconfig={layout.kubeconfig(CONTROLLER_MANAGER)}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--use-service-account-credentials=false",
        "--leader-elect=false",
        "--secure-port=0",
        # KWOK writes no heartbeats: after forty seconds each node would be tainted, and ready again a moment later.
        "--node-monitor-grace-period=24h",
        "--kube-api-qps=200",  # its own default, 20, would make the pods of a hundred Jobs wait
        "--kube-api-burst=300",
        "--concurrent-job-syncs=20",
    ]


def scheduler(kit: Kit, layout: KubeLabPaths) -> list[str]:
    """Command of the scheduler of pods."""
    return [
        str(kit.binary("kube-scheduler")),
        f"--kubeconfig={layout.kubeconfig(SCHEDULER)}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=300",
    ]


def kwok(kit: Kit, layout: KubeLabPaths) -> list[str]:
    """Command of KWOK, which plays the kubelets of all nodes."""
    return [
        str(kit.binary("kwok")),
        f"--kubeconfig={layout.kubeconfig(KWOK)}",
        "--manage-all-nodes=true",
        f"--config={layout.stages}",
    ]
