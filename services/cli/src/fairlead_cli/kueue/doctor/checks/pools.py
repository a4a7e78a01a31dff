"""The policy's pools against those of the cluster: members that are not there, and what a day of waiting is worth."""

from collections.abc import Iterator
from difflib import get_close_matches

from fairlead_cli.client.phrases import listed
from fairlead_cli.findings import Finding, Severity, info, warning
from fairlead_cli.kueue.doctor.checks.capacity import pool_quota
from fairlead_cli.kueue.doctor.survey import Survey, check
from fairlead_policy.explain.aging_text import aging_in_words, worth_in_words
from fairlead_policy.rules.rulebook import Rulebook


@check(
    "members",
    "member-without-pool",
    fine="every member of the policy's pools is there",
    needs=("clusterqueues", "cohorts"),
)
def _absent(survey: Survey) -> Iterator[Finding]:
    there = sorted(survey.pools())
    for pool in survey.policy.pools:
        for cluster, _, name in (member.partition("/") for member in pool.members):
            if cluster == survey.cluster and name not in there:
                meant = get_close_matches(name, there, 1) or there or ["POOL"]
                known = f"its pools are {listed(there)}" if there else "it has no ClusterQueue"
                yield warning(
                    "member-without-pool",
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
def _rate(survey: Survey) -> Iterator[Finding]:
    rulebook = Rulebook(survey.policy, 0)
    for pool in survey.pools():
        named = rulebook.pool_of(survey.cluster, pool)
        worth, *small = worth_in_words(survey.policy, named, pool_quota(survey, pool)) or [""]
        if worth:
            yield Finding(name="aging", severity=Severity.OK, subject="aging", what=worth)
        for what in small:
            yield info(
                "small-parts",
                survey.pool_subject(pool),
                what,
                why=aging_in_words(survey.policy),
                mend="aging: {entitlement_per_day: N}   # in the policy; then: fairlead policy apply FILE",
            )
