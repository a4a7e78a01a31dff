"""Carrying a plan out: writes leave in the plan's order, some of them on the way at once.

Order matters: raised jobs first, the front first, then lowered ones, the back first; so that no job overtakes one
that shall stay ahead, not even for a moment. Waiting for each reply before the next write would keep that order at
the price of a round trip a level. So writes are pipelined: each is sent after the one before it was *sent*, over one
connection, and a port promises to carry out what it is given in that order (an adapter whose frontend gives no such
promise takes one at a time). A write that fails in the middle leaves those behind it ahead of their time until the
next pass, which writes it again.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from fairlead_admitter.errors import FrontendDownError, FrontendRefusedError
from fairlead_admitter.steering import LevelWrite
from fairlead_admitter.written import Written
from fairlead_contracts.state import JobState


class LevelWriter(Protocol):
    """Writes levels to a frontend, in the order in which the calls began."""

    async def write(self, job: JobState, level: int) -> int | None:
        """Give a waiting job a level.

        Returns:
            The job's revision after the write; None where it waits no more.

        Raises:
            FrontendDownError: nobody knows whether it was written.
            FrontendRefusedError: the frontend will not take this level.
        """


class Applied(msgspec.Struct):
    """What became of a plan's writes."""

    landed: list[tuple[LevelWrite, int]] = []
    """With the revision that each made."""
    gone: int = 0
    """Jobs that waited no more."""
    failed: int = 0
    withheld: int = 0
    """Not sent: the right to write, or the room in this pass, ended before them."""
    trouble: str = ""
    """Why the last failed one failed."""


class Rehearsal:
    """A dry run: says what it would write, each thing once, and writes nothing."""

    def __init__(self, tell: Callable[[str, LevelWrite], None]) -> None:
        self._tell = tell
        self._told: dict[str, dict[str, int]] = {}

    async def carry_out(
        self, pool: str, writes: Sequence[LevelWrite], may_write: Callable[[], bool]
    ) -> Applied:
        """Tell what is new in the plan."""
        if may_write():
            told = self._told.get(pool, {})
            for write in writes:
                if told.get(write.job.uid) != write.level:
                    self._tell(pool, write)
            self._told[pool] = {write.job.uid: write.level for write in writes}
        return Applied()


class Application:
    """Carries plans out.

    Args:
        writer: the frontend.
        written: the trail of writes, kept up here.
        newest: the newest state of a job, by uid.
        in_flight: how many writes may be on the way at once.
        at_once: how many writes of one plan are carried out; the rest is planned anew from what stands then.
    """

    def __init__(
        self,
        writer: LevelWriter,
        written: Written,
        newest: Callable[[str], JobState | None],
        *,
        in_flight: int,
        at_once: int,
    ) -> None:
        self._writer = writer
        self._written = written
        self._newest = newest
        self._in_flight = in_flight
        self._at_once = at_once

    async def carry_out(
        self,
        pool: str,  # noqa: ARG002 # a rehearsal tells it
        writes: Sequence[LevelWrite],
        may_write: Callable[[], bool],
    ) -> Applied:
        """Write front to back as long as `may_write` says so; asked before each write."""
        applied = Applied()
        room = asyncio.Semaphore(self._in_flight)
        async with asyncio.TaskGroup() as group:
            for number, write in enumerate(writes):
                await room.acquire()
                if number >= self._at_once or applied.failed or not may_write():
                    applied.withheld = len(writes) - number
                    room.release()
                    break
                self._written.send(write.job.uid, write.level)
                # Tasks take their first step in the order of their making: that is the order of sending.
                group.create_task(self._write(write, applied, room))
        return applied

    async def _write(self, write: LevelWrite, applied: Applied, room: asyncio.Semaphore) -> None:
        try:
            rev = await self._writer.write(write.job, write.level)
        except FrontendDownError as error:
            applied.failed += 1
            applied.trouble = str(error)
        except FrontendRefusedError as error:
            applied.failed += 1
            applied.trouble = str(error)
            self._written.land(self._newest(write.job.uid) or write.job, write.level, None)
        else:
            self._written.land(self._newest(write.job.uid) or write.job, write.level, rev)
            if rev is None:
                applied.gone += 1
            else:
                applied.landed.append((write, rev))
        finally:
            room.release()
