"""The free capacity of the nodes now: what they have, less what pods take that are on them. Kept up to date; no I/O.

A pod counts from the moment that it is bound to a node until it is over, whoever made it.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import chain

from fairlead_checker.facts import CheckedWorkload, PodUse
from fairlead_kube.reflector import Key
from fairlead_policy.fit.observed import less_pods
from fairlead_policy.fit.shapes import FitNode


class FreeCapacity:
    """The free capacity of a cluster's nodes, and counts of each gang's pods on them."""

    def __init__(self) -> None:
        self.freed = 0
        """Number that grows whenever somewhere more may be free than before."""
        self._bare: dict[str, FitNode] = {}
        self._pods: dict[Key, PodUse] = {}
        self._on: dict[str, dict[Key, PodUse]] = {}
        self._known: dict[str, FitNode] = {}
        """Nodes as they are now; those that are missing here are worked out when they are asked for."""
        self._of_name: Counter[tuple[str, str, str]] = Counter()
        """Pods on nodes by namespace, Workload and pod set."""
        self._of_owner: Counter[tuple[str, str]] = Counter()
        """Pods that do not name their Workload, by their controller's uid and pod set."""

    def set_node(self, name: str, bare: FitNode | None) -> None:
        """Take in a node as it is with nothing on it; None where it is gone, or takes no pods now."""
        if bare is None:
            self._bare.pop(name, None)
        else:
            self._bare[name] = bare
        self._known.pop(name, None)
        self.freed += 1

    def set_pod(self, key: Key, use: PodUse | None) -> None:
        """Take in a pod on a node; None where it is over, or gone."""
        before = self._pods.pop(key, None)
        if before is not None:
            del self._on[before.node][key]
            self._count(key, before, -1)
            self._known.pop(before.node, None)
            self.freed += 1
        if use is not None:
            self._pods[key] = use
            self._on.setdefault(use.node, {})[key] = use
            self._count(key, use, +1)
            self._known.pop(use.node, None)

    def _count(self, key: Key, use: PodUse, by: int) -> None:
        if use.workload:
            _add(self._of_name, (key.namespace, use.workload, use.pod_set), by)
        elif use.owner:
            _add(self._of_owner, (use.owner, use.pod_set), by)

    def nodes(self) -> dict[str, FitNode]:
        """The nodes that take pods, with what is free on them, by name."""
        for name, bare in self._bare.items():
            if name not in self._known:
                on = self._on.get(name, {}).values()
                held = chain.from_iterable(use.held for use in on)
                self._known[name] = less_pods(bare, (use.demand for use in on), held)
        return {name: self._known[name] for name in self._bare}

    def bound(self, workload: CheckedWorkload) -> Mapping[str, int]:
        """The number of the Workload's pods that are on nodes, by pod set."""
        only = len(workload.pod_sets) == 1
        found: dict[str, int] = {}
        for one in workload.pod_sets:
            # A Workload of one pod set may have pods that do not say which they are of.
            sets = (one.pods.name, "") if only else (one.pods.name,)
            named = sum(self._of_name[workload.namespace, workload.name, name] for name in sets)
            owned = sum(self._of_owner[workload.owner, name] for name in sets if workload.owner)
            found[one.pods.name] = named + owned
        return found


def _add[K](counts: Counter[K], key: K, by: int) -> None:
    """Adds to a count, and forgets one of 0: Workloads come and go for ever."""
    counts[key] += by
    if not counts[key]:
        del counts[key]
