"""A nats-server of our own, bound to loopback, with JetStream on disk: the one on the PATH, or that of a wheel."""

import asyncio
import json
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlead_cli.errors import ProcessFailedError
from fairlead_cli.local.supervision import Program

HOST = "127.0.0.1"
READY_SECONDS = 60.0
_USER = "fairlead"
_PROBE_SECONDS = 0.05


class ServerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A server to run: its name tells it from a neighbour's on the same port."""

    name: str
    port: int
    program: Program
    password: str | None = None
    """Password of the only user, where not everybody on this machine may connect."""

    @property
    def url(self) -> str:
        """The address where clients connect, with what lets them in."""
        user = f"{_USER}:{self.password}@" if self.password else ""
        return f"nats://{user}{HOST}:{self.port}"


def plan_server(
    store: Path, *, port: int | None, environ: Mapping[str, str], guarded: bool = False
) -> ServerPlan:
    """A server with its data under `store`; a free port unless one is given.

    Args:
        guarded: whether it asks for a password. Loopback is open to every user of a machine, and each could else have
            jobs run in a real cluster as any tenant, or disturb a demo.

    Raises:
        ProcessFailedError: there is no nats-server, or the port that is given is taken.
    """
    from fairlead_bus.server.program import ServerMissingError, server_program  # here: it loads a NATS client

    try:
        binary = server_program()
    except ServerMissingError as error:
        raise ProcessFailedError(str(error)) from error

    name = f"fairlead-{secrets.token_hex(4)}"
    if port is not None:
        _refuse_taken(port)
    chosen = port or _free_port()
    config = store / "nats.conf"
    data = store / "nats"
    password = secrets.token_hex(16) if guarded else None
    # json.dumps quotes as nats-server's configuration reads it: a path may hold blanks and quotes.
    lines = [
        f"server_name: {name}",
        f"host: {HOST}",
        f"port: {chosen}",
        f"jetstream {{ store_dir: {json.dumps(str(data))} }}",
        *([f'authorization {{ user: {_USER}, password: "{password}" }}'] if password else []),
    ]
    config.unlink(missing_ok=True)
    config.touch(mode=0o600)
    config.write_text("\n".join([*lines, ""]))
    command = [str(binary), "--config", str(config)]
    program = Program(name="nats-server", command=command, environ=environ)
    return ServerPlan(name=name, port=chosen, program=program, password=password)


def _refuse_taken(port: int) -> None:
    """Refuses a port that is taken, at once: the server itself would be started in vain again and again."""
    with socket.socket() as probe:
        # As the server does: connections that have ended just now are in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ProcessFailedError(
                f"NATS cannot listen on port {port} of {HOST}: {error.strerror}",
                hint="Choose another one with --port; without it, a free one is taken.",
            ) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


async def wait_ready(plan: ServerPlan) -> None:
    """Return once our own server answers on its port.

    Raises:
        ProcessFailedError: it does not in time, or somebody else's server sits there.
    """
    try:
        async with asyncio.timeout(READY_SECONDS):
            while (found := await _server_name(plan.port)) is None:  # noqa: ASYNC110 # only its port tells
                await asyncio.sleep(_PROBE_SECONDS)
    except TimeoutError as error:
        raise ProcessFailedError(f"nats-server does not answer on port {plan.port}") from error
    if found != plan.name:
        raise ProcessFailedError(
            f"port {plan.port} is taken by another nats-server ({found})",
            hint="Choose another one with --port.",
        )


async def _server_name(port: int) -> str | None:
    """The name in the greeting that each nats-server sends first; None while nobody greets."""
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return None
    try:
        greeting = await reader.readline()
    except OSError:
        return None
    finally:
        writer.close()
    try:
        info = json.loads(greeting.removeprefix(b"INFO "))
    except ValueError:
        return None
    return str(info.get("server_name"))
