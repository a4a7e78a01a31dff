"""Pausing a process for certain.

A SIGSTOP takes effect a moment after `kill` returns, thread by thread; what the process still does in that moment would
make a test of pauses a matter of luck. Nobody but a parent is told when it has taken effect, and the parent of a service
may be a fork server: so its threads are looked at.
"""

import os
import signal
import time
from pathlib import Path

_LOOK_SECONDS = 0.001
_STILL = frozenset("TtZX")
"""Stopped, or ended."""


def pause(pid: int) -> None:
    """SIGSTOP, and wait until every thread of the process stands still, or it has ended."""
    os.kill(pid, signal.SIGSTOP)
    while not all(_state(thread) in _STILL for thread in Path(f"/proc/{pid}/task").glob("*")):
        time.sleep(_LOOK_SECONDS)


def _state(thread: Path) -> str:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
        return "X"


def resume(pid: int) -> None:
    """SIGCONT."""
    os.kill(pid, signal.SIGCONT)
