"""Credential plugins, as EKS and GKE have them: a program that prints a token, or a certificate with its key.

The protocol is client-go's (kubernetes.io/docs/reference/access-authn-authz/authentication, "client-go credential
plugins"; the types are those of client.authentication.k8s.io/v1 and v1beta1). What the program gave is used until it
expires or the server refuses it. kubernetes-asyncio's own runner knows no certificates and no `provideClusterInfo`, and
costs 1.7 s and 76 MB to import.
"""

import asyncio
import base64
import os
import ssl
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from fairlead_kube.connection.kubeconfig import material
from fairlead_kube.connection.kubeconfig_file import Cluster, ExecSettings
from fairlead_kube.errors import CredentialsError

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
CLUSTER_EXTENSION = "client.authentication.k8s.io/exec"
"""Name of the extension with which a kubeconfig's cluster tells a plugin more than its address."""
RUN_SECONDS = 60.0
"""Seconds after which a plugin is ended: it waits for somebody to log in, or for a network that is not
there."""
_SHOWN = 500


class ExecStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The credentials that a plugin gives. Certificate and key are PEM."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer that a plugin prints."""

    api_version: str
    kind: str
    status: ExecStatus | None = None


class ExecPlugin:
    """The plugin of a kubeconfig's user, run whenever its last credentials do not hold.

    Args:
        clock: seconds since the Unix epoch.

    Raises:
        CredentialsError: the kubeconfig describes no plugin that can be run.
    """

    def __init__(
        self, settings: ExecSettings, cluster: Cluster, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        if not settings.command:
            raise CredentialsError("the credential plugin of the kubeconfig has no command")
        if settings.api_version not in VERSIONS:
            raise CredentialsError(
                f"the credential plugin of the kubeconfig speaks {settings.api_version}, "
                f"not {' or '.join(VERSIONS)}"
            )
        if settings.interactive_mode == "Always":
            raise CredentialsError("the credential plugin of the kubeconfig wants a terminal; there is none")
        self._at = cluster
        self._clock = clock
        self._given: ExecStatus | None = None
        self._one_at_a_time = asyncio.Lock()
        self.certificates = 0
        """Number of different certificates that it has given; a connection with an older one is not signed in
        for long."""

    async def authorization(self, *, renew: bool) -> str | None:
        """Give the value of the header; None where the plugin gives a certificate.

        Raises:
            CredentialsError: the plugin failed, or gave nothing to sign in with.
        """
        refused = self._given if renew else None
        async with self._one_at_a_time:
            until = None if self._given is None else self._given.expiration_timestamp
            expired = until is not None and until.timestamp() <= self._clock()
            if self._given is None or self._given is refused or expired:
                before = "" if self._given is None else self._given.client_certificate_data
                self._given = await self._run()
                if self._given.client_certificate_data != before:
                    self.certificates += 1
            return f"Bearer {self._given.token}" if self._given.token else None

    def load_into(self, context: ssl.SSLContext) -> None:
        """Have connections made with this context show the certificate; nothing where there is none.

        Raises:
            CredentialsError: certificate and key do not fit, or are none.
        """
        if self._given is None or not self._given.client_certificate_data:
            return
        # The ssl module takes files alone: this one lives for the moment of the call, readable by us only.
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder, "tls.pem")
            pair.write_text(f"{self._given.client_certificate_data}\n{self._given.client_key_data}\n")
            try:
                context.load_cert_chain(pair)
            except ssl.SSLError as error:
                raise CredentialsError(
                    f"the credential plugin's certificate cannot be used: {error}"
                ) from error

    async def _run(self) -> ExecStatus:
        settings = self._settings
        environ = dict(os.environ)
        environ.update({one.name: one.value for one in settings.env or ()})
        environ["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(self._asked()).decode()
        try:
            process = await asyncio.create_subprocess_exec(
                settings.command,
                *(settings.args or ()),
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {settings.install_hint.strip()}" if settings.install_hint else ""
            raise self._error(f"cannot be started: {error.strerror}{hint}") from error
        try:
            async with asyncio.timeout(RUN_SECONDS):
                printed, said = await process.communicate()
        except TimeoutError as error:
            raise self._error(f"gave nothing within {RUN_SECONDS:.0f} s") from error
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            words = said.decode("utf-8", "replace").strip()[-_SHOWN:]
            raise self._error(f"failed with exit code {process.returncode}: {words}")
        return self._read(printed)

    def _read(self, printed: bytes) -> ExecStatus:
        try:
            answer = msgspec.json.decode(printed, type=ExecAnswer)
        except msgspec.DecodeError as error:  # its words show nothing of what may be a secret
            raise self._error(f"printed no ExecCredential: {error}") from error
        if (answer.api_version, answer.kind) != (self._settings.api_version, "ExecCredential"):
            raise self._error(f"answered as {answer.api_version} {answer.kind}")
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._error("gave neither a token nor a certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._error("gave a certificate or a key without the other")
        until = status.expiration_timestamp
        if until is not None and until.tzinfo is None:
            raise self._error("gave an expiry without a time zone")
        return status

    def _asked(self) -> dict[str, object]:
        spec: dict[str, object] = {"interactive": False}
        if self._settings.provide_cluster_info:
            spec["cluster"] = self._cluster()
        return {"apiVersion": self._settings.api_version, "kind": "ExecCredential", "spec": spec}

    def _cluster(self) -> dict[str, object]:
        """The cluster in client-go's form for a plugin (k8s.io/client-go, tools/clientcmd/api: Cluster)."""
        cluster = self._at
        authority = material(
            cluster.certificate_authority_data, cluster.certificate_authority, "certificate authority"
        )
        told: dict[str, object] = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify or None,
            "certificate-authority-data": base64.b64encode(authority).decode() if authority else None,
            "proxy-url": cluster.proxy_url,
            "config": next(
                (one.extension for one in cluster.extensions or () if one.name == CLUSTER_EXTENSION), None
            ),
        }
        return {name: value for name, value in told.items() if value is not None}

    def _error(self, what: str) -> CredentialsError:
        return CredentialsError(f"the credential plugin {self._settings.command} {what}")
