"""A snapshot's nodes and jobs as nodes and gangs: cards from HAMi's annotations, asks with HAMi's defaults filled in."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.quantities import base_units
from fairlead_contracts.frontend.card_annotations import (
    AllocatedError,
    RegisterError,
    cards_of,
    decode_allocated,
)
from fairlead_contracts.frontend.cards import (
    ALLOCATED,
    CARD_RESOURCES,
    PER_VGPU,
    REGISTER,
    VGPUS,
    CardState,
    with_use,
)
from fairlead_contracts.frontend.observed import Taint
from fairlead_contracts.snapshot.gangs import ONLY_SHAPE
from fairlead_contracts.snapshot.types import (
    SnapshotCard,
    SnapshotJob,
    SnapshotNode,
    SnapshotRunning,
    SnapshotShape,
)
from fairlead_policy.fit.shapes import FitNode, Gang, PodShape
from fairlead_policy.hami.annotations import card_annotations_of
from fairlead_policy.hami.requests import VgpuRequest, VgpuRequestError, vgpu_requests

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""Taint that Kubernetes itself puts on a node that is cordoned."""

type FitJob = SnapshotJob | SnapshotRunning


def node_of(node: SnapshotNode, cards: tuple[CardState, ...]) -> FitNode:
    """The node with its cards (see `cards_on`), and with what is free on it."""
    used = node.used or {}
    taints = [taint_of(text) for text in node.taints]
    if node.unschedulable:
        taints.append(UNSCHEDULABLE)
    return FitNode(
        name=f"{node.cluster}/{node.name}" if node.cluster else node.name,
        free={resource: amount - used.get(resource, 0) for resource, amount in node.allocatable.items()},
        allocatable=node.allocatable,
        labels=node.labels,
        taints=tuple(taints),
        cards=cards,
    )


