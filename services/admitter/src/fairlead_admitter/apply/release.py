"""Leaving no trace in a pool: after the queued jobs' levels, the marks on everything else.

It is so at a release, when leave is taken back, and of a lever that levels are not written by any more. A release is done by the loop for what is queued, as any plan. What runs or has finished still carries the mark with
which it started. There may be very many of those, so they are cleaned beside the loop.
"""

import asyncio
from collections.abc import Callable, Collection
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
        """Clean these queues as long as `go_on` says so; of the marks of one lever alone, where it is named.

        Returns:
            How many carried a mark.

        Raises:
            AdmitterError: something stays marked; ask again.
        """


class PoolRelease:
    """Sweeps released pools, each once.

    Args:
        sweep: of the frontend; None where it keeps no marks but on queued jobs.
        record: hears of it.
        frontend_backoff: paces the attempts.
    """

    def __init__(
        self, sweep: Sweep | None, record: AdmitterRecord, frontend_backoff: FrontendBackoff
    ) -> None:
        self._sweep = sweep
        self._record = record
        self._frontend_backoff = frontend_backoff
        self._due: dict[tuple[str, LeverName | None], tuple[Collection[str], Callable[[], bool]]] = {}
        """By pool, and the lever that alone is meant."""
        self._done: set[tuple[str, LeverName | None]] = set()
        self._stirred = asyncio.Event()

    def wanted(
        self, pool: str, queues: Collection[str], go_on: Callable[[], bool], *, only: LeverName | None = None
    ) -> None:
        """No mark is to be left in the pool, and nothing that is queued carries a level any more.

        Where a lever is named, levels are written by the other one: this one's marks alone go.
        """
        if self._sweep is not None and (pool, only) not in self._done:
            self._due[pool, only] = (queues, go_on)
            self._stirred.set()

    def over(self, pool: str) -> None:
        """The pool is steered again, or may be."""
        self._due.pop((pool, None), None)
        self._done.discard((pool, None))

    def begin_anew(self) -> None:
        """Another replica may have written since: what was clean may not be."""
        self._due.clear()
        self._done.clear()

    async def run(self) -> None:
        """Sweep what is due, until cancelled."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            for pool, only in list(self._due):
                await self._clean(pool, only)

    async def _clean(self, pool: str, only: LeverName | None) -> None:
        due = self._due.get((pool, only))
        if due is None:
            return  # steered again while another pool was swept
        queues, go_on = due
        if self._sweep is None or not go_on():
            self._due.pop((pool, only), None)
            return
        try:
            cleaned = await self._sweep.sweep(queues, go_on, only)
        except AdmitterError as error:
            self._frontend_backoff.failed(str(error))
            self._record.restraints.sweep_failed(pool, str(error))
            await asyncio.sleep(self._frontend_backoff.seconds_left)
            self._stirred.set()
            return
        self._frontend_backoff.forget()
        self._record.restraints.swept(pool, cleaned)
        if go_on() and self._due.pop((pool, only), None) is not None:
            self._done.add((pool, only))
