"""Tenants and pools of the policy against the LocalQueues and pools of the cluster, and what a day of waiting is worth."""

from collections.abc import Iterator
from difflib import get_close_matches

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, fine, info, warning
from fairlead_cli.kueue.doctor.checks.capacity import pool_quota
from fairlead_cli.kueue.doctor.survey import Survey, check
from fairlead_contracts.policyfile.document import Match, Tenant
from fairlead_kube.kinds.objects import LabelSelector
from fairlead_kube.kinds.queues import LocalQueue
from fairlead_policy.explain.aging_text import aging_by_tenant, aging_in_words
from fairlead_policy.rules.rulebook import Entrance, Rulebook


def local_queue_manifest(name: str, namespace: str, cluster_queue: str) -> str:
    """A LocalQueue of a namespace that leads to a ClusterQueue, as YAML."""
    return f"""apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{clusterQueue: {cluster_queue}}}"""


def _entry_job(survey: Survey, queue: LocalQueue, match: Match | None = None) -> Entrance:
    """A job of that LocalQueue; with a match, one that has the labels and annotations asked for."""
    return Entrance(
        scope=queue.metadata.namespace,
        cluster=survey.cluster,
        queue=queue.spec.cluster_queue,
        local_queue=queue.metadata.name,
        labels=match.labels if match else {},
        annotations=match.annotations if match else {},
    )


def _reached(survey: Survey) -> set[str]:
    """The tenants whose jobs can come through some LocalQueue."""
    rulebook = Rulebook(survey.policy, 0)
    found = {rulebook.tenant_of(_entry_job(survey, queue)) for queue in survey.local_queues}
    for tenant in survey.policy.tenants:
        if tenant.match is not None and (tenant.match.labels or tenant.match.annotations):
            jobs = (_entry_job(survey, queue, tenant.match) for queue in survey.local_queues)
            found |= {rulebook.tenant_of(job) for job in jobs}
    return found


@check(
    "tenants",
    "queue-without-tenant",
    fine="every LocalQueue belongs to a tenant of the policy",
    needs=("localqueues",),
)
def _strangers(survey: Survey) -> Iterator[Finding]:
    rulebook = Rulebook(survey.policy, 0)
    named = {tenant.name for tenant in survey.policy.tenants}
    strangers = [
        f"{queue.metadata.namespace}/{queue.metadata.name}"
        for queue in survey.local_queues
        if rulebook.tenant_of(_entry_job(survey, queue)) not in named
    ]
    if not strangers:
        return
    mend = f"tenants:\n  - {{name: {strangers[0].partition('/')[0]}, weight: 1}}   # in the policy; then: fairlead policy apply FILE"
    weight = survey.policy.unlisted_weight
    say = info if weight else warning
    yield say(
        f"LocalQueue/{strangers[0]}",
        f"{counted(len(strangers), 'LocalQueue')} of no tenant of the policy: {listed(strangers)}",
        why=f"each namespace counts as a tenant of weight {weight:g}"
        if weight
        else "their jobs stand last, behind those of every tenant with a weight",
        mend=mend if weight else f"{mend}\n# or: unlisted_weight: 1",
    )


@check(
    "local queues",
    "tenant-without-queue",
    fine="every tenant of the policy has a LocalQueue",
    needs=("localqueues",),
)
def _absent(survey: Survey) -> Iterator[Finding]:
    reached = _reached(survey)
    parents = {tenant.parent for tenant in survey.policy.tenants}
    queue = survey.cluster_queues[0].metadata.name if survey.cluster_queues else "CLUSTERQUEUE"
    for tenant in survey.policy.tenants:
        if (
            tenant.name not in reached
            and tenant.name not in parents
            and not _elsewhere(tenant, survey.cluster)
        ):
            namespace = (tenant.match.scopes or [tenant.name])[0] if tenant.match else tenant.name
            yield warning(
                f"Tenant/{tenant.name}",
                "no LocalQueue of this cluster is this tenant's",
                why="none of its jobs can enter a queue here; a name in the policy may be misspelt",
                mend=local_queue_manifest("default", namespace, queue),
            )


def _elsewhere(tenant: Tenant, cluster: str) -> bool:
    return (
        tenant.match is not None
        and tenant.match.clusters is not None
        and cluster not in tenant.match.clusters
    )


