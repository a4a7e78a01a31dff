"""The lever that a Kueue obeys: the boost annotation, or the priority itself.

Nothing shows Kueue's feature gates, but its webhook reads the annotation only with the gate PriorityBoost on. So
server-side dry runs of one Workload are compared: as it should be; with a boost that is not a number; and with a
request that the webhook refuses whatever its gates (of the resource `pods`, which Kueue keeps for itself). What is
refused and what is not is the answer; no text is matched, nothing is stored, and it takes no right but to create.
"""

import enum

import msgspec

from fairlead_kube.client import KubeClient
from fairlead_kube.discovery import pick_version
from fairlead_kube.errors import FatalKubeError, ForbiddenError
from fairlead_kube.kinds.resources import KUEUE, WORKLOADS, Resource
from fairlead_kube.kinds.workloads import PRIORITY_BOOST, Workload

PROBED_NAMESPACES = ("fairlead", "default")
"""Namespaces to probe in, of which the first that exists counts: Fairlead's manifests give the right in their
own."""


class Lever(enum.StrEnum):
    """The field of a Workload by which Kueue lets itself be steered."""

    BOOST = "boost"
    """The annotation `kueue.x-k8s.io/priority-boost`."""
    PRIORITY = "priority"
    """The field `spec.priority`: Kueue does not heed the annotation."""
    UNKNOWN = "unknown"
    """Neither is known: the probe cannot tell, so a setting has to."""


class LeverProbe(msgspec.Struct, frozen=True):
    """The lever that a probe found, and its evidence."""

    lever: Lever
    evidence: str
    """The evidence in words for people."""
    forbidden: bool = False
    """Whether the probe found nothing because its user may not create Workloads there, not even as a dry run."""


async def probe_lever(client: KubeClient, namespace: str) -> LeverProbe:
    """Ask Kueue's webhook; needs the right to create Workloads in the namespace, which must exist.

    Raises:
        RetryableKubeError: the server or the webhook does not answer just now.
        FatalKubeError: the server does not tell us what it serves.
    """
    resource = await pick_version(client, WORKLOADS)
    if resource is None:
        return LeverProbe(Lever.UNKNOWN, f"the server does not serve {WORKLOADS.plural}.{KUEUE}")
    if refusal := await _refusal(client, resource, namespace):
        return LeverProbe(
            Lever.UNKNOWN,
            f"a dry run of a valid Workload was refused: {refusal}",
            forbidden=isinstance(refusal, ForbiddenError),
        )
    if refusal := await _refusal(client, resource, namespace, boost="x"):
        return LeverProbe(Lever.BOOST, f"Kueue's webhook reads boosts: {refusal}")
    if await _refusal(client, resource, namespace, asks_for="pods"):
        return LeverProbe(
            Lever.PRIORITY, "Kueue's webhook accepts a boost that is not a number: it reads none"
        )
    return LeverProbe(Lever.UNKNOWN, f"no webhook of Kueue looks at Workloads in namespace {namespace}")


async def refuses_bad_boost(client: KubeClient, resource: Resource[Workload], namespace: str) -> bool:
    """Whether a boost that is no number is refused, by one dry run, once a probe had a valid one taken.

    Args:
        resource: Workloads, in the version that the cluster serves.

    Raises:
        RetryableKubeError: the server or the webhook does not answer just now.
    """
    return await _refusal(client, resource, namespace, boost="x") is not None


async def _refusal(
    client: KubeClient,
    resource: Resource[Workload],
    namespace: str,
    *,
    boost: str = "1",
    asks_for: str = "cpu",
) -> FatalKubeError | None:
    """The server's refusal of such a Workload; None where it takes it."""
    container = {"name": "main", "image": "none", "resources": {"requests": {asks_for: "1"}}}
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
