"""Kueue's quota: ClusterQueues under trees of Cohorts, and what each of them can ever have. Pure.

The sums are those of Kueue 0.19, `pkg/cache/scheduler/resource_node.go`, with nothing in use.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import msgspec

from fairlead_contracts.base.quantities import MAX_QUANTITY
from fairlead_kube.kinds.objects import Amount, LabelSelector
from fairlead_kube.kinds.quantities import bounded_quota
from fairlead_kube.kinds.queues import ClusterQueue, Cohort, ResourceGroup

USAGE_FIRST = "UsageBasedAdmissionFairSharing"


class QuotaKey(NamedTuple):
    """A resource of one flavor, which quota is given for."""

    flavor: str
    resource: str


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """The quota of one resource of one flavor, in base units."""

    nominal: int
    borrowing: int | None = None
    """The most that may be borrowed; None for as much as there is."""
    lending: int | None = None
    """The most that may be lent; None for all of it."""


type Quotas = dict[QuotaKey, Quota]

_NONE = Quota(nominal=0)
_LONGEST_WHY = 256
"""Characters of Kueue's reason that are told: each of the queue's jobs is stated with it."""


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a ClusterQueue that we need."""

    name: str
    parent: str = ""
    """The queue's cohort; empty for none."""
    quotas: Quotas = {}
    preemption: dict[str, str] = {}
    strategy: str = ""
    active: bool = True
    """Whether Kueue says that the queue can admit."""
    why_inactive: str = ""
    """Kueue's reason for which it cannot, where it gives one."""
    stopped: bool = False
    """Whether somebody stopped the queue."""
    selector: LabelSelector | None = LabelSelector()
    """The selector of namespaces whose Workloads it takes; None takes those of none."""
    usage_first: bool = False
    """AdmissionFairSharing: use of LocalQueues goes before priority."""
    fair_sharing: bool = False
    """FairSharing: borrowing and shares of queues go before priority."""


class CohortFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a Cohort that we need."""

    name: str
    parent: str = ""
    quotas: Quotas = {}


def queue_facts(queue: ClusterQueue) -> QueueFacts:
    """The part that is kept of a ClusterQueue."""
    spec = queue.spec
    scope = spec.admission_scope
    return QueueFacts(
        name=queue.metadata.name,
        parent=spec.parent,
        quotas=_quotas(spec.resource_groups),
        preemption=spec.preemption.settings(),
        strategy=spec.queueing_strategy,
        active=queue.active,
        why_inactive=queue.why_inactive[:_LONGEST_WHY],
        stopped=spec.stopped,
        selector=spec.namespace_selector,
        usage_first=scope is not None and scope.admission_mode == USAGE_FIRST,
        fair_sharing=queue.status.fair_sharing is not None,
    )


def cohort_facts(cohort: Cohort) -> CohortFacts:
    """The part that is kept of a Cohort."""
    return CohortFacts(
        name=cohort.metadata.name,
        parent=cohort.spec.above,
        quotas=_quotas(cohort.spec.resource_groups),
    )


def _quotas(groups: list[ResourceGroup] | None) -> Quotas:
    return {
        QuotaKey(flavor.name, one.name): Quota(
            nominal=bounded_quota(one.name, one.nominal_quota),
            borrowing=_limit(one.name, one.borrowing_limit),
            lending=_limit(one.name, one.lending_limit),
        )
        for group in groups or ()
        for flavor in group.flavors or ()
        for one in flavor.resources or ()
    }


def _limit(resource: str, amount: Amount | None) -> int | None:
    return None if amount is None else bounded_quota(resource, amount)


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """The queues that share one capacity: a root cohort with all below it, or a ClusterQueue alone."""

    name: str
    queues: list[QueueFacts]
    cohorts: list[str]
    """Names of the tree's cohorts, the root's too; empty for a ClusterQueue alone."""
    cyclic: bool = False
    """Whether the tree's cohorts go in a circle: Kueue admits nothing there."""


