"""What a simulated cluster states on NATS: subject by subject, without the writer's epoch, which the sender adds."""

from fairlead_contracts import subjects
from fairlead_contracts.state import NodeState, PoolState, QueueState, State, TenantState
from fairlead_sim.changes import Changes
from fairlead_sim.cluster import SimCluster
from fairlead_sim.jobs import JobName

type Statements = dict[str, State | None]
"""By subject; None where the object is gone."""

NO_EPOCH = 0
FRONTEND = "sim"


def everything(cluster: SimCluster) -> Statements:
    """All that the cluster has."""
    stated: Statements = {}
    for node in cluster.nodes:
        stated |= _node(cluster, node)
    for pool in cluster.pools:
        stated |= _pool(cluster, pool)
    for name in cluster.jobs:
        stated |= _job(cluster, name)
    return stated | _entrances(cluster)


def changed(cluster: SimCluster, changes: Changes) -> Statements:
    """What the changes make different."""
    stated: Statements = {}
    for node in changes.nodes:
        stated |= _node(cluster, node)
    for pool in changes.pools:
        stated |= _pool(cluster, pool)
    for name in changes.jobs:
        stated |= _job(cluster, name)
    for name in changes.gone:
        stated[subjects.state(cluster.name, "job", name.id, scope=name.scope)] = None
    return stated


def _entrances(cluster: SimCluster) -> Statements:
    """Queues and accounts: they come from the configuration and stay as they are while the process lives."""
    stated: Statements = {}
    for queue in cluster.config.queues:
        stated[subjects.state(cluster.name, "queue", queue.name)] = QueueState(
            cluster=cluster.name,
            epoch=NO_EPOCH,
            rev=cluster.next_rev(),
            name=queue.name,
            pool=queue.pool,
            frontend=FRONTEND,
            default_level=queue.default_level,
            lowest_level=queue.lowest_level,
            highest_level=queue.highest_level,
        )
    for scope, queue_name in cluster.config.accounts.items():
        stated[subjects.state(cluster.name, "tenant", scope, scope=scope)] = TenantState(
            cluster=cluster.name,
            epoch=NO_EPOCH,
            rev=cluster.next_rev(),
            name=scope,
            scope=scope,
            queue=queue_name,
        )
    return stated


def _node(cluster: SimCluster, name: str) -> Statements:
    node = cluster.nodes[name]
    return {
        subjects.state(cluster.name, "node", name): NodeState(
            cluster=cluster.name,
            epoch=NO_EPOCH,
            rev=node.rev,
            name=name,
            allocatable=node.allocatable,
            labels=node.labels,
            ready=node.ready,
        )
    }


def _pool(cluster: SimCluster, name: str) -> Statements:
    pool = cluster.pools[name]
    return {
        subjects.state(cluster.name, "pool", name): PoolState(
            cluster=cluster.name,
            epoch=NO_EPOCH,
            rev=pool.rev,
            name=name,
            capacity=dict(pool.capacity),
        )
    }


def _job(cluster: SimCluster, name: JobName) -> Statements:
    return {
        subjects.state(cluster.name, "job", name.id, scope=name.scope): cluster.jobs[name].state(
            cluster.name, NO_EPOCH
        )
    }
