"""A survey: everything that the doctor looks at, read once. Checks are functions of it alone."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from fairlead_cli.findings import Check, Look
from fairlead_cli.kueue.doctor.kinds import Deployment, ManagedObject
from fairlead_cli.kueue.doctor.kueue_config import KueueSeen
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.observed import Taint, Toleration
from fairlead_contracts.messages.leave import Leave
from fairlead_contracts.messages.state import PoolState
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_kube.kinds.core import (
    Job,
    Namespace,
    Node,
    NodePool,
    PyTorchJob,
    QueuedObject,
    WebhookConfiguration,
)
from fairlead_kube.kinds.objects import ObjectMeta
from fairlead_kube.kinds.pods import Pod
from fairlead_kube.kinds.quantities import bounded_quota
from fairlead_kube.kinds.queues import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, ResourceGroup
from fairlead_kube.kinds.workloads import AdmissionCheck, PriorityClass, Workload
from fairlead_kube.lever import Lever, LeverProbe

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
"""The label by which a job says which LocalQueue it enters."""
GANG_FIT_CONTROLLER = "fairlead.dev/gang-fit"
"""Controller that answers the check for gang fit, as it is shipped."""
ADMITTED = "kueue.x-k8s.io/podset"
"""The label of all pods that Kueue admitted, whoever makes them."""


class NeededRight(msgspec.Struct, frozen=True, kw_only=True):
    """Something that one of our services must be allowed to do."""

    service: str
    """The service that needs it: `watcher`, `admitter` or `checker`."""
    account: str
    """User as whom the service would do it: our own user, or a service account."""
    verb: str
    resource: str
    """Resource as `kubectl auth can-i` takes it: the plural, and the group where there is one."""
    subresource: str = ""
    namespace: str = ""
    """The only namespace that it is about; empty for all of them."""
    name: str = ""
    """The only object that it is about; empty for all of the kind."""
    allowed: bool


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as it was found."""

    cluster: str
    """The name that Fairlead has for it."""
    at: Micros = 0
    """The instant of the look."""
    server: str = ""
    kubernetes: str = ""
    user: str = ""
    """User as whom the API server knows us."""
    kueue: KueueSeen = KueueSeen()
    probe: LeverProbe = LeverProbe(Lever.UNKNOWN, "Kueue was not asked")
    outage: str = ""
    """The API server's error when Kueue's webhook did not answer."""
    stated_lever: Lever | None = None
    """Lever as the operator states it; None leaves it to the probe."""
    policy: PolicyDocument
    leave: Leave | None = None
    """The leave that stands."""
    rights: list[NeededRight] = []
    webhooks: list[WebhookConfiguration] = []
    cluster_queues: list[ClusterQueue] = []
    local_queues: list[LocalQueue] = []
    cohorts: list[Cohort] = []
    flavors: list[ResourceFlavor] = []
    workload_classes: list[PriorityClass] = []
    pod_classes: list[PriorityClass] = []
    admission_checks: list[AdmissionCheck] = []
    nodes: list[Node] = []
    node_pools: list[NodePool] = []
    namespaces: list[Namespace] = []
    workloads: list[Workload] = []
    """Workloads that are not finished."""
    written: list[ManagedObject] = []
    """Workloads whose priority somebody seems to have moved, with their writers."""
    jobs: list[Job] = []
    pytorch_jobs: list[PyTorchJob] = []
    others: list[QueuedObject] = []
    """Objects of the other kinds that are meant to be queued; of StatefulSets most are not."""
    gang_pods: list[Pod] = []
    """Running pods of Jobs, PyTorchJobs and pod groups."""
    deployments: list[Deployment] = []
    elsewhere: list[PoolState] = []
    """Members of the policy's pools as other clusters state them; none where NATS was not reached."""
    told_of: list[str] = []
    """The clusters that services of Fairlead tell of, where this one is none of them."""
    checker_leads: bool | None = None
    """Whether a checker of gangs answers for this cluster; None where NATS did not tell."""
    unread: dict[str, str] = {}
    """Reasons for which kinds could not be read, by plural."""

    @property
    def gang_checks(self) -> list[str]:
        """The AdmissionChecks that our checker answers, by name."""
        return sorted(
            check.metadata.name
            for check in self.admission_checks
            if check.spec.controller_name == GANG_FIT_CONTROLLER
        )

    @property
    def managed_namespaces(self) -> set[str]:
        """The namespaces with a LocalQueue: what runs there is meant to go through Kueue."""
        return {queue.metadata.namespace for queue in self.local_queues}

    @property
    def entries(self) -> dict[tuple[str, str], str]:
        """The ClusterQueue that each LocalQueue leads to, by namespace and name."""
        return {
            (one.metadata.namespace, one.metadata.name): one.spec.cluster_queue for one in self.local_queues
        }

    def pool_of(self, queue: ClusterQueue) -> str:
        """The root cohort of the queue; its own name where it has none."""
        return self.root_of(queue.spec.parent) or queue.metadata.name

    def root_of(self, cohort: str) -> str:
        """The cohort above all of those that this one is in; itself where it is in none."""
        above = {cohort.metadata.name: cohort.spec.above for cohort in self.cohorts}
        name, seen = cohort, set[str]()
        while name and above.get(name) and name not in seen:
            seen.add(name)
            name = above[name]
        return name

    def pools(self) -> dict[str, list[ClusterQueue]]:
        """The ClusterQueues of each pool, by name."""
        found: dict[str, list[ClusterQueue]] = {}
        for queue in sorted(self.cluster_queues, key=lambda queue: queue.metadata.name):
            found.setdefault(self.pool_of(queue), []).append(queue)
        return found

    def pool_subject(self, pool: str) -> str:
        """The object that findings on a pool are about: its Cohort, or its lone ClusterQueue."""
        queues = self.pools()[pool]
        return f"ClusterQueue/{queues[0].metadata.name}" if len(queues) == 1 else f"Cohort/{pool}"


