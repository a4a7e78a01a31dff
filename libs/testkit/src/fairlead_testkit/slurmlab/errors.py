"""Errors of the Slurm lab, as types under one root."""

from fairlead_testkit.kubelab.errors import KubeLabError


class SlurmLabError(KubeLabError):
    """The lab did not do as it was told. Under the root of labs: who catches what any lab raises need not know which."""


class SlurmMissingError(SlurmLabError):
    """Slurm's programs are not installed here; the message says how to get them."""


class SlurmCommandError(SlurmLabError):
    """A command of Slurm's ended with an error; carries what it wrote."""
