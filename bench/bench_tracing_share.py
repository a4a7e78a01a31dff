"""Part of its services' CPU that tracing takes, by looking what they do: no difference of two large figures.

Services decide differently often from one round to the next, which moves their CPU by several per cent, and by more on a
busy machine. So nothing is compared with a fleet without tracing but the same look at it: the thread that sends spans has a
clock of its own, and of the main thread samples say whether it is telling spans. A fleet without tracing, looked at in the
same way, says what the same modules do where nobody traces.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench_lines import looked_at, say
from bench_tracing import AIM_PER_CENT, GPUS, POLICY, a_collector, spent_on

from fairlead_testkit.awaiting import eventually
from fairlead_testkit.fleet import Fleet

ROUNDS = 12
"""Rounds of each of two fleets, by turns, after one that warms up."""
_TWO_SIGMA = 2.0


class Looked(NamedTuple):
    """The work of a process up to a moment, or between two of them."""

    process: float
    """Seconds of CPU."""
    main: float
    sender: float
    samples: int
    telling: int

    def since(self, before: "Looked") -> "Looked":
        """The work done after that moment."""
        return Looked(
            self.process - before.process,
            self.main - before.main,
            self.sender - before.sender,
            self.samples - before.samples,
            self.telling - before.telling,
        )


class TracingShare(NamedTuple):
    """Parts of the CPU of some processes."""

    telling: float
    """Part spent telling spans, on the main thread."""
    sending: float
    within: float
    """Uncertainty of both parts: two standard errors."""


async def tracing_share() -> None:
    """Measures the per cent of all services' CPU that tracing adds: throughput on a machine that is full."""
    async with a_collector() as collector, contextlib.AsyncExitStack() as stack:
        fleets = {}
        notes = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with looked_at("samples", "BENCH_SAMPLES", notes):
            for name, settings in (("off", {}), ("default", {"otel_endpoint": collector})):
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                fleet = Fleet(folder, policy=POLICY, gpus=GPUS // 8, nodes=8, scorers=1, settings=settings)
                fleets[name] = fleet, await stack.enter_async_context(fleet.running())
        began: dict[str, list[Looked]] = {}
        for number in range(ROUNDS + 1):
            for name, (fleet, bus) in fleets.items():
                await spent_on(bus, fleet, number)
                if number == 0:
                    began[name] = await _look(fleet, notes)
        shares = {}
        for name, (fleet, _) in fleets.items():
            done = [
                after.since(before)
                for after, before in zip(await _look(fleet, notes), began[name], strict=True)
            ]
            shares[name] = share_of(done)
            say(
                f"tracing, {name}: per cent of all services' CPU",
                telling=100 * shares[name].telling,
                sending=100 * shares[name].sending,
                samples=sum(one.samples for one in done),
                cpu_seconds=sum(one.process for one in done),
                load=os.getloadavg()[0],
            )
        off, on = shares["off"], shares["default"]
        more = on.telling + on.sending - off.telling
        say(
            "tracing, default: per cent over that without",
            cpu=100 * more / (1 - more),
            within=100 * math.hypot(on.within, off.within),
            aim=AIM_PER_CENT,
        )


def share_of(done: list[Looked]) -> TracingShare:
    """The part of their CPU that processes spent telling and sending spans: each main thread's by its own samples."""
    total = sum(one.process for one in done)
    told, variance = 0.0, 0.0
    for one in done:
        part = one.telling / max(1, one.samples)
        told += one.main * part
        variance += one.main**2 * part * (1 - part) / max(1, one.samples)
    return TracingShare(
        told / total, sum(one.sender for one in done) / total, _TWO_SIGMA * math.sqrt(variance) / total
    )


async def _look(fleet: Fleet, notes: Path) -> list[Looked]:
    """The work of each service, all that it has done."""
    return list(await asyncio.gather(*(_look_at(service.pid, notes) for service in fleet.services.values())))


async def _look_at(pid: int, notes: Path) -> Looked:
    path = notes / f"{pid}.log"
    lines = path.read_text().count("\n") if path.exists() else 0
    os.kill(pid, signal.SIGUSR2)
    await eventually(
        lambda: path.exists() and path.read_text().count("\n") > lines, 30, what="a service tells"
    )
    return Looked(**json.loads(path.read_text().splitlines()[-1]))
