"""Loaded by each Python process that finds this folder on its path: notes steps of an event loop that take long.

One line a step: seconds since the epoch; milliseconds of CPU of the thread, of the clock, of waiting for a core, and of
looking for garbage; and what ran: the coroutines of the task from the outermost on, each with the line at which it went on.
Garbage collections are part of the step that they fall into, as they are for whoever waits.
"""

import gc
import os
import sys
import time
from asyncio import events
from pathlib import Path

_NOTED_SECONDS = 0.005


class _Collections:
    """Seconds for which the garbage was looked for, in all."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def note(self, phase: str, _: object) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.seconds += time.perf_counter() - self._began


class _Waits:
    """Seconds for which the thread could have run and had no core, as the kernel counts it (`schedstat`)."""

    def __init__(self) -> None:
        path = Path(f"/proc/self/task/{os.getpid()}/schedstat")
        self._told = path.open("rb", buffering=0) if path.exists() else None

    def seconds(self) -> float:
        if self._told is None:
            return 0.0
        self._told.seek(0)
        return int(self._told.read().split()[1]) / 1e9


def _ran(handle: events.Handle) -> str:
    """The coroutines that a step goes on with; of another callback what it is called."""
    callback = handle._callback  # type: ignore[attr-defined] # noqa: SLF001 # no public place tells it
    coroutine = getattr(getattr(callback, "__self__", None), "get_coro", lambda: None)()
    names = []
    while coroutine is not None and (frame := getattr(coroutine, "cr_frame", None)) is not None:
        names.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
        coroutine = coroutine.cr_await
    return ">".join(names) or f"{callback!r:.160}".replace("\n", " ")


def _note_steps(folder: Path) -> None:
    log = (folder / f"{os.getpid()}.log").open("a", buffering=1)
    run = events.Handle._run  # noqa: SLF001 # no public place sees each step
    collections, waits = _Collections(), _Waits()
    gc.callbacks.append(collections.note)

    def timed(self: events.Handle) -> None:
        ran = _ran(self)  # before: afterwards a task is elsewhere
        waited, collected = waits.seconds(), collections.seconds
        began, before = time.perf_counter(), time.thread_time()
        run(self)
        taken, took = time.thread_time() - before, time.perf_counter() - began
        if took > _NOTED_SECONDS:
            parts = (taken, took, waits.seconds() - waited, collections.seconds - collected)
            log.write(f"{time.time():.3f} {' '.join(f'{1e3 * part:.1f}' for part in parts)} {ran}\n")

    events.Handle._run = timed  # type: ignore[method-assign] # noqa: SLF001 # as above


if "BENCH_STEPS" in os.environ and any("fairlead_" in word for word in sys.orig_argv):
    _note_steps(Path(os.environ["BENCH_STEPS"]))
