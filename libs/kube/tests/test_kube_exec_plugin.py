"""Credential plugins as client-go runs them: their input, the life of their answers, and their failures."""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import trustme
from aiohttp import web

from fairlead_kube.connection.exec_plugin import CLUSTER_EXTENSION, ExecPlugin
from fairlead_kube.connection.kubeconfig import Access, read_kubeconfig
from fairlead_kube.connection.kubeconfig_file import Cluster, ExecSettings, User
from fairlead_kube.connection.transport import open_transport
from fairlead_kube.errors import CredentialsError
from fairlead_kube.settings import KubeSettings
from fairlead_testkit.processes.fresh_interpreter import printed_by
from fairlead_testkit.processes.http_server import http_server

VERSION = "client.authentication.k8s.io/v1"
ANYWHERE = Cluster(server="https://x")
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def access(folder: Path, script: str, cluster: Cluster = ANYWHERE, **more: object) -> Access:
    """A user whose plugin is a shell script; it notes each run, with what it is told."""
    noted = f'echo "$KUBERNETES_EXEC_INFO" >> {folder}/runs; {script}'
    plugin = {"apiVersion": VERSION, "command": "sh", "args": ["-c", noted], "interactiveMode": "Never"}
    settings = msgspec.convert({**plugin, **more}, ExecSettings)
    return Access(cluster=cluster, user=User(exec=settings))


def plugin_of(found: Access, clock: Callable[[], float] = time.time) -> ExecPlugin:
    assert found.user.exec is not None
    return ExecPlugin(found.user.exec, found.cluster, clock)


def answer(**status: object) -> str:
    return json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})


def minted(token: str, **status: object) -> str:
    return answer(token=token, **status)


def runs(folder: Path) -> list[dict[str, object]]:
    path = folder / "runs"
    return [json.loads(line)["spec"] for line in path.read_text().splitlines()] if path.exists() else []


async def test_a_plugin_is_told_of_the_cluster_where_it_wants_to_be(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"authority")
    config = tmp_path / "config"
    config.write_text(
        "clusters: [{name: k, cluster: {server: 'https://x', tls-server-name: n, certificate-authority: ca.crt, "
        f"extensions: [{{name: other}}, {{name: {CLUSTER_EXTENSION}, extension: {{audience: a}}}}]}}}}]\n"
    )
    [cluster] = read_kubeconfig([config]).clusters.values()
    given = f"echo '{minted('t')}'"
    for more in ({}, {"provideClusterInfo": True}):
        assert (
            await plugin_of(access(tmp_path, given, cluster, **more)).authorization(renew=False) == "Bearer t"
        )
    without, told = runs(tmp_path)
    assert without == {"interactive": False}
    assert told == {
        "interactive": False,
        "cluster": {
            "server": "https://x",
            "tls-server-name": "n",
            "certificate-authority-data": base64.b64encode(b"authority").decode(),
            "config": {"audience": "a"},
        },
    }


async def test_an_answer_holds_until_it_expires_or_is_refused(tmp_path: Path) -> None:
    now = NOW.timestamp()
    until = (NOW + timedelta(minutes=10)).isoformat()
    given = f"echo '{minted('t', expirationTimestamp=until)}'"
    plugin = plugin_of(access(tmp_path, given), clock=lambda: now)
    for _ in range(3):
        await plugin.authorization(renew=False)
    assert len(runs(tmp_path)) == 1
    now += 600
    await plugin.authorization(renew=False)
    assert len(runs(tmp_path)) == 2
    now -= 600
    await asyncio.gather(*(plugin.authorization(renew=True) for _ in range(5)))
    assert len(runs(tmp_path)) == 3  # one new answer is enough for all whose token was refused


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no account >&2; exit 3", "exit code 3: no account"),
        ("echo nonsense", "no ExecCredential"),
        (f"echo '{answer()}'", "neither a token nor a certificate"),
        (f"echo '{answer(clientCertificateData='c')}'", "without the other"),
        (f"echo '{minted('t', expirationTimestamp='2026-11-23T00:00:00')}'", "time zone"),
        (f"echo '{minted('t').replace('/v1', '/v1beta1')}'", "answered as"),
    ],
)
async def test_what_a_plugin_does_wrong_is_told(tmp_path: Path, script: str, why: str) -> None:
    with pytest.raises(CredentialsError, match=why):
        await plugin_of(access(tmp_path, script)).authorization(renew=False)


