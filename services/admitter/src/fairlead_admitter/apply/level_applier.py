"""Carrying a plan out: writes leave in the plan's order, in batches, some of them on the way at once.

Order matters: raised jobs first, the front first, then lowered ones, the back first; so that no job overtakes one
that shall stay ahead, not even for a moment. Waiting for each reply before the next write would keep that order at
the price of a round trip a level.

A frontend that carries out what it is given over one connection in that order is written to in a pipeline: each batch
is sent after the one before it was *sent*. One that promises no order, as an API server, is written to side by side
where order does not matter: a write waits only for those before it that it could overtake (see `Barrier`). Where one of
those fails, it is not made either; all others are. The next pass plans around the failed write, or makes it again.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import batched
from typing import Protocol

from fairlead_admitter.apply.barrier import Barrier
from fairlead_admitter.decide.outcome import PlanOutcome
from fairlead_admitter.decide.steering import LevelWrite
from fairlead_admitter.errors import (
    AdmitterError,
    FrontendBalkedError,
    FrontendDownError,
    FrontendForbiddenError,
    FrontendForbiddenHereError,
    FrontendRefusedError,
)
from fairlead_admitter.observe.expectations import Expectations, LevelVerdict, WriteConfirmation
from fairlead_contracts.messages.state import JobState, QueueState

_MOST_BALKED_IN_A_SCOPE = 2
"""Writes of one scope that may balk in a pass before it tries no more of them."""


type WriteResult = WriteConfirmation | AdmitterError | None
"""The result of one write: the confirmation; None where the job has left its phase, such as one that waits no more; or
why it may not have been done.

