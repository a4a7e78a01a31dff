"""Flavors that do not take a Workload whatever quota is free, read from what Kueue says of it. Pure.

The words are those of Kueue 0.19, `pkg/scheduler/flavorassigner`. For each pod set it names the flavors that it looked
at, each with what is in the way: node labels, taints, a topology, more than the flavor can ever give. That quota is used
up passes by itself; whatever else is said of a flavor, now or by a later Kueue, refuses.

What Kueue said may be old, as it says nothing again before it tries a job of the shape anew (see `shape_verdicts`). So that
a job asks for more than a flavor can give is held against the quota of now. That no node is suited is no refusal of a
flavor, as nodes come and go: the job is still tried in its turn.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from fairlead_contracts.base.errors import FieldError
from fairlead_kube.kinds.quantities import in_base_units

_POD_SET = "couldn't assign flavors to pod set "
_FLAVOR = r'[Ff]lavor "?(?P<name>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)'
_NAMED = re.compile(
    r"(?:insufficient (?P<unused>unused )?quota for (?P<resource>\S+) in )?"
    + _FLAVOR
    + r"(?:, previously considered podsets requests \((?P<before>[^)]*)\) \+ current podset request \((?P<asked>[^)]*)\))?"
)
_NODES = re.compile(r"Total nodes: (?P<all>\d+); excluded: (?P<why>.*)")
"""The end of a topology's sentence: why no node takes a pod. A node that is full counts under `resource`."""
_UNSUITED = re.compile(r'(?:nodeSelector|affinity|taint "[^"]*"): (\d+)')


class TooLarge(NamedTuple):
    """A flavor that can never give a pod set what it asks for."""

    flavor: str
    resource: str
    asked: int
    """Base units."""


class PodSetRefusal(NamedTuple):
    """The refusal of a pod set."""

    flavors: frozenset[str] = frozenset()
    """Flavors that refuse it for another reason than their quota."""
    too_large: frozenset[TooLarge] = frozenset()
    no_node: bool = False
    """Whether no node of its topology takes a pod, however empty."""

    def is_by_all(self, demand: Mapping[str, int], givers: Mapping[str, Mapping[str, int]]) -> bool:
        """Whether every flavor that gives one of its resources refuses it; see `has_no_flavor`."""
        refusing = self.flavors | {
            one.flavor
            for one in self.too_large
            if one.asked > givers.get(one.resource, {}).get(one.flavor, 0)
        }
        return any(givers[resource].keys() <= refusing for resource in demand if givers.get(resource))


type RefusedFlavors = tuple[PodSetRefusal, ...]
"""The refusals, one for each pod set that is refused."""


def is_verdict(message: str) -> bool:
    """Whether a message tells what Kueue found when it looked for flavors."""
    return _POD_SET in message


def refused_flavors(message: str, *, partly: bool = False) -> RefusedFlavors:
    """The refusals that a message tells; none of pod sets of which it names no flavor that refuses.

    Args:
        partly: whether Kueue may start fewer pods than the Workload has: that all are too many is no refusal then.
    """
    found = (_refusal(part, partly=partly) for part in message.split(_POD_SET)[1:])
    return tuple(one for one in found if one != PodSetRefusal())


def _refusal(part: str, *, partly: bool) -> PodSetRefusal:
    of_quota = [one for one in _NAMED.finditer(part) if one["resource"]]
    flavors = {one["name"] for one in _NAMED.finditer(part)} - {one["name"] for one in of_quota}
    nodes = _NODES.search(part)
    no_node = nodes is not None and int(nodes["all"]) == sum(map(int, _UNSUITED.findall(nodes["why"])))
    too_large = [] if partly else [_too_large(one) for one in of_quota if not one["unused"]]
    return PodSetRefusal(
        frozenset(flavors), frozenset(one for one in too_large if one is not None), no_node and not of_quota
    )


def _too_large(named: re.Match[str]) -> TooLarge | None:
    """More than the flavor can give; None where other pod sets of the job have a part in it: they may get another flavor."""
    if named["before"] != "0":
        return None
    try:
        return TooLarge(named["name"], named["resource"], in_base_units(named["resource"], named["asked"]))
    except FieldError:
        return None


def refused_by_all_pods(refused: RefusedFlavors, pod_sets: int) -> frozenset[str]:
    """The flavors that refuse each of so many pod sets: of a single one all that are named."""
    return (
        frozenset.intersection(*(one.flavors for one in refused)) if len(refused) == pod_sets else frozenset()
    )


def has_no_flavor(
    refused: RefusedFlavors, demand: Mapping[str, int], givers: Mapping[str, Mapping[str, int]]
) -> bool:
    """Whether some pod set is refused by every flavor that gives one of its resources.

    Kueue may begin with a later flavor than the first, and then says nothing of those before it. So a job counts as
    one without a flavor only where all of them are named.

    Args:
        givers: the most that its queue can have, by resource and flavor.
    """
    return any(one.is_by_all(demand, givers) for one in refused)
