"""The question itself: all pods of a gang on nodes, or why not."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from fairlead_contracts.base.errors import FieldError
from fairlead_policy.fit.card_table import CardTable
from fairlead_policy.fit.diagnosis import reasons_of
from fairlead_policy.fit.filling import fillings
from fairlead_policy.fit.node_table import ZoneNodes
from fairlead_policy.fit.packing import Budget
from fairlead_policy.fit.results import PlacedPod, Placement, Unfit
from fairlead_policy.fit.search import search
from fairlead_policy.fit.shapes import FitNode, Gang
from fairlead_policy.fit.unschedulable import NoNodes, NoZoneHoldsAll, UnschedulableReason
from fairlead_policy.fit.verify import holds
from fairlead_policy.hami.annotations import CardStrategy

SEARCH_STEPS = 10_000
"""Steps of search for one question, some 10 µs each; spent only where the heuristics found nothing."""

_ZONES = 32
"""Zones that hold the gang after which no further one is looked at."""


def place(
    gang: Gang,
    nodes: Iterable[FitNode],
    strategy: CardStrategy = CardStrategy.BINPACK,
    *,
    empty: bool = False,
    steps: int = SEARCH_STEPS,
    table: CardTable | None = None,
) -> Placement | Unfit:
    """A placement of all pods of the gang together, or what stands in the way.

    A gang of one shape is answered exactly, whatever its size: its pods fit if the nodes' rooms sum up to them, and
    binpack then uses the fewest nodes there are; for pods of several containers with vGPUs both hold only as far as the
    search comes on each node. A gang of several shapes is placed by heuristics; where they fail a
    search goes through all ways, within limits, and `Unfit.exact` says whether it came to its end. No placement is
    returned that does not hold when checked pod by pod. "Fits" means that the pods can be put so; the cluster's own
    scheduler chooses for itself and may still get stuck.

    The answer does not depend on the order of the nodes. A free node more never turns a fit into none where answers are
    exact; heuristics alone promise no such thing.

    Args:
        nodes: the nodes, each name once.
        strategy: binpack: as few nodes as can be; spread: as many, evenly.
        empty: whether to ask as if nothing ran anywhere.
        steps: most steps of search.
        table: cards kept by whoever asks of the same nodes again and again; the answer is the same without.

    Raises:
        FieldError: two nodes of one name.
    """
    by_name = _by_name(nodes, empty=empty)
    budget = Budget(steps)
    if not gang.pods:
        return Placement(pods=())
    zones = [ZoneNodes(gang, members, budget, table) for members in _zones(gang, by_name.values())]
    settled = (_settled(gang, zone, strategy, by_name) for zone in zones)
    found = islice((pods for pods in settled if pods is not None), _ZONES)
    best = min(found, key=lambda pods: _rank(pods, strategy), default=None)
    if best is not None:
        zone = by_name[best[0].node].labels[gang.zone_key] if best and gang.zone_key is not None else None
        return Placement(pods=tuple(best), zone=zone)
    exact = not budget.spent and all(zone.wholly_modelled for zone in zones)
    return Unfit(reasons=tuple(_reasons(gang, by_name, zones)), exact=exact)


def _by_name(nodes: Iterable[FitNode], *, empty: bool) -> dict[str, FitNode]:
    by_name: dict[str, FitNode] = {}
    for node in nodes:
        if node.name in by_name:
            raise FieldError("nodes", node.name, "two nodes have this name")
        by_name[node.name] = node.emptied() if empty else node
    return dict(sorted(by_name.items()))


def _zones(gang: Gang, nodes: Iterable[FitNode]) -> list[list[FitNode]]:
    """The nodes that the gang may use together, zone by zone; all in one where it has no zone key."""
    if gang.zone_key is None:
        return [list(nodes)]
    zones: dict[str, list[FitNode]] = defaultdict(list)
    for node in nodes:
        if gang.zone_key in node.labels:
            zones[node.labels[gang.zone_key]].append(node)
    return [zones[zone] for zone in sorted(zones)]


def _settled(
    gang: Gang, zone: ZoneNodes, strategy: CardStrategy, nodes: Mapping[str, FitNode]
) -> list[PlacedPod] | None:
    """The best way found to put the whole gang here."""
    if any(zone.alone(number).sum() < shape.count for number, shape in enumerate(gang.shapes)):
        return None
    for ways in fillings(zone, strategy):
        whole = [pods for pods in ways if len(pods) == gang.pods and holds(gang, nodes, pods)]
        if whole:
            return min(whole, key=lambda pods: _rank(pods, strategy))
    pods = search(zone)
    if pods is None or holds(gang, nodes, pods):
        return pods
    zone.budget.give_up()
    return None


def _rank(pods: Sequence[PlacedPod], strategy: CardStrategy) -> tuple[int, int]:
    """The rank of a placement, the lower the better: nodes used, then the pods on the fullest of them."""
    counts = Counter(pod.node for pod in pods)
    used = len(counts)
    return (used if strategy is CardStrategy.BINPACK else -used), max(counts.values(), default=0)


def _reasons(
    gang: Gang, nodes: Mapping[str, FitNode], zones: Sequence[ZoneNodes]
) -> list[UnschedulableReason]:
    key = gang.zone_key
    if key is None:
        return reasons_of(gang, zones[0])
    if not zones:
        return [NoNodes(zone_key=key)]
    anywhere = Gang(shapes=gang.shapes)
    everywhere = ZoneNodes(anywhere, [node for zone in zones for node in zone.nodes], Budget(SEARCH_STEPS))
    pods = _settled(anywhere, everywhere, CardStrategy.BINPACK, nodes)
    if pods is None:
        return [NoZoneHoldsAll(zone_key=key, zones=len(zones)), *reasons_of(anywhere, everywhere)]
    across = {nodes[pod.node].labels[key] for pod in pods}
    return [NoZoneHoldsAll(zone_key=key, zones=len(zones), across=tuple(sorted(across)))]