FrontendDownError: nobody knows whether it was written. FrontendBalkedError: the same of this write alone; others may be
made. FrontendForbiddenError: the frontend lets us write no levels at all. FrontendForbiddenHereError: the same for this
job; others may be written. FrontendRefusedError: the frontend will not take this level.
"""


class LevelWriter(Protocol):
    """Writes levels to a frontend."""

    @property
    def keeps_order(self) -> bool:
        """Whether batches take effect in the order in which the calls began."""

    async def write(self, batch: Sequence[LevelWrite]) -> Sequence[WriteResult]:
        """Gives jobs their levels, in this order; returns each result. A batch is as large as its queues take."""


class DryRunApplier:
    """A dry run: says what it would write, each thing once, and writes nothing."""

    def __init__(self, tell: Callable[[str, LevelWrite], None]) -> None:
        self._tell = tell
        self._told: dict[str, dict[str, int]] = {}

    async def carry_out(
        self, pool: str, writes: Sequence[LevelWrite], may_write: Callable[[], bool]
    ) -> PlanOutcome:
        """Tell the writes that are new in the plan."""
        if may_write():
            told = self._told.get(pool, {})
            for write in writes:
                if told.get(write.job.uid) != write.level:
                    self._tell(pool, write)
            self._told[pool] = {write.job.uid: write.level for write in writes}
        return PlanOutcome()


class _PlanUnderway:
    """A plan that is being carried out."""

    def __init__(self, may_write: Callable[[], bool], requests: int) -> None:
        self.may_write = may_write
        self.applied = PlanOutcome()
        self.room = asyncio.Semaphore(requests)
        self.barrier = Barrier()
        self.balked: Counter[str] = Counter()
        """Number of writes that a webhook of the scope stood in the way of, by scope."""
        self.sent: dict[asyncio.Task[None], Barrier] = {}
        """Batches that were sent and have no reply yet."""

    def miss(self, write: LevelWrite) -> None:
        """Notes a write that may not have been done: writes that must come after it have to wait."""
        self.applied.missed.append(write)
        self.barrier.add(write)


@dataclass(eq=False)
class LevelApplier:
    """Carries plans out."""

    writer: LevelWriter
    expectations: Expectations
    """The trail of writes, kept up here."""
    newest: Callable[[str], JobState | None]
    """The newest state of a job, by uid."""
    _: KW_ONLY
    queues: Callable[[], Mapping[str, QueueState]]
    """Queues by name, as their frontend states them: each says how many levels one request takes."""
    in_flight: int
    """Number of requests that may be on the way at once."""
    at_once: int
    """Number of one plan's writes that are carried out; the rest is planned anew from what stands then."""
    longest: float
    """Seconds for which a plan is carried out: neither a slow frontend nor our own slowness shall keep us from
    looking."""

    async def carry_out(
        self,
        pool: str,  # noqa: ARG002 # a dry run tells it
        writes: Sequence[LevelWrite],
        may_write: Callable[[], bool],
    ) -> PlanOutcome:
        """Write front to back as long as `may_write` says so; asked before each batch."""
        underway = _PlanUnderway(may_write, self.in_flight)
        end = time.monotonic() + self.longest
        begun = 0
        async with asyncio.TaskGroup() as group:
            for batch in self._batches(writes[: self.at_once]):
                await underway.room.acquire()
                if time.monotonic() > end or underway.applied.down or not may_write():
                    underway.room.release()
                    break
                before = [
                    sent
                    for sent, barrier in underway.sent.items()
                    if not self.writer.keeps_order and any(map(barrier.stops, batch))
                ]
                # Tasks take their first step in the order of their making: that is the order of sending.
                task = group.create_task(self._write_after(batch, before, underway))
                underway.sent[task] = Barrier(batch)
                task.add_done_callback(underway.sent.pop)
                begun += len(batch)
        underway.applied.withheld += len(writes) - begun
        return underway.applied

    def _batches(self, writes: Sequence[LevelWrite]) -> Iterator[Sequence[LevelWrite]]:
        queues = self.queues()
        taken = {write.job.queue for write in writes}
        return batched(
            writes,
            min((queues[name].able.batch for name in taken if name in queues), default=1),
            strict=False,
        )

    async def _write_after(
        self, batch: Sequence[LevelWrite], before: Sequence[asyncio.Task[None]], underway: _PlanUnderway
    ) -> None:
        try:
            if before:
                await asyncio.wait(before)
            if underway.applied.down or (before and not underway.may_write()):
                underway.applied.withheld += len(batch)
                return
            ready = []
            for write in batch:
                if self._is_left_for_next_pass(write, underway):
                    underway.miss(write)
                else:
                    ready.append(write)
            if ready:
                await self._write(ready, underway)
        finally:
            underway.room.release()

    def _is_left_for_next_pass(self, write: LevelWrite, underway: _PlanUnderway) -> bool:
        """Whether the write waits for the next pass: its job or scope rests, or one that it must follow was missed."""
        return (
            self.expectations.backoff.include(write.job)
            or underway.balked[write.job.scope] >= _MOST_BALKED_IN_A_SCOPE
            or underway.barrier.stops(write)
        )

    async def _write(self, batch: Sequence[LevelWrite], underway: _PlanUnderway) -> None:
        for write in batch:
            self.expectations.send(write.job.uid, write.level)
        began = time.monotonic()
        results = await self.writer.write(batch)
        underway.applied.took.append(time.monotonic() - began)
        for write, result in zip(batch, results, strict=True):
            if isinstance(result, AdmitterError):
                self._fail(write, result, underway)
            else:
                self._settle(write, result, underway.applied)

    def _settle(self, write: LevelWrite, landed: WriteConfirmation | None, applied: PlanOutcome) -> None:
        verdict = self._land(write, landed)
        if verdict is not LevelVerdict.EXPECTED:
            applied.drifted.append((write, verdict))
        if landed is not None:
            applied.landed.append((write, landed))
        elif not write.of_running:  # that one which ran has ended says nothing of how soon levels come
            applied.gone += 1

    def _fail(self, write: LevelWrite, error: AdmitterError, underway: _PlanUnderway) -> None:
        applied = underway.applied
        applied.trouble = str(error)
        if isinstance(error, FrontendRefusedError) and write.of_running:
            applied.refused_lifts.append(write)
            return
        applied.failed += 1
        underway.miss(write)
        match error:
            case FrontendRefusedError():
                self._land(write, None)
            case FrontendBalkedError() | FrontendForbiddenHereError():
                applied.balked.append(write)
                underway.balked[write.job.scope] += 1
            case _:
                applied.down = True
        if isinstance(error, FrontendDownError):
            applied.retry_after = max(applied.retry_after, error.retry_after)
        applied.forbidden |= isinstance(error, FrontendForbiddenError)

    def _land(self, write: LevelWrite, landed: WriteConfirmation | None) -> LevelVerdict:
        if write.of_running:
            return LevelVerdict.EXPECTED  # it runs: its state is not compared with what we wrote
        newest = self.newest(write.job.uid) or write.job
        return self.expectations.land(newest, write.level, landed, time.monotonic())
