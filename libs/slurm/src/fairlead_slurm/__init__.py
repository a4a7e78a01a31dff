"""Slurm for Fairlead: reads and steers one slurmctld. Alone runs Slurm's commands.

`Controller` is the port, `CommandController` the implementation by squeue, scontrol and scancel. No text of a user's ever
reaches a shell, or can be taken for another job's line.
"""

from fairlead_slurm.batch_fit import BatchTarget, fit
from fairlead_slurm.batch_options import BatchOption, Remark
from fairlead_slurm.batch_pods import LONGEST_SCRIPT, PodSite
from fairlead_slurm.batch_script import BatchScript, read
from fairlead_slurm.batch_target import batch_target
from fairlead_slurm.cluster import SlurmAccount, SlurmNode, SlurmPartition, SlurmSettings
from fairlead_slurm.controller import CommandController, Controller
from fairlead_slurm.errors import (
    CommandFailedError,
    ConfigurationMissingError,
    FatalSlurmError,
    PodCommentError,
    ProgramMissingError,
    RetryableSlurmError,
    SlurmError,
    SlurmUnreachableError,
    SubmitRefusedError,
    UnreadableError,
)
from fairlead_slurm.hooks.installing import (
    CONF,
    EPILOG,
    EPILOG_SLURMCTLD,
    NO_HOLD,
    PROLOG_SLURMCTLD,
    REQUEUE_EXIT,
    HookSettings,
    hook_files,
    missing_lines,
    pods_partition,
)
from fairlead_slurm.ladder import UNLABELLED, Ladder
from fairlead_slurm.limits import AccountLimits
from fairlead_slurm.partition_jobs import PartitionJobs
from fairlead_slurm.queue import Reading, SlurmJob
from fairlead_slurm.updates import HIGHEST_SITE_FACTOR, NotAnIdError, is_gone

__all__ = [
    "CONF",
    "EPILOG",
    "EPILOG_SLURMCTLD",
    "HIGHEST_SITE_FACTOR",
    "LONGEST_SCRIPT",
    "NO_HOLD",
    "PROLOG_SLURMCTLD",
    "REQUEUE_EXIT",
    "UNLABELLED",
    "AccountLimits",
    "BatchOption",
    "BatchScript",
    "BatchTarget",
    "CommandController",
    "CommandFailedError",
    "ConfigurationMissingError",
    "Controller",
    "FatalSlurmError",
    "HookSettings",
    "Ladder",
    "NotAnIdError",
    "PartitionJobs",
    "PodCommentError",
    "PodSite",
    "ProgramMissingError",
    "Reading",
    "Remark",
    "RetryableSlurmError",
    "SlurmAccount",
    "SlurmError",
    "SlurmJob",
    "SlurmNode",
    "SlurmPartition",
    "SlurmSettings",
    "SlurmUnreachableError",
    "SubmitRefusedError",
    "UnreadableError",
    "batch_target",
    "fit",
    "hook_files",
    "is_gone",
    "missing_lines",
    "pods_partition",
    "read",
]
