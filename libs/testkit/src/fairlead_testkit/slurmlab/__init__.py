"""A real Slurm for tests and for `make lab-slurm`: Debian's packages, all daemons on loopback, one folder."""

from fairlead_testkit.slurmlab.errors import SlurmCommandError, SlurmLabError, SlurmMissingError
from fairlead_testkit.slurmlab.lab import SlurmLab
from fairlead_testkit.slurmlab.options import ACCOUNTS, CLUSTER, OPERATOR, PEOPLE, SPARE, URGENT, SlurmOptions

__all__ = [
    "ACCOUNTS",
    "CLUSTER",
    "OPERATOR",
    "PEOPLE",
    "SPARE",
    "URGENT",
    "SlurmCommandError",
    "SlurmLab",
    "SlurmLabError",
    "SlurmMissingError",
    "SlurmOptions",
]
