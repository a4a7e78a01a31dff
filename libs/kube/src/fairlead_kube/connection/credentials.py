"""Ways to sign in: tokens that are read again when they grow old, certificates, plugins and providers."""

import asyncio
import base64
import ssl
import tempfile
import time
from pathlib import Path
from typing import Protocol

import msgspec

from fairlead_kube.connection.exec_plugin import ExecPlugin
from fairlead_kube.connection.kubeconfig import Access, material
from fairlead_kube.connection.kubeconfig_file import Cluster, User
from fairlead_kube.errors import CredentialsError

REREAD_SECONDS = 60.0
"""Seconds after which a token file is read again, as client-go does; Kubernetes renews a mounted token long
before it expires."""


class CredentialSource(Protocol):
    """Giver of the value of the header `Authorization`."""

    async def authorization(self, *, renew: bool) -> str | None:
        """The value now; `renew` says that the server refused the last one. None: no such header.

        Raises:
            CredentialsError: there is none to be had.
        """


class FixedCredentials:
    """A token or password that stands in the kubeconfig, or nothing (certificates)."""

    def __init__(self, value: str | None) -> None:
        self._value = value

    async def authorization(self, *, renew: bool) -> str | None:
        """Give the value of the kubeconfig, always the same."""
        del renew
        return self._value


class TokenFile:
    """A token in a file that somebody renews."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._value = ""
        self._read_at = float("-inf")

    async def authorization(self, *, renew: bool) -> str | None:
        """Give the file's content, read again each minute or when the server refused it."""
        if renew or time.monotonic() - self._read_at >= REREAD_SECONDS:
            try:
                token = self._path.read_text("utf-8").strip()
            except OSError as error:
                raise CredentialsError(f"cannot read the token at {self._path}: {error.strerror}") from error
            if not token:
                raise CredentialsError(f"the token file {self._path} is empty")
            self._value, self._read_at = f"Bearer {token}", time.monotonic()
        return self._value


class AuthProvider:
    """An old auth provider of a kubeconfig (`auth-provider`, as `oidc`), as kubernetes-asyncio knows it.

    It is imported here alone and only when it is needed: the import takes 1.7 s and 76 MB.
    """

    def __init__(self, access: Access) -> None:
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader

        self._configuration = Configuration()
        self._loader = KubeConfigLoader(config_dict=_as_document(access))
        self._one_at_a_time = asyncio.Lock()

    async def authorization(self, *, renew: bool) -> str | None:
        """Ask the provider, which keeps its answer until that expires."""
        del renew
        async with self._one_at_a_time:
            try:
                await self._loader.load_and_set(self._configuration)
            except Exception as error:  # providers fail in any way they like
                raise CredentialsError(f"the auth provider of the kubeconfig failed: {error}") from error
        token: str | None = self._configuration.api_key.get("BearerToken")
        return token


def sign_in(access: Access) -> CredentialSource:
    """The way to sign in that the user of the kubeconfig describes, in the order of client-go.

    Raises:
        CredentialsError: the user's way to sign in cannot work.
    """
    user = access.user
    if user.token_file:
        return TokenFile(Path(user.token_file))
    if user.token:
        return FixedCredentials(f"Bearer {user.token}")
    if user.username and user.password:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        return FixedCredentials(f"Basic {pair}")
    if user.exec:
        return ExecPlugin(user.exec, access.cluster)
    if user.auth_provider:
        return AuthProvider(access)
    return FixedCredentials(None)


def tls_context(access: Access) -> ssl.SSLContext:
    """The TLS settings: the authorities that we trust, and our certificate where the kubeconfig has one.

    Raises:
        ConfigurationError: certificates or keys that cannot be read.
    """
    cluster = access.cluster
    authority = material(
        cluster.certificate_authority_data, cluster.certificate_authority, "certificate authority"
    )
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
        # Clusters of older kubeadm have authorities without key identifiers: kubectl takes them, Python 3.13 does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if cluster.insecure_skip_tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_own(context, access.user)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise CredentialsError(f"a certificate or key of the kubeconfig cannot be used: {error}") from error
    return context


def _load_own(context: ssl.SSLContext, user: User) -> None:
    certificate = material(user.client_certificate_data, user.client_certificate, "client certificate")
    key = material(user.client_key_data, user.client_key, "client key")
    if not certificate:
        return
    # The ssl module takes files alone: these live for the moment of the call, readable by us only.
    with tempfile.TemporaryDirectory() as folder:
        paths = (Path(folder, "tls.crt"), Path(folder, "tls.key"))
        paths[0].write_bytes(certificate)
        paths[1].write_bytes(key or certificate)
        context.load_cert_chain(*paths)


def _as_document(access: Access) -> dict[str, object]:
    """A kubeconfig of one context, for the auth providers."""
    cluster: Cluster = access.cluster
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": _given(cluster)}],
        "users": [{"name": "it", "user": _given(access.user)}],
    }


def _given(part: Cluster | User) -> dict[str, object]:
    document: dict[str, object] = msgspec.to_builtins(part)
    return {name: value for name, value in document.items() if value is not None}
