"""What watcher and admitter must be allowed to do, asked of the API server."""

import asyncio
from collections.abc import Iterator

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
_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _Need(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    verb: str
    resource: Resource[object]
    namespace: str = ""


class _Verdict(KubeStruct, frozen=True, kw_only=True):
    allowed: bool = False


class _Review(KubeStruct, frozen=True, kw_only=True):
    status: _Verdict = _Verdict()


async def rights_of(client: KubeClient, user: str, accounts: str | None, *, probed: str) -> list[Right]:
    """Each right that a service needs, and whether it has it.

    Args:
        client: of the cluster.
        user: our own name there.
        accounts: the namespace of the service accounts `fairlead-watcher` and `fairlead-admitter` to ask for; None asks
            for our own user, as whom `fairlead up --kubeconfig` runs both.
        probed: the namespace of the lever's probe.
    """
    needs = list(_needs(probed))
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


async def _ask(client: KubeClient, need: _Need, user: str, accounts: str | None) -> Right:
    if accounts is None:
        account = user
        allowed = await can_i(client, need.verb, need.resource, namespace=need.namespace or None)
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
    }
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account, "groups": groups, "resourceAttributes": attributes},
    }
    answer = await client.request("POST", _PATH, body=msgspec.json.encode(body))
    return msgspec.json.decode(answer, type=_Review).status.allowed
