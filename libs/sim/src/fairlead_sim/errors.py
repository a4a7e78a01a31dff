"""The errors of this library, under one root."""

from fairlead_runtime import ServiceError


class SimError(ServiceError):
    """Something is wrong with a simulated cluster. Fatal: the same input fails again."""


class ConfigError(SimError):
    """The configuration of a cluster does not fit together."""


class TraceError(SimError):
    """A trace cannot be read: the message says where."""


class ClusterStoreError(SimError):
    """The cluster's file cannot be used: another process has it open, or another cluster's truth is in it."""


class StuckError(SimError):
    """A run in virtual time cannot end: a job waits that can never start."""
