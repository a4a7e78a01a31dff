"""Loaded by each Python process that finds this folder on its path: notes steps of an event loop that take much CPU.

One line a step: seconds since the epoch, milliseconds of CPU of the thread, what ran. Garbage collections of all objects
are part of the step that they fall into, as they are for whoever waits.
"""

import os
import sys
import time
from asyncio import events
from pathlib import Path

_NOTED_SECONDS = 0.005


def _note_steps(folder: Path) -> None:
    log = (folder / f"{os.getpid()}.log").open("a", buffering=1)
    run = events.Handle._run  # noqa: SLF001 # no public place sees each step

    def timed(self: events.Handle) -> None:
        before = time.thread_time()
        run(self)
        taken = time.thread_time() - before
        if taken > _NOTED_SECONDS:
            log.write(f"{time.time():.3f} {taken * 1e3:.1f} {self!r:.200}\n")

    events.Handle._run = timed  # type: ignore[method-assign] # noqa: SLF001 # as above


if "BENCH_STEPS" in os.environ and any("fairlead_" in word for word in sys.orig_argv):
    _note_steps(Path(os.environ["BENCH_STEPS"]))
