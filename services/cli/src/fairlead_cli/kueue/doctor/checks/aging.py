"""The rate of aging against the pools of the cluster: what a day of waiting is worth there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairlead_cli.findings import Finding, Severity, info
from fairlead_cli.kueue.doctor.check import Check
from fairlead_cli.kueue.doctor.survey import Survey
from fairlead_kube.quantities import in_base_units
from fairlead_kube.queues import ClusterQueue, ResourceGroup
from fairlead_policy.explain.aging_text import aging_in_words, worth_in_words
from fairlead_policy.rules.rulebook import Rulebook


def _rate(survey: Survey) -> Iterator[Finding]:
    rulebook = Rulebook(survey.policy, 0)
    for pool, queues in survey.pools().items():
        named = rulebook.pool_of(survey.cluster, pool)
        worth, *small = worth_in_words(survey.policy, named, pool_quota(survey, pool, queues)) or [""]
        subject = f"ClusterQueue/{queues[0].metadata.name}" if len(queues) == 1 else f"Cohort/{pool}"
        if worth:
            yield Finding(name="aging", severity=Severity.OK, subject="aging", what=worth)
        for what in small:
            yield info(
                "small-parts",
                subject,
                what,
                why=aging_in_words(survey.policy),
                mend="aging: {entitlement_per_day: N}   # in the policy; then: fairlead policy apply FILE",
            )


def pool_quota(survey: Survey, pool: str, queues: Sequence[ClusterQueue]) -> Counter[str]:
    """Nominal quota of a pool by resource, over its queues and cohorts, in base units."""
    above = {cohort.metadata.name: cohort.spec.above for cohort in survey.cohorts}
    groups: list[ResourceGroup] = [group for queue in queues for group in queue.spec.resource_groups or ()]
    for cohort in survey.cohorts:
        if pool in _way_up(cohort.metadata.name, above):
            groups += cohort.spec.resource_groups or ()
    return _sum(groups)


def _way_up(name: str | None, above: Mapping[str, str | None]) -> Iterator[str]:
    seen = set[str]()
    while name and name not in seen:
        seen.add(name)
        yield name
        name = above.get(name)


def _sum(groups: Iterable[ResourceGroup]) -> Counter[str]:
    found: Counter[str] = Counter()
    for flavor in (flavor for group in groups for flavor in group.flavors or ()):
        for quota in flavor.resources or ():
            found[quota.name] += in_base_units(quota.name, quota.nominal_quota)
    return found


CHECKS = (
    Check(
        topic="aging",
        names=("small-parts",),
        look=_rate,
        fine="waiting counts nothing: shares alone decide",
        needs=("clusterqueues", "cohorts"),
    ),
)
