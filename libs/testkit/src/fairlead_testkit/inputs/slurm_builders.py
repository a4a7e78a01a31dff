"""Builders of what a slurmctld says: jobs, nodes, partitions."""

import msgspec

from fairlead_slurm import SlurmJob
from fairlead_slurm.cluster import SlurmNode, SlurmPartition, SlurmSettings

SECOND = 1_000_000
NOON = 1_700_000_000 * SECOND
GPU = "nvidia.com/gpu"


def a_slurm_job(name: str = "1", **changes: object) -> SlurmJob:
    """A waiting job of one GPU."""
    array, underscore, task = name.partition("_")
    job = SlurmJob(
        id=name,
        array=int(array),
        task=int(task) if underscore else None,
        number=int(array),
        state="PENDING",
        priority=1,
        nice=0,
        account="vision",
        user="ann",
        partitions=("gpu",),
        qos="normal",
        submitted=NOON,
        started=None,
        ends=None,
        eligible=NOON,
        time_limit=None,
        restarts=0,
        nodes=1,
        resources={"cpu": 1000, "mem": 2**20, "node": 1000, "billing": 1000, "gres/gpu": 1000},
        dependency="",
        reason="Priority",
        comment="",
        name="train",
    )
    return msgspec.structs.replace(job, **changes)


def a_partition(name: str, *, tier: int = 1, is_default: bool = False, **changes: object) -> SlurmPartition:
    """A partition that is up, for everybody, without a limit of time."""
    partition = SlurmPartition(
        name=name,
        tier=tier,
        is_default=is_default,
        state="UP",
        max_time=None,
        allowed_accounts=(),
        denied_accounts=(),
    )
    return msgspec.structs.replace(partition, **changes)


def a_node(name: str, *partitions: str, usable: bool = True, **changes: object) -> SlurmNode:
    """A node of 16 CPUs and 8 GPUs."""
    resources = {"cpu": 16_000, "mem": 2**30, "billing": 16_000, "gres/gpu": 8000, "gres/gpu:h100": 8000}
    node = SlurmNode(
        name=name,
        partitions=partitions,
        resources=resources,
        usable=usable,
        features=(),
        gres={"gpu": 8, "gpu:h100": 8},
    )
    return msgspec.structs.replace(node, **changes)


def some_accounts() -> list[str]:
    """Accounts: two below another."""
    return ["research", "vision", "speech"]


def some_settings(**weights: int) -> SlurmSettings:
    """Settings with these priority weights; an age of 3000 unless others are given."""
    return SlurmSettings(
        cluster="lab",
        version="22.05.8",
        priority_type="priority/multifactor",
        weights=dict(weights) or {"Age": 3000},
        preempt_type="preempt/none",
        slurm_user="slurm",
        scheduler_type="sched/backfill",
        scheduler={},
        enforced=("associations", "limits", "qos"),
        has_accounting=True,
    )