def check(
    topic: str, *names: str, fine: str, needs: tuple[str, ...] = ()
) -> Callable[[Look[Survey]], Check[Survey]]:
    """Make a check of the function that looks; see `Check`."""
    return lambda look: Check(topic=topic, names=names, look=look, fine=fine, needs=needs)


def queue_label(metadata: ObjectMeta) -> str:
    """The LocalQueue that a job names; empty for none."""
    return metadata.label(QUEUE_NAME) or ""


def quotas_of(groups: Iterable[ResourceGroup] | None) -> Iterator[tuple[str, str, int]]:
    """The nominal quotas of a queue or a cohort, each with its flavor and resource, in base units."""
    for group in groups or ():
        for flavor in group.flavors or ():
            for quota in flavor.resources or ():
                yield flavor.name, quota.name, bounded_quota(quota.name, quota.nominal_quota)


def owner_of(metadata: ObjectMeta) -> str:
    """The object that a Workload was made for, as `<kind>/<namespace>/<name>`; itself where there is none."""
    owner = metadata.maker
    kind, name = (owner.kind, owner.name) if owner else ("Workload", metadata.name)
    return f"{kind}/{metadata.namespace}/{name}"


def repelling(taints: Iterable[Taint] | None, tolerations: Iterable[Toleration] | None) -> list[Taint]:
    """The taints that keep such pods off."""
    known = list(tolerations or ())
    return [
        taint
        for taint in taints or ()
        if taint.effect in ("NoSchedule", "NoExecute") and not any(one.tolerates(taint) for one in known)
    ]


def repels(node: Node, tolerations: Iterable[Toleration]) -> list[str]:
    """The taints of a node that keep such pods off, as kubectl writes them; without those that pass by themselves."""
    found = repelling(node.spec.taints, tolerations)
    return [str(taint) for taint in found if not taint.key.startswith("node.kubernetes.io/")]


def nodes_of(flavor: ResourceFlavor, nodes: Iterable[Node]) -> list[Node]:
    """The nodes that have the flavor's labels."""
    wanted = (flavor.spec.node_labels or {}).items()
    return [node for node in nodes if wanted <= (node.metadata.labels or {}).items()]


def usable_nodes(flavor: ResourceFlavor, nodes: Iterable[Node]) -> list[Node]:
    """The nodes that no taint closes to the flavor's pods.

    A taint that the flavor itself names is its pods' own business: Kueue gives the flavor only to those that tolerate it.
    """
    stated = {(taint.key, taint.value, taint.effect) for taint in flavor.spec.node_taints or ()}
    tolerations = [
        *(flavor.spec.tolerations or ()),
        *(Toleration(key=key, value=value, effect=effect) for key, value, effect in stated),
    ]
    return [node for node in nodes_of(flavor, nodes) if not repels(node, tolerations)]
