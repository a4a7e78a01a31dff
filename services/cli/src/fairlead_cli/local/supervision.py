"""Child processes: started, watched, started again with back-off, ended by their id.

Every child writes to its own log file; a terminal stays readable, and a failure can be quoted.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fairlead_cli.errors import ProcessFailedError

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 10.0
SETTLED_SECONDS = 10.0
"""Seconds after which a child counts as well: its next restart waits the first pause again."""
END_SECONDS = 5.0
"""Seconds between asking a child to end and killing it."""
TAIL_LINES = 8
BAD_SETTINGS = 2
"""Exit code of a service that cannot take its settings; see fairlead_runtime.service."""
_REAPER = ("-I", "-m", "fairlead_cli.local.reaper")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run as a child, and what a person calls it."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]


@asynccontextmanager
async def reaper() -> AsyncIterator[asyncio.subprocess.Process]:
    """A reaper for the time of the block; children join its process group, which dies with us.

    It never ends by itself. Children must have been ended before its end: it kills what is left.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, *_REAPER, stdin=asyncio.subprocess.PIPE, process_group=0
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


@dataclass(eq=False)
class Child:
    """A running process and its log."""

    program: Program
    process: asyncio.subprocess.Process
    log: Path

    async def end(self) -> None:
        """Ask it to end, and kill it where it does not in time."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()

    def tail(self) -> str:
        """The last lines of its log; empty where it said nothing, or its log is gone."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-TAIL_LINES:])


async def start(program: Program, *, group: int, logs: Path) -> Child:
    """Start a program in the reaper's group.

    Raises:
        ProcessFailedError: it cannot be started at all.
    """
    log = logs / f"{program.name}.log"
    with log.open("ab") as file:
        try:
            process = await asyncio.create_subprocess_exec(
                *program.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=dict(program.environ),
                process_group=group,
            )
        except OSError as error:
            raise ProcessFailedError(f"{program.name} cannot be started: {error}") from error
    return Child(program, process, log)


@dataclass(eq=False, kw_only=True)
class Supervisor:
    """Keeps programs running: one that ends is said so and started again, later each time it ends early."""

    group: int
    logs: Path
    say: Callable[[str], None]
    children: dict[str, Child] = field(default_factory=dict, init=False)
    restarts: int = field(default=0, init=False)

    def last_words(self) -> str:
        """The ends of the logs of those that run and have said something, each under its name."""
        tails = ((name, child.tail()) for name, child in self.children.items())
        return "\n".join(f"--- {name}\n{tail}" for name, tail in tails if tail)

    async def keep(self, program: Program) -> None:
        """Run the program for ever. Cancel it to end the process.

        Raises:
            ProcessFailedError: it refuses its own settings; starting it again would change nothing.
        """
        pause = FIRST_PAUSE_SECONDS
        while True:
            child = await start(program, group=self.group, logs=self.logs)
            began = time.monotonic()
            code = await self._watch(child)
            if code == BAD_SETTINGS:
                raise ProcessFailedError(
                    f"{program.name} refuses its settings:\n{child.tail()}",
                    hint=f"Its whole log: {child.log}",
                )
            if time.monotonic() - began > SETTLED_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            self.restarts += 1
            self.say(
                f"{program.name} ended with {describe_exit(code)}; starting it again in {pause:g} s "
                f"(log: {child.log})"
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _watch(self, child: Child) -> int:
        self.children[child.program.name] = child
        try:
            return await child.process.wait()
        finally:
            del self.children[child.program.name]
            await child.end()


def describe_exit(code: int) -> str:
    """An exit code in words: a negative one is the signal that ended the process."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
