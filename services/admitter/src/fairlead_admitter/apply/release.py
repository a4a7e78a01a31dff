"""Sweeps of marks: once a pool's queued jobs have lost their levels, all its other jobs lose our marks.

A sweep follows a release, a leave that is taken back, and a change of the lever. The loop takes the levels of queued
jobs away as it carries out any plan. Jobs that run or have finished still carry the mark with which they started. There
may be very many of those, so they are swept beside the loop.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from fairlead_admitter.apply.frontend_backoff import FrontendBackoff
from fairlead_admitter.errors import AdmitterError
from fairlead_admitter.report.record import AdmitterRecord
from fairlead_contracts.messages.leave import LeverName


class Sweep(Protocol):
    """Finds what carries our marks in a frontend, and takes them off."""

    async def sweep(
        self, queues: Collection[str], go_on: Callable[[], bool], only: LeverName | None = None
    ) -> int:
        """Takes our marks off the jobs of these queues while `go_on` says so; where a lever is named, its marks alone.

        Returns:
            How many jobs carried a mark.

        Raises:
            AdmitterError: some job stays marked; ask again.
        """


@dataclass(eq=False)
class PoolRelease:
    """Sweeps released pools, each once."""

    sweep: Sweep | None
    """Takes marks off in the frontend; None where only queued jobs carry marks."""
    record: AdmitterRecord
    frontend_backoff: FrontendBackoff

    def __post_init__(self) -> None:
        self._requested: dict[tuple[str, LeverName | None], tuple[Collection[str], Callable[[], bool]]] = {}
        """Wanted sweeps by pool and lever, each with the pool's queues and whether to go on; None as lever means both
        levers."""
        self._swept: set[tuple[str, LeverName | None]] = set()
        self._wake = asyncio.Event()

    def wanted(
        self, pool: str, queues: Collection[str], go_on: Callable[[], bool], *, only: LeverName | None = None
    ) -> None:
        """Has the pool swept, unless it was: no queued job carries a level any more.

        Where a lever is named, levels are written by the other one, and only the marks of the named one are taken off.
        """
        if self.sweep is not None and (pool, only) not in self._swept:
            self._requested[pool, only] = (queues, go_on)
            self._wake.set()

    def over(self, pool: str) -> None:
        """Gives the sweep of the pool up: the pool is steered again, or may be."""
        self._requested.pop((pool, None), None)
        self._swept.discard((pool, None))

    def begin_anew(self) -> None:
        """Forgets which pools were swept: another replica may have written since."""
        self._requested.clear()
        self._swept.clear()

    async def run(self) -> None:
        """Sweeps pools as they are requested, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for pool, only in list(self._requested):
                await self._clean(pool, only)

    async def _clean(self, pool: str, only: LeverName | None) -> None:
        due = self._requested.get((pool, only))
        if due is None:
            return  # steered again while another pool was swept
        queues, go_on = due
        if self.sweep is None or not go_on():
            self._requested.pop((pool, only), None)
            return
        try:
            cleaned = await self.sweep.sweep(queues, go_on, only)
        except AdmitterError as error:
            self.frontend_backoff.failed(str(error))
            self.record.withheld_levels.sweep_failed(pool, str(error))
            await asyncio.sleep(self.frontend_backoff.seconds_left)
            self._wake.set()
            return
        self.frontend_backoff.forget()
        self.record.withheld_levels.swept(pool, cleaned)
        if go_on() and self._requested.pop((pool, only), None) is not None:
            self._swept.add((pool, only))
