"""Kubernetes clusters that a command is pointed at."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from fairlead_cli.errors import ClusterError, InputError
from fairlead_kube import ConfigurationError, KubeClient, KubeError, KubeSettings, connect
from fairlead_kube.kubeconfig import find_access

IN_CLUSTER = "kubernetes"
"""The name of the cluster that we run in ourselves, where no context names it."""
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class KubeTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster: the name that Fairlead has for it, and how to get there."""

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
    return KubeTarget(cluster=name, kubeconfig=kubeconfig, context=access.context or None)


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
        raise _in_words(found, _first(alike)) from group


def _first(group: BaseExceptionGroup) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _in_words(found: KubeTarget, error: BaseException) -> ClusterError:
    return ClusterError(
        f"cluster {found.cluster}: {error}",
        hint="Does `kubectl get nodes` work with this kubeconfig and context?",
    )
