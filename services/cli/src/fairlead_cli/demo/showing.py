"""What a person sees while the demo runs: the live view on a terminal, else a line now and then."""

import asyncio
import time

from rich.live import Live
from rich.text import Text

from fairlead_bus import Bus
from fairlead_cli.client.live import Pulse, dashboard, places_that_fit
from fairlead_cli.client.watching import look
from fairlead_cli.console import coloured, messages, say
from fairlead_cli.demo.recording import Recording
from fairlead_sim.workload import SimWorkload

FRAME_SECONDS = 0.5
LINE_SECONDS = 5.0


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
