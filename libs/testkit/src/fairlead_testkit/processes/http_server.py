"""HTTP servers in this process whose answers the test gives, and kubeconfigs that lead to them."""

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trustme
from aiohttp import web

type HttpAnswer = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""Call that answers a request."""


@asynccontextmanager
async def http_server(answer: HttpAnswer, authority: trustme.CA | None = None) -> AsyncIterator[str]:
    """Answer every request while the block lasts; gives its host and port.

    Args:
        authority: signs the server's certificate, and the one that each client has to show; None for plain HTTP.
    """
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    context = None if authority is None else _mutual_tls(authority)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _mutual_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def write_kubeconfig(path: Path, server: str) -> None:
    """Write a kubeconfig that leads to a server, with the token that stands in the file `token` beside it."""
    token = path.with_name("token")
    if not token.exists():
        token.write_text("one")
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"tokenFile": token.name}}],
    }
    path.write_text(json.dumps(config))


def refusal(code: int, reason: str, message: str = "", details: object = None) -> web.Response:
    """The answer of an API server that refuses."""
    return web.json_response(kube_status(code, reason, message, details), status=code)


def kube_status(code: int, reason: str, message: str = "", details: object = None) -> dict[str, object]:
    """A Status, as Kubernetes states errors."""
    return {
        "kind": "Status",
        "code": code,
        "reason": reason,
        "message": message or reason,
        "details": details,
    }
