"""The objects that a cluster states beside its jobs: queues, pools, accounts, classes, nodes, and the mark of a whole state."""

from fairlead_contracts.messages.state import (
    ClassState,
    NodeState,
    PoolState,
    QueueState,
    State,
    SyncMark,
    TenantState,
)


class StatedCluster:
    """The last word of one cluster on each of its objects, by name."""

    def __init__(self) -> None:
        self.queues: dict[str, QueueState] = {}
        self.pools: dict[str, PoolState] = {}
        self.nodes: dict[str, NodeState] = {}
        self.classes: dict[str, ClassState] = {}
        self.accounts: dict[str, dict[str, TenantState]] = {}
        """Accounts, or local queues, by scope and name."""
        self.mark: SyncMark | None = None
        """Says on which incarnation of the server the state was made equal to the cluster."""

    @property
    def class_values(self) -> dict[str, int]:
        """Levels by class that the cluster itself gives its jobs when nobody steers."""
        return {one.name: one.value for one in self.classes.values()}

    def put(self, state: State) -> None:
        """Keeps an object, in the place of the one of its name."""
        match state:
            case QueueState():
                self.queues[state.name] = state
            case PoolState():
                self.pools[state.name] = state
            case NodeState():
                self.nodes[state.name] = state
            case ClassState():
                self.classes[state.name] = state
            case TenantState():
                self.accounts.setdefault(state.scope, {})[state.name] = state
            case SyncMark():
                self.mark = state

    def drop(self, state: State) -> None:
        """Forgets an object that is gone."""
        match state:
            case QueueState():
                del self.queues[state.name]
            case PoolState():
                del self.pools[state.name]
            case NodeState():
                del self.nodes[state.name]
            case ClassState():
                del self.classes[state.name]
            case TenantState():
                accounts = self.accounts[state.scope]
                del accounts[state.name]
                if not accounts:
                    del self.accounts[state.scope]
            case SyncMark():
                self.mark = None
