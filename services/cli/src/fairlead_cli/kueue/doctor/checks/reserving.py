"""Reserve mode: where the policy wants starts promised, can they be?"""

from collections import Counter
from collections.abc import Iterator, Sequence

from fairlead_cli.client.phrases import listed
from fairlead_cli.findings import Finding, info, warning
from fairlead_cli.kueue.doctor.survey import Survey, check, quotas_of
from fairlead_contracts.frontend.marks import WATCHDOG
from fairlead_contracts.frontend.shipped import KUEUE_BLOCKING
from fairlead_kube.kinds.queues import ClusterQueue
from fairlead_policy.reserve.easy import reserves
from fairlead_policy.rules.rulebook import Rulebook


def reserved_pools(survey: Survey) -> dict[str, list[ClusterQueue]]:
    """The pools in which the policy wants starts promised, with their ClusterQueues."""
    rulebook = Rulebook(survey.policy, 0)
    return {
        pool: queues
        for pool, queues in survey.pools().items()
        if reserves(survey.policy, rulebook.pool_of(survey.cluster, pool))
    }


@check(
    "reserve",
    "not-reservable",
    fine="starts can be promised wherever the policy wants it",
    needs=("clusterqueues", "cohorts"),
)
def _unreservable(survey: Survey) -> Iterator[Finding]:
    for pool, queues in reserved_pools(survey).items():
        for what, mend in _against(queues):
            yield warning(
                survey.pool_subject(pool),
                what,
                why="the policy wants starts promised here (`mode: reserve`), and none can be kept: the pool is "
                "steered as `advise`",
                mend=mend,
            )


def _against(queues: Sequence[ClusterQueue]) -> Iterator[tuple[str, str]]:
    """Obstacles to a promise, each with what mends it."""
    if len(queues) > 1:
        names = listed(queue.metadata.name for queue in queues)
        yield (
            f"{len(queues)} ClusterQueues on one quota: {names}",
            "give all tenants LocalQueues of one ClusterQueue, or set `mode: advise` for this pool in the policy",
        )
        return
    [queue] = queues
    if queue.spec.queueing_strategy != KUEUE_BLOCKING and queue.metadata.annotation(WATCHDOG) is None:
        patch = f'{{"spec":{{"queueingStrategy":"{KUEUE_BLOCKING}"}}}}'
        yield (
            f"queueingStrategy: {queue.spec.queueing_strategy}",
            f"kubectl patch clusterqueue {queue.metadata.name} --type merge -p '{patch}'",
        )
    flavors = Counter(resource for _, resource, _ in quotas_of(queue.spec.resource_groups))
    if several := sorted(name for name, count in flavors.items() if count > 1):
        yield (
            f"several flavors give {listed(several)}",
            "a ClusterQueue for each flavor: what fits the sum of two may fit none of them",
        )


@check("watchdog", "watchdog-acted", fine="no queue was let go of by the watchdog", needs=("clusterqueues",))
def _let_go(survey: Survey) -> Iterator[Finding]:
    for queue in survey.cluster_queues:
        noted = queue.metadata.annotation(WATCHDOG)
        if noted is not None:
            yield info(
                f"ClusterQueue/{queue.metadata.name}",
                f"{queue.spec.queueing_strategy}; {noted}",
                why="the watchdog found no admitter that leads, and lets small jobs pass until one does",
                mend="look after Fairlead's admitter; or, without a watchdog, set queueingStrategy: StrictFIFO and take "
                f"the annotation {WATCHDOG} off",
            )
