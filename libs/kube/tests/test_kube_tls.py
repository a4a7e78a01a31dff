"""TLS: the authority that we trust, our certificate, and the files that a pod mounts."""

import asyncio
import base64
import contextlib
import gc
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from fairlead_kube.connection import kubeconfig as module
from fairlead_kube.connection.kubeconfig import Access, find_access
from fairlead_kube.connection.kubeconfig_file import Cluster, User
from fairlead_kube.connection.transport import open_transport
from fairlead_kube.errors import UnreachableError
from fairlead_kube.settings import KubeSettings
from fairlead_testkit.processes.http_server import http_server


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@contextlib.asynccontextmanager
async def server(authority: trustme.CA) -> AsyncIterator[str]:
    """A server that answers with the name in the client's certificate, which it demands, and the token."""

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.Response(text=str(request.transport.get_extra_info("peercert")["subjectAltName"]))

    async with http_server(answer, authority) as host:
        yield host


@contextlib.contextmanager
def rude_server(authority: trustme.CA, *, answers: bytes) -> Iterator[tuple[int, threading.Event]]:
    """Says so much over TLS to the first who asks, and then nothing more; it answers no farewell either.

    Gives its port, and when somebody has asked.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    asked, over = threading.Event(), threading.Event()

    def serve() -> None:
        plain, _ = listening.accept()
        with context.wrap_socket(plain, server_side=True) as connection:
            connection.recv(4096)
            connection.sendall(answers)
            asked.set()
            over.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1], asked
        finally:
            over.set()
            thread.join(60)


def base64_of(*parts: bytes) -> str:
    return base64.b64encode(b"".join(parts)).decode()


async def ask(access: Access) -> str:
    async with open_transport(access, KubeSettings(), user_agent="test") as transport:
        return (await transport.request("GET", "/")).decode()


async def test_a_certificate_in_the_kubeconfig_signs_us_in(authority: trustme.CA, tmp_path: Path) -> None:
    pair = authority.issue_cert("jane.example.org")
    certificate = b"".join(blob.bytes() for blob in pair.cert_chain_pems)
    (tmp_path / "tls.crt").write_bytes(certificate)
    (tmp_path / "tls.key").write_bytes(pair.private_key_pem.bytes())
    in_line = User(
        client_certificate_data=base64_of(certificate),
        client_key_data=base64_of(pair.private_key_pem.bytes()),
    )
    by_file = User(client_certificate=str(tmp_path / "tls.crt"), client_key=str(tmp_path / "tls.key"))
    async with server(authority) as host:
        cluster = Cluster(
            server=f"https://{host}",
            certificate_authority_data=base64_of(authority.cert_pem.bytes()),
        )
        for user in (in_line, by_file):
            assert "jane.example.org" in await ask(Access(cluster=cluster, user=user))
        with pytest.raises(UnreachableError):
            await ask(Access(cluster=cluster, user=User()))


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(b"", id="before an answer"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n", id="amid an answer"
        ),
    ],
)
def test_what_is_left_while_the_server_is_silent_leaves_no_connection_open(
    authority: trustme.CA, answers: bytes
) -> None:
    """A machine that is busy says farewell late, and asyncio would wait for it, half a minute, with nobody there to see it."""

    async def leave(port: int, asked: threading.Event) -> None:
        cluster = Cluster(
            server=f"https://127.0.0.1:{port}",
            certificate_authority_data=base64_of(authority.cert_pem.bytes()),
        )
        async with open_transport(
            Access(cluster=cluster, user=User()), KubeSettings(), user_agent="test"
        ) as transport:
            heard = asyncio.Event()

            async def watch() -> None:
                async with transport.stream("/", query={}) as batches:
                    async for _ in batches:
                        heard.set()

            watching = asyncio.create_task(watch())
            assert await asyncio.to_thread(asked.wait, 30)
            if answers:
                await heard.wait()
            watching.cancel()
            await asyncio.wait([watching])

    with rude_server(authority, answers=answers) as (port, asked):
        asyncio.run(leave(port, asked))
        gc.collect()


async def test_a_server_of_another_authority_is_not_trusted(authority: trustme.CA) -> None:
    async with server(authority) as host:
        stranger = base64_of(trustme.CA().cert_pem.bytes())
        cluster = Cluster(server=f"https://{host}", certificate_authority_data=stranger)
        with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            await ask(Access(cluster=cluster, user=User()))


def test_in_a_pod_the_service_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("abc")
    monkeypatch.setattr(module, "SERVICE_ACCOUNT", tmp_path)
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    access = find_access(KubeSettings(), pod)
    assert access.cluster.server == "https://[fd00::1]:6443"
    assert access.cluster.certificate_authority == str(tmp_path / "ca.crt")
    assert access.user.token_file == str(tmp_path / "token")
