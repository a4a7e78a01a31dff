"""Options of a Slurm lab: what runs in it, and how."""

import os
from dataclasses import dataclass, field

CLUSTER = "lab"
ACCOUNTS = ("vision", "speech", "robots")
"""The accounts of the default lab; `vision` and `speech` stand under `research`."""
SPARE = "spare"
"""Account for what only takes room."""
URGENT = "urgent"
"""A QOS that every account may use."""
TREE = {"research": "root", "vision": "research", "speech": "research", "robots": "root", SPARE: "root"}
"""Parent of each account."""
PEOPLE = {"vision": "games", "speech": "news", "robots": "uucp"}
"""A plain user of each account: some that each Debian has, so that the lab makes none."""
OPERATOR = "list"
"""The user whom Fairlead may run as: Slurm's administration level Operator and no more."""


@dataclass(frozen=True)
class SlurmOptions:
    """Options of a Slurm lab.

    Attributes:
        accounting: whether MariaDB and slurmdbd run; they need root.
        backup: whether a second slurmctld stands by, as on another host; it needs root too.
        rest: whether slurmrestd runs, over TCP with tokens and at a socket as OPERATOR; needs root too.
        partitions: lines of slurm.conf; `{nodes}` stands for all nodes.
        scheduler: further words of SchedulerParameters.
    """

    accounting: bool = field(default_factory=lambda: os.geteuid() == 0)
    backup: bool = False
    rest: bool = False
    nodes: int = 4
    cpus: int = 16
    gpus: int = 8
    partitions: tuple[str, ...] = ("PartitionName=gpu Nodes={nodes} Default=YES MaxTime=INFINITE State=UP",)
    scheduler: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
