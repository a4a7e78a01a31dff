"""ClusterQueues: whom a level could preempt, what goes before priority, what blocks."""

from collections.abc import Iterator, Sequence

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, error, info, warning
from fairlead_cli.kueue.doctor.checks.lever import lever_of
from fairlead_cli.kueue.doctor.checks.reserving import reserved_pools
from fairlead_cli.kueue.doctor.survey import Survey, check, quotas_of
from fairlead_contracts.frontend.marks import BASE_PRIORITY
from fairlead_contracts.frontend.shipped import KUEUE, KUEUE_BLOCKING
from fairlead_kube.kinds.objects import holds
from fairlead_kube.kinds.queues import ClusterQueue
from fairlead_kube.kinds.workloads import MULTIKUEUE_ORIGIN, PRIORITY_BOOST
from fairlead_policy.rules.rulebook import Rulebook

AFS = "UsageBasedAdmissionFairSharing"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
_COPIED = (
    "levels go into spec.priority. Where that of a copy is not its original's, Kueue deletes the copy, and a job that runs "
    "by it ends"
)
_SAFE_VALUES = {
    "withinClusterQueue": '"withinClusterQueue":"Never"',
    "reclaimWithinCohort": '"reclaimWithinCohort":"Any"',
    "borrowWithinCohort": '"borrowWithinCohort":{"policy":"Never"}',
}


def _subject(queue: ClusterQueue) -> str:
    return f"ClusterQueue/{queue.metadata.name}"


def _patch(queue: ClusterQueue, spec: str) -> str:
    return f"kubectl patch clusterqueue {queue.metadata.name} --type merge -p '{{\"spec\":{spec}}}'"


@check(
    "preemption",
    "preempting-queue",
    fine="no level can stop a running job",
    needs=("clusterqueues", "cohorts"),
)
def _preemption(survey: Survey) -> Iterator[Finding]:
    for pool, queues in named_pools(survey):
        left = _levels_left(survey, {queue.metadata.name for queue in queues})
        for queue in queues:
            if found := _preempting_settings(queue):
                yield _preempting(survey, pool, queue, found, left)


def preempting_pools(survey: Survey) -> list[str]:
    """The pools in which the policy has nothing written, because a queue of theirs preempts; as `fairlead queue` calls them."""
    if survey.policy.preemption != "never":
        return []
    return sorted(pool for pool, queues in named_pools(survey) if any(map(_preempting_settings, queues)))


def named_pools(survey: Survey) -> Iterator[tuple[str, Sequence[ClusterQueue]]]:
    """The pools by the names that `fairlead queue` has for them, each with its queues."""
    rulebook = Rulebook(survey.policy, 0)
    for stated, queues in survey.pools().items():
        yield rulebook.pool_of(survey.cluster, stated), queues


def _preempting_settings(queue: ClusterQueue) -> dict[str, str]:
    return KUEUE.preempting(queue.spec.preemption.settings())


def _levels_left(survey: Survey, queues: set[str]) -> int:
    """The number of Workloads that wait in these ClusterQueues and carry a level."""
    entries = survey.entries
    return sum(
        entries.get((workload.metadata.namespace, workload.spec.queue_name)) in queues
        and not workload.holds("QuotaReserved")
        and any(workload.metadata.annotation(mark) for mark in (PRIORITY_BOOST, BASE_PRIORITY))
        for workload in survey.workloads
    )


def _preempting(survey: Survey, pool: str, queue: ClusterQueue, found: dict[str, str], left: int) -> Finding:
    what = ", ".join(f"{name}: {value}" for name, value in found.items())
    if survey.policy.preemption != "never":
        word = survey.policy.preemption
        return info(
            _subject(queue),
            what,
            why=f"levels can preempt here; the policy says `{word}`",
        )
    safe = ",".join(_SAFE_VALUES[name] for name in found if name in _SAFE_VALUES)
    return warning(
        _subject(queue),
        what,
        why=f"Kueue queues and preempts by one number: a level could stop a running job. So nothing is written in "
        f"pool {pool} (`preemption: never`), and levels that stand there are taken away: Kueue's own order counts. "
        + (f"{counted(left, 'level')} still stand there" if left else "None stands there"),
        mend=_patch(queue, f'{{"preemption":{{{safe}}}}}')
        + "\n# or in the policy: `preemption: protect` (what was just admitted is lifted), or `accept` (they are counted)",
    )


