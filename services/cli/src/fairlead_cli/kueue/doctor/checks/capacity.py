"""Quotas against what the nodes have."""

from collections.abc import Iterator

from fairlead_cli.findings import Finding, info, warning
from fairlead_cli.kueue.doctor.check import Check
from fairlead_cli.kueue.doctor.making import makers
from fairlead_cli.kueue.doctor.survey import Survey, usable_nodes
from fairlead_contracts.base.quantities import format_quantity
from fairlead_kube import ResourceFlavor, ResourceGroup, in_base_units

_NOT_OF_NODES = ("pods",)
"""Quota of pods bounds their number; nodes bound it by other means, too."""


def quotas(survey: Survey) -> dict[tuple[str, str], int]:
    """Nominal quota by flavor and resource, over all queues and cohorts, in base units."""
    several = [
        *(queue.spec.resource_groups for queue in survey.cluster_queues),
        *(cohort.spec.resource_groups for cohort in survey.cohorts),
    ]
    groups: list[ResourceGroup] = [group for one in several for group in one or ()]
    total: dict[tuple[str, str], int] = {}
    for flavor in (flavor for group in groups for flavor in group.flavors or ()):
        for quota in flavor.resources or ():
            key = flavor.name, quota.name
            total[key] = total.get(key, 0) + in_base_units(quota.name, quota.nominal_quota)
    return total


def _capacity(survey: Survey, flavor: ResourceFlavor, resource: str) -> int:
    return sum(
        in_base_units(resource, (node.status.allocatable or {}).get(resource, 0))
        for node in usable_nodes(flavor, survey.nodes)
    )


def _quotas(survey: Survey) -> Iterator[Finding]:
    flavors = {flavor.metadata.name: flavor for flavor in survey.flavors}
    for (name, resource), quota in sorted(quotas(survey).items()):
        flavor = flavors.get(name)
        if flavor is None or resource in _NOT_OF_NODES:
            continue
        has = _capacity(survey, flavor, resource)
        # A flavor without any node is another finding.
        if quota > has and usable_nodes(flavor, survey.nodes):
            yield _above(survey, flavor, resource, quota, has)


def _above(survey: Survey, flavor: ResourceFlavor, resource: str, quota: int, has: int) -> Finding:
    say = info if makers(flavor, survey.node_pools) else warning
    return say(
        "quota-above-capacity",
        f"ResourceFlavor/{flavor.metadata.name}",
        f"{resource}: quota {format_quantity(resource, quota)}, and its nodes have "
        f"{format_quantity(resource, has)} allocatable",
        why="a NodePool can make more nodes; until it does, admitted pods wait"
        if say is info
        else "Kueue admits more than can run: the pods above wait and hold quota, and shares are reckoned of a pool "
        "that is not there",
        mend=f"kubectl edit clusterqueue   # nominalQuota of {resource} in flavor {flavor.metadata.name}: "
        f"{format_quantity(resource, has)} in all",
    )


CHECKS = (
    Check(
        topic="capacity",
        names=("quota-above-capacity",),
        look=_quotas,
        fine="no quota is above what the nodes have",
        needs=("resourceflavors", "clusterqueues", "cohorts", "nodes", "nodepools"),
    ),
)
