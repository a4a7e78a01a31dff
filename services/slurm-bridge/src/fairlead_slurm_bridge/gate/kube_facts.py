"""Facts kept of nodes and pods; all else is dropped as soon as it is decoded. Pure."""

from collections.abc import Mapping

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.card_annotations import held_cards
from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.demand import bound_demand
from fairlead_kube.kinds.objects import holds
from fairlead_kube.kinds.observed import observed_node, observed_pods
from fairlead_kube.kinds.pods import Pod
from fairlead_policy.fit.observed import pod_shape, ready_node
from fairlead_policy.fit.shapes import FitNode
from fairlead_slurm_bridge.gate.attempts import Attempt, attempt_of
from fairlead_slurm_bridge.gate.capacity import PodDemand

_OVER = ("Succeeded", "Failed")


class JobPod(msgspec.Struct, frozen=True, kw_only=True):
    """The pod of one attempt, as it is now."""

    attempt: Attempt
    uid: str
    phase: str
    ready: bool
    node: str
    leaving: bool
    """Whether somebody has asked for its end."""
    exit_code: int | None
    """Exit code of the pod's container; None until that has ended."""
    reason: str
    """Reason of Kubernetes for the pod's state, if any: of the container, the pod itself, or the
    scheduler."""
    message: str
    user: int | None
    """Unix user whose job it is; None where the pod does not say."""
    digest: str
    """Digest of what the pod was made from."""
    submitted: Micros = 0
    """Time at which the attempt was submitted to slurmctld; 0 where the pod does not say."""
    handed_on: bool = False
    """Whether the pod was made for an earlier attempt, and this one has not begun yet."""
    waits: bool = False
    """Whether the program has yet to begin: no process of the job has come."""
    began: bool = False
    """Whether a process of the attempt has come. Until then it is as much the pod of the next attempt."""
    version: str | None = None
    """Version of the pod as long as it waits; what is decided from that holds for this one alone, because another bridge
    may decide as well."""
    results: str = ""
    """Plan for the pod's results, as it was written down when the pod was made; empty for none."""

    @property
    def running(self) -> bool:
        """Whether the program has begun and has not ended, be the pod ready or not."""
        return self.phase == "Running" and not self.waits

    @property
    def over(self) -> bool:
        """Whether the pod runs no more and will not."""
        return self.phase in _OVER


class PodFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts kept of a pod."""

    use: PodDemand | None
    """Demand on its node; None for a pod that takes nothing: it is over, or bound to no node."""
    job: JobPod | None
    """Pod of a job; None for a pod of no job of this cluster."""
    ask: ObservedPods | None = None
    """Demand of a job's pod that is bound to no node yet."""


ANNOTATION_USER = "slurm.fairlead.dev/uid"
ANNOTATION_DIGEST = "slurm.fairlead.dev/digest"
ANNOTATION_SUBMITTED = "slurm.fairlead.dev/submitted"
ANNOTATION_HANDED_ON = "slurm.fairlead.dev/handed-on"
ANNOTATION_BEGAN = "slurm.fairlead.dev/began"
ANNOTATION_PROGRAM = "slurm.fairlead.dev/program"
WAITS, RUNS = "waits", "runs"
"""Values of `ANNOTATION_PROGRAM`. The container itself reads it, see `manifest`."""
ANNOTATION_RESULTS = "slurm.fairlead.dev/results"
CONTAINER = "job"
"""Name of the container that a job runs in."""


def pod_facts(pod: Pod, cluster: str) -> PodFacts | None:
    """The facts kept of a pod; None for a pod that concerns nobody here."""
    use = None
    if pod.status.phase not in _OVER and pod.spec.node_name:
        held = held_cards(pod.metadata.annotations or {})
        use = PodDemand(node=pod.spec.node_name, demand=bound_demand(pod.spec), held=held)
    job = _job(pod, cluster)
    if use is None and job is None:
        return None
    unbound = job is not None and not job.over and not job.node and not job.leaving
    return PodFacts(use=use, job=job, ask=_ask(pod) if unbound else None)


def _ask(pod: Pod) -> ObservedPods | None:
    try:
        return pod_ask(pod)
    except FieldError:
        return None


def _job(pod: Pod, cluster: str) -> JobPod | None:
    attempt = attempt_of(pod.metadata.labels, cluster)
    if attempt is None:
        return None
    status = pod.status
    state = next((one.state for one in status.container_statuses or () if one.name == CONTAINER), None)
    ended = state.terminated if state else None
    waits = state.waiting if state else None
    scheduled = next((one for one in status.conditions or () if one.type == "PodScheduled"), None)
    told = ended or waits or (scheduled if scheduled and scheduled.status == "False" else status)
    user = pod.metadata.annotation(ANNOTATION_USER) or ""
    submitted = pod.metadata.annotation(ANNOTATION_SUBMITTED) or ""
    yet_to_begin = pod.metadata.annotation(ANNOTATION_PROGRAM) == WAITS
    return JobPod(
        attempt=attempt,
        uid=pod.metadata.uid,
        phase=status.phase,
        ready=holds(status.conditions, "Ready"),
        node=pod.spec.node_name,
        leaving=pod.metadata.deletion_timestamp is not None,
        exit_code=None if ended is None else ended.exit_code,
        reason=told.reason or status.reason,
        message=told.message or status.message,
        user=int(user) if user.isdecimal() else None,
        digest=pod.metadata.annotation(ANNOTATION_DIGEST) or "",
        submitted=int(submitted) if submitted.isdecimal() else 0,
        handed_on=bool(pod.metadata.annotation(ANNOTATION_HANDED_ON)),
        waits=yet_to_begin,
        began=bool(pod.metadata.annotation(ANNOTATION_BEGAN)),
        version=(pod.metadata.resource_version or None) if yet_to_begin else None,
        results=pod.metadata.annotation(ANNOTATION_RESULTS) or "",
    )


def partition_node(node: Node, labels: Mapping[str, str]) -> FitNode | None:
    """The node with nothing on it; None for one that takes no pods now, or has not these labels."""
    described = observed_node(node)
    return ready_node(described) if labels.items() <= described.labels.items() else None


def pod_ask(pod: Pod) -> ObservedPods:
    """The demand of a pod that is to run somewhere; a refusal names the pod.

    Raises:
        FieldError: a quantity cannot be read.
        VgpuRequestError: HAMi would not take what it asks of cards.
    """
    asked = observed_pods(pod, pod.metadata.name, 1)
    pod_shape(asked, by_cards=True)  # what HAMi would refuse is refused before room is looked for
    return asked
