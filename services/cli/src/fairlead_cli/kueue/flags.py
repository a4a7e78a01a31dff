"""The flags of `fairlead doctor` and `fairlead watchdog`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DoctorFlags:
    """Flags of `doctor`: findings that do not count, the policy to measure by, and leave."""

    accept: Annotated[Sequence[str], Parameter(negative="")] = ()
    """Name of findings that shall not count, errors or warnings; may be given several times. Stays accepted until
    --revoke."""
    lever: Annotated[
        Literal["boost", "priority"] | None,
        Parameter(help="What Kueue obeys, where it cannot be asked: the boost annotation, or spec.priority."),
    ] = None
    service_accounts: str | None = None
    """Namespace of the service accounts fairlead-watcher and fairlead-admitter: their rights are looked at in place
    of our own."""
    policy: Path | None = None
    """A policy file to measure by; the one in force unless given."""
    by: Annotated[str | None, Parameter(help="Who says so; the user of this machine unless given.")] = None
    revoke: Annotated[bool, Parameter(negative="")] = False
    """Take the leave back: every level is taken away, then nothing is written to the cluster any more."""
    give_leave: Annotated[bool, Parameter(negative="")] = False
    """Give leave again after --revoke, or before the cluster's services first start, if it passes. Else leave takes no
    flag."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WatchdogFlags:
    """The flags on the checks, and on how long is waited."""

    check: Annotated[Sequence[str], Parameter(negative=())] = ()
    """Names of AdmissionChecks, each with a flag of its own; Fairlead's is `gang-fit`."""
    overdue: Annotated[float, Parameter(validator=Number(gte=1))] = 60.0
    """Seconds that a Workload may hold quota and wait for the check until it is let through."""
    after: Annotated[float, Parameter(validator=Number(gte=1))] = 600.0
    """Seconds without a leader, or without NATS, until they become BestEffortFIFO."""
    back_after: Annotated[float, Parameter(validator=Number(gte=0))] = 30.0
    """Seconds with one and the same leader until they become StrictFIFO again."""
    every: Annotated[float, Parameter(validator=Number(gte=0.2, lte=60))] = 5.0
    """Seconds between two looks."""
