"""Flavors that do not take a Workload whatever quota is free, read from what Kueue says of it. Pure.

The words are those of Kueue 0.19, `pkg/scheduler/flavorassigner`. It names a flavor whose node labels or taints do not
suit a pod set, and looks at quota only of the others.
"""

import re
from collections.abc import Mapping

_POD_SET = "couldn't assign flavors to pod set "
_UNSUITED = re.compile(
    r"flavor (?P<labelled>[a-z0-9.-]+) doesn't match node affinity"
    r"|untolerated taint [^,;]* in flavor (?P<tainted>[a-z0-9.-]+)"
)

type RefusedFlavors = tuple[frozenset[str], ...]
"""The flavors whose nodes do not suit a pod set, one entry for each pod set."""


def refused_flavors(message: str) -> RefusedFlavors:
    """The flavors that a message names as unsuited; empty for pod sets of which it names none."""
    parts = message.split(_POD_SET)[1:]
    found = (
        frozenset(one["labelled"] or one["tainted"] for one in _UNSUITED.finditer(part)) for part in parts
    )
    return tuple(flavors for flavors in found if flavors)


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
    return any(givers.get(resource) and givers[resource] <= one for resource in demand for one in refused)
