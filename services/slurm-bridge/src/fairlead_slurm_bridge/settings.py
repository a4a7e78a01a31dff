"""Settings of a slurm-bridge."""

from typing import Annotated, Literal

import msgspec

from fairlead_runtime.settings import ServiceSettings


class SlurmBridgeSettings(ServiceSettings, frozen=True, kw_only=True):
    """Settings of one slurm-bridge: the slurmctld that it speaks for, and how it reads it."""

    cluster: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "slurm"
    """Name of the cluster; one bridge leads per cluster, the others stand by."""
    slurm_conf: str | None = None
    """Path of slurm.conf; by default $SLURM_CONF, else where Slurm's commands look."""
    slurm_token: str | None = None
    """Path of a file with a JSON Web Token for slurmctld (`scontrol token`), where no munge runs beside the
    bridge, or slurmrestd is asked over TCP. It is read each time, so a new token may be put in its place;
    with `submit_socket` the bridge has the submitting helper make it, and make it anew before it ends."""
    slurmrestd: Annotated[str, msgspec.Meta(pattern=r"^(https?://[^/]+/?|unix:/.+)$")] | None = None
    """Address of slurmrestd: `http://HOST:PORT`, which takes `slurm_token`, or `unix:/PATH` of a socket whose
    slurmrestd runs as the bridge's own user. By default Slurm is asked by its commands, which is many times
    quicker where thousands wait."""
    store: str = "slurm-bridge.sqlite"
    """Path of the SQLite file that remembers which jobs submissions became, and how programs in pods ended."""
    poll_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=300)] = 2.0
    """Longest time between two readings of the queue, in seconds; changes are read sooner. Nodes, partitions
    and accounts are read less often."""
    command_seconds: Annotated[float, msgspec.Meta(ge=1, le=300)] = 20.0
    """Longest time of one of Slurm's commands, in seconds."""
    stale_after_seconds: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    """Longest silence of slurmctld, in seconds, before the bridge calls itself not ready. The last statements
    stand meanwhile."""
    submit_socket: str | None = None
    """Path of the Unix socket of the submitting helper; by default no submission becomes a job."""
    array_window: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    """Number of an array's tasks that have a position in the order at a time. Slurm keeps a record of its own
    for each."""
    gres_gpu: str = "nvidia.com/gpu"
    """Fairlead's name for Slurm's `gres/gpu`: the same as in Kubernetes, so that one pool can have both."""
    qos_classes: dict[str, str] = msgspec.field(
        default_factory=lambda: {"urgent": "urgent", "approved": "approved"}
    )
    """Class that a job asks for, by its QOS."""

    images: Literal["off", "warn", "refuse", "strict"] = "refuse"
    """Rule for jobs, in job_submit or from NATS, whose pod's image is not there: `refuse` them, or `warn`.
    `strict` refuses them also where the registry cannot be asked; `off` asks none."""
    images_auth: str | None = None
    """Path of a file with credentials for registries, in docker's form; by default none are used."""
    images_registries: list[str] = []
    """Hosts of registries that are asked, with their ports; by default all that users name."""
    images_plain: list[str] = []
    """Hosts of registries that are asked without TLS, with their ports."""
    images_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 2.0
    """Longest time of a registry, in seconds: less than the three for which job_submit waits."""

    pods_partition: str | None = None
    """Partition whose jobs run as pods, behind the gate; by default none does."""
    hooks_socket: str = "/run/fairlead/slurm-gate.sock"
    """Path of the Unix socket at which Slurm's hooks and jobs' processes ask."""
    hooks_listen: str | None = None
    """`HOST:PORT` at which hooks on other hosts ask over TLS, beside the socket; by default none can."""
    hooks_tls_cert: str | None = None
    """Path of the certificate chain of `hooks_listen`, in PEM."""
    hooks_tls_key: str | None = None
    """Path of that certificate's private key."""
    hooks_munge_socket: str | None = None
    """Path of munged's socket, by which hooks on other hosts are known; by default where munge's commands
    look."""
    hooks_users: list[str] = msgspec.field(default_factory=lambda: ["slurm"])
    """Unix users as whom slurmctld and slurmd run, beside root: nobody else may ask on behalf of a prolog or epilog."""
    kubeconfig: str | None = None
    """Path of the kubeconfig of the cluster of the pods; by default $KUBECONFIG, else the pod's own account, else ~/.kube/config."""
    context: str | None = None
    """Context of the kubeconfig; by default its current one."""
    pods_namespace: Annotated[str, msgspec.Meta(min_length=1, max_length=63)] = "slurm"
    """Namespace of the pods."""
    pods_namespaces: dict[str, str] = {}
    """Namespace by account, for accounts whose pods have another one."""
    pods_image: Annotated[str, msgspec.Meta(min_length=1)] = "debian:stable-slim"
    """Image of pods whose job's comment names none."""
    pods_node_labels: dict[str, str] = {}
    """Labels of the nodes on which the pods run; by default all nodes count."""
    pods_tolerations: list[str] = []
    """Taints that the pods tolerate, as kubectl writes them: `dedicated=slurm:NoSchedule`."""
    pods_claims: list[str] = []
    """Volume claims that every pod mounts, as `NAME:/PATH` or `NAME:/PATH:ro`: shared storage."""
    pods_storage: dict[str, str] = {}
    """Folder by volume claim, at which Slurm's hosts have the same storage: results that pods leave there can
    be moved."""
    pods_results: str | None = None
    """Folder in which an epilog keeps the results, output and summary of each job; `{job}`, `{user}`,
    `{account}` and `{workdir}` stand for the job's. By default only jobs whose comment asks for it have one,
    `{workdir}/results-{job}`."""
    pods_priority_classes: dict[str, str] = {}
    """PriorityClass of Kubernetes by QOS."""
    pods_labels: dict[str, str] = {}
    """Labels that every pod has beside its own."""
    pods_annotations: dict[str, str] = {}
    """Annotations that every pod has beside its own."""
    pods_ready_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 240.0
    """Longest time in seconds until a pod is ready, before its job goes back into the queue: less than
    PrologEpilogTimeout."""
    pods_stop_seconds: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 25
    """Longest time of a pod that is told to end, in seconds: less than KillWait, so that its last output
    arrives."""
    pods_gone_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 120.0
    """Longest wait of an epilog until a pod is really gone, in seconds."""
    pods_silence_seconds: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    """Longest silence of Kubernetes, in seconds, before no more jobs start as pods."""
    pods_sweep_seconds: Annotated[float, msgspec.Meta(ge=0.5, le=3600)] = 15.0
    """Seconds between two looks for what killed hooks left behind."""
    pods_lost_seconds: Annotated[float, msgspec.Meta(ge=5, le=3600)] = 60.0
    """Longest time, in seconds, that a job holds its node while neither its prolog nor its process asks the
    gate, before it goes back into the queue: a killed slurmctld may take such a job for running."""
    pods_resume_nodes: bool = False
    """Whether to resume nodes of the pods' partition alone that Slurm has drained as `Duplicate jobid`: over
    a job that a killed slurmctld has forgotten to have started. The bridge's user has to be an administrator
    of accounting for that."""
    pods_tokens: str | None = None
    """Licence of accounting's, as `NAME@SERVER`, of which there are as many as GPUs for the pods: `fairlead
    slurm install --tokens` has jobs ask for one for each GPU, so that few are started in vain. By default
    there is none."""
    pods_write_qps: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 50.0
    """Writes a second to the API server, in the long run."""
