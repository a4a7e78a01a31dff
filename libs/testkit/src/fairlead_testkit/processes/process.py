"""A service of Fairlead as the process that it is in production: `python -m fairlead_<service>`.

Within a test run it is a fork of a process that has imported the service already (`fork_server`), to spare its start.

Its standard error goes to a file in the test's directory, as one JSON object a line.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import msgspec

from fairlead_testkit.processes import fork_server
from fairlead_testkit.processes.fork_server import ForkedProcess
from fairlead_testkit.processes.own_process import OwnProcess, OwnProcessError
from fairlead_testkit.timing.awaiting import eventually

if TYPE_CHECKING:
    from fairlead_runtime.health import HealthReport

LISTENING = "health listening"
"""The event of the log line that names the health port."""
_END_SECONDS = 20.0
_LISTENING_SECONDS = 120.0
"""A service listens half a second after its start; one of five that start at once on a busy machine took twenty."""


class ServiceProcess(OwnProcess):
    """A process of a service.

    Args:
        service: `scorer`, `admitter`, `sim`.
        directory: folder of its log; shared with others, the name tells them apart.
        settings: settings by field name, given as environment variables FAIRLEAD_<FIELD>; None leaves one out.
        name: name of the log file; by default the service's.
        module: the module to run; by default `fairlead_<service>`.
        sources: folders where its code is looked for first: those of another release.
    """

    def __init__(
        self,
        service: str,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        arguments: Sequence[str] = (),
        *,
        name: str | None = None,
        module: str | None = None,
        sources: Sequence[Path] = (),
    ) -> None:
        super().__init__(name or service, directory / f"{name or service}.log")
        self.service = service
        self._module = module or f"fairlead_{service}"
        self._arguments = list(arguments)
        given = {"health_port": 0} | dict(settings or {})
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("FAIRLEAD_")}
        self._environ = inherited | {
            f"FAIRLEAD_{key.upper()}": _text(value) for key, value in given.items() if value is not None
        }
        if sources:
            self._environ["PYTHONPATH"] = os.pathsep.join(map(str, sources))
        self._start_offset = 0

    def start(self) -> Self:
        """Start the service, or start it again; returns at once. Its log is continued."""
        if self.running:
            raise OwnProcessError(f"{self.name} runs already")
        self._start_offset = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            self._process = self._fork(log)
        if self._process is None:
            self._begin([sys.executable, "-m", self._module, *self._arguments], self._environ)
        return self

    def events(self) -> list[dict[str, object]]:
        """The log lines of this start; lines that are not JSON (a crash of the interpreter) are left out."""
        with self.log_path.open("rb") as log:
            log.seek(self._start_offset)
            lines = log.read().splitlines()
        found = []
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(msgspec.json.decode(line, type=dict[str, object]))
        return found

    async def logged(self, event: str, timeout: float = 45.0) -> dict[str, object]:  # noqa: ASYNC109 # passed on to eventually
        """Wait for a log line of this start and return it.

        Raises:
            OwnProcessError: the process ended before.
        """

        def line() -> dict[str, object] | None:
            found = next((line for line in self.events() if line.get("event") == event), None)
            if found is None:
                self.check_alive()
            return found

        return await eventually(line, timeout, what=f"{self.name} logs {event!r}")

    async def health_port(self) -> int:
        """The port that the service's health server took."""
        port = (await self.logged(LISTENING, _LISTENING_SECONDS))["port"]
        assert isinstance(port, int)  # noqa: S101 # our own log line
        return port

    async def health(self) -> "HealthReport":
        """The report that /readyz gives now."""
        # Here: the plugin must not load a web server into every test run.
        from fairlead_runtime.health import ask_health

        return await asyncio.to_thread(ask_health, "127.0.0.1", await self.health_port())

    async def ready(self, timeout: float = 50.0) -> Self:  # noqa: ASYNC109 # passed on to eventually
        """Wait until /readyz says yes.

        Raises:
            OwnProcessError: the process ended before.
            NeverHappenedError: the service did not become ready in time.
        """

        async def ready() -> bool:
            self.check_alive()
            return (await self.health()).ready

        await eventually(ready, timeout, what=f"{self.name} is ready")
        return self

    async def stop(self) -> int:
        """Ends the service cleanly (SIGTERM), and waits for that; returns the exit code."""
        self.signal(signal.SIGTERM)
        if self._paused:
            self.resume()
        return await self.ended()

    async def ended(self, timeout: float = _END_SECONDS) -> int:  # noqa: ASYNC109 # passed on to eventually
        """Wait for the service's end, by whatever cause; returns the exit code."""
        await eventually(lambda: not self.running, timeout, what=f"{self.name} ends")
        code = self._started().wait()
        self._process = None
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._started().send_signal(number)

    def _fork(self, log: BinaryIO) -> ForkedProcess | None:
        """Forks the service; None where it has to start from nothing: also where its modules fail; its log then says why."""
        if not fork_server.serves(self._module, self._environ):
            return None
        with contextlib.suppress(fork_server.ForkServerError):
            return fork_server.fork(self._module, self._arguments, self._environ, log)
        return None


def _text(value: object) -> str:
    """A value as the environment has it: `a,b` for a list, `a=1,b=2` for a map."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_text(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ",".join(_text(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextlib.contextmanager
def running(*processes: ServiceProcess) -> Iterator[None]:
    """Starts the processes in this order, and kills them at the end."""
    with contextlib.ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
        yield