@check(
    "dangling local queues",
    "local-queue-dangling",
    fine="every LocalQueue leads to a ClusterQueue",
    needs=("localqueues", "clusterqueues"),
)
def _dangling(survey: Survey) -> Iterator[Finding]:
    known = {queue.metadata.name for queue in survey.cluster_queues}
    for queue in survey.local_queues:
        if queue.spec.cluster_queue not in known:
            name, namespace = queue.metadata.name, queue.metadata.namespace
            yield warning(
                f"LocalQueue/{namespace}/{name}",
                f"it names ClusterQueue {queue.spec.cluster_queue!r}, which is not there",
                why="its jobs wait for ever",
                mend=f"kubectl -n {namespace} delete localqueue {name}   # its ClusterQueue cannot be changed; make it anew",
            )


@check(
    "entries",
    "queue-without-local-queue",
    fine="every ClusterQueue has a LocalQueue",
    needs=("localqueues", "clusterqueues"),
)
def _without_local_queue(survey: Survey) -> Iterator[Finding]:
    reached = {queue.spec.cluster_queue for queue in survey.local_queues}
    for queue in survey.cluster_queues:
        name = queue.metadata.name
        if name not in reached:
            yield warning(
                f"ClusterQueue/{name}",
                "no LocalQueue leads to it",
                why="no job can enter it: only queues that borrow use its quota",
                mend=f"kubectl apply -f - <<'END'\n{local_queue_manifest(name, 'NAMESPACE', name)}\nEND",
            )


@check(
    "namespaces",
    "namespace-not-selected",
    fine="every LocalQueue's namespace is one that its ClusterQueue takes",
    needs=("localqueues", "clusterqueues", "namespaces"),
)
def _shut_out(survey: Survey) -> Iterator[Finding]:
    queues = {queue.metadata.name: queue for queue in survey.cluster_queues}
    namespaces = {one.metadata.name: one.metadata.labels for one in survey.namespaces}
    for entry in survey.local_queues:
        namespace, name = entry.metadata.namespace, entry.metadata.name
        queue = queues.get(entry.spec.cluster_queue)
        if queue is None or namespace not in namespaces:
            continue
        selector = queue.spec.namespace_selector
        if selector is None or not selector.matches(namespaces[namespace]):
            yield warning(
                f"LocalQueue/{namespace}/{name}",
                f"ClusterQueue {queue.metadata.name} takes no Workloads of namespace {namespace}: "
                + ("it has no namespaceSelector" if selector is None else "its namespaceSelector says so"),
                why="its jobs wait for ever",
                mend=_selecting(queue.metadata.name, namespace, selector),
            )


def _selecting(queue: str, namespace: str, selector: LabelSelector | None) -> str:
    if selector is not None and selector.match_labels and not selector.match_expressions:
        labels = " ".join(f"{key}={value}" for key, value in sorted(selector.match_labels.items()))
        return f"kubectl label namespace {namespace} {labels}"
    return f"""kubectl patch clusterqueue {queue} --type merge -p '{{"spec": {{"namespaceSelector": {{}}}}}}'   # takes all"""


@check(
    "members",
    "member-without-pool",
    fine="every member of the policy's pools is there",
    needs=("clusterqueues", "cohorts"),
)
def _members(survey: Survey) -> Iterator[Finding]:
    there = sorted(survey.pools())
    for pool in survey.policy.pools:
        for cluster, _, name in (member.partition("/") for member in pool.members):
            if cluster == survey.cluster and name not in there:
                meant = get_close_matches(name, there, 1) or there or ["POOL"]
                known = f"its pools are {listed(there)}" if there else "it has no ClusterQueue"
                yield warning(
                    f"Pool/{pool.name}",
                    f"its member {cluster}/{name} is not there: this cluster has no Cohort or lone ClusterQueue {name}; {known}",
                    why="a member that is not there adds nothing; a name in the policy may be misspelt",
                    mend=f"pools:\n  - {{name: {pool.name}, members: [{cluster}/{meant[0]}]}}   "
                    "# in the policy; then: fairlead policy apply FILE",
                )


@check(
    "aging",
    "small-parts",
    fine="waiting counts nothing: shares alone decide",
    needs=("clusterqueues", "cohorts"),
)
def _aging(survey: Survey) -> Iterator[Finding]:
    rulebook = Rulebook(survey.policy, 0)
    for pool in survey.pools():
        named = rulebook.pool_of(survey.cluster, pool)
        worth, *small = aging_by_tenant(survey.policy, named, pool_quota(survey, pool)) or [""]
        if worth:
            yield fine("aging", worth)
        for what in small:
            yield info(
                survey.pool_subject(pool),
                what,
                why=aging_in_words(survey.policy),
                mend="aging: {entitlement_per_day: N}   # in the policy; then: fairlead policy apply FILE",
            )
