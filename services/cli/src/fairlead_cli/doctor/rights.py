"""What watcher and admitter must be allowed to do, asked of the API server."""

import asyncio
from collections.abc import Collection, Iterator

import msgspec

from fairlead_cli.doctor.survey import Right
from fairlead_kube import (
    CLUSTER_QUEUES,
    COHORTS,
    EVENTS,
    JOBS,
    LOCAL_QUEUES,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    RESOURCE_FLAVORS,
    SERVICE_ACCOUNTS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
    KubeClient,
    Resource,
    account_can,
    can_i,
    service_account,
)

WATCHER, ADMITTER = "watcher", "admitter"
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
    JOBS,
)
SUBMITTER = "fairlead-submitter"
"""The service account of a tenant's namespace that the admitter makes jobs as, by the name that it has as shipped."""
IMPERSONATE = "impersonate"
MOST_TENANTS = 200
"""Namespaces whose submitters are asked for: each is a request."""


class _Need(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    verb: str
    resource: Resource[object]
    namespace: str = ""
    name: str = ""


async def rights_of(
    client: KubeClient, user: str, accounts: str | None, *, probed: str, tenants: Collection[str] = ()
) -> list[Right]:
    """Each right that a service needs, and whether it has it.

    Args:
        client: of the cluster.
        user: our own name there.
        accounts: the namespace of the service accounts `fairlead-watcher` and `fairlead-admitter` to ask for; None asks
            for our own user, as whom `fairlead up --kubeconfig` runs both.
        probed: the namespace of the lever's probe.
        tenants: the namespaces that may take submissions.
    """
    needs = [*_needs(probed), *_submitters(tenants)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(client, need, user, accounts)) for need in needs]
    return [task.result() for task in tasks]


def _needs(probed: str) -> Iterator[_Need]:
    for resource in _WATCHED:
        for verb in ("list", "watch"):
            yield _Need(service=WATCHER, verb=verb, resource=resource)
    for verb in ("list", "watch", "patch"):
        yield _Need(service=ADMITTER, verb=verb, resource=WORKLOADS)
    yield _Need(service=ADMITTER, verb="create", resource=EVENTS)
    yield _Need(service=ADMITTER, verb="create", resource=WORKLOADS, namespace=probed)


def _submitters(tenants: Collection[str]) -> Iterator[_Need]:
    for namespace in sorted(tenants)[:MOST_TENANTS]:
        yield _Need(
            service=ADMITTER,
            verb=IMPERSONATE,
            resource=SERVICE_ACCOUNTS,
            namespace=namespace,
            name=SUBMITTER,
        )


async def _ask(client: KubeClient, need: _Need, user: str, accounts: str | None) -> Right:
    namespace, name = need.namespace or None, need.name or None
    if accounts is None:
        account = user
        allowed = await can_i(client, need.verb, need.resource, namespace=namespace, name=name)
    else:
        asked = (accounts, f"fairlead-{need.service}")
        account = service_account(*asked)
        allowed = await account_can(client, asked, need.verb, need.resource, namespace=namespace, name=name)
    group = need.resource.group
    return Right(
        service=need.service,
        account=account,
        verb=need.verb,
        resource=f"{need.resource.plural}.{group}" if group else need.resource.plural,
        namespace=need.namespace,
        name=need.name,
        allowed=allowed,
    )
