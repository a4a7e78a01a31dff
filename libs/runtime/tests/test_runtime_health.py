"""The health port under connections that want nothing but to be held."""

import asyncio
import contextlib
import gc
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead_runtime.health import MOST_CONNECTIONS, HealthServer, Readiness, ask_health
from fairlead_runtime.metrics import Metrics


@pytest.fixture
async def server() -> AsyncIterator[HealthServer]:
    readiness = Readiness()
    readiness.add("all", lambda: None)
    async with HealthServer(Metrics("test"), readiness, port=0) as server:
        yield server


async def held(server: HealthServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection whose headers never end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize("turns", range(5))
def test_who_comes_while_it_closes_leaves_no_connection_open(turns: int) -> None:
    async def come_and_close(client: socket.socket) -> None:
        async with HealthServer(Metrics("test"), Readiness(), port=0) as server:
            client.connect(("127.0.0.1", server.port))
            for _ in range(turns):  # of the loop, one of which accepts the connection
                await asyncio.sleep(0)

    with socket.socket() as client:
        asyncio.run(come_and_close(client))
        gc.collect()  # tells of what is open, and warnings are errors


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1) == b""
    except ConnectionError:
        return True


async def test_a_probe_gets_through_while_others_hold_connections(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_runtime.health.CONNECTION_SECONDS", 600.0)
    connections = [await held(server) for _ in range(3 * MOST_CONNECTIONS)]
    report = await asyncio.to_thread(ask_health, "127.0.0.1", server.port)
    assert report.ready
    # The oldest are cut, each for a newer one.
    async with asyncio.timeout(30):
        assert all([await ended(reader) for reader, _ in connections[: 2 * MOST_CONNECTIONS]])
    for _, writer in connections:
        writer.transport.abort()


async def test_the_cap_holds_for_connections_that_come_at_once(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_runtime.health.CONNECTION_SECONDS", 600.0)
    loop = asyncio.get_running_loop()
    many = [socket.socket() for _ in range(MOST_CONNECTIONS + 30)]
    for one in many:
        one.settimeout(0)
    # The kernel takes them in before the server's loop has a turn, which then accepts many together.
    await asyncio.gather(*(loop.sock_connect(one, ("127.0.0.1", server.port)) for one in many))
    ends = {asyncio.ensure_future(dropped(one)) for one in many}
    async with asyncio.timeout(30):
        while sum(end.done() for end in ends) < 30:
            await asyncio.wait([end for end in ends if not end.done()], return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await asyncio.wait(ends)
    for one in many:
        one.close()


def open_at(port: int) -> int:
    """The number of connections that this process has accepted at a port and still holds."""
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if not str(entry.readlink()).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as one:
                listens = one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                count += not listens and one.getsockname()[1:2] == (port,)
    return count


async def test_no_burst_of_connections_goes_beyond_the_cap(server: HealthServer) -> None:
    loop = asyncio.get_running_loop()
    many = [socket.socket() for _ in range(5 * MOST_CONNECTIONS)]
    for one in many:
        one.settimeout(0)
    connecting = asyncio.gather(*(loop.sock_connect(one, ("127.0.0.1", server.port)) for one in many))
    most = 0
    while not connecting.done() or open_at(server.port) > most:
        most = max(most, open_at(server.port))
        await asyncio.sleep(0)
    assert MOST_CONNECTIONS / 2 < most <= MOST_CONNECTIONS
    assert (await asyncio.to_thread(ask_health, "127.0.0.1", server.port)).ready
    for one in many:
        one.close()


async def dropped(one: socket.socket) -> bool:
    try:
        return await asyncio.get_running_loop().sock_recv(one, 1) == b""
    except ConnectionError:
        return True


async def test_a_connection_that_sends_its_headers_by_the_byte_is_cut(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_runtime.health.CONNECTION_SECONDS", 0.3)
    reader, writer = await held(server)
    over = asyncio.ensure_future(ended(reader))
    async with asyncio.timeout(30):
        while not over.done():
            if not writer.transport.is_closing():
                writer.write(b"x")
            await asyncio.sleep(0.05)
    assert over.result()
    writer.transport.abort()
    assert (await asyncio.to_thread(ask_health, "127.0.0.1", server.port)).ready


async def test_one_who_does_not_read_is_cut_too(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_runtime.health.CONNECTION_SECONDS", 0.3)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
    async with asyncio.timeout(30):
        await asyncio.sleep(0.5)  # unread for longer than a connection lives
        try:
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
    writer.transport.abort()
