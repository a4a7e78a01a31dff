"""Lines of JSON, one for each figure; and what a process costs."""

import json
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path

from order_measuring import quantile

from fairlead_testkit.fleets.process_fleet import ProcessFleet

__all__ = [
    "cpu_seconds",
    "peak_resident",
    "pids_of",
    "quantile",
    "resident",
    "say",
    "use_of",
    "watch_peak",
]

_OF_PROCESS = 2
"""The kind of a clock of a process, as Linux has it in the clock's number: what the scheduler counts."""


def say(name: str, **figures: object) -> None:
    """Print a figure; floats to three digits that count."""
    rounded = {
        key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in figures.items()
    }
    print(json.dumps({"bench": name, **rounded}), flush=True)


async def use_of[T](pids: Mapping[str, int], deed: Awaitable[T]) -> tuple[T, dict[str, float]]:
    """The outcome of a deed, and the cores that each process uses meanwhile."""
    before, start = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.perf_counter()
    done = await deed
    took = time.perf_counter() - start
    return done, {name: (cpu_seconds(pid) - before[name]) / took for name, pid in pids.items()}


def pids_of(fleet: ProcessFleet) -> dict[str, int]:
    """Pids of the fleet's services, by their names."""
    return {service.name: service.pid for service in fleet.services.values()}


def resident(pid: int) -> float:
    """Mebibytes of memory that the process has."""
    return _memory(pid, "VmRSS:")


def peak_resident(pid: int) -> float:
    """The most that it had since `watch_peak`, in mebibytes."""
    return _memory(pid, "VmHWM:")


def watch_peak(pid: int) -> None:
    """Watches the peak of a process's memory from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _memory(pid: int, what: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    return float("nan")


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that the process has used, with ended threads, by its own clock (clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | _OF_PROCESS)
