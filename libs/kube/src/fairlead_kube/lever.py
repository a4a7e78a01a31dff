"""Which lever a Kueue obeys: the boost annotation, or the priority itself.

Nothing shows Kueue's feature gates, but its webhook reads the annotation only with the gate PriorityBoost on. So two
server-side dry runs of the same Workload are compared: one with a boost that is a number, one with a boost that is
not. Their difference is the answer; no text is matched, and nothing is stored.
"""

import enum

import msgspec

from fairlead_kube.client import KubeClient
from fairlead_kube.core import Webhook
from fairlead_kube.discovery import pick_version
from fairlead_kube.errors import FatalKubeError
from fairlead_kube.resources import KUEUE, NAMESPACES, VALIDATING_WEBHOOKS, WORKLOADS, Resource
from fairlead_kube.workloads import PRIORITY_BOOST, Workload

_GOOD, _BAD = "1", "x"


class Lever(enum.StrEnum):
    """How a Workload is moved."""

    BOOST = "boost"
    """By the annotation `kueue.x-k8s.io/priority-boost`."""
    PRIORITY = "priority"
    """By `spec.priority`: the annotation is not heeded."""
    UNKNOWN = "unknown"
    """The probe cannot tell: a setting has to."""


class LeverProbe(msgspec.Struct, frozen=True):
    """What the probe found, and by what."""

    lever: Lever
    evidence: str
    """For people."""


async def probe_lever(client: KubeClient, namespace: str) -> LeverProbe:
    """Asks Kueue's webhook; needs the right to create Workloads in the namespace, which must exist.

    Raises:
        RetryableKubeError: the server or the webhook does not answer just now.
    """
    resource = await pick_version(client, WORKLOADS)
    if resource is None:
        return LeverProbe(Lever.UNKNOWN, f"the server does not serve {WORKLOADS.plural}.{KUEUE}")
    if refusal := await _try(client, resource, namespace, _GOOD):
        return LeverProbe(Lever.UNKNOWN, f"a dry run of a Workload with a valid boost was refused: {refusal}")
    if refusal := await _try(client, resource, namespace, _BAD):
        return LeverProbe(Lever.BOOST, f"the webhook reads boosts: {refusal}")
    return await _without_refusal(client, namespace)


async def _without_refusal(client: KubeClient, namespace: str) -> LeverProbe:
    """Both were accepted: that means something only where the webhook was asked."""
    try:
        webhook = await _asked(client, namespace)
    except FatalKubeError as error:
        return LeverProbe(Lever.UNKNOWN, f"boosts are not checked, and the webhooks may not be read: {error}")
    if webhook is None:
        return LeverProbe(Lever.UNKNOWN, f"no validating webhook sees Workloads in namespace {namespace}")
    if webhook.failure_policy != "Fail":
        return LeverProbe(
            Lever.UNKNOWN, f"webhook {webhook.name} is skipped when it fails: it proves nothing"
        )
    return LeverProbe(Lever.PRIORITY, f"webhook {webhook.name} accepts a boost that is not a number")


async def _try(
    client: KubeClient, resource: Resource[Workload], namespace: str, boost: str
) -> FatalKubeError | None:
    """Why the server refuses such a Workload, if it does."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1m"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {
        "metadata": {"generateName": "fairlead-probe-", "annotations": {PRIORITY_BOOST: boost}},
        "spec": {"active": False, "podSets": [{"name": "main", "count": 1, "template": template}]},
    }
    try:
        await client.create(resource, body, namespace, dry_run=True)
    except FatalKubeError as error:
        return error
    return None


async def _asked(client: KubeClient, namespace: str) -> Webhook | None:
    """The validating webhook that sees Workloads created in the namespace."""
    labels = (await client.get(NAMESPACES, namespace)).metadata.labels
    for configuration in await client.list(VALIDATING_WEBHOOKS):
        for webhook in configuration.webhooks or ():
            selector = webhook.namespace_selector
            if webhook.sees(KUEUE, WORKLOADS.plural, "CREATE") and (
                selector is None or selector.matches(labels)
            ):
                return webhook
    return None
