"""Health over HTTP: is the loop alive, is the service ready and why not, and its metrics.

`/healthz` (alias `/health`) answers as long as the event loop turns. `/readyz` asks the named checks; a service that
has named none is not ready. `/metrics` speaks OpenMetrics where asked to, and has exemplars only then.
"""

import asyncio
import contextlib
import http.client
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Self

import msgspec
from aiohttp import web

from fairlead_runtime.errors import PortTakenError
from fairlead_runtime.metrics import Metrics

type HealthCheck = Callable[[], str | None]
"""Gives the reason for not being ready, or None. Asked at each request: it must be quick and must not
block."""

NO_PORT = -1
CONNECTION_SECONDS = 10.0
"""The longest life of a connection: a scrape takes milliseconds, and who sends its headers by the byte never
ends."""
MOST_CONNECTIONS = 64
"""The most connections at a time. A further one takes the place of the oldest: a probe must get through while
others are held open."""
_ACCEPTED_AT_ONCE = 4
"""Connections accepted in one round of the loop. Trap: asyncio accepts as many in a round as its backlog, and
each is open two rounds before it can be cut: with a backlog of 64, a burst held 129 to 193."""
_KEPT = MOST_CONNECTIONS - 4 * _ACCEPTED_AT_ONCE
"""Connections kept beside those that were accepted just now."""
_ANSWER_SECONDS = 2.0


class Readiness:
    """The named checks of a service."""

    def __init__(self) -> None:
        self._checks: dict[str, HealthCheck] = {}
        self._details: dict[str, HealthCheck] = {}

    def add(self, name: str, check: HealthCheck) -> None:
        """Name a check; one of the same name is replaced."""
        self._checks[name] = check

    def tell(self, name: str, detail: HealthCheck) -> None:
        """Name a detail that `/readyz` shows beside the reasons: it says something and decides nothing."""
        self._details[name] = detail

    def reasons(self) -> dict[str, str]:
        """The reasons for which the service is not ready, by check; empty means ready."""
        if not self._checks:
            return {"start": "the service is starting"}
        found = {name: _ask(check) for name, check in self._checks.items()}
        return {name: reason for name, reason in found.items() if reason is not None}

    def details(self) -> dict[str, str]:
        """The service's word on itself, by detail."""
        found = {name: _ask(detail) for name, detail in self._details.items()}
        return {name: said for name, said in found.items() if said is not None}


def _ask(check: HealthCheck) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 # a broken check means "not ready", with the reason
        return f"the check itself failed: {error!r}"


class HealthReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of `/readyz`."""

    ready: bool
    reasons: dict[str, str]
    details: dict[str, str] = {}
    """Details that the service tells of itself: whether it leads, for example."""


class _ConnectionLimiter:
    """Lets connections in for a time, and so many at once; what `create_server` takes as a factory of protocols."""

    def __init__(self, server: web.Server) -> None:
        self._server = server
        self._inside: deque[web.RequestHandler] = deque()
        """Open connections, the oldest first; some of them may be gone already."""

    def __call__(self) -> web.RequestHandler:
        loop = asyncio.get_running_loop()
        while len(self._inside) >= _KEPT:
            _cut(self._inside.popleft())  # accepted in an earlier round: it has its transport
        handler = self._server()
        self._inside.append(handler)
        loop.call_later(CONNECTION_SECONDS, self._show_out, handler)
        return handler

    def _show_out(self, handler: web.RequestHandler) -> None:
        _cut(handler)
        with contextlib.suppress(ValueError):  # it was the oldest, and gone before its time
            self._inside.remove(handler)


def _cut(handler: web.RequestHandler) -> None:
    """Cuts a connection at once: closing alone waits for as long as the other side does not read."""
    transport = handler.transport
    handler.force_close()
    if transport is not None:
        transport.abort()


class HealthServer:
    """Serves health and metrics while the `async with` block lasts.

    Args:
        metrics: the metrics that `/metrics` shows.
        readiness: the checks that `/readyz` asks.
        host: address to listen on.
        port: 0 takes a free one, which `port` then says; -1 opens none.
    """

    def __init__(self, metrics: Metrics, readiness: Readiness, *, host: str = "127.0.0.1", port: int) -> None:
        self._metrics = metrics
        self._readiness = readiness
        self._host = host
        self.port = port
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        if self.port == NO_PORT:
            return self
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz", self._alive),
                web.get("/health", self._alive),
                web.get("/readyz", self._ready),
                web.get("/metrics", self._expose),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        served = self._runner.server
        assert served is not None  # noqa: S101 # set up just now
        try:
            self._listening = await asyncio.get_running_loop().create_server(
                _ConnectionLimiter(served), self._host, self.port, backlog=_ACCEPTED_AT_ONCE
            )
        except OSError as error:
            await self._runner.cleanup()
            raise PortTakenError(
                f"the health port {self._host}:{self.port} cannot be opened: {error.strerror}"
            ) from error
        for listener in self._listening.sockets:
            with socket.socket(fileno=os.dup(listener.fileno())) as own:
                own.listen(
                    MOST_CONNECTIONS
                )  # the rest of a burst waits in the kernel, and is not turned away
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._listening is not None:
            await _accept_no_more(self._listening)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _alive(self, _: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def _ready(self, _: web.Request) -> web.Response:
        reasons = self._readiness.reasons()
        report = HealthReport(ready=not reasons, reasons=reasons, details=self._readiness.details())
        return web.Response(
            body=msgspec.json.encode(report), content_type="application/json", status=503 if reasons else 200
        )

    async def _expose(self, request: web.Request) -> web.Response:
        body, content_type = self._metrics.expose(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})


async def _accept_no_more(listening: asyncio.Server) -> None:
    """Stops listening once whoever was accepted has a transport.

    Trap: asyncio fails to attach one that it makes after the close, and leaves it open until the garbage is looked at
    (CPython issue 109564).
    """
    loop = asyncio.get_running_loop()
    for listener in listening.sockets:
        loop.remove_reader(listener.fileno())
    await asyncio.sleep(0)
    listening.close()


def ask_health(host: str, port: int) -> HealthReport:
    """Asks the service on this host and port for its readiness. Blocks, at most two seconds a step."""
    if port <= 0:
        return HealthReport(
            ready=False, reasons={"port": f"health port {port} names no port; give the one it listens on"}
        )
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 # where to ask, not where to listen
    connection = http.client.HTTPConnection(address, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/readyz")
        return msgspec.json.decode(connection.getresponse().read(), type=HealthReport)
    except (OSError, http.client.HTTPException) as error:
        reason = f"{address}:{port} does not answer: {error}"
    except msgspec.MsgspecError as error:
        reason = f"{address}:{port} does not answer like a service of Fairlead: {error}"
    finally:
        connection.close()
    return HealthReport(ready=False, reasons={"answer": reason})
