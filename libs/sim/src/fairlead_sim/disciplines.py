"""Orders to compare with in virtual time: first come first served, and strict priority. Fairlead's own: `steered`."""

from collections.abc import Sequence

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.verbs import SetLevel
from fairlead_sim.changes import ClusterChanges
from fairlead_sim.jobs import SimJob


class Fifo:
    """First come, first served: nobody gets a level."""

    def first_level(self, job: SimJob) -> int | None:
        """See `Discipline`."""
        del job
        return None

    def react(self, changes: ClusterChanges, now: Micros) -> list[SetLevel]:
        """See `Discipline`."""
        del changes, now
        return []


class StrictPriority:
    """A level for each class, then first come first served: what priority classes alone give.

    Grants are not looked at: who asks for a class has it.
    """

    def __init__(self, classes: Sequence[str]) -> None:
        """Classes, the first goes first."""
        self._levels = {name: len(classes) - rank for rank, name in enumerate(classes)}

    def first_level(self, job: SimJob) -> int | None:
        """See `Discipline`."""
        return self._levels.get(job.requested_class or "", 1)

    def react(self, changes: ClusterChanges, now: Micros) -> list[SetLevel]:
        """See `Discipline`."""
        del changes, now
        return []
