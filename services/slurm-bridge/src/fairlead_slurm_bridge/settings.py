"""What a slurm-bridge can be told."""

from typing import Annotated

import msgspec

from fairlead_runtime import ServiceSettings


class SlurmBridgeSettings(ServiceSettings, frozen=True, kw_only=True):
    """Settings of one slurm-bridge: the slurmctld that it speaks for, and how it reads it."""

    cluster: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "slurm"
    """Name of the cluster; one bridge leads per cluster, the others stand by."""
    slurm_conf: str | None = None
    """Path of slurm.conf; by default $SLURM_CONF, else where Slurm's commands look."""
    slurm_token: str | None = None
    """Path of a file with a JSON Web Token for slurmctld (`scontrol token`), where no munge runs beside the bridge. Read
    for each command, so that a new one may be put in its place."""
    store: str = "slurm-bridge.sqlite"
    """Path of the SQLite file that remembers when jobs were first seen, which Slurm forgets at a requeue."""
    poll_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=300)] = 2.0
    """Between two readings of the queue. Nodes, partitions and accounts are read less often."""
    command_seconds: Annotated[float, msgspec.Meta(ge=1, le=300)] = 20.0
    """How long one of Slurm's commands may take."""
    stale_after_seconds: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    """How long slurmctld may say nothing before the bridge calls itself not ready. What it said last stays stated."""
    array_window: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    """How many tasks of an array have a place in the order at a time. Slurm keeps a record of its own for each."""
    gres_gpu: str = "nvidia.com/gpu"
    """What Slurm's `gres/gpu` is called in Fairlead: the same as in Kubernetes, so that one pool can have both."""
    qos_classes: dict[str, str] = msgspec.field(
        default_factory=lambda: {"urgent": "urgent", "approved": "approved"}
    )
    """The class that a job of a QOS asks for."""
