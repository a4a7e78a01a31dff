"""Errors of the Slurm lab, as types under one root."""

from fairlead_testkit.labs import LabError


class SlurmLabError(LabError):
    """The Slurm lab did not do as it was told."""


class SlurmMissingError(SlurmLabError):
    """Slurm's programs are not installed here; the message says how to get them."""


class SlurmCommandError(SlurmLabError):
    """A command of Slurm's ended with an error; carries what it wrote."""