def taint_of(text: str) -> Taint:
    """The taint as kubectl writes it."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return Taint(key=key, value=value, effect=effect)


def cards_on(node: SnapshotNode) -> tuple[CardState, ...]:
    """The node's cards, stated or registered, with what its pods hold of them.

    Raises:
        FieldError: an annotation cannot be read, or cards are stated and registered; the field is the node's.
    """
    registered = REGISTER in node.annotations
    if registered and node.cards:
        raise FieldError(
            "cards", len(node.cards), f"node {node.name!r} registers cards by annotation, too: keep one"
        )
    try:
        cards = cards_of(node.name, node.annotations) if registered else tuple(map(_card, node.cards))
    except RegisterError as error:
        raise FieldError(
            f"annotations.{error.field}", error.value, f"node {node.name!r}: {error.reason}"
        ) from error
    for at, pod in enumerate(node.pods):
        try:
            held = decode_allocated(pod.name, pod.annotations.get(ALLOCATED, ""))
        except AllocatedError as error:
            field = f"pods[{at}].annotations.{error.field}"
            reason = f"node {node.name!r}, pod {pod.name!r}: {error.reason}"
            raise FieldError(field, error.value, reason) from error
        cards = with_use(cards, chain.from_iterable(held))
    return cards


def _card(card: SnapshotCard) -> CardState:
    fields, used = msgspec.structs.asdict(card), card.used
    del fields["used"]
    return CardState(**fields, used_count=used.count, used_memory=used.memory, used_cores=used.cores)


def shapes_of(job: FitJob, *, with_cards: bool) -> list[SnapshotShape]:
    """The job's pods, with what each asks for: as stated, or the job's demand shared evenly over them, rounded up.

    Args:
        job: waiting or running.
        with_cards: whether the pool's cards are known one by one. Their resources count as those of the pods, then;
            memory and cores are said of each vGPU wherever they stand, as HAMi has it.

    Raises:
        FieldError: the cards that the job asks for do not go evenly into its pods, or nothing says which pods ask.
    """
    if job.gang is None:
        return [
            SnapshotShape(name=ONLY_SHAPE, pods=job.pods, demand=_evenly(job.demand, job.pods, with_cards))
        ]
    extra: Mapping[str, int] = {}
    if with_cards and not any(map(_asks_for_cards, job.gang.shapes)):
        extra = {name: amount for name, amount in job.demand.items() if amount and name in CARD_RESOURCES}
        if extra and len(job.gang.shapes) > 1:
            raise FieldError("gang.shapes", dict(extra), "say which of the pods ask for cards")
        extra = _evenly(extra, job.pods, with_cards)
    return [
        SnapshotShape(
            name=shape.name,
            pods=shape.pods,
            demand=_evenly(job.demand, job.pods, with_cards)
            if shape.demand is None
            else {**shape.demand, **extra},
            containers=shape.containers,
            selector=shape.selector,
            tolerations=shape.tolerations,
        )
        for shape in job.gang.shapes
    ]


def _asks_for_cards(shape: SnapshotShape) -> bool:
    return bool(shape.containers) or any((shape.demand or {}).get(name) for name in CARD_RESOURCES)


def _evenly(demand: Mapping[str, int], pods: int, with_cards: bool) -> dict[str, int]:  # noqa: FBT001 # said by its name
    shares = {}
    for name, amount in demand.items():
        if with_cards and name in PER_VGPU:
            shares[name] = amount
            continue
        if with_cards and name == VGPUS and amount % (pods * base_units(name)):
            reason = f"cards do not go evenly into {pods} {'pod' if pods == 1 else 'pods'}: say gang.per_pod"
            raise FieldError(f"demand.{name}", amount / base_units(name), reason)
        shares[name] = -(-amount // pods)
    return shares


def asks_for_parts(job: FitJob) -> bool:
    """Whether the job asks for parts of cards: only nodes that register theirs can say whether they have them."""
    shapes = [] if job.gang is None else job.gang.shapes
    stated = chain.from_iterable((shape.demand or {}, *shape.containers) for shape in shapes)
    return any(demand.get(name) for demand in (job.demand, *stated) for name in PER_VGPU)


def gang_of(job: FitJob, *, with_cards: bool) -> Gang:
    """The job's pods as a gang; see `shapes_of`. Parts of cards that are not known are left out: nodes do not state them.

    Raises:
        VgpuRequestError: the pods ask for cards in a way that HAMi does not take.
        FieldError: see `shapes_of`.
    """
    annotations = {} if job.gang is None else job.gang.annotations
    shapes = shapes_of(job, with_cards=with_cards)
    return Gang(
        shapes=tuple(_pods(shape, annotations, with_cards) for shape in shapes),
        zone_key=None if job.gang is None else job.gang.zone_key,
    )


def _pods(shape: SnapshotShape, annotations: Mapping[str, str], with_cards: bool) -> PodShape:  # noqa: FBT001 # said by its name
    demand = dict(shape.demand or {})
    asks: tuple[VgpuRequest, ...] = ()
    if not with_cards:
        demand = {name: amount for name, amount in demand.items() if name not in PER_VGPU}
    else:
        summed = {name: demand.pop(name, 0) for name in CARD_RESOURCES}
        # HAMi gives a card to a container that names a part, even as 0. A sum over containers that is 0 names none.
        summed = {name: amount for name, amount in summed.items() if amount}
        try:
            asks = vgpu_requests(shape.containers or [summed])
        except VgpuRequestError as error:
            raise VgpuRequestError(f"demand.{error.field}", error.value, error.reason) from error
    return PodShape(
        name=shape.name,
        count=shape.pods,
        demand=demand,
        selector=shape.selector,
        tolerations=tuple(shape.tolerations),
        vgpus=asks,
        card_annotations=card_annotations_of(annotations),
    )


def read_cards(nodes: Iterable[SnapshotNode], problems: list[FieldError]) -> Iterator[tuple[CardState, ...]]:
    """The cards of each node, one after the other; what cannot be read is a problem with its place in the file."""
    for at, node in enumerate(nodes):
        try:
            yield cards_on(node)
        except FieldError as error:
            problems.append(FieldError(f"nodes[{at}].{error.field}", error.value, error.reason))
            yield ()
