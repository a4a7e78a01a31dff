"""Flavors against nodes: labels that no node has, taints that the flavor's pods do not tolerate."""

from collections import Counter
from collections.abc import Iterator

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, info, warning
from fairlead_cli.kueue.doctor.node_pool_fit import makers
from fairlead_cli.kueue.doctor.survey import Survey, check, nodes_of, repels, usable_nodes
from fairlead_kube.kinds.core import Node
from fairlead_kube.kinds.queues import ResourceFlavor


def flavors_in_use(survey: Survey) -> dict[str, list[str]]:
    """The queues and cohorts that have quota of each flavor."""
    groups = [
        *((f"ClusterQueue/{one.metadata.name}", one.spec.resource_groups) for one in survey.cluster_queues),
        *((f"Cohort/{one.metadata.name}", one.spec.resource_groups) for one in survey.cohorts),
    ]
    found: dict[str, list[str]] = {}
    for subject, several in groups:
        for name in {flavor.name for group in several or () for flavor in group.flavors or ()}:
            found.setdefault(name, []).append(subject)
    return found


@check(
    "flavors",
    "flavor-missing",
    fine="every flavor that has quota is there",
    needs=("resourceflavors", "clusterqueues", "cohorts"),
)
def _missing(survey: Survey) -> Iterator[Finding]:
    known = {flavor.metadata.name for flavor in survey.flavors}
    for name, users in sorted(flavors_in_use(survey).items()):
        if name not in known:
            yield warning(
                users[0],
                f"it has quota of the flavor {name!r}, which is not there ({listed(users)})",
                why="Kueue keeps such a queue inactive: nothing in it is admitted",
                mend=f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {{name: {name}}}",
            )


@check(
    "labels",
    "flavor-without-nodes",
    fine="every flavor that has quota has nodes, or a NodePool that makes them",
    needs=("resourceflavors", "clusterqueues", "cohorts", "nodes", "nodepools"),
)
def _labels(survey: Survey) -> Iterator[Finding]:
    users = flavors_in_use(survey)
    for flavor in survey.flavors:
        name = flavor.metadata.name
        if name in users and not nodes_of(flavor, survey.nodes) and not makers(flavor, survey.node_pools):
            yield _nodeless(flavor, survey.nodes)


def _nodeless(flavor: ResourceFlavor, nodes: list[Node]) -> Finding:
    labels = flavor.spec.node_labels or {}
    absent = {
        key: value
        for key, value in labels.items()
        if all((node.metadata.labels or {}).get(key) != value for node in nodes)
    }
    close = "; ".join(_close(key, nodes) for key in absent or labels)
    wanted = ", ".join(f"{key}={value}" for key, value in (absent or labels).items())
    return warning(
        f"ResourceFlavor/{flavor.metadata.name}",
        f"no node has {'' if absent else 'all of '}{wanted or 'its labels'} ({close or 'there are no nodes'})",
        why="Kueue admits jobs into its quota all the same; their pods then wait for a node for ever, and hold the quota",
        mend=_relabel(flavor.metadata.name, labels, absent, nodes),
    )


def _close(key: str, nodes: list[Node]) -> str:
    values = Counter(value for node in nodes if (value := (node.metadata.labels or {}).get(key)) is not None)
    if not values:
        return f"no node has a label {key}"
    return f"{key} is " + listed(f"{value} on {counted(n, 'node')}" for value, n in values.most_common())


def _relabel(name: str, labels: dict[str, str], absent: dict[str, str], nodes: list[Node]) -> str:
    if not absent:
        return "kubectl label node NODE " + " ".join(f"{key}={value}" for key, value in labels.items())
    key, value = next(iter(absent.items()))
    values = sorted({found for node in nodes if (found := (node.metadata.labels or {}).get(key)) is not None})
    if not values:
        return f"kubectl label node NODE {key}={value}"
    return (
        f"kubectl patch resourceflavor {name} --type merge "
        f'-p \'{{"spec":{{"nodeLabels":{{"{key}":"{values[0]}"}}}}}}\'\n'
        f"# or: kubectl label node NODE {key}={value} --overwrite"
    )


@check(
    "taints",
    "flavor-taint",
    fine="every flavor tolerates the taints of its nodes",
    needs=("resourceflavors", "nodes"),
)
def _taints(survey: Survey) -> Iterator[Finding]:
    users = flavors_in_use(survey)
    for flavor in survey.flavors:
        matching = nodes_of(flavor, survey.nodes)
        usable = usable_nodes(flavor, survey.nodes)
        # A flavor without labels stands for all nodes: that some of them are kept for others is as it should be.
        partly = bool(flavor.spec.node_labels) and len(usable) < len(matching)
        if flavor.metadata.name in users and matching and (not usable or partly):
            yield _repelled(flavor, matching, usable)


def _repelled(flavor: ResourceFlavor, matching: list[Node], usable: list[Node]) -> Finding:
    taints = Counter(taint for node in matching for taint in repels(node, flavor.spec.tolerations or ()))
    if flavor.spec.node_taints:
        stated = set(map(str, flavor.spec.node_taints))
        taints = Counter({taint: n for taint, n in taints.items() if taint not in stated})
    first = next(iter(taints))
    key, _, effect = first.rpartition(":")
    key, _, value = key.partition("=")
    operator = f'"operator":"Equal","value":"{value}"' if value else '"operator":"Exists"'
    say = info if usable else warning
    return say(
        f"ResourceFlavor/{flavor.metadata.name}",
        f"{len(matching) - len(usable)} of its {counted(len(matching), 'node')} {'has' if len(matching) == 1 else 'have'} "
        f"{listed(taints)}, which it does not tolerate",
        why="pods that Kueue sends there must each tolerate it by themselves, or they wait for ever and hold the quota",
        mend=f"kubectl patch resourceflavor {flavor.metadata.name} --type merge -p "
        f'\'{{"spec":{{"tolerations":[{{"key":"{key}",{operator},"effect":"{effect}"}}]}}}}\'',
    )
