"""The objects that clusters state beside their jobs: queues, pools, accounts, classes, nodes, and marks of a whole state."""

from collections.abc import Iterable
from itertools import chain

from fairlead_contracts.messages.state import (
    ClassState,
    NodeState,
    PoolState,
    QueueState,
    State,
    SyncMark,
    TenantState,
)
from fairlead_policy.fit.feasibility import StatedNodes
from fairlead_policy.snapshot.stated_cards import same_cards


class ClusterObjects:
    """The last word on each object, by state subject."""

    def __init__(self) -> None:
        self.queues: dict[str, QueueState] = {}
        self.pools: dict[str, PoolState] = {}
        self._tenants: dict[str, TenantState] = {}
        self._marks: dict[str, SyncMark] = {}
        self._classes: dict[str, ClassState] = {}
        self._nodes: dict[str, NodeState] = {}
        self._sizes: dict[str, StatedNodes] = {}
        """The fit of jobs on each cluster's nodes, by cluster; made when first asked for."""

    def note(self, subject: str, state: State | None) -> bool:
        """Keeps an object, or forgets it (None); True where the policy's pools may be others by it."""
        match state:
            case PoolState():
                self.pools[subject] = state
            case QueueState():
                self.queues[subject] = state
            case TenantState():
                self._tenants[subject] = state
                return False
            case SyncMark():
                self._marks[subject] = state
                return False
            case ClassState():
                self._classes[subject] = state
                return False
            case NodeState():  # a pool's capacity is stated, not summed from them, but for cards
                before = self._nodes.get(subject)
                self._nodes[subject] = state
                return not same_cards(before, state)
            case None:
                node = self._nodes.pop(subject, None)
                self._classes.pop(subject, None)
                self._tenants.pop(subject, None)
                self._marks.pop(subject, None)
                gone = self.pools.pop(subject, None), self.queues.pop(subject, None)
                return gone != (None, None) or not same_cards(node, None)
        return True

    def shaping(self) -> Iterable[State]:
        """The objects that the policy's pools are made of."""
        return chain(self.queues.values(), self.pools.values(), self._nodes.values())

    def confirmed(self, incarnation: str) -> set[str]:
        """The clusters that have confirmed their state to this incarnation of the server."""
        return {mark.cluster for mark in self._marks.values() if mark.incarnation == incarnation}

    def queue(self, cluster: str, name: str) -> QueueState | None:
        """A queue as its cluster states it."""
        found = (one for one in self.queues.values() if (one.cluster, one.name) == (cluster, name))
        return next(found, None)

    def pool_of(self, queue: QueueState) -> PoolState | None:
        """The pool that a queue's jobs compete in, as its cluster states it."""
        stated = queue.cluster, queue.pool
        found = (pool for pool in self.pools.values() if (pool.cluster, pool.name) == stated)
        return next(found, None)

    def tenants(self) -> Iterable[TenantState]:
        """The accounts and local queues of all clusters."""
        return self._tenants.values()

    def nodes_of(self, cluster: str) -> list[NodeState]:
        """The cluster's nodes."""
        return [node for node in self._nodes.values() if node.cluster == cluster]

    def sizes_of(self, cluster: str) -> StatedNodes:
        """The object that says which jobs the cluster's nodes can hold."""
        return self._sizes.setdefault(cluster, StatedNodes())

    def class_values(self, cluster: str) -> dict[str, int]:
        """A cluster's own values of classes."""
        return {one.name: one.value for one in self._classes.values() if one.cluster == cluster}
