"""The flags of `fairlead doctor`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DoctorFlags:
    """The flags on what counts, by what it is measured, and what becomes of leave."""

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


A_LOOK = DoctorFlags()
"""No flag at all."""
