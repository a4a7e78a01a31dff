"""The demo while it runs: what a person sees of it, and the one job that its page tells of as an example."""

import asyncio
import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from fairlead_bus import Bus, BusError
from fairlead_cli.client.connection import ask
from fairlead_cli.client.explained import explain_text
from fairlead_cli.client.live import Throughput, dashboard, positions_that_fit
from fairlead_cli.client.phrases import demand
from fairlead_cli.client.watching import look
from fairlead_cli.console import Screen, coloured, say
from fairlead_cli.demo.recording import Recording
from fairlead_cli.demo.report.contents import ExplainedJob
from fairlead_cli.errors import CommandError
from fairlead_contracts.base.instants import from_datetime, to_seconds
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    QUEUE_REPLY,
    ExplainQuestion,
    QueueQuestion,
)
from fairlead_sim.workload import SimWorkload

FRAME_SECONDS = 0.5
LINE_SECONDS = 5.0
_COLUMNS = 10_000
"""A line for each thing that is said: the page wraps them, on a phone or a wide screen."""
_DEPTH = 12
"""Number of places in which a job is looked for: one about their end waits a while, and not for ever."""


async def show(bus: Bus, workload: SimWorkload, recording: Recording, throughput: Throughput) -> None:
    """Show until cancelled. Everything goes to standard error: results alone go to the output."""
    began, console = time.monotonic(), Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        while True:
            await asyncio.sleep(LINE_SECONDS)
            say(f"{time.monotonic() - began:4.0f} s: {throughput.words()}")
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            found = await look(bus, positions=positions_that_fit(console.height))
            frame = dashboard(
                f"Fairlead demo: {workload.name}; {recording.finished} of {len(workload.jobs)} jobs finished "
                f"after {time.monotonic() - began:.0f} s",
                Screen(console.width, coloured),
                tenants=found.tenants,
                queue=found.queue,
                throughput=throughput,
            )
            live.update(Text.from_ansi(frame), refresh=True)
            await asyncio.sleep(FRAME_SECONDS)


async def follow_one_job(bus: Bus, *, after_seconds: float) -> ExplainedJob | None:
    """Ask, some time from now, about a job that waits in the midst of the queue.

    Returns:
        What was said; None where nobody waits then, or nobody answers.
    """
    await asyncio.sleep(after_seconds)
    try:
        queue = await ask(bus, "queue", QueueQuestion(limit=_DEPTH), QUEUE_REPLY)
        # The last of the first few: of everybody's class where one of these is among them.
        positions = [ranked.position for pool in queue.pools for ranked in pool.positions]
        if not positions:
            return None
        plain = [one for one in positions if one.job_class != positions[0].job_class]
        position = (plain or positions)[-1]
        reply = await ask(bus, "explain", ExplainQuestion(job=position.uid), EXPLAIN_REPLY)
    except (BusError, CommandError):
        return None
    return ExplainedJob(
        job=position.id,
        tenant=position.tenant,
        demand=demand(position.demand),
        waited_then=to_seconds(from_datetime(reply.at) - position.submitted),
        text=explain_text(reply, Screen(_COLUMNS)),
    )