@check(
    "sharing",
    "fair-sharing",
    "admission-fair-sharing",
    fine="neither FairSharing nor AdmissionFairSharing goes before priority",
    needs=("clusterqueues",),
)
def _sharing(survey: Survey) -> Iterator[Finding]:
    for queue in survey.cluster_queues:
        scope = queue.spec.admission_scope
        if scope is not None and scope.admission_mode == AFS:
            yield warning(
                _subject(queue),
                f"admissionMode: {AFS}",
                why="the use of LocalQueues goes before priority: levels only order the jobs of one LocalQueue",
                mend=_patch(queue, '{"admissionScope":null}'),
                name="admission-fair-sharing",
            )
    shared = [queue for queue in survey.cluster_queues if queue.status.fair_sharing is not None]
    if survey.kueue.fair_sharing or shared:
        names = listed(queue.metadata.name for queue in shared)
        yield warning(
            "ConfigMap/kueue-system/kueue-manager-config",
            "fairSharing is on" + (f" (queues {names} state a share)" if shared else ""),
            why="between ClusterQueues Kueue's own share goes before priority: levels are a tie-break there, exact "
            "only within one ClusterQueue",
            mend="take `fairSharing:` out of the configuration and restart Kueue, or give all tenants LocalQueues of "
            "one ClusterQueue",
            name="fair-sharing",
        )


@check(
    "quota",
    "own-quota",
    "nested-cohorts",
    fine="no quota goes before the order: one ClusterQueue a pool, or all quota on its Cohort and no other in it",
    needs=("clusterqueues", "cohorts"),
)
def _between_queues(survey: Survey) -> Iterator[Finding]:
    yield from _own_quota(survey)
    yield from _nested(survey)


def _nested(survey: Survey) -> Iterator[Finding]:
    for pool, queues in survey.pools().items():
        nested = sorted({queue.spec.parent for queue in queues} - {pool, ""})
        if len(queues) > 1 and nested:
            yield info(
                f"Cohort/{pool}",
                f"its {len(queues)} ClusterQueues stand in nested cohorts: {listed(nested)}",
                why="each cohort has a turn of its own, whatever the levels: the order is exact within a queue, and a "
                "tie-break between them",
                mend=f"let the ClusterQueues name {pool} itself, or give the tenants LocalQueues of one ClusterQueue",
                name="nested-cohorts",
            )


def _own_quota(survey: Survey) -> Iterator[Finding]:
    for pool, queues in survey.pools().items():
        owners = [
            queue.metadata.name
            for queue in queues
            if any(amount for *_, amount in quotas_of(queue.spec.resource_groups))
        ]
        if len(queues) > 1 and owners:
            yield info(
                f"Cohort/{pool}",
                f"of its {len(queues)} ClusterQueues these have quota of their own: {listed(owners)}",
                why="a queue that does not borrow goes before one that does, whatever the levels: the order is exact "
                "within a queue, and a tie-break between them",
                mend="put the quota on the Cohort and 0 into its ClusterQueues, or give the tenants LocalQueues of "
                "one ClusterQueue",
                name="own-quota",
            )


@check(
    "strategy",
    "strict-fifo",
    fine="all ClusterQueues are BestEffortFIFO, or reserved",
    needs=("clusterqueues",),
)
def _strategy(survey: Survey) -> Iterator[Finding]:
    reserved = {queue.metadata.name for queues in reserved_pools(survey).values() for queue in queues}
    for queue in survey.cluster_queues:
        if queue.spec.queueing_strategy == KUEUE_BLOCKING and queue.metadata.name not in reserved:
            yield warning(
                _subject(queue),
                f"queueingStrategy: {KUEUE_BLOCKING}",
                why="a job that does not fit holds up all behind it, and also what others could borrow",
                mend=_patch(queue, '{"queueingStrategy":"BestEffortFIFO"}')
                + "\n# or `mode: reserve` for its pool in the policy: small jobs then pass where they delay nobody",
            )


