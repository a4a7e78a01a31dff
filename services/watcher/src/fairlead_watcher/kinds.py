"""The kinds that are watched, and where their objects go.

Rights that this takes, all of them `list` and `watch` in the whole cluster (deploy/kustomize/rbac/watcher.yaml):

- kueue.x-k8s.io: workloads, clusterqueues, localqueues, cohorts, workloadpriorityclasses
- scheduling.k8s.io: priorityclasses
- core: nodes, namespaces (metadata only), pods (metadata only, and only those that Kueue manages or HAMi gave cards)
- batch: jobs; kubeflow.org: pytorchjobs; the `QUEUED_KINDS` that name a queue (metadata only)

Discovery (`get` on /apis) everybody signed in may do. Nothing is written.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.observer import LibraryObserver
from fairlead_contracts.frontend.cards import HOLDER
from fairlead_contracts.messages.state import NodeState
from fairlead_kube.client import KubeClient
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
from fairlead_kube.reflector import Described, Key
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.objects.cards import CardHolding, Refusals, holding_of
from fairlead_watcher.objects.quota import cohort_facts, queue_facts
from fairlead_watcher.objects.workload_context import class_value, local_queue_facts, namespace_labels
from fairlead_watcher.objects.workload_facts import Known, owner_facts, workload_facts
from fairlead_watcher.sources import KindSource, WatchedKind
from fairlead_watcher.statements import pools
from fairlead_watcher.statements.holds import QUEUE_LABEL

MANAGED = "kueue.x-k8s.io/managed=true"
"""Selector of pods that Kueue's webhook gates itself: it labels these, and not those of Jobs."""
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""Selector of pods that are not over: the others hold no cards, though their notes stay."""
CARD_HOLDERS = "pods with cards"


class Kinds:
    """Makes the sources of a cluster.

    Args:
        ended_stay: longest time since a job's end with which it is still stated when it is first seen.
        probe_seconds: seconds between two questions whether a kind is served.
    """

    def __init__(
        self,
        client: KubeClient,
        cluster: str,
        view: ClusterView,
        *,
        clock: Callable[[], Micros],
        ended_stay: Micros,
        wake: asyncio.Event,
        observer: LibraryObserver,
        probe_seconds: float,
        rest: Callable[[], float],
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._view = view
        self._clock = clock
        self._ended_stay = ended_stay
        self._wake = wake
        self._observer = observer
        self._probe_seconds = probe_seconds
        self._rest = rest
        self._refusals = Refusals(observer)

    def all(self) -> list[WatchedKind]:
        """The sources of all kinds that a watcher reads."""
        view = self._view
        return [
            self._of(CLUSTER_QUEUES, queue_facts, view.cluster_queue),
            self._of(COHORTS, cohort_facts, view.cohort, optional=True),
            self._of(LOCAL_QUEUES, local_queue_facts, view.local_queue),
            self._of(
                WORKLOAD_PRIORITY_CLASSES, class_value, partial(view.class_value, "WorkloadPriorityClass")
            ),
            self._of(PRIORITY_CLASSES, class_value, partial(view.class_value, "PriorityClass")),
            self._of(NODES, partial(pools.node, self._cluster), self._with_cards),
            # Pods that HAMi placed and that are not over; of these only HAMi's notes are kept.
            self._of(
                PODS.metadata(),
                holding_of,
                self._holder,
                label_selector=HOLDER,
                field_selector=UNFINISHED,
                called=CARD_HOLDERS,
            ),
            self._of(NAMESPACES.metadata(), namespace_labels, view.namespace),
            self._owners(JOBS),
            self._owners(PYTORCH_JOBS, optional=True),
            self._owners(PODS, label_selector=MANAGED),
            # Their Workloads carry none of their own labels and annotations. Of StatefulSets most are nobody's in a queue.
            *(self._owners(kind, optional=True, label_selector=QUEUE_LABEL) for kind in QUEUED_KINDS),
            self._workloads(),
        ]

    def _of[T: Described, U](
        self,
        resource: Resource[T],
        project: Callable[[T], U | None],
        deliver: Callable[[Key, U | None], None],
        *,
        optional: bool = False,
        dispensable: bool = False,
        label_selector: str | None = None,
        field_selector: str | None = None,
        called: str | None = None,
    ) -> WatchedKind:
        return KindSource(
            self._client,
            resource,
            project=project,
            deliver=deliver,
            wake=self._wake,
            observer=self._observer,
            probe_seconds=self._probe_seconds,
            rest=self._rest,
            optional=optional,
            dispensable=dispensable,
            label_selector=label_selector,
            field_selector=field_selector,
            called=called,
        )

    def _workloads(self) -> WatchedKind:
        """The source of Workloads. It is made here, as a type checker cannot infer a type variable that is a union."""
        return KindSource[Workload, Known](
            self._client,
            WORKLOADS,
            project=lambda workload: workload_facts(workload, ended_after=self._clock() - self._ended_stay),
            deliver=self._view.workload,
            wake=self._wake,
            observer=self._observer,
            probe_seconds=self._probe_seconds,
            rest=self._rest,
        )

    def _owners[T: Described](
        self, resource: Resource[T], *, optional: bool = False, label_selector: str | None = None
    ) -> WatchedKind:
        return self._of(
            resource.metadata(),
            owner_facts,
            partial(self._view.owner, resource.kind),
            optional=optional,
            # Rights of a release before may lack the kind: its jobs are ordered all the same, without what it asks for.
            dispensable=optional,
            label_selector=label_selector,
        )

    def _with_cards(self, key: Key, node: NodeState | None) -> None:
        self._refusals.note(key, "" if node is None else node.cards_refused)
        self._view.node(key, node)

    def _holder(self, key: Key, holding: CardHolding | None) -> None:
        self._refusals.note(key, "" if holding is None else holding.refused)
        self._view.card_holder(key, holding)
