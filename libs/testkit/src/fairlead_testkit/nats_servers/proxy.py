"""A TCP proxy on loopback that delays, stalls and cuts: what a bad network does to a client, without root or tools."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

CHUNK = 64 * 1024


class FlakyProxy:
    """Forwards one local port to another; each chunk waits a random time up to `longest_delay` seconds."""

    def __init__(self, target_port: int, rng: random.Random, *, longest_delay: float) -> None:
        self._target_port = target_port
        self._rng = rng
        self.longest_delay = longest_delay
        self._connections: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port to connect to."""
        if self._server is None:
            raise RuntimeError("the proxy is not open")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["FlakyProxy"]:
        """Listens on a free port until the block ends."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield self
        finally:
            self._server.close()
            self._flowing.set()
            self.cut()
            await self._server.wait_closed()

    def stall(self) -> None:
        """Hold everything back: connections stay up and nothing arrives, like a half-open network."""
        self._flowing.clear()

    def flow(self) -> None:
        """Let everything through again, in order."""
        self._flowing.set()

    def cut(self) -> None:
        """Close every connection; clients may connect again at once."""
        for writer in list(self._connections):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, upstream_writer}
        self._connections |= ends
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, upstream_writer, ends))
                group.create_task(self._pump(upstream_reader, writer, ends))
        finally:
            self._connections -= ends

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ends: set[asyncio.StreamWriter]
    ) -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while chunk := await reader.read(CHUNK):
                await asyncio.sleep(self._rng.random() * self.longest_delay)
                await self._flowing.wait()
                writer.write(chunk)
                await writer.drain()
        for end in ends:
            end.transport.abort()
