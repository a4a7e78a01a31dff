"""The sense of a snapshot's nodes and gangs. Used by `validate` and `jobs`, which know where in the file they stand."""

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from fairlead_contracts.base.quantities import MAX_QUANTITY, format_quantity
from fairlead_contracts.frontend.cards import CARD_RESOURCES, PER_VGPU
from fairlead_contracts.messages.submissions import MAX_PODS
from fairlead_contracts.snapshot.types import (
    SnapshotGang,
    SnapshotJob,
    SnapshotNode,
    SnapshotRunning,
    SnapshotShape,
    WrittenGang,
    WrittenNode,
    WrittenShape,
    in_base_units,
)

type AmountsReader = Callable[[str, Mapping[str, object]], dict[str, int]]
"""Quantities of a field in base units; problems are told by it."""
type Fail = Callable[[str, object, str], None]
"""Tells a problem: field, value, reason."""

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OPERATORS = ("Equal", "Exists")
ONLY_SHAPE = "pods"
"""The name of the pods of a gang that has one kind of them."""


def check_node(node: WrittenNode, amounts: AmountsReader, fail: Fail) -> SnapshotNode:
    """The node in base units."""
    for at, taint in enumerate(node.taints):
        key, _, effect = taint.rpartition(":")
        if not key or effect not in EFFECTS:
            fail(
                f"taints[{at}]",
                taint,
                f"a taint is key=value:effect or key:effect, effects are {', '.join(EFFECTS)}",
            )
    seen = set[str]()
    for at, card in enumerate(node.cards):
        if not card.uuid or card.uuid in seen:
            fail(f"cards[{at}].uuid", card.uuid, f"each card of node {node.name!r} needs a name of its own")
        seen.add(card.uuid)
    used = None if node.used is None else amounts("used", node.used)
    allocatable = amounts("allocatable", node.allocatable)
    return in_base_units(SnapshotNode, node, used=used, allocatable=allocatable, cluster=node.cluster or "")


def check_gang(
    gang: WrittenGang | None, annotations: dict[str, str] | None, amounts: AmountsReader, fail: Fail
) -> tuple[int, SnapshotGang | None]:
    """The number of pods, and the gang's word on them; None where that is no more than their number."""
    found = gang or WrittenGang()
    shapes = _shapes(found, amounts, fail) if found.shapes else [_only_shape(found, amounts, fail)]
    pods = sum(shape.pods for shape in shapes)
    if found.shapes and pods > MAX_PODS:
        fail("gang.shapes", pods, f"have more than {MAX_PODS} pods together")
    only = shapes[0]
    plain = not found.shapes and only.demand is None and not only.selector and not only.tolerations
    if plain and found.zone_key is None and not annotations:
        return pods, None
    return pods, SnapshotGang(shapes=shapes, zone_key=found.zone_key, annotations=annotations or {})


def check_asks(
    job: SnapshotJob | SnapshotRunning,
    written: Mapping[str, object],
    counted: AbstractSet[str],
    on_nodes: AbstractSet[str],
    fail: Fail,
) -> None:
    """Checks that the pods ask for what the job is charged for, of each resource that both state.

    Not for waiting jobs of a frontend: Kueue's quota may count otherwise than pods ask, by its
    `resources.transformations`, by pods that may be fewer, by pods that ended.

    Args:
        job: the job as it was read.
        written: its demand.
        counted: resources of its pool.
        on_nodes: resources that a node has: pods may ask for some that no pool counts.
        fail: tells a problem.
    """
    asked = Counter[str]()
    for shape in () if job.gang is None else job.gang.shapes:
        for resource, amount in (shape.demand or {}).items():
            asked[resource] += amount * shape.pods
    for resource in sorted(asked.keys() - counted - on_nodes):
        fail("gang", resource, "its pods ask for a resource that neither its pool nor a node has")
    if not job.demand and any(asked[resource] for resource in counted):
        fail("demand", dict(written), "asks for nothing, and its pods do: state what they ask for together")
    for resource in sorted(job.demand.keys() & asked.keys() - {*PER_VGPU}):
        # What was shared evenly over the pods may have been rounded.
        if abs(job.demand[resource] - asked[resource]) >= job.pods:
            pods = format_quantity(resource, asked[resource])
            fail(f"demand.{resource}", written[resource], f"is not what its pods ask for together, {pods}")


def _only_shape(gang: WrittenGang, amounts: AmountsReader, fail: Fail) -> SnapshotShape:
    _check_tolerations(gang, "gang", fail)
    pods = 1 if gang.pods is None else _count(gang.pods, "gang.pods", fail)
    per_pod = amounts("gang.per_pod", gang.per_pod)
    _check_total(pods, per_pod, "gang.per_pod", fail)
    return SnapshotShape(
        name=ONLY_SHAPE,
        pods=pods,
        demand=per_pod or None,
        selector=gang.selector,
        tolerations=gang.tolerations,
    )


def _shapes(gang: WrittenGang, amounts: AmountsReader, fail: Fail) -> list[SnapshotShape]:
    for name in ("pods", "per_pod", "selector", "tolerations"):
        if value := getattr(gang, name):
            fail(f"gang.{name}", value, "is stated for each shape: leave it out here")
    shapes = []
    for at, shape in enumerate(gang.shapes):
        place = f"gang.shapes[{at}]"
        _check_tolerations(shape, place, fail)
        pods = _count(shape.pods, f"{place}.pods", fail)
        per_pod = amounts(f"{place}.per_pod", shape.per_pod)
        _check_total(pods, per_pod, f"{place}.per_pod", fail)
        shapes.append(
            SnapshotShape(
                name=shape.name or f"shape {at + 1}",
                pods=pods,
                demand=per_pod,
                containers=_containers(shape, place, amounts, fail),
                selector=shape.selector,
                tolerations=shape.tolerations,
            )
        )
    return shapes


def _containers(shape: WrittenShape, place: str, amounts: AmountsReader, fail: Fail) -> list[dict[str, int]]:
    for at, one in enumerate(shape.containers):
        for resource in sorted(one.keys() - {*CARD_RESOURCES}):
            reason = f"containers say what they ask of cards alone: {', '.join(CARD_RESOURCES)}"
            fail(f"{place}.containers[{at}].{resource}", one[resource], reason)
    return [amounts(f"{place}.containers[{at}]", one) for at, one in enumerate(shape.containers)]


def _count(pods: int, place: str, fail: Fail) -> int:
    if not 1 <= pods <= MAX_PODS:
        fail(place, pods, f"must lie between 1 and {MAX_PODS}")
        return 1
    return pods


def _check_total(pods: int, per_pod: Mapping[str, int], place: str, fail: Fail) -> None:
    for resource, amount in per_pod.items():
        if pods * amount > MAX_QUANTITY:
            fail(f"{place}.{resource}", amount, f"{pods} pods of it are more than any cluster has")


def _check_tolerations(parts: WrittenGang | WrittenShape, place: str, fail: Fail) -> None:
    for at, one in enumerate(parts.tolerations):
        if one.operator not in OPERATORS:
            fail(f"{place}.tolerations[{at}].operator", one.operator, f"operators are {', '.join(OPERATORS)}")
        if one.effect not in ("", *EFFECTS):
            fail(f"{place}.tolerations[{at}].effect", one.effect, f"effects are {', '.join(EFFECTS)}")
