"""Members of the policy's pools that are of this cluster, against the pools that it has."""

from collections.abc import Iterator
from difflib import get_close_matches

from fairlead_cli.findings import Finding, listed, warning
from fairlead_cli.kueue.doctor.check import Check
from fairlead_cli.kueue.doctor.survey import Survey


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


CHECKS = (
    Check(
        topic="members",
        names=("member-without-pool",),
        look=_absent,
        fine="every member of the policy's pools is there",
        needs=("clusterqueues", "cohorts"),
    ),
)
