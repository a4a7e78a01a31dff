"""Kubernetes clusters that a command is pointed at."""

import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from fairlead_cli.errors import ClusterError, InputError, leaves
from fairlead_kube.client import KubeClient, connect
from fairlead_kube.connection.kubeconfig import find_access
from fairlead_kube.errors import ConfigurationError, KubeError
from fairlead_kube.settings import KubeSettings

IN_CLUSTER = "kubernetes"
"""The name of the cluster that we run in ourselves, where no context names it."""
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class KubeTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes cluster: the name that Fairlead has for it, and how to get there."""

    cluster: str
    kubeconfig: str | None = None
    context: str | None = None


def target(*, kubeconfig: str | None, context: str | None, cluster: str | None) -> KubeTarget:
    """The cluster; named after its context unless a name is given.

    Blanks, slashes and colons of a context's name (as cloud providers make them) become dashes: the policy writes
    `<cluster>/<pool>`.

    Raises:
        InputError: there is no kubeconfig, or no such context.
    """
    try:
        access = find_access(KubeSettings(kubeconfig=kubeconfig, context=context))
    except ConfigurationError as error:
        raise InputError(str(error), hint="Say where it is: --kubeconfig FILE, --context NAME.") from error
    name = cluster or _ODD.sub("-", access.context).strip("-") or IN_CLUSTER
    if "/" in name:
        raise InputError(f"--cluster {name}: a cluster's name has no slash")
    return KubeTarget(cluster=name, kubeconfig=_absolute(kubeconfig), context=access.context or None)


def targets(*, kubeconfig: str | None, contexts: Sequence[str], cluster: str | None) -> list[KubeTarget]:
    """A cluster for each context; for the current one where none is named.

    Raises:
        InputError: see `target`; or two clusters would have one name.
    """
    if kubeconfig == "":
        raise InputError(
            "--kubeconfig is empty, and without a kubeconfig a simulated cluster runs",
            hint="Is KUBECONFIG set? To run the simulated one, leave the flag out.",
        )
    if len(contexts) > 1 and cluster is not None:
        raise InputError(
            "--cluster names one cluster, and there are several contexts: each is named after its own"
        )
    found = [target(kubeconfig=kubeconfig, context=name, cluster=cluster) for name in contexts or (None,)]
    names = [one.cluster for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two contexts would both be cluster {twice}")
    return found


def _absolute(kubeconfig: str | None) -> str | None:
    """Paths made absolute: a child process and a restart find them, wherever they run."""
    if kubeconfig is None:
        return None
    parts = [str(Path(part).expanduser().absolute()) for part in kubeconfig.split(os.pathsep) if part]
    return os.pathsep.join(parts)


@asynccontextmanager
async def opened(found: KubeTarget) -> AsyncIterator[KubeClient]:
    """A client of the cluster.

    Raises:
        ClusterError: it cannot be reached, or does not let us in.
    """
    settings = KubeSettings(kubeconfig=found.kubeconfig, context=found.context)
    try:
        async with connect(settings, user_agent="fairlead-cli") as client:
            yield client
    except KubeError as error:
        raise _in_words(found, error) from error
    except BaseExceptionGroup as group:
        # What is read side by side fails side by side: the first failure tells enough.
        alike = group.subgroup(KubeError)
        if alike is None:
            raise
        raise _in_words(found, next(leaves(alike))) from group


def _in_words(found: KubeTarget, error: BaseException) -> ClusterError:
    return ClusterError(
        f"cluster {found.cluster}: {error}",
        hint="Does `kubectl get nodes` work with this kubeconfig and context?",
    )
