"""Taking a survey: everything is read once and side by side, and nothing is written (the probe is a dry run)."""

import asyncio
from collections.abc import Coroutine
from typing import cast

from msgspec.structs import replace

from fairlead_cli.kueue.doctor.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    KUEUE_CONFIG,
    KUEUE_DEPLOYMENT,
    KUEUE_NAMESPACE,
    ManagedObject,
)
from fairlead_cli.kueue.doctor.kueue_config import seen
from fairlead_cli.kueue.doctor.rights import rights_of
from fairlead_cli.kueue.doctor.survey import ADMITTED, Survey
from fairlead_kube.client import KubeClient
from fairlead_kube.discovery import pick_version, served, server_version, whoami
from fairlead_kube.errors import ForbiddenError, InternalError, NotFoundError
from fairlead_kube.kinds.resources import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    JOBS,
    KUEUE,
    LOCAL_QUEUES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODE_POOLS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    PYTORCH_JOBS,
    QUEUED_KINDS,
    RESOURCE_FLAVORS,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
    Resource,
)
from fairlead_kube.kinds.workloads import PRIORITY_BOOST, Workload
from fairlead_kube.lever import PROBED_NAMESPACES, Lever, LeverProbe, probe_lever

MOST_WRITTEN = 64
"""Workloads whose writers are looked at: other writers show in the first ones."""


class _KindReader:
    """Lists kinds, and remembers what could not be read."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.unread: dict[str, str] = {}

    async def all[T](
        self, *resources: Resource[T], labels: str | None = None, fields: str | None = None
    ) -> list[T]:
        """The objects of the kinds; none of a kind that is not installed, or that we may not list."""
        found: list[T] = []
        for resource in resources:
            try:
                if (known := await pick_version(self.client, resource)) is not None:
                    found += await self.client.list(known, label_selector=labels, field_selector=fields)
            except ForbiddenError as error:
                self.unread[resource.plural] = error.status.message
            except NotFoundError:
                pass  # not served any more
        return found

    async def one[T](self, resource: Resource[T], name: str, namespace: str) -> T | None:
        """An object; None where it is not there, or may not be read: other means tell what it tells, too."""
        try:
            return await self.client.get(resource, name, namespace)
        except (ForbiddenError, NotFoundError):
            return None


async def take(client: KubeClient, before: Survey, *, accounts: str | None) -> Survey:
    """Everything that checks look at.

    Args:
        before: what is known without it.
        accounts: the namespace of the service accounts whose rights are looked at; None for our own user's.

    Raises:
        KubeError: the API server cannot be reached, or does not let us in.
    """
    reader = _KindReader(client)
    versions = await served(client, KUEUE)
    survey = replace(
        before,
        server=client.server,
        kubernetes=(await server_version(client)).git_version,
        user=(await whoami(client)).username,
        kueue=seen(
            list(versions),
            await reader.one(DEPLOYMENTS, KUEUE_DEPLOYMENT, KUEUE_NAMESPACE),
            await reader.one(CONFIG_MAPS, KUEUE_CONFIG, KUEUE_NAMESPACE),
        ),
    )
    if not versions:
        return survey
    survey = await _objects(reader, survey)
    names = {namespace.metadata.name for namespace in survey.namespaces}
    where = next(name for name in PROBED_NAMESPACES if name in names or name == PROBED_NAMESPACES[-1])
    probe, outage = await _probe(client, where)
    return replace(
        survey,
        probe=probe,
        outage=outage,
        rights=await rights_of(
            client,
            survey.user,
            accounts,
            probed=where,
            tenants=survey.managed_namespaces,
            checks_gangs=bool(survey.gang_checks),
        ),
        written=await _written(reader, survey),
        unread=dict(reader.unread),
    )


async def _objects(reader: _KindReader, survey: Survey) -> Survey:
    parts: dict[str, Coroutine[object, object, object]] = {
        "cluster_queues": reader.all(CLUSTER_QUEUES),
        "local_queues": reader.all(LOCAL_QUEUES),
        "cohorts": reader.all(COHORTS),
        "flavors": reader.all(RESOURCE_FLAVORS),
        "workload_classes": reader.all(WORKLOAD_PRIORITY_CLASSES),
        "pod_classes": reader.all(PRIORITY_CLASSES),
        "admission_checks": reader.all(ADMISSION_CHECKS),
        "nodes": reader.all(NODES),
        "node_pools": reader.all(NODE_POOLS),
        "namespaces": reader.all(NAMESPACES),
        "workloads": _unfinished(reader),
        "jobs": reader.all(JOBS),
        "pytorch_jobs": reader.all(PYTORCH_JOBS),
        "others": reader.all(*(kind for kind in QUEUED_KINDS if kind != STATEFUL_SETS)),
        "gang_pods": reader.all(PODS, labels=ADMITTED, fields="status.phase=Running"),
        "deployments": reader.all(DEPLOYMENTS),
        "webhooks": reader.all(VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS),
    }
    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(part) for name, part in parts.items()}
    return replace(survey, **{name: task.result() for name, task in tasks.items()})


async def _unfinished(reader: _KindReader) -> list[Workload]:
    return [one for one in await reader.all(WORKLOADS) if not one.holds("Finished")]


async def _probe(client: KubeClient, namespace: str) -> tuple[LeverProbe, str]:
    """The lever that the probe finds, and the API server's error where Kueue's webhook did not answer."""
    try:
        return await probe_lever(client, namespace), ""
    except InternalError as error:
        return LeverProbe(Lever.UNKNOWN, "Kueue's webhook did not answer"), error.status.message
    except ForbiddenError as error:
        return LeverProbe(Lever.UNKNOWN, f"the probe is not allowed: {error.status.message}"), ""


async def _written(reader: _KindReader, survey: Survey) -> list[ManagedObject]:
    """Workloads whose priority was moved by somebody: boosted, or of another priority than their class has."""
    values = {one.metadata.name: one.value for one in (*survey.workload_classes, *survey.pod_classes)}
    moved = [one for one in survey.workloads if _moved(one, values)][:MOST_WRITTEN]
    resource = await pick_version(reader.client, WORKLOADS)
    if resource is None:
        return []
    bare = cast("Resource[ManagedObject]", replace(resource, shape=ManagedObject, metadata_only=True))
    found = [await reader.one(bare, one.metadata.name, one.metadata.namespace) for one in moved]
    return [one for one in found if one is not None]


def _moved(workload: Workload, values: dict[str, int]) -> bool:
    if workload.metadata.annotation(PRIORITY_BOOST) is not None:
        return True
    reference = workload.spec.class_ref
    base = values.get(reference.name) if reference is not None else 0
    # A Workload that nobody owns was made by hand, priority and all.
    return (
        workload.metadata.controller is not None
        and base is not None
        and (workload.spec.priority or 0) != base
    )
