"""The flags of `fairlead up`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class UpFlags:
    """The flags of `fairlead up`; None where they say nothing."""

    nats: str | None = None
    """Use this NATS instead of an embedded one."""
    policy: Path | None = None
    """A policy file to put in force; unless given, the one that is stored, or three teams with weights 3, 2 and 1. With
    Kubernetes: or every namespace with weight 1."""
    scorers: Annotated[int, Parameter(validator=Number(gte=1, lte=64))] = 2
    """Number of scorers that share the work."""
    kubeconfig: str | None = None
    """Path of the kubeconfig of the Kubernetes clusters to steer."""
    context: Annotated[Sequence[str], Parameter(negative="")] = ()
    """Context of the kubeconfig; may be given several times, for several clusters. Its current one unless given."""
    slurm_conf: Path | None = None
    """Path of the slurm.conf of a Slurm cluster to steer; it has the name that stands there as ClusterName."""
    slurm_users: Path | None = None
    """File of lines `ACCOUNT USER`: as which Unix user submissions of an account become batch jobs, where this runs as root;
    unless given, as the user of the account's name."""
    cluster: str | None = None
    """Name of the simulated cluster, `sim` unless given; or of the only Kubernetes cluster, named after its context
    unless given."""
    cluster_file: Path | None = None
    """YAML with its nodes, queues and accounts; four nodes of eight GPUs unless given."""
    lever: Literal["boost", "priority"] | None = None
    """Field that Kueue obeys, where it cannot be asked: the boost annotation, or spec.priority."""
    gang_fit: Annotated[bool, Parameter(negative="")] = False
    """Answer Kueue's AdmissionCheck for gang fit, too, for the queues that name it (deploy/kustomize/gang-fit)."""
    dry_run: Annotated[bool, Parameter(negative="")] = False
    """Say what would be written, and write nothing."""
    store: Path | None = None
    """Directory for all data; one under ~/.local/state/fairlead unless given."""
    port: Annotated[int | None, Parameter(validator=Number(gte=1, lte=65535))] = None
    """Port of the embedded NATS; a free one unless given."""
