"""The statements of a simulated cluster on NATS: subject by subject, without the writer's epoch, which the sender adds."""

from collections.abc import Iterable

from fairlead_bus.facts.announcer import Statements
from fairlead_contracts import subjects
from fairlead_contracts.frontend.shipped import SIMULATED
from fairlead_contracts.messages.state import NodeState, PoolState, QueueState, State, TenantState, subject_of
from fairlead_sim.changes import ClusterChanges
from fairlead_sim.cluster import SimCluster
from fairlead_sim.config import QueueConfig
from fairlead_sim.jobs import JobName

NO_EPOCH = 0
FRONTEND = "sim"


def everything(cluster: SimCluster) -> Statements:
    """The statements of all that the cluster has."""
    states = [_node(cluster, name) for name in cluster.nodes]
    states += [_pool(cluster, name) for name in cluster.pools]
    states += [_job(cluster, name) for name in cluster.jobs]
    states += _entrances(cluster)
    return _by_subject(states)


def changed(cluster: SimCluster, changes: ClusterChanges) -> Statements:
    """The statements that the changes make different."""
    states = [_job(cluster, name) for name in changes.jobs]
    gone = [subjects.state(cluster.name, "job", name.id, scope=name.scope) for name in changes.gone]
    return _by_subject(states) | dict.fromkeys(gone)


def _by_subject(states: Iterable[State]) -> Statements:
    return {subject_of(state): state for state in states}


def _entrances(cluster: SimCluster) -> list[State]:
    """Queues and accounts: as nodes and pools they come from the configuration and stay as they are while the process lives."""
    queues: list[State] = [
        queue_state(queue, cluster.name, cluster.next_rev()) for queue in cluster.config.queues
    ]
    return queues + [
        TenantState(
            cluster=cluster.name,
            epoch=NO_EPOCH,
            rev=cluster.next_rev(),
            name=scope,
            scope=scope,
            queue=queue,
        )
        for scope, queue in cluster.config.accounts.items()
    ]


def queue_state(queue: QueueConfig, cluster: str, rev: int) -> QueueState:
    """The statement of one queue of the cluster."""
    return QueueState(
        cluster=cluster,
        epoch=NO_EPOCH,
        rev=rev,
        name=queue.name,
        pool=queue.pool,
        frontend=FRONTEND,
        default_level=queue.default_level,
        lowest_level=queue.lowest_level,
        highest_level=queue.highest_level,
        by_quota_alone=True,
        capabilities=SIMULATED,
    )


def _node(cluster: SimCluster, name: str) -> State:
    node = cluster.nodes[name]
    return NodeState(
        cluster=cluster.name,
        epoch=NO_EPOCH,
        rev=node.rev,
        name=name,
        allocatable=node.allocatable,
        labels=node.labels,
    )


def _pool(cluster: SimCluster, name: str) -> State:
    pool = cluster.pools[name]
    return PoolState(
        cluster=cluster.name, epoch=NO_EPOCH, rev=pool.rev, name=name, capacity=dict(pool.capacity)
    )


def _job(cluster: SimCluster, name: JobName) -> State:
    return cluster.jobs[name].state(cluster.name, NO_EPOCH)
