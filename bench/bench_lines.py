"""One figure, one line of JSON; and what a process costs."""

import json
import time
from pathlib import Path

from order_measuring import quantile

__all__ = ["cpu_seconds", "peak_resident", "quantile", "resident", "say", "watch_peak"]

_OF_PROCESS = 2
"""The kind of a clock of a process, as Linux has it in the clock's number: what the scheduler counts."""


def say(name: str, **figures: object) -> None:
    """Print a figure; floats to three digits that count."""
    rounded = {
        key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in figures.items()
    }
    print(json.dumps({"bench": name, **rounded}), flush=True)


def resident(pid: int) -> float:
    """Mebibytes of memory that the process has."""
    return _memory(pid, "VmRSS:")


def peak_resident(pid: int) -> float:
    """The most that it had since `watch_peak`, in mebibytes."""
    return _memory(pid, "VmHWM:")


def watch_peak(pid: int) -> None:
    """From now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _memory(pid: int, what: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    return float("nan")


def cpu_seconds(pid: int) -> float:
    """That the process has used, threads that have ended with it; to the nanosecond, by its own clock (clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | _OF_PROCESS)
