"""The context of a Workload: what its translation looks up besides the Workload, and a note of each lookup. Pure."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from fairlead_kube.kinds.objects import LabelSelector, PartialObject
from fairlead_kube.kinds.queues import LocalQueue
from fairlead_kube.kinds.workloads import PriorityClass
from fairlead_kube.reflector import Key
from fairlead_watcher.objects.quota import Forest, QueueFacts
from fairlead_watcher.objects.refused_flavors import RefusedFlavors
from fairlead_watcher.objects.shape_verdicts import ShapeCounts, ShapeVerdicts, WorkloadShape
from fairlead_watcher.objects.workload_facts import Known, OwnerFacts, WorkloadFacts

type ClassKind = Literal["WorkloadPriorityClass", "PriorityClass"]
type Labels = dict[str, str]
type OwnerKind = str
"""Kind of an owner, as in an ownerReference: `Job`, `JobSet`, `Pod` and so on."""


class Dependency(NamedTuple):
    """An object that a translation depends on, there or not."""

    kind: Literal["local queue", "queue", "class", "owner", "namespace", "workload", "lever", "shape"]
    of: str
    """The kind of a class or owner; empty otherwise."""
    key: Key | WorkloadShape


LEVER = Dependency("lever", "", Key("", ""))


class LocalQueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a LocalQueue that we need."""

    queue: str
    stopped: bool = False


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a ClusterQueue that its Workloads depend on."""

    name: str
    active: bool
    why_inactive: str = ""
    stopped: bool
    most: dict[str, int]
    """The most that it can ever have, by resource that it covers, all flavors together."""
    flavored: bool = False
    """Whether several flavors give one resource in the queue's pool."""
    givers: dict[str, dict[str, int]] = {}
    """The most that it can ever have of each of its flavors, by resource that they give."""
    strategy: str = ""
    """The queueing strategy: `StrictFIFO` or `BestEffortFIFO`."""
    selector: LabelSelector | None = LabelSelector()
    """The selector of namespaces whose Workloads it takes; None takes those of none."""

    def takes(self, labels: Labels | None) -> bool:
        """Whether it takes Workloads of a namespace with these labels; None where they are not known."""
        return labels is None or (self.selector is not None and self.selector.matches(labels))


def local_queue_facts(local_queue: LocalQueue) -> LocalQueueFacts:
    """The part that is kept of a LocalQueue."""
    return LocalQueueFacts(queue=local_queue.spec.cluster_queue, stopped=local_queue.spec.stopped)


def namespace_labels(namespace: PartialObject) -> Labels:
    """The labels of a namespace, all that is kept of it."""
    return namespace.metadata.labels or {}


def class_value(priority_class: PriorityClass) -> int:
    """The value of a WorkloadPriorityClass or PriorityClass, all that is kept of it."""
    return priority_class.value


def queue_view(queue: QueueFacts, forest: Forest) -> QueueView:
    """The part of a ClusterQueue that its Workloads depend on, by the quota of its tree."""
    most: dict[str, int] = {}
    givers: dict[str, dict[str, int]] = {}
    for name, amount in forest.potential(queue).items():
        if name in queue.quotas:
            givers.setdefault(name.resource, {})[name.flavor] = amount
            most[name.resource] = most.get(name.resource, 0) + amount
    return QueueView(
        name=queue.name,
        active=queue.active,
        why_inactive=queue.why_inactive,
        stopped=queue.stopped,
        most=most,
        flavored=forest.pool_of(queue) in forest.flavored,
        givers=givers,
        strategy=queue.strategy,
        selector=queue.selector,
    )


class LookupTables(msgspec.Struct, kw_only=True):
    """Objects that translations look up, by key."""

    local_queues: dict[Key, LocalQueueFacts] = {}
    queues: Mapping[str, QueueView] = {}
    classes: dict[tuple[str, str], int] = {}
    """Values of classes, by kind and name."""
    owners: dict[tuple[OwnerKind, Key], OwnerFacts] = {}
    namespaces: dict[str, Labels] = {}
    """Labels of namespaces, by the namespace's name."""
    workloads: Mapping[Key, Known] = {}
    verdicts: ShapeVerdicts
    counts: ShapeCounts
    reads_boosts: bool = True


class WorkloadContext:
    """The context of a Workload's translation, which notes what was looked up."""

    def __init__(self, known: LookupTables) -> None:
        self._known = known
        self._looked_up: set[Dependency] = set()

    def take(self) -> frozenset[Dependency]:
        """Takes the dependencies that were looked up since the last take."""
        found, self._looked_up = self._looked_up, set()
        return frozenset(found)

    def local_queue(self, namespace: str, name: str) -> LocalQueueFacts | None:
        """The LocalQueue of this name; None for one that is not known."""
        key = Key(namespace, name)
        self._looked_up.add(Dependency("local queue", "", key))
        return self._known.local_queues.get(key)

    def queue(self, name: str) -> QueueView | None:
        """The ClusterQueue of this name; None for one that is not known."""
        self._looked_up.add(Dependency("queue", "", Key("", name)))
        return self._known.queues.get(name)

    def class_value(self, kind: str, name: str) -> int | None:
        """The value of a WorkloadPriorityClass or PriorityClass."""
        self._looked_up.add(Dependency("class", kind, Key("", name)))
        return self._known.classes.get((kind, name))

    def owner(self, kind: str, namespace: str, name: str) -> OwnerFacts | None:
        """The object that a Workload was made for; None also for kinds that are not watched."""
        key = Key(namespace, name)
        self._looked_up.add(Dependency("owner", kind, key))
        return self._known.owners.get((kind, key))

    def namespace(self, name: str) -> Labels | None:
        """The labels of a namespace; None for one that is not known."""
        self._looked_up.add(Dependency("namespace", "", Key("", name)))
        return self._known.namespaces.get(name)

    def running(self, namespace: str, name: str) -> WorkloadFacts | None:
        """Another Workload; None where it holds no quota now."""
        key = Key(namespace, name)
        self._looked_up.add(Dependency("workload", "", key))
        found = self._known.workloads.get(key)
        return found if isinstance(found, WorkloadFacts) and found.run and not found.end else None

    def refused(self, shape: WorkloadShape) -> RefusedFlavors:
        """The flavors that Kueue says refuse Workloads of a shape whatever quota is free."""
        self._looked_up.add(Dependency("shape", "", shape))
        return self._known.verdicts.refused(shape)

    def refused_last(self, shape: WorkloadShape) -> RefusedFlavors:
        """The flavors that refused a shape when Kueue last spoke of it, though no Workload of it may wait any more."""
        self._looked_up.add(Dependency("shape", "", shape))
        return self._known.verdicts.refused_last(shape)

    def counted(self, shape: WorkloadShape, namespace: str) -> Mapping[str, int] | None:
        """The demand that Kueue counts for a shape in a namespace, where it counts other resources than pods ask for."""
        self._looked_up.add(Dependency("shape", "", shape))
        everywhere = self._known.counts.of(shape)
        if everywhere is not None:
            return everywhere
        return self._known.counts.of(shape._replace(namespace=namespace))

    def reads_boosts(self) -> bool:
        """Whether Kueue reads boosts at all."""
        self._looked_up.add(LEVER)
        return self._known.reads_boosts
