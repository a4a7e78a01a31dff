"""Quotas against what the nodes have, and cards that HAMi registers on them."""

from collections import Counter
from collections.abc import Collection, Iterator

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, info, warning
from fairlead_cli.kueue.doctor.node_pool_fit import makers
from fairlead_cli.kueue.doctor.survey import Survey, check, quotas_of, usable_nodes
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import base_units, format_quantity
from fairlead_contracts.frontend.card_annotations import RegisterError, cards_of
from fairlead_contracts.frontend.cards import CARD_CORES, CARD_MEMORY, CARD_MEMORY_PERCENT, PER_VGPU, REGISTER
from fairlead_contracts.policyfile.document import Pool
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.quantities import in_base_units, readable_amounts
from fairlead_kube.kinds.queues import ResourceFlavor

_NOT_OF_NODES = ("pods",)
"""Resources whose quota is not held against the nodes, which bound the number of pods by other means, too."""


def quotas(survey: Survey, pools: Collection[str] | None = None) -> Counter[tuple[str, str]]:
    """Nominal quota by flavor and resource, over the queues and cohorts of these pools (None: all), in base units."""
    several = [
        *((survey.pool_of(queue), queue.spec.resource_groups) for queue in survey.cluster_queues),
        *((survey.root_of(one.metadata.name), one.spec.resource_groups) for one in survey.cohorts),
    ]
    total: Counter[tuple[str, str]] = Counter()
    for pool, groups in several:
        for flavor, resource, amount in quotas_of(groups) if pools is None or pool in pools else ():
            total[flavor, resource] += amount
    return total


def pool_quota(survey: Survey, pool: str) -> Counter[str]:
    """Nominal quota of a pool by resource, over its queues and cohorts, in base units."""
    total: Counter[str] = Counter()
    for (_, resource), amount in quotas(survey, [pool]).items():
        total[resource] += amount
    return total


def _capacity(survey: Survey, flavor: ResourceFlavor, resource: str) -> int:
    return sum(
        _allocatable_on(node, resource) + _on_cards(node).get(resource, 0) * base_units(resource)
        for node in usable_nodes(flavor, survey.nodes)
    )


def _on_cards(node: Node) -> dict[str, int]:
    """The resources that HAMi gives of a node's cards: it registers them by an annotation alone."""
    try:
        cards = cards_of(node.metadata.name, node.metadata.annotations or {})
    except RegisterError:
        return {}
    return {
        CARD_MEMORY: sum(card.memory for card in cards),
        CARD_MEMORY_PERCENT: 100 * len(cards),
        CARD_CORES: sum(card.cores for card in cards),
    }


@check(
    "amounts",
    "amount-unread",
    fine="every amount that quota is given of can be read",
    needs=("clusterqueues", "cohorts", "nodes"),
)
def _amounts(survey: Survey) -> Iterator[Finding]:
    for resource in sorted({resource for _, resource in quotas(survey)} - {*_NOT_OF_NODES}):
        for node in survey.nodes:
            try:
                in_base_units(resource, (node.status.allocatable or {}).get(resource, 0), field=resource)
            except FieldError as error:
                name = node.metadata.name
                yield warning(
                    f"Node/{name}",
                    f"what it has allocatable cannot be read: {error}",
                    why=f"there is quota of {resource}, and the node counts as if it had none: jobs may seem to fit nowhere",
                    mend=f"what stands there, and who wrote it: kubectl get node {name} -o yaml --show-managed-fields",
                )


@check(
    "capacity",
    "quota-above-capacity",
    fine="no quota is above what the nodes have",
    needs=("resourceflavors", "clusterqueues", "cohorts", "nodes", "nodepools"),
)
def _quotas(survey: Survey) -> Iterator[Finding]:
    flavors = {flavor.metadata.name: flavor for flavor in survey.flavors}
    for (name, resource), quota in sorted(quotas(survey).items()):
        flavor = flavors.get(name)
        if flavor is None or resource in _NOT_OF_NODES:
            continue
        has = _capacity(survey, flavor, resource)
        # A flavor without any node is another finding, and so are cards that cannot be read.
        usable = usable_nodes(flavor, survey.nodes)
        if quota > has and usable and not (resource in PER_VGPU and any(map(_refusal, usable))):
            yield _above(survey, flavor, resource, quota, has)


