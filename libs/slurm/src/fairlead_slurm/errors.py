"""Errors of work with Slurm, as types under one root."""


class SlurmError(Exception):
    """Slurm did not do as it was asked."""


class RetryableSlurmError(SlurmError):
    """The same request may work later: nothing is known to be wrong with it."""


class SlurmUnreachableError(RetryableSlurmError):
    """slurmctld does not answer, or not in time; it may be restarting."""


class FatalSlurmError(SlurmError):
    """An error that comes again, however often it is tried."""


class ProgramMissingError(FatalSlurmError):
    """A program of Slurm's is not installed, or not where SLURM_CONF's readers look."""


class ConfigurationMissingError(RetryableSlurmError):
    """No slurm.conf is where it should be; Slurm's own commands would long ask the DNS for another one."""


class CommandFailedError(FatalSlurmError):
    """A command was refused; carries what Slurm said."""


class UnreadableError(FatalSlurmError):
    """Slurm said something in a form that this code does not know; carries it."""


class SubmitRefusedError(FatalSlurmError):
    """A batch job will not be made; carries why."""


class PodCommentError(FatalSlurmError):
    """A word of a job's comment that is meant for its pod cannot be read; carries which, and its form."""
