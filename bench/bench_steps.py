"""Time that one step of a service's event loop takes: whatever arrives meanwhile waits for its end."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Self

import pytest
from bench_lines import cpu_seconds, pids_of, say
from bench_stack import GPUS, POLICY, URGENT, WAITING, submit_backlog

from fairlead_bus import Bus
from fairlead_testkit.fleets.fleet import Fleet, submit_all, whole_queue
from fairlead_testkit.timing.awaiting import eventually

AIM_MS = 20.0
EVENT_SECONDS = 20.0
QUESTIONS = 20


async def steps() -> None:
    """15 k jobs wait while cards turn over: the longest step of each service; then the same while people look."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as environ:
        notes = Path(folder) / "steps"
        notes.mkdir()
        environ.setenv("BENCH_STEPS", str(notes))
        environ.setenv("PYTHONPATH", str(Path(__file__).parent / "steps"))  # services load what is in it
        fleet = Fleet(Path(folder), policy=POLICY, gpus=8, nodes=GPUS // 8)
        async with fleet.running() as bus:
            await _fill(bus)
            async with _phase("events", fleet, notes):
                await _events(bus)
            async with _phase("events_and_questions", fleet, notes):
                asking = asyncio.create_task(_look(bus))
                await _events(bus)
                await asking


@asynccontextmanager
async def _phase(name: str, fleet: Fleet, notes: Path) -> AsyncIterator[None]:
    services = pids_of(fleet)
    before, start = {one: cpu_seconds(pid) for one, pid in services.items()}, time.time()
    yield
    took = time.time() - start
    for one, pid in services.items():
        noted = [_Noted.read(line) for line in (notes / f"{pid}.log").read_text().splitlines()]
        found = [step for step in noted if step.at >= start]
        longest = max(found, key=lambda step: step.cpu_ms, default=None)
        say(
            f"steps_{name}",
            service=one,
            longest_ms=0.0 if longest is None else longest.cpu_ms,
            above_aim=sum(step.cpu_ms > AIM_MS for step in found),
            aim_ms=AIM_MS,
            core=(cpu_seconds(pid) - before[one]) / took,
            longest_wait_for_a_core_ms=max((step.waited_ms for step in found), default=0.0),
            looked_for_garbage_ms=sum(step.garbage_ms for step in found),
            longest_ran="" if longest is None else longest.ran[-160:],
        )


class _Noted(NamedTuple):
    """A step that took long."""

    at: float
    """Seconds since the epoch, at its end."""
    cpu_ms: float
    clock_ms: float
    waited_ms: float
    """Milliseconds in which it waited for a core."""
    garbage_ms: float
    ran: str

    @classmethod
    def read(cls, line: str) -> Self:
        """A step as `steps/sitecustomize.py` writes it."""
        at, cpu, clock, waited, garbage, ran = line.split(maxsplit=5)
        return cls(float(at), float(cpu), float(clock), float(waited), float(garbage), ran)


async def _fill(bus: Bus) -> None:
    await submit_backlog(bus)

    async def queued() -> bool:
        await asyncio.sleep(1.0)  # the answer is a long one
        return (await whole_queue(bus, "gpu")).waiting >= WAITING

    await eventually(queued, 240, what="the backlog is queued")
    await asyncio.sleep(15.0)  # the rest of it


async def _events(bus: Bus) -> None:
    end = time.monotonic() + EVENT_SECONDS
    while time.monotonic() < end:
        name = f"soon-{time.monotonic_ns()}"
        job = {"id": name, "class": "urgent", "demand": {"nvidia.com/gpu": 2}, "run_seconds": 0.2}
        await submit_all(bus, URGENT, [job])
        await asyncio.sleep(0.1)


async def _look(bus: Bus) -> None:
    for _ in range(QUESTIONS):
        await whole_queue(bus, "gpu")
        await asyncio.sleep(EVENT_SECONDS / QUESTIONS)