async def test_a_plugin_that_is_not_there_is_told_with_how_to_get_it(tmp_path: Path) -> None:
    missing = access(tmp_path, "", command="no-such-plugin", installHint="install it from example.org")
    with pytest.raises(CredentialsError, match=r"no-such-plugin cannot be started.*example\.org"):
        await plugin_of(missing).authorization(renew=False)


def is_alive(noted: Path) -> bool:
    """Whether the process runs that noted its number there; a slow machine may not even have started it."""
    return noted.exists() and Path("/proc", noted.read_text().strip() or "none").exists()


async def test_a_plugin_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_kube.connection.exec_plugin.RUN_SECONDS", 0.2)
    hanging = access(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    with pytest.raises(CredentialsError, match="gave nothing within"):
        await plugin_of(hanging).authorization(renew=False)
    assert not is_alive(tmp_path / "pid")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "v1alpha1"),
        ({"interactiveMode": "Always"}, "terminal"),
        ({"command": ""}, "no command"),
    ],
)
def test_a_plugin_that_cannot_be_run_is_told(tmp_path: Path, more: dict[str, object], why: str) -> None:
    with pytest.raises(CredentialsError, match=why):
        plugin_of(access(tmp_path, "", Cluster(), **more))


def test_a_plugin_costs_no_large_import() -> None:
    script = (
        "import sys; from fairlead_kube.connection.credentials import sign_in; "
        "from fairlead_kube.connection.kubeconfig import Access; "
        "from fairlead_kube.connection.kubeconfig_file import Cluster, ExecSettings, User; "
        f"settings = ExecSettings(command='x', api_version={VERSION!r}); "
        "sign_in(Access(cluster=Cluster(), user=User(exec=settings))); "
        "print('kubernetes_asyncio' in sys.modules)"
    )
    assert printed_by(script) == "False"


class CertificateServer:
    """An API server that says whose certificate a connection shows, and refuses those that have expired."""

    def __init__(self) -> None:
        self.authority = trustme.CA()
        self.expired: set[str] = set()
        self.host = ""

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        async with http_server(self._answer, self.authority) as self.host:
            yield

    async def _answer(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        [(_, name)] = request.transport.get_extra_info("peercert")["subjectAltName"]
        return web.Response(text=name, status=401 if name in self.expired else 200)

    def cluster(self) -> Cluster:
        authority = base64.b64encode(self.authority.cert_pem.bytes()).decode()
        return Cluster(server=f"https://{self.host}", certificate_authority_data=authority)

    def credential(self, name: str, **more: object) -> str:
        """The answer that a plugin prints for the name."""
        pair = self.authority.issue_cert(name)
        chain = b"".join(blob.bytes() for blob in pair.cert_chain_pems).decode()
        key = pair.private_key_pem.bytes().decode()
        return answer(clientCertificateData=chain, clientKeyData=key, **more)


@pytest.mark.parametrize("by_time", [True, False], ids=["by its stamp", "by the server"])
async def test_a_certificate_that_expires_is_renewed_on_new_connections(
    tmp_path: Path, *, by_time: bool
) -> None:
    names = CertificateServer()
    stamp = {"expirationTimestamp": "2020-01-01T00:00:00Z"} if by_time else {}
    async with names.serve():
        (tmp_path / "credential").write_text(names.credential("jane.example.org", **stamp))
        user = access(tmp_path, f"cat {tmp_path}/credential", names.cluster())
        async with open_transport(user, KubeSettings(), user_agent="test") as transport:
            assert await transport.request("GET", "/") == b"jane.example.org"
            (tmp_path / "credential").write_text(names.credential("john.example.org", **stamp))
            if not by_time:
                assert await transport.request("GET", "/") == b"jane.example.org"
                names.expired.add("jane.example.org")
            assert await transport.request("GET", "/") == b"john.example.org"
