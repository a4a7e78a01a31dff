"""Releasing a pool without a trace: after the queued jobs' levels, the marks on everything else.

A release is done by the loop for what is queued, as any plan. What runs or has finished still carries the mark with
which it started. There may be very many of those, so they are cleaned beside the loop.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

from fairlead_admitter.errors import AdmitterError
from fairlead_admitter.record import Record
from fairlead_admitter.setbacks import Setbacks


class Sweep(Protocol):
    """Finds what carries our marks in a frontend, and takes them off."""

    async def sweep(self, queues: Collection[str], go_on: Callable[[], bool]) -> int:
        """Clean these queues as long as `go_on` says so.

        Returns:
            How many carried a mark.

        Raises:
            AdmitterError: something stays marked; ask again.
        """


class Release:
    """Sweeps released pools, each once.

    Args:
        sweep: of the frontend; None where it keeps no marks but on queued jobs.
        record: hears of it.
        setbacks: paces the attempts.
    """

    def __init__(self, sweep: Sweep | None, record: Record, setbacks: Setbacks) -> None:
        self._sweep = sweep
        self._record = record
        self._setbacks = setbacks
        self._due: dict[str, tuple[Collection[str], Callable[[], bool]]] = {}
        self._done: set[str] = set()
        self._stirred = asyncio.Event()

    def wanted(self, pool: str, queues: Collection[str], go_on: Callable[[], bool]) -> None:
        """The pool is released, and nothing that is queued carries a level any more."""
        if self._sweep is not None and pool not in self._done:
            self._due[pool] = (queues, go_on)
            self._stirred.set()

    def over(self, pool: str) -> None:
        """The pool is steered again, or may be."""
        self._due.pop(pool, None)
        self._done.discard(pool)

    def begin_anew(self) -> None:
        """Another replica may have written since: what was clean may not be."""
        self._due.clear()
        self._done.clear()

    async def run(self) -> None:
        """Sweep what is due, until cancelled."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            for pool in list(self._due):
                await self._clean(pool)

    async def _clean(self, pool: str) -> None:
        due = self._due.get(pool)
        if due is None:
            return  # steered again while another pool was swept
        queues, go_on = due
        if self._sweep is None or not go_on():
            self._due.pop(pool, None)
            return
        try:
            cleaned = await self._sweep.sweep(queues, go_on)
        except AdmitterError as error:
            self._setbacks.failed(str(error))
            self._record.restraints.sweep_failed(pool, str(error))
            await asyncio.sleep(self._setbacks.seconds_left)
            self._stirred.set()
            return
        self._setbacks.forget()
        self._record.restraints.swept(pool, cleaned)
        if go_on() and self._due.pop(pool, None) is not None:
            self._done.add(pool)
