"""Readings of slurmctld: the queue each time, all that seldom changes now and then."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlead_contracts.base.instants import Micros, from_seconds
from fairlead_slurm import QueueReading
from fairlead_slurm.controller import Controller
from fairlead_slurm.errors import SlurmError
from fairlead_slurm_bridge.statements.stated_view import SlurmContext

CONTEXT_SECONDS = 10.0
"""Seconds between two readings of nodes, partitions, accounts, settings and licences."""


@dataclass(eq=False)
class Observer:
    """A reader of slurmctld, which knows how long slurmctld has been silent."""

    controller: Controller
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    _heard: float | None = field(default=None, init=False)
    _surveyed: float | None = field(default=None, init=False)
    trouble: str | None = field(default=None, init=False)
    """Reason for which the last reading failed; None where it did not."""

    def __post_init__(self) -> None:
        self._began = self.clock()

    async def context(self) -> SlurmContext | None:
        """Read all but jobs; None where it is not yet time to ask again.

        Raises:
            SlurmError: slurmctld could not be read.
        """
        if self._surveyed is not None and self.clock() - self._surveyed < CONTEXT_SECONDS:
            return None
        try:
            nodes, partitions, accounts, settings, licences = await asyncio.gather(
                self.controller.nodes(),
                self.controller.partitions(),
                self.controller.accounts(),
                self.controller.settings(),
                self.controller.licences(),
            )
        except SlurmError as error:
            self.trouble = str(error)
            raise
        self._surveyed = self.clock()
        return SlurmContext(
            nodes=nodes, partitions=partitions, accounts=accounts, settings=settings, licences=licences
        )

    async def jobs(self) -> QueueReading:
        """Read the queue.

        Raises:
            SlurmError: slurmctld could not be read.
        """
        try:
            found = await self.controller.jobs()
        except SlurmError as error:
            self.trouble = str(error)
            self._surveyed = None  # nobody took up what was read beside them
            raise
        self._heard = self.clock()
        self.trouble = None
        return found

    def age(self) -> float:
        """Seconds since slurmctld was last read; where it never was, since this process asks."""
        return self.clock() - (self._began if self._heard is None else self._heard)

    def heard_at(self, now: Micros) -> Micros | None:
        """The instant of the last reading by a clock that says `now`; None where there was none yet."""
        return None if self._heard is None else now - from_seconds(self.age())

    def why_silent(self, longest: float) -> str | None:
        """The complaint about slurmctld once it is silent for more than `longest` seconds; None before."""
        if self._heard is not None and self.age() <= longest:
            return None
        return f"slurmctld has said nothing for {self.age():.0f} s: {self.trouble or 'no answer yet'}"
