"""What a simulated cluster keeps and what became different: the values that travel to its store and to NATS."""

import msgspec

from fairlead_contracts.base.instants import HOUR, Micros
from fairlead_contracts.messages.events import AnyEvent
from fairlead_sim.jobs import JobName, SimJob


class Ledger(msgspec.Struct, kw_only=True):
    """The counters of a cluster. They only grow, across restarts too."""

    rev: int = 0
    created: int = 0
    fence: int = 0
    """The highest epoch of a leader that was obeyed."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A name that was used: after its job is forgotten, the same submission must still not run again."""

    digest: str
    queue: str
    until: Micros


class Changes(msgspec.Struct, kw_only=True):
    """What became different since the last look; each job once, as it is now."""

    jobs: dict[JobName, SimJob] = {}
    gone: dict[JobName, Known] = {}
    """Jobs that are no longer stated, with what is remembered of their names."""
    forgotten: list[JobName] = []
    """Names that may be used again."""
    nodes: set[str] = set()
    pools: set[str] = set()
    events: list[AnyEvent] = []

    def __bool__(self) -> bool:
        return bool(self.jobs or self.gone or self.forgotten or self.nodes or self.pools or self.events)


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long a cluster remembers."""

    ended: Micros | None = HOUR
    """An ended job stays stated for so long; None for ever."""
    names: Micros = 7 * 24 * HOUR
    """Its name for so long after that: a late redelivery of its submission is then still recognised."""
