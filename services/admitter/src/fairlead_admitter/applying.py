"""Carrying a plan out: writes leave in the plan's order, some of them on the way at once.

Order matters: raised jobs first, the front first, then lowered ones, the back first; so that no job overtakes one
that shall stay ahead, not even for a moment. Waiting for each reply before the next write would keep that order at
the price of a round trip a level.

A frontend that carries out what it is given over one connection in that order is written to in a pipeline: each write
is sent after the one before it was *sent*. One that promises no order, as an API server, is written to side by side
where order does not matter: a write waits only for those before it that it could overtake (see `must_follow`). Where
one of those fails, it is not made either; the others are. The next pass plans around what failed, or makes it again.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from fairlead_admitter.errors import (
    FrontendBalkedError,
    FrontendDownError,
    FrontendForbiddenError,
    FrontendForbiddenHereError,
    FrontendRefusedError,
)
from fairlead_admitter.steering import Cause, LevelWrite
from fairlead_admitter.written import Landed, Sighting, Written
from fairlead_contracts.messages.state import JobState
from fairlead_policy.levels.ties import Tie

_ENOUGH_OF_A_SCOPE = 2
"""Writes of one scope that balked, after which a pass tries no more of them."""


class LevelWriter(Protocol):
    """Writes levels to a frontend."""

    @property
    def keeps_order(self) -> bool:
        """Whether writes take effect in the order in which the calls began."""

    async def write(self, job: JobState, level: int) -> Landed | None:
        """Give a job a level.

        Returns:
            The confirmation; None where the job is not in that phase any more: it waited, and waits no more.

        Raises:
            FrontendDownError: nobody knows whether it was written.
            FrontendBalkedError: so it is, and others may be written all the same.
            FrontendForbiddenError: it lets us write no levels at all.
            FrontendForbiddenHereError: so it is for this job, and others may be written all the same.
            FrontendRefusedError: the frontend will not take this level.
        """


class Applied(msgspec.Struct):
    """What became of a plan's writes."""

    landed: list[tuple[LevelWrite, Landed]] = []
    drifted: list[tuple[LevelWrite, Sighting]] = []
    """Those that turned out to repair what somebody had overwritten before it was seen."""
    refused_lifts: list[LevelWrite] = []
    """Of running jobs that the frontend will not protect: no reason to keep the order from those that wait."""
    balked: list[LevelWrite] = []
    """Those that failed while others may go well."""
    gone: int = 0
    """Jobs that waited no more."""
    failed: int = 0
    """Balked ones, too."""
    withheld: int = 0
    """Not sent: the right to write, or the room in this pass, ended before them."""
    missed: list[LevelWrite] = []
    """Those that failed, and those that were not sent because of these, or because they rest."""
    trouble: str = ""
    """Why the last failed one failed."""
    down: bool = False
    """Whether the frontend did not answer: it should be left alone for a while."""
    retry_after: float = 0.0
    forbidden: bool = False
    """Whether a right was missing."""


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
        longest: for how many seconds a plan is carried out: a frontend that is slow, or that we are slow to, shall
            not keep us from looking.
    """

    def __init__(
        self,
        writer: LevelWriter,
        written: Written,
        newest: Callable[[str], JobState | None],
        *,
        in_flight: int,
        at_once: int,
        longest: float,
    ) -> None:
        self._writer = writer
        self._written = written
        self._newest = newest
        self._in_flight = in_flight
        self._at_once = at_once
        self._longest = longest

    async def carry_out(
        self,
        pool: str,  # noqa: ARG002 # a rehearsal tells it
        writes: Sequence[LevelWrite],
        may_write: Callable[[], bool],
    ) -> Applied:
        """Write front to back as long as `may_write` says so; asked before each write."""
        applied = Applied()
        end = time.monotonic() + self._longest
        room = asyncio.Semaphore(self._in_flight)
        sent: list[tuple[LevelWrite, asyncio.Task[None]]] = []
        async with asyncio.TaskGroup() as group:
            for number, write in enumerate(writes):
                await room.acquire()
                spent = number >= self._at_once or time.monotonic() > end
                if spent or applied.down or not may_write():
                    applied.withheld += len(writes) - number
                    room.release()
                    break
                before = self._to_wait_for(write, sent)
                # Tasks take their first step in the order of their making: that is the order of sending.
                task = group.create_task(self._in_turn(write, before, applied, room, may_write))
                sent.append((write, task))
        return applied

    def _to_wait_for(
        self, write: LevelWrite, sent: Sequence[tuple[LevelWrite, asyncio.Task[None]]]
    ) -> list[asyncio.Task[None]]:
        if self._writer.keeps_order:
            return []
        return [task for earlier, task in sent if not task.done() and must_follow(write, earlier)]

    async def _in_turn(
        self,
        write: LevelWrite,
        before: Sequence[asyncio.Task[None]],
        applied: Applied,
        room: asyncio.Semaphore,
        may_write: Callable[[], bool],
    ) -> None:
        try:
            if before:
                await asyncio.wait(before)
            if applied.down or (before and not may_write()):
                applied.withheld += 1
            elif self._has_to_wait(write, applied) or not await self._write(write, applied):
                applied.missed.append(write)
        finally:
            room.release()

    def _has_to_wait(self, write: LevelWrite, applied: Applied) -> bool:
        """Because of what was not written before it, or because its scope fails again and again."""
        scope = write.job.scope
        return (
            self._written.rests.include(write.job)
            or sum(balked.job.scope == scope for balked in applied.balked) >= _ENOUGH_OF_A_SCOPE
            or any(must_follow(write, earlier) for earlier in applied.missed)
        )

    async def _write(self, write: LevelWrite, applied: Applied) -> bool:
        """Returns False where it may not have been done, and what must follow it has to wait."""
        self._written.send(write.job.uid, write.level)
        try:
            landed = await self._writer.write(write.job, write.level)
        except FrontendDownError as error:
            applied.failed += 1
            applied.trouble = str(error)
            applied.retry_after = max(applied.retry_after, error.retry_after)
            if isinstance(error, FrontendBalkedError):
                applied.balked.append(write)
            else:
                applied.down = True
            return False
        except FrontendForbiddenError as error:
            applied.failed += 1
            applied.trouble, applied.forbidden = str(error), True
            if isinstance(error, FrontendForbiddenHereError):
                applied.balked.append(write)
            else:
                applied.down = True
            return False
        except FrontendRefusedError as error:
            applied.trouble = str(error)
            if write.cause is Cause.PROTECT:
                applied.refused_lifts.append(write)
                return True
            applied.failed += 1
            self._land(write, None)
            return False
        sighting = self._land(write, landed)
        if sighting is not Sighting.EXPECTED:
            applied.drifted.append((write, sighting))
        if landed is None:
            applied.gone += 1
        else:
            applied.landed.append((write, landed))
        return True

    def _land(self, write: LevelWrite, landed: Landed | None) -> Sighting:
        if write.cause is Cause.PROTECT:
            return Sighting.EXPECTED  # it runs: its state is not compared with what we wrote
        newest = self._newest(write.job.uid) or write.job
        return self._written.land(newest, write.level, landed, time.monotonic())


def must_follow(write: LevelWrite, earlier: LevelWrite) -> bool:
    """Whether a write could turn a pair round, for a moment, if it took effect before an earlier one of its plan.

    Raised jobs come front first: the later one may not pass the earlier one while that still stands where it was,
    unless it stood before it anyway. Lowered ones come back first: the later one may not fall behind the earlier
    one. A raised and a lowered job end in the wanted order, whichever of the writes comes first. One that runs stands
    in no order; but what waits may not reach it while it is not lifted yet, or it could stop it.
    """
    if write.cause is Cause.PROTECT:
        return False
    raised = write.level > write.before
    if earlier.cause is Cause.PROTECT:
        return write.level >= earlier.before and (raised or write.cause is Cause.WAKE)
    if raised is not (earlier.level > earlier.before):
        return False
    if raised:
        return _stands(earlier, earlier.before) < _stands(write, write.before) and _stands(
            write, write.level
        ) < _stands(earlier, earlier.before)
    return _stands(write, write.before) < _stands(earlier, earlier.before) < _stands(write, write.level)


def _stands(write: LevelWrite, level: int) -> tuple[int, Tie]:
    """Where the job stands at that level among others, the lower the nearer to the front."""
    return -level, write.tie
