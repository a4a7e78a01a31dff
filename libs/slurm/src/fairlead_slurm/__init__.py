"""Slurm for Fairlead: reads and steers one slurmctld. Alone runs Slurm's commands, and asks slurmrestd.

`Controller` is the port, `CommandController` the implementation by squeue, scontrol and scancel, `RestController` that by
slurmrestd. No text of a user's ever reaches a shell, or can be taken for another job's line.
"""

from fairlead_slurm.batch_fit import BatchTarget, fit
from fairlead_slurm.batch_options import BatchOption, Remark
from fairlead_slurm.batch_pods import LONGEST_SCRIPT, PodSite
from fairlead_slurm.batch_script import BatchScript, read
from fairlead_slurm.batch_target import batch_target
from fairlead_slurm.cluster import BACKUP_CONTROLLER, SlurmAccount, SlurmNode, SlurmPartition, SlurmSettings
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
    ALLOW_NONE,
    CONF,
    EPILOG,
    EPILOG_SLURMCTLD,
    NO_HOLD,
    PROLOG_SLURMCTLD,
    REQUEUE_EXIT,
    HookSettings,
    asks_over_tls,
    hook_files,
    pods_partition,
    pods_tokens,
)
from fairlead_slurm.hooks.slurm_conf import (
    conf_dangers,
    lua_dangers,
    missing_lines,
    replaced_hooks,
)
from fairlead_slurm.ladder import UNLABELLED, Ladder
from fairlead_slurm.licences import AccountedLicence, Licence, LicenceName
from fairlead_slurm.limits import AccountLimits
from fairlead_slurm.partition_jobs import PartitionJobs
from fairlead_slurm.partition_nodes import PartitionNodes
from fairlead_slurm.queue import Reading, SlurmJob
from fairlead_slurm.rest.client import RestClient
from fairlead_slurm.rest.controller import RestController
from fairlead_slurm.slurm_token import SlurmToken
from fairlead_slurm.updates import HIGHEST_SITE_FACTOR, NotAnIdError, is_gone

__all__ = [
    "ALLOW_NONE",
    "BACKUP_CONTROLLER",
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
    "AccountedLicence",
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
    "Licence",
    "LicenceName",
    "NotAnIdError",
    "PartitionJobs",
    "PartitionNodes",
    "PodCommentError",
    "PodSite",
    "ProgramMissingError",
    "Reading",
    "Remark",
    "RestClient",
    "RestController",
    "RetryableSlurmError",
    "SlurmAccount",
    "SlurmError",
    "SlurmJob",
    "SlurmNode",
    "SlurmPartition",
    "SlurmSettings",
    "SlurmToken",
    "SlurmUnreachableError",
    "SubmitRefusedError",
    "UnreadableError",
    "asks_over_tls",
    "batch_target",
    "conf_dangers",
    "fit",
    "hook_files",
    "is_gone",
    "lua_dangers",
    "missing_lines",
    "pods_partition",
    "pods_tokens",
    "read",
    "replaced_hooks",
]
