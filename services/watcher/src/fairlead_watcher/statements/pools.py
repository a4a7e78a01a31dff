"""Statements of pools, queues, tenants, classes and nodes. Pure."""

from collections.abc import Iterator

from fairlead_contracts.frontend.shipped import KUEUE
from fairlead_contracts.messages.state import (
    ClassState,
    CohortQuota,
    FlavorQuota,
    NodeState,
    PoolState,
    QueueState,
    TenantState,
)
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.observed import observed_node
from fairlead_kube.reflector import Key
from fairlead_watcher.objects.cards import registered_on
from fairlead_watcher.objects.quota import Forest, QueueFacts, Quotas
from fairlead_watcher.objects.workload_context import LocalQueueFacts
from fairlead_watcher.statements.enforcement import enforcement, where_jobs_differ, why_not_reservable
from fairlead_watcher.statements.jobs import UNSTAMPED

FRONTEND = "kueue"


def pools_and_queues(cluster: str, forest: Forest) -> Iterator[PoolState | QueueState]:
    """Yields every pool, followed by its queues."""
    for tree in forest.trees():
        how = enforcement(tree, forest)
        mixed = where_jobs_differ(how)
        shared = why_not_reservable(tree, forest)
        yield PoolState(
            cluster=cluster,
            epoch=UNSTAMPED,
            rev=UNSTAMPED,
            name=tree.name,
            capacity=forest.capacity(tree),
            flavors=forest.capacity_by_flavor(tree),
            enforcement=how.how,
            enforcement_why=how.why,
            enforcement_mixed=mixed.how,
            enforcement_mixed_why=mixed.why,
            reservable=not shared,
            reservable_why=shared,
            cohorts=[
                CohortQuota(name=one.name, parent=one.parent, quotas=_by_flavor(one.quotas))
                for one in map(forest.cohort, tree.cohorts)
            ],
        )
        for queue in tree.queues:
            yield _queue(cluster, queue, tree.name)


def _queue(cluster: str, queue: QueueFacts, pool: str) -> QueueState:
    return QueueState(
        cluster=cluster,
        epoch=UNSTAMPED,
        rev=UNSTAMPED,
        name=queue.name,
        pool=pool,
        frontend=FRONTEND,
        bands_by_class=True,
        preemption=queue.preemption,
        strategy=queue.strategy,
        active=queue.active and not queue.stopped,
        cohort=queue.parent,
        quotas=_by_flavor(queue.quotas),
        capabilities=KUEUE,
    )


def _by_flavor(quotas: Quotas) -> list[FlavorQuota]:
    """The flavors in the order in which Kueue tries them: that of the queue's resource groups."""
    found: dict[str, FlavorQuota] = {}
    for name, quota in quotas.items():
        flavor = found.setdefault(
            name.flavor, FlavorQuota(flavor=name.flavor, nominal={}, borrowing={}, lending={})
        )
        flavor.nominal[name.resource] = quota.nominal
        if quota.borrowing is not None:
            flavor.borrowing[name.resource] = quota.borrowing
        if quota.lending is not None:
            flavor.lending[name.resource] = quota.lending
    return list(found.values())


def tenant(cluster: str, key: Key, local_queue: LocalQueueFacts) -> TenantState:
    """The statement of a LocalQueue."""
    return TenantState(
        cluster=cluster,
        epoch=UNSTAMPED,
        rev=UNSTAMPED,
        name=key.name,
        scope=key.namespace,
        queue=local_queue.queue,
    )


def priority_class(cluster: str, name: str, value: int) -> ClassState:
    """The statement of a WorkloadPriorityClass."""
    return ClassState(cluster=cluster, epoch=UNSTAMPED, rev=UNSTAMPED, name=name, value=value)


def node(cluster: str, found: Node) -> NodeState:
    """The statement of a node, with none of its cards in use. Heartbeats and HAMi's handshake do not change it."""
    described = observed_node(found)
    registered = registered_on(described.name, described.annotations)
    return NodeState(
        cluster=cluster,
        epoch=UNSTAMPED,
        rev=UNSTAMPED,
        name=described.name,
        allocatable=dict(described.allocatable),
        labels=dict(described.labels),
        ready=described.ready,
        taints=list(map(str, described.taints)),
        unschedulable=described.unschedulable,
        cards=registered.cards,
        cards_refused=registered.refused,
    )
