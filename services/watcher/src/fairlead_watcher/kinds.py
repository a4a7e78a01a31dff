"""The kinds that are watched, and where their objects go.

Rights that this takes, all of them `list` and `watch` in the whole cluster (deploy/kustomize/rbac/watcher.yaml):

- kueue.x-k8s.io: workloads, clusterqueues, localqueues, cohorts, workloadpriorityclasses
- scheduling.k8s.io: priorityclasses
- core: nodes, namespaces (metadata only), pods (metadata only, and only those that Kueue manages or HAMi gave cards)
- batch: jobs; kubeflow.org: pytorchjobs; the `QUEUED_KINDS` that name a queue (metadata only)

Discovery (`get` on /apis) everybody signed in may do. Nothing is written.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.cards import HOLDER
from fairlead_contracts.messages.state import NodeState
from fairlead_kube.kinds.objects import ApiObject
from fairlead_kube.kinds.resources import (
    CLUSTER_QUEUES,
    COHORTS,
    JOBS,
    LOCAL_QUEUES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    PYTORCH_JOBS,
    QUEUED_KINDS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
    Resource,
)
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.cards import CardHolding, Refusals, holding_of
from fairlead_watcher.objects.quota import cohort_facts, queue_facts
from fairlead_watcher.objects.workload_context import class_value, local_queue_facts, namespace_labels
from fairlead_watcher.objects.workload_facts import Known, owner_facts, workload_facts
from fairlead_watcher.sources import KindSource, SourceContext, WatchedKind
from fairlead_watcher.statements import pools
from fairlead_watcher.statements.holds import QUEUE_LABEL

MANAGED = "kueue.x-k8s.io/managed=true"
"""Selector of pods that Kueue's webhook gates itself: it labels these, and not those of Jobs."""
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""Selector of pods that are not over: the others hold no cards, though their notes stay."""
CARD_HOLDERS = "pods with cards"


@dataclass(eq=False)
class Kinds:
    """Makes the sources of a cluster."""

    watching: SourceContext
    cluster: str
    view: ClusterView
    _: KW_ONLY
    clock: Callable[[], Micros]
    ended_stay: Micros
    """Longest time since a job's end with which it is still stated when it is first seen."""

    def __post_init__(self) -> None:
        self._refusals = Refusals(self.watching.observer)

    def all(self) -> list[WatchedKind]:
        """The sources of all kinds that a watcher reads."""
        watching, view = self.watching, self.view
        return [
            KindSource(watching, CLUSTER_QUEUES, queue_facts, view.cluster_queue),
            KindSource(watching, COHORTS, cohort_facts, view.cohort, optional=True),
            KindSource(watching, LOCAL_QUEUES, local_queue_facts, view.local_queue),
            KindSource(
                watching,
                WORKLOAD_PRIORITY_CLASSES,
                class_value,
                partial(view.class_value, "WorkloadPriorityClass"),
            ),
            KindSource(watching, PRIORITY_CLASSES, class_value, partial(view.class_value, "PriorityClass")),
            KindSource(watching, NODES, partial(pools.node, self.cluster), self._with_cards),
            # Pods that HAMi placed and that are not over; of these only HAMi's notes are kept.
            KindSource(
                watching,
                PODS.metadata(),
                holding_of,
                self._holder,
                label_selector=HOLDER,
                field_selector=UNFINISHED,
                called=CARD_HOLDERS,
            ),
            KindSource(watching, NAMESPACES.metadata(), namespace_labels, view.namespace),
            self._owners(JOBS),
            self._owners(PYTORCH_JOBS, optional=True),
            self._owners(PODS, label_selector=MANAGED),
            # Their Workloads carry none of their own labels and annotations. Of StatefulSets most are nobody's in a queue.
            *(self._owners(kind, optional=True, label_selector=QUEUE_LABEL) for kind in QUEUED_KINDS),
            # A type checker cannot infer a type variable that is a union.
            KindSource[Workload, Known](
                watching,
                WORKLOADS,
                lambda workload: workload_facts(workload, ended_after=self.clock() - self.ended_stay),
                view.workload,
            ),
        ]

    def _owners[T: ApiObject](
        self, resource: Resource[T], *, optional: bool = False, label_selector: str | None = None
    ) -> WatchedKind:
        return KindSource(
            self.watching,
            resource.metadata(),
            owner_facts,
            partial(self.view.owner, resource.kind),
            optional=optional,
            # Rights of a release before may lack the kind: its jobs are ordered all the same, without what it asks for.
            dispensable=optional,
            label_selector=label_selector,
        )

    def _with_cards(self, key: Key, node: NodeState | None) -> None:
        self._refusals.note(key, "" if node is None else node.cards_refused)
        self.view.node(key, node)

    def _holder(self, key: Key, holding: CardHolding | None) -> None:
        self._refusals.note(key, "" if holding is None else holding.refused)
        self.view.card_holder(key, holding)
