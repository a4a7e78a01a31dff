"""Jobs that go round the queue, without a queue name or not suspended, and those that no queue can ever let in."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, warning
from fairlead_cli.kueue.doctor.checks.tenants import local_queue_manifest
from fairlead_cli.kueue.doctor.survey import Survey, check, owner_of, queue_label
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import SECOND
from fairlead_kube.kinds.demand import is_counted, workload_demand
from fairlead_kube.kinds.objects import ObjectMeta, holds
from fairlead_kube.kinds.queues import MOST_COVERED, UNCOUNTED
from fairlead_kube.kinds.workloads import Workload

_NEEDS = ("localqueues", "jobs", "pytorchjobs")
_ENDS = ("Complete", "Failed", "Succeeded")
_WORKLOAD_WITHIN = 60 * SECOND
"""Microseconds within which Kueue has made a Workload for a job, on a busy machine too."""
_STANDALONE = ("", "CronJob")
"""Kinds of owners under which a job is queued by itself; under another one (JobSet, MPIJob, …) the owner is."""


class _SeenJob(NamedTuple):
    kind: str
    metadata: ObjectMeta
    suspended: bool


def _managed(survey: Survey) -> Iterator[_SeenJob]:
    """Jobs that are not over in namespaces with a LocalQueue: what runs there is meant to go through Kueue."""
    return (one for one in _standing(survey) if one.metadata.namespace in survey.managed_namespaces)


def _standing(survey: Survey) -> Iterator[_SeenJob]:
    """Jobs and PyTorchJobs that are not over, of any namespace."""
    for job in survey.jobs:
        if _is_alone(job.metadata) and not any(holds(job.status.conditions, end) for end in _ENDS):
            yield _SeenJob("Job", job.metadata, job.spec.suspend)
    for one in survey.pytorch_jobs:
        if _is_alone(one.metadata) and not any(holds(one.status.conditions, end) for end in _ENDS):
            policy = one.spec.run_policy
            yield _SeenJob("PyTorchJob", one.metadata, policy is not None and policy.suspend)


def _others(survey: Survey) -> Iterator[_SeenJob]:
    """Objects of other kinds that are not over, in namespaces with a LocalQueue."""
    managed = survey.managed_namespaces
    for one in survey.others:
        if _is_alone(one.metadata) and not one.status.over and one.metadata.namespace in managed:
            yield _SeenJob(one.kind, one.metadata, suspended=False)


def _is_alone(metadata: ObjectMeta) -> bool:
    owner = metadata.controller
    return (owner.kind if owner else "") in _STANDALONE


@check(
    "queue names",
    "job-without-queue",
    fine="every Job, JobSet, RayJob and the like in the tenants' namespaces names its queue",
    needs=_NEEDS,
)
def _queueless(survey: Survey) -> Iterator[Finding]:
    entries = {queue.metadata.namespace: queue.metadata.name for queue in reversed(survey.local_queues)}
    found = [one for one in (*_managed(survey), *_others(survey)) if not queue_label(one.metadata)]
    for (kind, namespace), several in _grouped(found).items():
        first = several[0].metadata.name
        field = {"Job": "spec.suspend: true, ", "PyTorchJob": "spec.runPolicy.suspend: true, "}.get(kind, "")
        yield warning(
            f"{kind}/{namespace}/{first}",
            f"{counted(len(several), kind)} without a queue name in {namespace}: {_names(several)}",
            why="they wait for ever: Kueue was told to hold such jobs back"
            if survey.kueue.manages_all_jobs
            else "they run beside the queue, take what Kueue believes to be free, and count in nobody's share",
            mend=f"metadata:\n  labels: {{kueue.x-k8s.io/queue-name: {entries[namespace]}}}\n# {field and f'and {field}'}on the new one",
        )


@check(
    "queues named",
    "job-queue-missing",
    fine="every LocalQueue that a Job or PyTorchJob names is there",
    needs=_NEEDS,
)
def _misdirected(survey: Survey) -> Iterator[Finding]:
    entries = {(queue.metadata.namespace, queue.metadata.name) for queue in survey.local_queues}
    found = [
        one
        for one in _standing(survey)
        if (label := queue_label(one.metadata))
        and (one.metadata.namespace, label) not in entries
        # Where Kueue looks after nobody else, one that is not suspended may be none of its own.
        and (one.suspended or one.metadata.namespace in survey.managed_namespaces)
    ]
    for (kind, namespace), several in _grouped(found).items():
        first = several[0].metadata
        there = sorted(name for scope, name in entries if scope == namespace)
        yield warning(
            f"{kind}/{namespace}/{first.name}",
            f"{counted(len(several), kind)} of a LocalQueue that is not in {namespace}: {_names(several)}",
            why=f"they wait for ever: {first.name} names {queue_label(first)!r}, and there is {listed(there) or 'none'}",
            mend=f"kubectl -n {namespace} label {kind.lower()} {first.name} kueue.x-k8s.io/queue-name={there[0]} --overwrite\n"
            "# or make a LocalQueue of that name"
            if there
            else f"{local_queue_manifest(queue_label(first), namespace, 'NAME')}   # kubectl get clusterqueues",
        )


@check(
    "suspension",
    "job-not-suspended",
    fine="no Job or PyTorchJob runs that was not admitted",
    needs=(*_NEEDS, "workloads"),
)
def _unsuspended(survey: Survey) -> Iterator[Finding]:
    admitted = {
        owner.uid
        for workload in survey.workloads
        if workload.holds("QuotaReserved") and (owner := workload.metadata.controller) is not None
    }
    found = [
        one
        for one in _managed(survey)
        if queue_label(one.metadata) and not one.suspended and one.metadata.uid not in admitted
    ]
    for (kind, namespace), several in _grouped(found).items():
        first = several[0].metadata.name
        plural = kind.lower()
        spec = '{"suspend":true}' if kind == "Job" else '{"runPolicy":{"suspend":true}}'
        yield warning(
            f"{kind}/{namespace}/{first}",
            f"{counted(len(several), kind)} not suspended in {namespace}, with no admitted Workload: {_names(several)}",
            why="their pods may run before they are admitted: a gang then starts in part, and before its turn",
            mend=f"kubectl -n {namespace} patch {plural} {first} --type merge -p '{{\"spec\":{spec}}}'\n"
            f"# new ones: spec.{'suspend' if kind == 'Job' else 'runPolicy.suspend'}: true, or Kueue's webhook and "
            f"`{'batch/job' if kind == 'Job' else 'kubeflow.org/pytorchjob'}` among integrations.frameworks",
        )


@check(
    "workloads",
    "job-without-workload",
    fine="Kueue has made a Workload for every Job and PyTorchJob that it holds",
    needs=(*_NEEDS, "workloads"),
)
def _overlooked(survey: Survey) -> Iterator[Finding]:
    known = {owner.uid for workload in survey.workloads for owner in workload.metadata.owner_references or ()}
    found = [
        one
        for one in _managed(survey)
        if queue_label(one.metadata)
        and one.suspended
        and one.metadata.uid not in known
        and survey.at - one.metadata.created > _WORKLOAD_WITHIN
    ]
    for (kind, namespace), several in _grouped(found).items():
        first = several[0].metadata.name
        yield warning(
            f"{kind}/{namespace}/{first}",
            f"{counted(len(several), kind)} with a queue name in {namespace} that Kueue made no Workload for: {_names(several)}",
            why="they wait for ever, and stand in no order: Kueue does not look after them",
            mend=f"kubectl -n {namespace} describe {kind.lower()} {first}   # its Events may say why\n"
            "# or Kueue's configuration leaves out its namespace (managedJobsNamespaceSelector) or its kind "
            "(integrations.frameworks);\n# what was made before that is mended is made anew",
        )


@check(
    "sizes",
    "job-too-many-resources",
    fine="no job asks for more resources than a ClusterQueue can have quota of",
    needs=("workloads",),
)
def _oversized(survey: Survey) -> Iterator[Finding]:
    found: dict[tuple[str, bool], list[tuple[Workload, int]]] = {}
    for workload in survey.workloads:
        if (resources := _resources(workload)) > MOST_COVERED:
            key = (workload.metadata.namespace, is_counted(workload))
            found.setdefault(key, []).append((workload, resources))
    for (namespace, counts), several in sorted(found.items()):
        first = several[0][0].metadata
        asked = (f"{workload.metadata.name} ({resources})" for workload, resources in several)
        never = "Kueue never admits such a one" + ("" if counts else f", unless {UNCOUNTED}")
        yield warning(
            owner_of(first),
            f"{counted(len(several), 'Workload')} of more than {MOST_COVERED} resources in {namespace}: {listed(asked)}",
            why=f"{never}: a ClusterQueue cannot have quota of so many. Fairlead holds it, and does not state what it asks for",
            mend=f"ask for fewer; what it asks for: kubectl -n {namespace} get workload {first.name} -o yaml",
        )


def _resources(workload: Workload) -> int:
    """The number of resources that it asks for; 0 where that cannot be read, which is told on the object itself."""
    try:
        return sum(1 for amount in workload_demand(workload).values() if amount)
    except FieldError:
        return 0


def _grouped(found: Iterable[_SeenJob]) -> dict[tuple[str, str], list[_SeenJob]]:
    groups: dict[tuple[str, str], list[_SeenJob]] = {}
    for one in sorted(found, key=lambda one: (one.kind, one.metadata.namespace, one.metadata.name)):
        groups.setdefault((one.kind, one.metadata.namespace), []).append(one)
    return groups


def _names(several: list[_SeenJob]) -> str:
    return listed(one.metadata.name for one in several)
