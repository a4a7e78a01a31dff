"""The errors of this library, under one root."""

from collections.abc import Iterable

from fairlead_contracts.base.errors import FieldError
from fairlead_runtime.errors import ServiceError


class SimError(ServiceError):
    """Something is wrong with a simulated cluster. Fatal: the same input fails again."""


class ConfigError(SimError):
    """The configuration of a cluster cannot be read, or does not fit together; carries every problem found, not only the first.

    Args:
        what: is wrong, as far as it can be said without them.
        problems: each with its field.
    """

    def __init__(self, what: str, problems: Iterable[FieldError] = ()) -> None:
        self.what = what
        self.problems = [str(problem) for problem in problems]
        super().__init__(f"{what}: {'; '.join(self.problems)}" if self.problems else what)


class TraceError(SimError):
    """A trace cannot be read: the message says where."""


class ClusterStoreError(SimError):
    """The cluster's file cannot be used: another process has it open, or another cluster's truth is in it."""


class StuckError(SimError):
    """A run in virtual time cannot end: a job waits that can never start."""
