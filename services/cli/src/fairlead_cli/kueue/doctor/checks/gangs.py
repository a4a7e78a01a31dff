"""Gangs that no set of nodes can hold, or that spread over zones."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import msgspec

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, info, warning
from fairlead_cli.kueue.doctor.checks.capacity import pool_quota
from fairlead_cli.kueue.doctor.survey import Survey, check, owner_of, quotas_of
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import format_quantity
from fairlead_contracts.frontend.observed import LabelRequirement, ObservedPods
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.demand import workload_demand
from fairlead_kube.kinds.observed import observed_node, observed_pods
from fairlead_kube.kinds.queues import ClusterQueue, ResourceFlavor
from fairlead_kube.kinds.workloads import PodSet, Workload
from fairlead_policy.fit.observed import FitQuestion, empty_node, fit_question
from fairlead_policy.fit.results import Unfit
from fairlead_policy.fit.shapes import FitNode
from fairlead_policy.fit.unschedulable import (
    NoZoneHoldsAll,
    UnschedulableReason,
    all_in_words,
    ask_refused,
)
from fairlead_policy.hami.requests import VgpuRequestError

_PODS = "pods"
"""Resource by which Kueue counts pods where a queue has quota of them, and nowhere else."""
ZONE = "topology.kubernetes.io/zone"
_WORKLOAD = "kueue.x-k8s.io/workload"
"""The annotation by which a pod that Kueue admitted says of which Workload it is."""
MOST_SHAPES = 200
"""Gangs of different shapes that are tried; a shape takes milliseconds on a thousand nodes."""
_MOST_REASONS = 5
"""Reasons that one finding tells, the first: a job of many resources has one for each."""
_MOST_CHOICES = 64
"""Combinations of flavors that a pod may be sent to; beyond, its flavors are not looked at."""
_BY_TOPOLOGY = "where its ResourceFlavor has a `topologyName` with that level (Kueue never admits it elsewhere), on the pod template"


def lasting_node(node: Node) -> FitNode:
    """The node as an empty one, with what it has when nothing runs. What passes by itself is not held against it."""
    found = empty_node(observed_node(node))
    return msgspec.structs.replace(
        found,
        taints=tuple(taint for taint in found.taints if not taint.key.startswith("node.kubernetes.io/")),
        cards=tuple(msgspec.structs.replace(card, health=True, cordoned=False) for card in found.cards),
    )


def _anywhere(pod_set: PodSet, flavors: list[list[ResourceFlavor]]) -> ObservedPods:
    """Pods of a Workload that are free to take any flavor of its queue: more than Kueue itself would try.

    Args:
        pod_set: the set whose pods they are.
        flavors: the queue's flavors, a list for each resource group.

    Raises:
        FieldError: a quantity cannot be read, or is larger than any cluster.
    """
    pods = observed_pods(pod_set.template, pod_set.name, pod_set.fewest)
    tolerated = (t for group in flavors for f in group for t in f.spec.tolerations or ())
    return msgspec.structs.replace(
        pods,
        affinity=tuple(
            (*left, *right)
            for left, right in product(pods.affinity or [()], _choices(flavors))
            if left or right
        ),
        tolerations=(*pods.tolerations, *tolerated),
    )


def _choices(flavors: list[list[ResourceFlavor]]) -> list[tuple[LabelRequirement, ...]]:
    """The labels that a pod gets by its flavors, one choice of flavors each; one empty choice where any node will do."""
    groups = [
        [
            tuple(
                LabelRequirement(key=key, operator="In", values=(value,))
                for key, value in sorted((flavor.spec.node_labels or {}).items())
            )
            for flavor in group
        ]
        for group in flavors
        if group
    ]
    several = [tuple(one for part in choice for one in part) for choice in product(*groups)]
    return [()] if () in several or len(several) > _MOST_CHOICES else several


def _flavors_of(survey: Survey, queue: ClusterQueue | None) -> list[list[ResourceFlavor]]:
    """The flavors of the queue, by resource group."""
    known = {flavor.metadata.name: flavor for flavor in survey.flavors}
    if queue is None:
        return []
    return [
        [known[flavor.name] for flavor in group.flavors or () if flavor.name in known]
        for group in queue.spec.resource_groups or ()
    ]


def _unfinished(survey: Survey) -> Iterator[tuple[Workload, ClusterQueue | None]]:
    """Active Workloads with their queues, admitted ones too: one that fits nowhere is admitted all the same."""
    entries = survey.entries
    queues = {queue.metadata.name: queue for queue in survey.cluster_queues}
    for workload in survey.workloads:
        pods = sum(pod_set.count for pod_set in workload.spec.pod_sets or ())
        if pods and workload.active:
            entry = (workload.metadata.namespace, workload.spec.queue_name)
            yield workload, queues.get(entries.get(entry, ""))


@check(
    "gangs",
    "gang-fits-nowhere",
    "gang-across-zones",
    "gangs-passed-over",
    fine="every job fits the nodes when nothing else runs",
    needs=("workloads", "nodes", "nodepools", "clusterqueues", "localqueues", "resourceflavors"),
)
def _gangs(survey: Survey) -> Iterator[Finding]:
    if survey.node_pools:
        return  # What Karpenter can make, it makes: today's nodes prove nothing.
    nodes = [lasting_node(node) for node in survey.nodes]
    shapes = _shapes(survey)
    for pods, workloads, no_quota in shapes[:MOST_SHAPES]:
        try:
            question = fit_question(pods, nodes)
        except VgpuRequestError as error:
            yield _never(workloads, [ask_refused(error)], no_quota)
            continue
        found = question.answer(empty=True)
        if isinstance(found, Unfit):
            if found.exact:
                yield _never(workloads, found.reasons, no_quota)
        elif question.gang.pods > 1 and (across := _spread(question)):
            yield _across(workloads, across)
    if len(shapes) > MOST_SHAPES:
        yield info(
            "Workload",
            f"{len(shapes) - MOST_SHAPES} of {len(shapes)} shapes of gangs were not tried",
            name="gangs-passed-over",
        )


def _shapes(survey: Survey) -> list[tuple[tuple[ObservedPods, ...], list[Workload], str]]:
    """Gangs that wait or run: pods, Workloads with such pods, and why quota keeps them out for ever, if it does."""
    most = {pool: pool_quota(survey, pool) for pool in survey.pools()}
    found: dict[tuple[bytes, str], tuple[tuple[ObservedPods, ...], list[Workload], str]] = {}
    for workload, queue in _unfinished(survey):
        try:
            flavors = _flavors_of(survey, queue)
            pods = tuple(_anywhere(pod_set, flavors) for pod_set in workload.spec.pod_sets or ())
            no_quota = "" if queue is None else _no_quota(workload, queue, most[survey.pool_of(queue)])
            topologies = [flavor.spec.topology_name for group in flavors for flavor in group]
            if topologies and all(topologies) and not workload.holds("QuotaReserved"):
                no_quota = no_quota or "its flavors have topologies, and it looks for room on their nodes"
        except FieldError:
            continue  # a quantity that no cluster has: the watcher objects to it on the object itself
        key = msgspec.json.encode(pods), no_quota
        found.setdefault(key, (pods, [], no_quota))[1].append(workload)
    return list(found.values())


def _no_quota(workload: Workload, queue: ClusterQueue, most: Mapping[str, int]) -> str:
    """The reason for which Kueue never admits it, by the quotas of its queue and its pool; empty for none."""
    covered = {resource for _, resource, _ in quotas_of(queue.spec.resource_groups)}
    asked = {name: amount for name, amount in workload_demand(workload).items() if amount and name != _PODS}
    if uncovered := sorted(asked.keys() - covered):
        return f"its ClusterQueue has no quota of {listed(uncovered)}"
    if workload.holds("QuotaReserved"):
        return ""
    beyond = [name for name, amount in sorted(asked.items()) if amount > most[name]]
    there = (f"{format_quantity(name, most[name])} {name}" for name in beyond)
    return f"all quotas of its pool together are {listed(there)}" if beyond else ""


def _spread(question: FitQuestion) -> tuple[str, ...]:
    """The zones that the gang needs together; none where one is enough, or where nodes have no zones."""
    if not any(ZONE in node.labels for node in question.nodes):
        return ()
    in_one = msgspec.structs.replace(question.gang, zone_key=ZONE)
    found = msgspec.structs.replace(question, gang=in_one).answer(empty=True)
    reasons = found.reasons if isinstance(found, Unfit) else ()
    return next((one.across for one in reasons if isinstance(one, NoZoneHoldsAll)), ())


def _subject(workloads: list[Workload]) -> tuple[str, str]:
    first = workloads[0]
    pods = sum(pod_set.count for pod_set in first.spec.pod_sets or ())
    more = f" (and {len(workloads) - 1} more alike)" if len(workloads) > 1 else ""
    return owner_of(first.metadata), f"{counted(pods, 'pod')}{more}"


def _never(workloads: list[Workload], reasons: Sequence[UnschedulableReason], no_quota: str) -> Finding:
    subject, pods = _subject(workloads)
    then = (
        f"Kueue never admits it either: {no_quota}"
        if no_quota
        else "Kueue admits it all the same, and it holds quota and never starts"
    )
    left_out = len(reasons) - _MOST_REASONS
    more = f" {counted(left_out, 'more reason')}." if left_out > 0 else ""
    return warning(
        subject,
        f"{pods}: {all_in_words(reasons[:_MOST_REASONS])}{more}",
        why=f"no node or set of nodes holds it even when nothing else runs. {then}",
        mend="ask for less per pod, for more pods that are smaller, or add such nodes; its labels and tolerations: "
        f"kubectl -n {workloads[0].metadata.namespace} get workload {workloads[0].metadata.name} -o yaml",
        name="gang-fits-nowhere",
    )


def _across(workloads: list[Workload], zones: tuple[str, ...]) -> Finding:
    subject, pods = _subject(workloads)
    return warning(
        subject,
        f"{pods}: no zone holds them all, only {listed(zones)} together",
        why="its pods talk across zones, slower and often at a price",
        mend=f"make it smaller than the largest zone, or grow a zone; to insist on one zone, {_BY_TOPOLOGY}:\n"
        f"metadata:\n  annotations: {{kueue.x-k8s.io/podset-required-topology: {ZONE}}}",
        name="gang-across-zones",
    )


@check(
    "zones",
    "gang-spread",
    fine="every running gang is in one zone",
    needs=("pods", "nodes", "workloads"),
)
def _running(survey: Survey) -> Iterator[Finding]:
    zones = {node.metadata.name: (node.metadata.labels or {}).get(ZONE) for node in survey.nodes}
    owners = {(one.metadata.namespace, one.metadata.name): owner_of(one.metadata) for one in survey.workloads}
    gangs: dict[tuple[str, str], Counter[str]] = {}
    unsaid = [pod for pod in survey.gang_pods if not pod.metadata.annotation(_WORKLOAD)]
    if unsaid and len({*zones.values()} - {None}) > 1:
        yield info(
            f"Pod/{unsaid[0].metadata.namespace}/{unsaid[0].metadata.name}",
            f"{counted(len(unsaid), 'running pod')} of Kueue's without the annotation {_WORKLOAD}",
            why="nothing says which gangs they are of, so whether those are in one zone is not known",
            mend="Kueue writes it where its gate TopologyAwareScheduling is on, as it is by itself:\n"
            "featureGates: {TopologyAwareScheduling: true}   # ConfigMap kueue-system/kueue-manager-config, then restart Kueue",
        )
    for pod in survey.gang_pods:
        # What makes its pods need not be what people made: of a JobSet it is one of its Jobs, of a RayJob its RayCluster.
        gang = (pod.metadata.namespace, pod.metadata.annotation(_WORKLOAD) or "")
        zone = zones.get(pod.spec.node_name)
        if gang in owners and zone and pod.metadata.namespace in survey.managed_namespaces:
            gangs.setdefault(gang, Counter())[zone] += 1
    for gang, count in sorted(gangs.items()):
        if len(count) > 1:
            yield info(
                owners[gang],
                f"its {sum(count.values())} pods run in {listed(f'{zone} ({n})' for zone, n in sorted(count.items()))}",
                why="they talk across zones, slower and often at a price",
                mend=f"{_BY_TOPOLOGY}:\n"
                f"metadata:\n  annotations: {{kueue.x-k8s.io/podset-preferred-topology: {ZONE}}}",
            )
