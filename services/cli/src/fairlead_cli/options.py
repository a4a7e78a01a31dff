"""Flags that several commands share."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

RUN = Group("Run it", sort_key=0)
USE = Group("Submit and ask", sort_key=1)
TRY = Group("Try it on paper", sort_key=2)
CHECK = Group("Check a cluster", sort_key=3)
STEER = Group("Steer it", sort_key=4)

type Format = Literal["table", "wide", "json", "yaml", "name"]
"""Form of a result: for people, for people with every column, for programs, names alone. See
docs/output.md."""

type Underway = Coroutine[object, object, object]
"""A command that is carried out once it is awaited; what comes of it is its exit code, if anything."""

Output = Annotated[Format, Parameter(name=["--output", "-o"])]

OfTenant = Annotated[str | None, Parameter(env_var="FAIRLEAD_TENANT")]
"""Tenant whose jobs are meant; somebody who connects as one says it once and for all in the environment."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reach:
    """The Fairlead to talk to."""

    nats: Annotated[str | None, Parameter(env_var="FAIRLEAD_NATS_URL")] = None
    """URL of NATS; the instance that `fairlead up` started, unless given. Credentials: FAIRLEAD_NATS_USER,
    _PASSWORD, _TOKEN, _CREDS, _NKEY_SEED, _TLS_CA, _TLS_CERT, _TLS_KEY."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class KubeCluster:
    """The Kubernetes cluster to look at."""

    kubeconfig: str | None = None
    """Path of the kubeconfig; $KUBECONFIG, else the pod's own account, else ~/.kube/config, unless given."""
    context: str | None = None
    """Context of the kubeconfig; its current one unless given."""
    cluster: str | None = None
    """The name that Fairlead has for the cluster; the context's unless given."""
