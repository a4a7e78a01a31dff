"""Karpenter: NodePools that cannot make what a flavor asks for."""

import json
from collections.abc import Iterator

from fairlead_cli.client.phrases import listed
from fairlead_cli.findings import Finding, info, warning
from fairlead_cli.kueue.doctor.checks.capacity import quotas
from fairlead_cli.kueue.doctor.checks.flavors import flavors_in_use
from fairlead_cli.kueue.doctor.node_pool_fit import Misfit, makers, misfits
from fairlead_cli.kueue.doctor.survey import Survey, check, repelling, usable_nodes
from fairlead_contracts.base.quantities import format_quantity
from fairlead_contracts.frontend.observed import Taint
from fairlead_kube.kinds.core import NodePool
from fairlead_kube.kinds.quantities import readable_amounts
from fairlead_kube.kinds.queues import ResourceFlavor

_NEEDS = ("nodepools", "resourceflavors", "clusterqueues", "cohorts")


@check(
    "nodepools",
    "nodepool-cannot-make",
    fine="every flavor with labels can be made by a NodePool, or there are none",
    needs=_NEEDS,
)
def _pools(survey: Survey) -> Iterator[Finding]:
    if not survey.node_pools:
        return
    users = flavors_in_use(survey)
    for flavor in survey.flavors:
        if (
            flavor.metadata.name in users
            and flavor.spec.node_labels
            and not makers(flavor, survey.node_pools)
        ):
            yield _unmakable(survey, flavor)


def _unmakable(survey: Survey, flavor: ResourceFlavor) -> Finding:
    found = [(pool, misfits(flavor, pool)) for pool in survey.node_pools]
    # The nearest pool is the one to change.
    pool, wrong = min(found, key=lambda pair: (len(pair[1]), pair[0].metadata.name))
    reasons = listed(f"{pool.metadata.name}: {'; '.join(one.why for one in wrong)}" for pool, wrong in found)
    labels = ", ".join(f"{one.key}={one.value}" for one in wrong)
    standing = len(usable_nodes(flavor, survey.nodes))
    say = info if standing else warning
    return say(
        f"ResourceFlavor/{flavor.metadata.name}",
        f"no NodePool can make a node with {labels} ({reasons})",
        why=f"only the {standing} nodes that stand now can run its jobs"
        if standing
        else "its pods ask for nodes that nobody can make: they wait for ever and hold the quota",
        mend=_requirement(pool, wrong),
    )


def _requirement(pool: NodePool, wrong: list[Misfit]) -> str:
    requirements = [
        {"key": one.key, "operator": "In", "values": sorted({*one.allowed, one.value})} for one in wrong
    ]
    lines = "\n".join(f"      - {json.dumps(one)}" for one in requirements)
    return (
        f"# kubectl edit nodepool {pool.metadata.name}: where its NodeClass and zones allow it\n"
        f"spec:\n  template:\n    spec:\n      requirements:\n{lines}\n"
        "# a label that only a device plugin sets after the node is there cannot be asked for: put another one into the "
        "flavor's nodeLabels"
    )


@check(
    "nodepool taints",
    "nodepool-taint",
    fine="flavors tolerate what NodePools put on their nodes",
    needs=_NEEDS,
)
def _taints(survey: Survey) -> Iterator[Finding]:
    users = flavors_in_use(survey)
    for flavor in survey.flavors:
        able = makers(flavor, survey.node_pools) if flavor.spec.node_labels else []
        closed = [(pool, taints) for pool in able if (taints := _closing(flavor, pool))]
        if flavor.metadata.name in users and able and len(closed) == len(able):
            pool, taints = closed[0]
            yield warning(
                f"NodePool/{pool.metadata.name}",
                f"its nodes have {listed(map(str, taints))}, which flavor {flavor.metadata.name} does not tolerate",
                why="Karpenter makes no node for pods that do not tolerate its taints",
                mend=f"kubectl patch resourceflavor {flavor.metadata.name} --type merge -p '"
                + json.dumps({"spec": {"tolerations": [_toleration(taint) for taint in taints]}})
                + "'",
            )


def _closing(flavor: ResourceFlavor, pool: NodePool) -> list[Taint]:
    found = repelling(pool.spec.template.spec.taints, flavor.spec.tolerations)
    return [taint for taint in found if taint not in (flavor.spec.node_taints or ())]


def _toleration(taint: Taint) -> dict[str, str]:
    if taint.value:
        return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
    return {"key": taint.key, "operator": "Exists", "effect": taint.effect}


@check("nodepool limits", "nodepool-limit", fine="no quota is above what NodePools may make", needs=_NEEDS)
def _limits(survey: Survey) -> Iterator[Finding]:
    flavors = {flavor.metadata.name: flavor for flavor in survey.flavors if flavor.spec.node_labels}
    for (name, resource), quota in sorted(quotas(survey).items()):
        able = makers(flavors[name], survey.node_pools) if name in flavors else []
        most = _most(able, resource)
        if able and most is not None and quota > most:
            limits = json.dumps({"spec": {"limits": {resource: format_quantity(resource, quota)}}})
            yield warning(
                f"NodePool/{able[0].metadata.name}",
                f"{resource}: limits {format_quantity(resource, most)}, and flavor {name} has quota "
                f"{format_quantity(resource, quota)}",
                why="Karpenter stops at its limit: pods above it wait and hold quota",
                mend=f"kubectl patch nodepool {able[0].metadata.name} --type merge -p '{limits}'",
            )


def _most(pools: list[NodePool], resource: str) -> int | None:
    """The amount that the pools may make together; None where one of them has no limit, or one that cannot be read."""
    limits = [readable_amounts(pool.spec.limits or {}).get(resource) for pool in pools]
    stated = [limit for limit in limits if limit is not None]
    return sum(stated) if len(stated) == len(limits) else None
