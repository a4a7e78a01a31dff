"""Submissions as the objects that Kueue queues: a Job, a PyTorchJob, or plain pods that are one gang. Pure.

Nothing starts by itself, also where Kueue doesn't look: a Job is made suspended, a pod of a gang with Kueue's
scheduling gate. Each runs once: what fails, failed, and its sender hears so; only a pod that was disrupted (its node
drained, say) is made again.
"""

import math
from collections.abc import Collection

import msgspec

from fairlead_admitter.frontends.kueue.names import check_annotations, check_labels, is_key, is_value, name_of
from fairlead_admitter.frontends.kueue.pods import PodDocument, pod_spec, template_of
from fairlead_admitter.intake.creation import JobOrder
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.marks import ASK_PREFIX, DIGEST, SUBMISSION, SUBMITTED, TRACEPARENT

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
MAX_EXEC_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
POD_GROUP_NAME = "kueue.x-k8s.io/pod-group-name"
POD_GROUP_COUNT = "kueue.x-k8s.io/pod-group-total-count"
RETRIABLE = "kueue.x-k8s.io/retriable-in-group"
GATE = "kueue.x-k8s.io/admission"
_MANAGED_BY = {"app.kubernetes.io/managed-by": "fairlead"}

LIMIT_GRACE_SECONDS = 60
"""Seconds after its run limit at which Kueue takes an admitted job's quota away.

At the limit itself Kubernetes ends the job as failed. Kueue would only suspend it, and its sender would never hear of
an end; so Kueue's limit comes later and only catches what Kubernetes didn't."""
MOST_GROUP_PODS = 512
"""The most pods of a group of plain pods: each is an object of its own to create."""


class ManifestTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that the cluster and the settings add to a submission."""

    local_queue: str
    account: str = "default"
    """The service account that the pods run as; they get no token of it."""
    classes: Collection[str] = ()
    """Names of the cluster's WorkloadPriorityClasses."""
    annotation_prefixes: Collection[str] = ()
    """Prefixes of the annotations that a submission may set, with the `/`."""


def job_manifest(order: JobOrder, terms: ManifestTerms) -> PodDocument:
    """A batch/v1 Job. With several pods it is indexed: each knows its place by JOB_COMPLETION_INDEX.

    Raises:
        FieldError: the submission cannot be a Job; names the field.
    """
    pods = order.submission.pods
    spec: PodDocument = {
        "suspend": True,
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed" if pods > 1 else "NonIndexed",
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
            ]
        },
        **_deadline(order),
        "template": _template(order, terms, container="main"),
    }
    return {"metadata": _metadata(order, terms), "spec": spec}


def pytorch_manifest(order: JobOrder, terms: ManifestTerms) -> PodDocument:
    """A PyTorchJob of one master, and workers where there is more than one pod.

    Raises:
        FieldError: the submission cannot be a PyTorchJob; names the field.
    """
    # The operator looks for a container of this name.
    template = _template(order, terms, container="pytorch")
    workers = order.submission.pods - 1
    replicas = {"Master": 1} | ({"Worker": workers} if workers else {})
    spec: PodDocument = {
        "runPolicy": {
            "suspend": True,
            "backoffLimit": 0,
            # Else workers that outlive the master hold their cards, while Kueue gives the quota to the next.
            "cleanPodPolicy": "Running",
            **_deadline(order),
        },
        "pytorchReplicaSpecs": {
            role: {"replicas": count, "restartPolicy": "Never", "template": template}
            for role, count in replicas.items()
        },
    }
    return {"metadata": _metadata(order, terms), "spec": spec}


def pod_manifests(order: JobOrder, terms: ManifestTerms) -> list[PodDocument]:
    """The pods of a group that Kueue admits whole; their names follow from the submission's.

    Raises:
        FieldError: the submission cannot be such a group; names the field.
    """
    pods = order.submission.pods
    if pods > MOST_GROUP_PODS:
        raise FieldError(
            "pods", pods, f"a pod group may have {MOST_GROUP_PODS} pods; the kind job may have more"
        )
    name = name_of(order.submission)
    spec = pod_spec(order.submission, container="main", account=terms.account)
    spec |= {"schedulingGates": [{"name": GATE}], **_deadline(order)}
    metadata = _metadata(order, terms)
    annotations = {
        **_own_annotations(order, terms),
        POD_GROUP_COUNT: str(pods),
        # A group whose pods may be made again never ends by a failure: nobody would make them again.
        RETRIABLE: "false",
    }
    labels = {**_labels(order, terms), POD_GROUP_NAME: name}
    return [
        {
            "metadata": {
                **metadata,
                "name": f"{name}-{number}",
                "labels": labels,
                "annotations": annotations,
            },
            "spec": spec,
        }
        for number in range(pods)
    ]


def _metadata(order: JobOrder, terms: ManifestTerms) -> PodDocument:
    return {
        "name": name_of(order.submission),
        "namespace": order.scope,
        "labels": _labels(order, terms),
        "annotations": _marks(order),
    }


def _template(order: JobOrder, terms: ManifestTerms, *, container: str) -> PodDocument:
    """A pod template. Kueue copies its labels and annotations to the Workload, not those of its owner."""
    return {
        "metadata": {
            "labels": {**order.submission.labels, **_MANAGED_BY},
            "annotations": _own_annotations(order, terms),
        },
        "spec": pod_spec(order.submission, container=container, account=terms.account),
    }


def _labels(order: JobOrder, terms: ManifestTerms) -> dict[str, str]:
    check_labels("labels", order.submission.labels)
    labels = {**order.submission.labels, **_MANAGED_BY, QUEUE_NAME: terms.local_queue}
    if order.job_class in terms.classes:
        labels[PRIORITY_CLASS] = order.job_class
    limit = _limit_seconds(order)
    if limit is not None:
        labels[MAX_EXEC_TIME] = str(limit + LIMIT_GRACE_SECONDS)
    return labels


def _own_annotations(order: JobOrder, terms: ManifestTerms) -> dict[str, str]:
    """The annotations of the pods: the template's, and ours."""
    wanted = template_of(order.submission).annotations
    check_annotations("template.annotations", wanted, terms.annotation_prefixes)
    annotations = {**wanted, **_marks(order)}
    asked = order.submission.job_class
    if asked is not None:
        key = ASK_PREFIX + asked
        if not is_key(key) or not is_value(asked):
            raise FieldError(
                "class", asked, "cannot be asked for on Kubernetes: a label cannot have its name"
            )
        annotations[key] = "true"
    return annotations


def _marks(order: JobOrder) -> dict[str, str]:
    """The marks of a job of ours, with the submission that it was made from."""
    marks = {
        SUBMISSION: order.submission.id,
        DIGEST: order.submission.digest(),
        SUBMITTED: str(order.submitted),
    }
    return marks if order.traceparent is None else {**marks, TRACEPARENT: order.traceparent}


def _deadline(order: JobOrder) -> PodDocument:
    limit = _limit_seconds(order)
    return {} if limit is None else {"activeDeadlineSeconds": limit}


def _limit_seconds(order: JobOrder) -> int | None:
    limit = order.submission.run_limit_seconds
    return None if limit is None else math.ceil(limit)