class Forest:
    """The ClusterQueues and Cohorts of a cluster, as trees."""

    def __init__(self, queues: Iterable[QueueFacts], cohorts: Iterable[CohortFacts]) -> None:
        self._queues = {queue.name: queue for queue in sorted(queues, key=lambda one: one.name)}
        self._cohorts = _with_implicit(self._queues.values(), cohorts)
        self._children: dict[str, list[str]] = {}
        self._members: dict[str, list[QueueFacts]] = {}
        self._circles: set[str] = set()
        self._roots = {name: self._root(name) for name in self._cohorts}
        for cohort in self._cohorts.values():
            if self._parent(cohort):
                self._children.setdefault(cohort.parent, []).append(cohort.name)
        for queue in self._queues.values():
            if queue.parent:
                self._members.setdefault(queue.parent, []).append(queue)
        self._subtrees: dict[str, dict[QuotaKey, int]] = {}
        self._potentials: dict[str, dict[QuotaKey, int]] = {}

    def trees(self) -> list[Tree]:
        """The trees with a ClusterQueue in them, by name."""
        found: dict[str, Tree] = {}
        for queue in self._queues.values():
            name = self.pool_of(queue)
            if name in found:
                found[name].queues.append(queue)
                continue
            root = self._roots.get(queue.parent, "")
            cohorts = sorted(one for one, its_root in self._roots.items() if root and its_root == root)
            found[name] = Tree(name=name, queues=[queue], cohorts=cohorts, cyclic=root in self._circles)
        return [found[name] for name in sorted(found)]

    def pool_of(self, queue: QueueFacts) -> str:
        """The name of the pool that the ClusterQueue is in.

        A lone ClusterQueue may have the name of a cohort that it has nothing to do with: `/queue` then tells them apart.
        """
        if queue.parent:
            return self._roots[queue.parent]
        return f"{queue.name}/queue" if queue.name in self._cohorts else queue.name

    def capacity(self, tree: Tree) -> dict[str, int]:
        """The sum of all nominal quotas by resource, in base units."""
        total: dict[str, int] = {}
        for quotas in self._quotas(tree):
            for name, quota in quotas.items():
                amount = total.get(name.resource, 0) + quota.nominal
                total[name.resource] = min(amount, MAX_QUANTITY)
        return total

    def capacity_by_flavor(self, tree: Tree) -> dict[str, dict[str, int]]:
        """The sums by flavor, where several flavors give one resource; else empty."""
        total: dict[str, dict[str, int]] = {}
        for quotas in self._quotas(tree):
            for name, quota in quotas.items():
                found = total.setdefault(name.flavor, {})
                found[name.resource] = min(found.get(name.resource, 0) + quota.nominal, MAX_QUANTITY)
        givers = Counter(resource for found in total.values() for resource, amount in found.items() if amount)
        return total if max(givers.values(), default=0) > 1 else {}

    @cached_property
    def flavored(self) -> frozenset[str]:
        """The names of the trees in which several flavors give one resource."""
        return frozenset(tree.name for tree in self.trees() if self.capacity_by_flavor(tree))

    def _quotas(self, tree: Tree) -> list[Quotas]:
        return [queue.quotas for queue in tree.queues] + [self._cohorts[one].quotas for one in tree.cohorts]

    def cohort(self, name: str) -> CohortFacts:
        """The cohort of this name."""
        return self._cohorts[name]

    def potential(self, queue: QueueFacts) -> dict[QuotaKey, int]:
        """The most that the ClusterQueue can have when nothing is in use (`potentialAvailable`)."""
        above = self._cohort_potential(queue.parent) if queue.parent else None
        return _potential(queue.quotas, _nominal(queue.quotas), above)

    def _parent(self, cohort: CohortFacts) -> str:
        """The cohort's parent; a cohort in a circle has none."""
        return "" if cohort.name in self._circles else cohort.parent

    def _root(self, name: str) -> str:
        path: list[str] = []
        while name and name not in path:
            path.append(name)
            name = self._cohorts[name].parent
        if not name:
            return path[-1]
        circle = path[path.index(name) :]
        self._circles |= set(circle)
        return min(circle)

    def _subtree(self, name: str) -> dict[QuotaKey, int]:
        """The cohort's own quota, and what its children lend."""
        if name not in self._subtrees:
            total = _nominal(self._cohorts[name].quotas)
            parts = [_lent(queue.quotas, _nominal(queue.quotas)) for queue in self._members.get(name, ())]
            parts += [
                _lent(self._cohorts[child].quotas, self._subtree(child))
                for child in self._children.get(name, ())
            ]
            for part in parts:
                for key, amount in part.items():
                    total[key] = total.get(key, 0) + amount
            self._subtrees[name] = total
        return self._subtrees[name]

    def _cohort_potential(self, name: str) -> dict[QuotaKey, int]:
        if name not in self._potentials:
            cohort = self._cohorts[name]
            parent = self._parent(cohort)
            above = self._cohort_potential(parent) if parent else None
            self._potentials[name] = _potential(cohort.quotas, self._subtree(name), above)
        return self._potentials[name]


def _with_implicit(queues: Iterable[QueueFacts], cohorts: Iterable[CohortFacts]) -> dict[str, CohortFacts]:
    """Cohorts by name, also those that are named without an object of their own."""
    found = {cohort.name: cohort for cohort in cohorts}
    named = {queue.parent for queue in queues} | {cohort.parent for cohort in found.values()}
    return {name: CohortFacts(name=name) for name in sorted(named - found.keys() - {""})} | found


def _nominal(quotas: Quotas) -> dict[QuotaKey, int]:
    return {name: quota.nominal for name, quota in quotas.items()}


def _kept(quota: Quota, subtree: int) -> int:
    """The quota that a node does not lend (`localQuota`)."""
    return 0 if quota.lending is None else max(0, subtree - quota.lending)


def _lent(quotas: Quotas, subtree: Mapping[QuotaKey, int]) -> dict[QuotaKey, int]:
    return {name: amount - _kept(quotas.get(name, _NONE), amount) for name, amount in subtree.items()}


def _potential(
    quotas: Quotas, subtree: Mapping[QuotaKey, int], above: Mapping[QuotaKey, int] | None
) -> dict[QuotaKey, int]:
    if above is None:
        return dict(subtree)
    found = {}
    for name in subtree.keys() | above.keys():
        own = subtree.get(name, 0)
        quota = quotas.get(name, _NONE)
        amount = _kept(quota, own) + above.get(name, 0)
        found[name] = amount if quota.borrowing is None else min(amount, own + quota.borrowing)
    return found
