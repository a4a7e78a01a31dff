"""Access to a cluster: where it is and how to sign in there, by kubeconfig files or the service account of a pod.

The kubernetes-asyncio package reads these files, too, but costs 1.7 s and 76 MB to import, reads a token file once and
leaves private keys in /tmp. It is asked only for the old auth providers (see `credentials`).
"""

import binascii
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlead_kube.connection.kubeconfig_file import Cluster, Context, User, from_base64, read_file
from fairlead_kube.errors import ConfigurationError, MissingKubeconfigError, UnknownContextError
from fairlead_kube.settings import KubeSettings

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder in which a pod finds its token and the cluster's certificate authority."""


class Kubeconfig(msgspec.Struct, kw_only=True):
    """Several files as one: the first one that names a thing counts, as with kubectl."""

    current: str | None = None
    clusters: dict[str, Cluster] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The address of one cluster and how to sign in there."""

    cluster: Cluster
    user: User
    namespace: str = "default"
    context: str = ""
    """Name of the context; empty for the service account of a pod."""


def find_access(settings: KubeSettings, environ: Mapping[str, str] = os.environ) -> Access:
    """The way to the cluster that the settings name.

    Raises:
        MissingKubeconfigError: nothing to read.
        UnknownContextError: the context is not in it.
        ConfigurationError: a file cannot be read, or names what it does not hold.
    """
    if settings.kubeconfig is None and "KUBECONFIG" not in environ and "KUBERNETES_SERVICE_HOST" in environ:
        return _in_cluster(environ)
    config = read_kubeconfig(kubeconfig_paths(settings, environ))
    name = settings.context or config.current
    if not name or name not in config.contexts:
        raise UnknownContextError(name or "", sorted(config.contexts))
    context = config.contexts[name]
    cluster = config.clusters.get(context.cluster)
    if cluster is None or not cluster.server:
        raise ConfigurationError(f"context {name!r} names cluster {context.cluster!r}, which has no server")
    if context.user and context.user not in config.users:
        raise ConfigurationError(
            f"context {name!r} names user {context.user!r}, which the kubeconfig does not hold"
        )
    user = config.users.get(context.user, User())
    return Access(cluster=cluster, user=user, namespace=context.namespace, context=name)


def kubeconfig_paths(settings: KubeSettings, environ: Mapping[str, str]) -> list[Path]:
    """The files that the settings or the environment name and that exist.

    Raises:
        MissingKubeconfigError: none of them exists.
    """
    given = settings.kubeconfig or environ.get("KUBECONFIG") or "~/.kube/config"
    named = [Path(part).expanduser() for part in given.split(os.pathsep) if part]
    found = [path for path in named if path.is_file()]
    if not found:
        raise MissingKubeconfigError(f"there is no kubeconfig at {given}")
    return found


def read_kubeconfig(paths: list[Path]) -> Kubeconfig:
    """The files as one; relative paths in a file are taken from its folder."""
    merged = Kubeconfig()
    for path in paths:
        file = read_file(path)
        merged.current = merged.current or file.current_context
        for one in file.clusters or ():
            if one.cluster is not None:
                merged.clusters.setdefault(
                    one.name, _with_paths_resolved(one.cluster, path.parent, "certificate_authority")
                )
        for one in file.users or ():
            files = ("client_certificate", "client_key", "token_file")
            user = _with_paths_resolved(one.user or User(), path.parent, *files)
            merged.users.setdefault(one.name, _with_plugin_found(user, path.parent))
        for one in file.contexts or ():
            merged.contexts.setdefault(one.name, one.context or Context())
    return merged


def _with_paths_resolved[S: Cluster | User](part: S, folder: Path, *fields: str) -> S:
    """The part with its paths taken from the kubeconfig's folder, not from ours."""
    found = {field: getattr(part, field) for field in fields}
    return msgspec.structs.replace(
        part, **{field: str(folder / Path(value).expanduser()) for field, value in found.items() if value}
    )


def _with_plugin_found(user: User, folder: Path) -> User:
    """The user, its plugin's path resolved from the kubeconfig's folder; a command without a slash is no path.

    So client-go has it (k8s.io/client-go, tools/clientcmd, loader.go: ResolveLocalPaths).
    """
    if user.exec is None or os.sep not in user.exec.command:
        return user
    command = str((folder / user.exec.command).absolute())
    return msgspec.structs.replace(user, exec=msgspec.structs.replace(user.exec, command=command))


def _in_cluster(environ: Mapping[str, str]) -> Access:
    token, authority = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    if not token.is_file():
        raise MissingKubeconfigError(f"in a cluster, but without a service account token at {token}")
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    return Access(
        cluster=Cluster(server=f"https://{host}:{port}", certificate_authority=str(authority)),
        user=User(token_file=str(token)),
    )


def material(data: str | None, path: str | None, what: str) -> bytes | None:
    """The content of a certificate or key, from base64 in the kubeconfig or from a file; None for neither.

    Raises:
        ConfigurationError: neither base64 nor readable.
    """
    try:
        if data:
            return from_base64(data)
        return Path(path).read_bytes() if path else None
    except binascii.Error as error:
        raise ConfigurationError(f"the {what} of the kubeconfig is not base64") from error
    except OSError as error:
        raise ConfigurationError(f"cannot read the {what} at {path}: {error.strerror}") from error
