"""Changes of a simulated cluster: the values that travel to its store and to NATS."""

from collections.abc import Callable

import msgspec

from fairlead_contracts.base.instants import HOUR, Micros
from fairlead_contracts.messages.events import AnyEvent
from fairlead_sim.jobs import JobName, SimJob


class ClusterCounters(msgspec.Struct, kw_only=True):
    """The counters of a cluster. They only grow, across restarts too."""

    rev: int = 0
    created: int = 0
    fence: int = 0
    """The highest epoch of a leader that was obeyed."""


class UsedName(msgspec.Struct, frozen=True, kw_only=True):
    """A name that was used: after its job is forgotten, the same submission must still not run again."""

    digest: str
    queue: str
    until: Micros
    """Instant from which on the name is free."""


type FindUsed = Callable[[JobName], UsedName | None]
"""Finds the use of a name whose job was forgotten before the last look, if it is remembered; the name may be free again."""


class ClusterChanges(msgspec.Struct, kw_only=True):
    """The changes since the last look; each job once, as it is now."""

    jobs: dict[JobName, SimJob] = {}
    gone: dict[JobName, UsedName] = {}
    """Jobs that are no longer stated, with what is remembered of their names."""
    events: list[AnyEvent] = []
    at: Micros = 0
    """The instant of the changes: names that were remembered until then are free."""

    def __bool__(self) -> bool:
        return bool(self.jobs or self.gone or self.events)


class JobRetention(msgspec.Struct, frozen=True, kw_only=True):
    """The time for which a cluster remembers what has ended."""

    ended: Micros | None = HOUR
    """Time for which an ended job stays stated; None for ever."""
    names: Micros = 7 * 24 * HOUR
    """Time for which its name is remembered after that: a late redelivery of its submission is then still
    recognised."""