def _above(survey: Survey, flavor: ResourceFlavor, resource: str, quota: int, has: int) -> Finding:
    say = info if makers(flavor, survey.node_pools) else warning
    return say(
        f"ResourceFlavor/{flavor.metadata.name}",
        f"{resource}: quota {format_quantity(resource, quota)}, and its nodes have "
        f"{format_quantity(resource, has)} allocatable",
        why="a NodePool can make more nodes; until it does, admitted pods wait"
        if say is info
        else "Kueue admits more than can run: the pods above wait and hold quota, and shares count capacity "
        "that is not there",
        mend=f"kubectl edit clusterqueue   # nominalQuota of {resource} in flavor {flavor.metadata.name}: "
        f"{format_quantity(resource, has)} in all",
    )


@check(
    "hardware",
    "hardware-given-twice",
    fine="no shared hardware is given twice, as far as the other clusters state theirs",
    needs=("resourceflavors", "clusterqueues", "cohorts", "nodes"),
)
def _given_twice(survey: Survey) -> Iterator[Finding]:
    """Finds pools whose machines stand under two queueing systems: what both may give together, against what there is."""
    for pool in survey.policy.pools:
        here = {name for cluster, _, name in _members(pool) if cluster == survey.cluster}
        others = {(cluster, name) for cluster, _, name in _members(pool)}
        there = [state for state in survey.elsewhere if (state.cluster, state.name) in others]
        if pool.hardware != "shared" or not here or not there:
            continue
        quota = quotas(survey, here)
        for resource in sorted({name for _, name in quota}):
            flavors = {flavor for flavor, name in quota if name == resource}
            kueue = sum(amount for (_, name), amount in quota.items() if name == resource)
            slurm = sum(state.capacity.get(resource, 0) for state in there)
            has = _allocatable(survey, flavors, resource)
            if slurm and has and kueue + slurm > has and resource not in _NOT_OF_NODES:
                yield _twice(pool, resource, kueue, slurm, has)


def _members(pool: Pool) -> list[tuple[str, str, str]]:
    return [member.partition("/") for member in pool.members]


def _allocatable(survey: Survey, flavors: set[str], resource: str) -> int:
    """The amount of all nodes behind these flavors, each counted once."""
    behind = {
        node.metadata.name: node
        for flavor in survey.flavors
        if flavor.metadata.name in flavors
        for node in usable_nodes(flavor, survey.nodes)
    }
    return sum(_allocatable_on(node, resource) for node in behind.values())


def _allocatable_on(node: Node, resource: str) -> int:
    """The amount that the node has; none where it cannot be read."""
    stated = node.status.allocatable or {}
    return readable_amounts({resource: stated[resource]}).get(resource, 0) if resource in stated else 0


def _twice(pool: Pool, resource: str, quota: int, elsewhere: int, has: int) -> Finding:
    said = {
        name: format_quantity(resource, amount)
        for name, amount in (("quota", quota), ("other", elsewhere), ("has", has))
    }
    return warning(
        f"Pool/{pool.name}",
        f"{resource}: Kueue's quota gives {said['quota']}, the other clusters of the pool {said['other']}, "
        f"and the nodes have {said['has']}",
        why="the pool says that its clusters share their hardware. Kueue does not see what the others run there: "
        "it admits Workloads whose pods then wait and hold quota",
        mend=f"kubectl edit clusterqueue   # nominalQuota of {resource}: "
        f"{format_quantity(resource, max(has - elsewhere, 0))} in all; or take nodes from the other clusters",
    )


@check("cards", "cards-unread", fine="every register of cards can be read", needs=("nodes",))
def _registers(survey: Survey) -> Iterator[Finding]:
    refused = [(node.metadata.name, why) for node in survey.nodes if (why := _refusal(node))]
    if not refused:
        return
    first, why = refused[0]
    yield warning(
        f"Node/{first}",
        f"{counted(len(refused), 'node')} whose register of cards cannot be read: "
        f"{listed(name for name, _ in refused)}; {why}",
        why="HAMi alone may know which cards they have. The order counts none of them, and the gang check lets jobs through "
        "that ask for cards and for which it finds no room",
        mend=f"look at {REGISTER}: kubectl get node {first} -o yaml\n"
        "# HAMi's device plugin writes it anew twice a minute; a newer HAMi may need a newer Fairlead",
    )


def _refusal(node: Node) -> str:
    """The reason for which the node's register of cards cannot be read; empty where it can, or it has none."""
    try:
        cards_of(node.metadata.name, node.metadata.annotations or {})
    except RegisterError as error:
        return str(error)
    return ""
