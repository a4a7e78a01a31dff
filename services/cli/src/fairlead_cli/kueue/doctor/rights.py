"""Rights that our services need, asked of the API server."""

import asyncio
import shlex
from collections.abc import Collection, Iterator
from itertools import product
from typing import NamedTuple

from fairlead_cli.kueue.doctor.survey import NeededRight
from fairlead_kube.client import KubeClient, service_account
from fairlead_kube.discovery import can_i
from fairlead_kube.kinds.resources import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    EVENTS,
    JOBS,
    LOCAL_QUEUES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    PYTORCH_JOBS,
    QUEUED_KINDS,
    RESOURCE_FLAVORS,
    SERVICE_ACCOUNTS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
    Resource,
)

_SERVICE_ACCOUNT = "system:serviceaccount:"
WATCHER, ADMITTER, CHECKER = "watcher", "admitter", "checker"
_WATCHED = (
    WORKLOADS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    COHORTS,
    RESOURCE_FLAVORS,
    WORKLOAD_PRIORITY_CLASSES,
    PRIORITY_CLASSES,
    NODES,
    NAMESPACES,
    PODS,
    JOBS,
    PYTORCH_JOBS,
    *QUEUED_KINDS,
)
_CHECKED = (WORKLOADS, RESOURCE_FLAVORS, ADMISSION_CHECKS, NODES, PODS)
SUBMITTER = "fairlead-submitter"
"""The service account of a tenant's namespace that the admitter makes jobs as, by the name that it has as shipped."""
IMPERSONATE = "impersonate"
MOST_TENANTS = 200
"""Namespaces whose submitters are asked for: each is a request."""


class _Need(NamedTuple):
    service: str
    verb: str
    resource: Resource[object]
    namespace: str = ""
    name: str = ""
    subresource: str = ""


async def rights_of(
    client: KubeClient,
    user: str,
    accounts: str | None,
    *,
    probed: str,
    tenants: Collection[str] = (),
    checks_gangs: bool = False,
) -> list[NeededRight]:
    """The rights that the services need, each with whether it is given.

    Args:
        user: our own name there.
        accounts: the namespace of the service accounts, such as `fairlead-watcher`, to ask for; None asks for our own
            user, as whom `fairlead up --kubeconfig` runs all services.
        probed: the namespace of the lever's probe.
        tenants: the namespaces that may take submissions.
        checks_gangs: whether the checker is asked for, too.
    """
    needs = _needs(probed, tenants, checks_gangs=checks_gangs)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(client, need, user, accounts)) for need in needs]
    return [task.result() for task in tasks]


def _needs(probed: str, tenants: Collection[str], *, checks_gangs: bool) -> Iterator[_Need]:
    for service, kinds in ((WATCHER, _WATCHED), (CHECKER, _CHECKED if checks_gangs else ())):
        for resource, verb in product(kinds, ("list", "watch")):
            yield _Need(service, verb, resource)
    for verb in ("list", "watch", "patch"):
        yield _Need(ADMITTER, verb, WORKLOADS)
    yield _Need(ADMITTER, "create", EVENTS)
    yield _Need(ADMITTER, "create", WORKLOADS, probed)
    for namespace in sorted(tenants)[:MOST_TENANTS]:
        yield _Need(ADMITTER, IMPERSONATE, SERVICE_ACCOUNTS, namespace, SUBMITTER)
    for resource in (WORKLOADS, ADMISSION_CHECKS) if checks_gangs else ():
        yield _Need(CHECKER, "patch", resource, subresource="status")


async def _ask(client: KubeClient, need: _Need, user: str, accounts: str | None) -> NeededRight:
    asked = None if accounts is None else (accounts, f"fairlead-{need.service}")
    where = {"namespace": need.namespace, "name": need.name, "subresource": need.subresource}
    group = need.resource.group
    return NeededRight(
        service=need.service,
        account=user if asked is None else service_account(*asked),
        verb=need.verb,
        resource=f"{need.resource.plural}.{group}" if group else need.resource.plural,
        **where,
        allowed=await can_i(client, need.verb, need.resource, **where, account=asked),
    )


def binding(user: str) -> str:
    """Commands that let a person ask everything that the doctor asks: three roles, in two namespaces and everywhere."""
    account = user.removeprefix(_SERVICE_ACCOUNT)
    subject = f"--user={shlex.quote(user or 'NAME')}" if account == user else f"--serviceaccount={account}"
    return (
        "kubectl apply -k deploy/kustomize/rbac\n"
        f"kubectl create clusterrolebinding fairlead-operator-person --clusterrole=fairlead-operator {subject}\n"
        f"kubectl -n kueue-system create rolebinding fairlead-operator-person --role=fairlead-operator {subject}\n"
        f"kubectl -n fairlead create rolebinding fairlead-probe-person --role=fairlead-probe {subject}"
    )
