"""Several real nats-servers that form one JetStream cluster, each of which can be killed, paused and started again."""

import contextlib
import http.client
import json
import uuid
from pathlib import Path
from typing import Self

from fairlead_bus import Bus
from fairlead_testkit.nats_servers.nats_server import LOOPBACK, NatsServer
from fairlead_testkit.nats_servers.streams import stream_info
from fairlead_testkit.processes.free_ports import free_ports
from fairlead_testkit.timing.awaiting import eventually

SIZE = 3
QUORUM_SECONDS = 60.0
"""An election takes some 4 to 10 seconds; a loaded machine longer."""


class NatsCluster:
    """A JetStream cluster of this test alone, on loopback.

    The servers choose the ports of their clients themselves and keep them. Those of the routes between them must be
    known before the first one starts: they are drawn.

    Args:
        directory: holds a folder for each server; survives kills, so that a restart recovers.
    """

    def __init__(self, directory: Path, *, size: int = SIZE, config: str = "") -> None:
        self.name = f"fairlead-test-{uuid.uuid4().hex[:12]}"
        ports = free_ports(size)
        routes = ", ".join(f"nats://{LOOPBACK}:{port}" for port in ports)
        self.servers = [
            NatsServer(
                directory / f"nats-{number}",
                name=f"{self.name}-{number}",
                config=f"http: {LOOPBACK}:-1\n"
                f"cluster {{ name: {self.name}, listen: {LOOPBACK}:{port}, routes: [{routes}] }}\n{config}",
            )
            for number, port in enumerate(ports, start=1)
        ]

    @property
    def url(self) -> str:
        """The addresses that clients connect to: every server's, without credentials."""
        return ",".join(server.url for server in self.servers)

    @property
    def running(self) -> bool:
        """Whether the process of any server lives."""
        return any(server.running for server in self.servers)

    def start(self) -> Self:
        """Start each server that is not running; returns when all answer their clients, which is before there is a leader.

        Raises:
            OwnProcessError: as `NatsServer.start`.
        """
        begun = [server for server in self.servers if not server.running]
        for server in begun:
            server.launch()
        for server in begun:
            server.await_ready()
        return self

    def kill(self) -> None:
        """End all servers with SIGKILL."""
        for server in self.servers:
            server.kill()

    def named(self, name: str) -> NatsServer:
        """The server of this name, as JetStream tells its leaders."""
        return next(server for server in self.servers if server.name == name)

    def others(self, *servers: NatsServer) -> list[NatsServer]:
        """Servers of the cluster except these."""
        return [server for server in self.servers if server not in servers]

    def meta_leader(self) -> NatsServer | None:
        """The leader of the whole of JetStream, as one that runs says; None while nobody leads, or nobody can say."""
        for server in self.servers:
            body = _ask(server, "/jsz")
            leader = None if body is None else json.loads(body).get("meta_cluster", {}).get("leader")
            if leader:
                return self.named(str(leader))
        return None

    async def stream_leader(self, bus: Bus, stream: str) -> NatsServer:
        """The leader of a stream."""
        return self.named((await stream_info(bus, stream))["cluster"]["leader"])

    async def quorum(self) -> None:
        """Wait until JetStream and each stream are led by servers that run, and all that run say that they are well."""
        await eventually(self._is_led, QUORUM_SECONDS, what=f"{self.name} has a quorum")

    def _is_led(self) -> bool:
        """Trap: for seconds after a leader's death the others are well and name the dead one."""
        running = [server for server in self.servers if server.running]
        names = {server.name for server in running}
        return all(_ask(server, "/healthz") is not None and _leaders(server) <= names for server in running)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *_: object) -> None:
        self.kill()


def _leaders(server: NatsServer) -> set[str]:
    """The leaders of JetStream and of each stream, as this server knows them; an empty name where nobody leads."""
    body = _ask(server, "/jsz?streams=true")
    if body is None:
        return {""}
    told = json.loads(body)
    streams = [
        stream for account in told.get("account_details", []) for stream in account.get("stream_detail", [])
    ]
    return {
        str(led.get("leader", ""))
        for led in (told.get("meta_cluster", {}), *(s.get("cluster", {}) for s in streams))
    }


def _ask(server: NatsServer, path: str) -> bytes | None:
    """The server's word over HTTP; None where it does not give one, or says that it is not well."""
    port = server.monitoring_port()
    if port is None:
        return None
    with contextlib.closing(http.client.HTTPConnection(LOOPBACK, port, timeout=1.0)) as connection:
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        except OSError:
            return None
    return body if answer.status == http.HTTPStatus.OK else None