@check(
    "activity",
    "queue-stopped",
    "queue-inactive",
    fine="all ClusterQueues are active, and no LocalQueue is on hold",
    needs=("clusterqueues", "localqueues"),
)
def _activity(survey: Survey) -> Iterator[Finding]:
    yield from _on_hold(survey)
    for queue in survey.cluster_queues:
        if queue.spec.stopped:
            yield info(
                _subject(queue),
                f"stopPolicy: {queue.spec.stop_policy}",
                why="it admits nothing, so its jobs have no position in the order",
                mend=_patch(queue, '{"stopPolicy":"None"}'),
                name="queue-stopped",
            )
        elif not queue.active:
            yield warning(
                _subject(queue),
                queue.why_inactive
                or "Kueue does not say why: it did not look at it yet, or a Cohort is above itself",
                why="it admits nothing, so its jobs have no position in the order",
                mend=f"kubectl describe clusterqueue {queue.metadata.name}",
                name="queue-inactive",
            )


def _on_hold(survey: Survey) -> Iterator[Finding]:
    for entry in survey.local_queues:
        if entry.spec.stopped:
            namespace, name = entry.metadata.namespace, entry.metadata.name
            yield info(
                f"LocalQueue/{namespace}/{name}",
                f"stopPolicy: {entry.spec.stop_policy}",
                why="nothing is admitted through it, so its jobs have no position in the order",
                mend=f"""kubectl -n {namespace} patch localqueue {name} --type merge -p '{{"spec":{{"stopPolicy":"None"}}}}'""",
                name="queue-stopped",
            )


def _checks_of(queue: ClusterQueue) -> set[str]:
    """The AdmissionChecks that a queue names, in either place."""
    strategy = queue.spec.admission_checks_strategy
    named = {rule.name for rule in (strategy.admission_checks if strategy is not None else None) or ()}
    return named | set(queue.spec.admission_checks or ())


@check(
    "gang-fit",
    "gang-fit-unanswered",
    fine="no queue is known to name the check of gangs without a checker that answers it",
    needs=("clusterqueues", "admissionchecks"),
)
def _gang_fit(survey: Survey) -> Iterator[Finding]:
    """Finds queues whose check of gangs no checker answers. A claimed check stays claimed: that its checker is gone shows on NATS alone."""
    ours = set(survey.gang_checks)
    claimed = {
        check.metadata.name for check in survey.admission_checks if holds(check.status.conditions, "Active")
    }
    if survey.checker_leads:
        return
    for queue in survey.cluster_queues:
        named = ours & _checks_of(queue)
        if silent := sorted(named if survey.checker_leads is False else named - claimed):
            yield warning(
                _subject(queue),
                f"it names the check {listed(silent)}, and no checker answers for {survey.cluster}",
                why="a job that Kueue lets in holds its quota, and starts nothing while the check is `Pending`",
                mend=f"python -m fairlead_checker --cluster {survey.cluster} --nats-url ADDRESS"
                "\n# on a laptop `fairlead up --kubeconfig FILE --gang-fit`; or take the check off the queue",
            )


@check(
    "multikueue",
    "multikueue",
    "multikueue-copies",
    fine="no Workloads are sent to other clusters, or come from one",
    needs=("clusterqueues", "admissionchecks", "workloads"),
)
def _multikueue(survey: Survey) -> Iterator[Finding]:
    """Finds queues that send Workloads away, and Workloads that were sent here: by spec.priority both would be made anew."""
    by_boost = lever_of(survey) == "boost"
    checks = {
        check.metadata.name for check in survey.admission_checks if check.spec.controller_name == MULTIKUEUE
    }
    for queue in survey.cluster_queues:
        if found := sorted(checks & _checks_of(queue)):
            yield (info if by_boost else error)(
                _subject(queue),
                f"admission check {listed(found)} sends its Workloads to other clusters (MultiKueue)",
                why="the order says which is sent next; in which order those clusters start them is theirs. Each holds quota "
                "here and there: one pool of both would count it twice"
                if by_boost
                else f"{_COPIED}; so it does when a level is taken away",
                mend=f"steer the worker clusters, too; keep them out of a pool with {queue.metadata.name}"
                if by_boost
                else "turn the gate PriorityBoost on: a boost is not copied. Or take the check off this queue",
            )
    copies = [one.metadata for one in survey.workloads if one.metadata.label(MULTIKUEUE_ORIGIN) is not None]
    if copies and not by_boost:
        yield error(
            f"Workload/{copies[0].namespace}/{copies[0].name}",
            f"{counted(len(copies), 'Workload')} came from another cluster (MultiKueue)",
            why=f"{_COPIED}. So they get no level",
            mend="turn the gate PriorityBoost on: a boost is not compared",
            name="multikueue-copies",
        )
