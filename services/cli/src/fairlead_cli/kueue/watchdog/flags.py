"""The flags of `fairlead watchdog`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number


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


AS_USUAL = WatchdogFlags()
"""No flag at all."""
