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
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
    KubeClient,
    KubeStruct,
    PartialObject,
    Resource,
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
_SERVICE_ACCOUNTS: Resource[PartialObject] = Resource(
    group="",
    version="v1",
    plural="serviceaccounts",
    kind="ServiceAccount",
    namespaced=True,
    shape=PartialObject,
    metadata_only=True,
)
_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _Need(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    verb: str
    resource: Resource[object]
    namespace: str = ""
    name: str = ""


class _Verdict(KubeStruct, frozen=True, kw_only=True):
    allowed: bool = False


class _Review(KubeStruct, frozen=True, kw_only=True):
    status: _Verdict = _Verdict()


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
            resource=_SERVICE_ACCOUNTS,
            namespace=namespace,
            name=SUBMITTER,
        )


async def _ask(client: KubeClient, need: _Need, user: str, accounts: str | None) -> Right:
    if accounts is None:
        account = user
        allowed = await can_i(
            client, need.verb, need.resource, namespace=need.namespace or None, name=need.name or None
        )
    else:
        account = service_account(accounts, f"fairlead-{need.service}")
        allowed = await _may(client, need, accounts, account)
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


async def _may(client: KubeClient, need: _Need, namespace: str, account: str) -> bool:
    """Whether a service account may (SubjectAccessReview): asks for no right to impersonate it."""
    attributes = {
        "verb": need.verb,
        "group": need.resource.group,
        "version": need.resource.version,
        "resource": need.resource.plural,
        **({"namespace": need.namespace} if need.namespace else {}),
        **({"name": need.name} if need.name else {}),
    }
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account, "groups": groups, "resourceAttributes": attributes},
    }
    answer = await client.request("POST", _PATH, body=msgspec.json.encode(body))
    return msgspec.json.decode(answer, type=_Review).status.allowed
