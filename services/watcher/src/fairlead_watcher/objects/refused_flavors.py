"""Flavors that do not take a Workload whatever quota is free, read from what Kueue says of it. Pure.

The words are those of Kueue 0.19, `pkg/scheduler/flavorassigner`. For each pod set it names the flavors that it looked
at, each with what is in the way: node labels, taints, a topology, more than the flavor can ever give. One reason alone
passes by itself: that quota is used up. So whatever else is said of a flavor, now or by a later Kueue, refuses.
"""

import re
from collections.abc import Mapping

_POD_SET = "couldn't assign flavors to pod set "
_NAMED = re.compile(
    r"(?P<used_up>insufficient unused quota for \S+ in )?"
    r"(?P<too_large>insufficient quota for \S+ in )?"
    r'[Ff]lavor "?(?P<name>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)'
)
_NODES = re.compile(r"Total nodes: (?P<all>\d+); excluded: (?P<why>.*)")
"""The end of a topology's sentence: why no node takes a pod. A node that is full counts under `resource`."""
_UNSUITED = re.compile(r'(?:nodeSelector|affinity|taint "[^"]*"): (\d+)')
ANY_FLAVOR = "*"
"""Stands for the only flavor of a queue: a topology's sentence does not name its flavor."""

type RefusedFlavors = tuple[frozenset[str], ...]
"""The flavors that refuse a pod set, one entry for each pod set."""


def refused_flavors(message: str, *, partly: bool = False) -> RefusedFlavors:
    """The flavors that a message says refuse a pod set; empty for pod sets of which it names none.

    Args:
        message: Kueue's message.
        partly: whether Kueue may start fewer pods than the Workload has: that all are too many is no refusal then.
    """
    found = (_refusing(part, partly=partly) for part in message.split(_POD_SET)[1:])
    return tuple(flavors for flavors in found if flavors)


def _refusing(part: str, *, partly: bool) -> frozenset[str]:
    named = list(_NAMED.finditer(part))
    passing = {one["name"] for one in named if one["used_up"] or (partly and one["too_large"])}
    refusing = {one["name"] for one in named} - passing
    nodes = _NODES.search(part)
    if (
        nodes is not None
        and not passing
        and int(nodes["all"]) == sum(map(int, _UNSUITED.findall(nodes["why"])))
    ):
        refusing.add(ANY_FLAVOR)
    return frozenset(refusing)


def has_no_flavor(
    refused: RefusedFlavors, demand: Mapping[str, int], givers: Mapping[str, frozenset[str]]
) -> bool:
    """Whether some pod set is refused by every flavor that gives one of its resources.

    Kueue may begin with a later flavor than the first, and then says nothing of those before it. So a job counts as
    one without a flavor only where all of them are named.

    Args:
        refused: the refused flavors, as the frontend said.
        demand: the job's demand.
        givers: the flavors of its queue, by resource that they give.
    """
    of_demand = [givers[resource] for resource in demand if givers.get(resource)]
    return any(
        flavors <= one or (ANY_FLAVOR in one and len(flavors) == 1)
        for flavors in of_demand
        for one in refused
    )
