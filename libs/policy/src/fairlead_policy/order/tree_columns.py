"""Places of trees, and of classes that are not strict, as columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead_policy.order.position_columns import PositionColumns
from fairlead_policy.rules.jobs import WaitingJob


@dataclass(frozen=True, slots=True)
class Below:
    """What jobs' tenants stand at among their siblings at one depth below the top-level ones."""

    tenant: Sequence[str]
    """The job's own or one above it; empty where its own stands higher."""
    dominant: Sequence[str]
    """Empty where that tenant has nothing before the job."""
    tag: Sequence[float]


@dataclass(frozen=True, slots=True)
class TreeColumns(PositionColumns[WaitingJob]):
    """Places of jobs of tenants that stand alone, and of top-level tenants' sequences; not with H-DRF."""

    top: Sequence[str]
    """The top-level tenants."""
    override: Sequence[float | None]
    behind: Sequence[str]
    """What the job is called that each counts as; empty where that is itself."""
    below: Sequence[Below]
    """From the top down."""
