"""A dry run of `fairlead up`: what the admitters would write, said as they decide it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from fairlead_cli.console import say
from fairlead_cli.local.stack import StackPlan, admitter_of

WOULD_WRITE = "would write"
"""The event of an admitter's log."""
_LOOK_SECONDS = 0.2


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an admitter's log, as far as it tells of a write."""

    event: str = ""
    job: str = ""
    scope: str = ""
    before: int = 0
    to: int = 0
    because: str = ""


def write_in_words(line: bytes) -> str | None:
    """The write that a line of an admitter's log tells of, in words; None where it tells of another thing."""
    try:
        found = msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError:
        return None  # not a line of the log itself: a crash prints there, too
    if found.event != WOULD_WRITE:
        return None
    return f"would write {found.scope}/{found.job}: level {found.before} -> {found.to} ({found.because})"


class LogTail:
    """The lines that are added to a log from now on; the file may not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def lines(self) -> list[bytes]:
        """Whole lines since the last look."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._place)
            *found, self._rest = (self._rest + file.read()).split(b"\n")
            self._place = file.tell()
        return found


@asynccontextmanager
async def dry_run_of(plan: StackPlan) -> AsyncIterator[None]:
    """Say what the plan's admitters would write, for the time of the block."""
    tails = [LogTail(plan.store / "logs" / f"{admitter_of(cluster)}.log") for cluster in plan.clusters]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_follow(tail), name="following a log") for tail in tails]
        yield
        for task in tasks:
            task.cancel()


async def _follow(tail: LogTail) -> None:
    while True:
        for line in tail.lines():
            if (words := write_in_words(line)) is not None:
                say(words)
        await asyncio.sleep(_LOOK_SECONDS)  # a file that grows tells nobody
