"""The demo while it runs: what a person sees of it, and the one job that its page tells of as an example."""

import asyncio
import time

from rich.live import Live
from rich.text import Text

from fairlead_bus import Bus, BusError
from fairlead_cli.client.connection import ask
from fairlead_cli.client.explained import explain_text
from fairlead_cli.client.live import Pulse, dashboard, places_that_fit
from fairlead_cli.client.watching import look
from fairlead_cli.client.words import demand
from fairlead_cli.console import coloured, messages, say
from fairlead_cli.demo.recording import Recording
from fairlead_cli.demo.report.contents import Told
from fairlead_cli.errors import CommandError
from fairlead_contracts.base.instants import from_datetime, to_seconds
from fairlead_contracts.messages.questions import (
    EXPLAIN_REPLY,
    QUEUE_REPLY,
    ExplainQuestion,
    QueueQuestion,
    QueueReply,
    RankedPlace,
)
from fairlead_sim.workload import SimWorkload

FRAME_SECONDS = 0.5
LINE_SECONDS = 5.0
_COLUMNS = 10_000
"""A line for each thing that is said: the page wraps them, on a phone or a wide screen."""
_DEPTH = 12
"""Number of places in which a job is looked for: one about their end waits a while, and not for ever."""


class Show:
    """Runs beside the demo until it is cancelled. Everything goes to standard error: results alone go to the output."""

    def __init__(self, bus: Bus, workload: SimWorkload, recording: Recording, pulse: Pulse) -> None:
        self._bus = bus
        self._total = len(workload.jobs)
        self._name = workload.name
        self._recording = recording
        self._pulse = pulse
        self._began = time.monotonic()

    async def run(self) -> None:
        """Show until cancelled."""
        console = messages()
        if not console.is_terminal:
            await self._lines()
            return
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                found = await look(self._bus, places=places_that_fit(console.height))
                live.update(
                    Text.from_ansi(
                        dashboard(
                            self._title(),
                            tenants=found.tenants,
                            queue=found.queue,
                            pulse=self._pulse,
                            columns=console.width,
                            style=coloured,
                        )
                    ),
                    refresh=True,
                )
                await asyncio.sleep(FRAME_SECONDS)

    async def _lines(self) -> None:
        while True:
            await asyncio.sleep(LINE_SECONDS)
            say(f"{time.monotonic() - self._began:4.0f} s: {self._pulse.words()}")

    def _title(self) -> str:
        return (
            f"Fairlead demo: {self._name}; {self._recording.finished} of {self._total} jobs finished "
            f"after {time.monotonic() - self._began:.0f} s"
        )


async def follow_one_job(bus: Bus, *, after_seconds: float) -> Told | None:
    """Ask, some time from now, about a job that waits in the midst of the queue.

    Returns:
        What was said; None where nobody waits then, or nobody answers.
    """
    await asyncio.sleep(after_seconds)
    try:
        queue = await ask(bus, "queue", QueueQuestion(limit=_DEPTH), QUEUE_REPLY)
        waits = _in_the_midst(queue)
        if waits is None:
            return None
        place = waits.place
        reply = await ask(bus, "explain", ExplainQuestion(job=place.uid), EXPLAIN_REPLY)
    except (BusError, CommandError):
        return None
    return Told(
        job=place.id,
        tenant=place.tenant,
        demand=demand(place.demand),
        waited_then=to_seconds(from_datetime(reply.at) - place.submitted),
        text=explain_text(reply, columns=_COLUMNS),
    )


def _in_the_midst(queue: QueueReply) -> RankedPlace | None:
    """The last of the first few: of everybody's class where one of these is among them."""
    places = [ranked for pool in queue.pools for ranked in pool.places]
    plain = [ranked for ranked in places if ranked.place.job_class != places[0].place.job_class]
    return next(reversed(plain or places), None)
