"""Cards that clusters state, and what stated jobs weigh by them: as `card_shares` has it of a snapshot.

Nodes state the cards that HAMi registers, pods what they ask of them; Kueue's quota counts neither as HAMi does. So a
pool whose clusters register cards has what these are, as far as its quota goes, and its jobs weigh what HAMi gives them.
What may be admitted is the quota's business still.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.cards import CARD_CORES, CARD_MEMORY, CARD_RESOURCES, VGPUS, CardState
from fairlead_contracts.messages.state import JobShape, JobState, NodeState, PoolState
from fairlead_contracts.snapshot.gangs import ONLY_SHAPE
from fairlead_contracts.snapshot.types import (
    CardUse,
    SnapshotCard,
    SnapshotGang,
    SnapshotRunning,
    SnapshotShape,
)
from fairlead_policy.hami.charges import CardPool
from fairlead_policy.snapshot.card_shares import CardCharges, charged_demand
from fairlead_policy.usage.saturation import FlavorRoom, unflavored_room


class _Part(msgspec.Struct, frozen=True):
    """The cards of one cluster's nodes that are ready."""

    cards: tuple[CardState, ...]
    """Cards with nothing in use, in an order of their own."""
    plain: int
    """Thousandths of cards that nodes have which register none: other drivers than HAMi's serve them."""


class PoolCards:
    """The cards of one pool by cluster, of which one at least registers some; two are equal where jobs weigh the same by both."""

    def __init__(self, parts: Mapping[str, _Part]) -> None:
        self._parts = dict(parts)
        self._pool = CardPool(card for part in parts.values() for card in part.cards)
        self._charges = CardCharges(self._pool)

    @classmethod
    def of(cls, nodes: Iterable[NodeState]) -> "PoolCards | None":
        """The cards of the clusters that a pool is made of; None where none of them registers any."""
        by_cluster: dict[str, list[NodeState]] = {}
        for node in nodes:
            if node.ready:
                by_cluster.setdefault(node.cluster, []).append(node)
        parts = {
            cluster: _Part(
                cards=tuple(
                    sorted((_idle(card) for node in found for card in node.cards), key=lambda card: card.uuid)
                ),
                plain=sum(map(_cards_of_other_drivers, found)),
            )
            for cluster, found in by_cluster.items()
        }
        return cls(parts) if any(part.cards for part in parts.values()) else None

    def __eq__(self, other: object) -> bool:
        """Whether the same cards are known."""
        return isinstance(other, PoolCards) and self._parts == other._parts

    __hash__ = None  # type: ignore[assignment] # compared, never a key

    def capacity(self, cluster: str, stated: Mapping[str, int]) -> dict[str, int]:
        """The capacity of a cluster's part of the pool, in base units.

        Of cards it has those of its nodes, or as many as its quota says where these are fewer, each an average one; a
        cluster that registers none has what its quota says. Memory and cores are those of its cards; a smaller quota of
        either counts.
        """
        part = self._parts.get(cluster)
        number = stated.get(VGPUS, 0)
        if part is not None and part.cards:
            healthy = CardPool(part.cards).capacity({})[VGPUS] + part.plain
            number = min(stated.get(VGPUS, healthy), healthy)
        has = self._pool.capacity({VGPUS: number})
        for name in (CARD_MEMORY, CARD_CORES):
            has[name] = min(has[name], stated.get(name, has[name]))
        return {name: amount for name, amount in stated.items() if name not in CARD_RESOURCES} | has

    def room(self, pool: PoolState) -> FlavorRoom:
        """The room in a cluster's part of the pool, by flavor: of cards each has the part of them that its quota has."""
        has = self.capacity(pool.cluster, pool.capacity)
        if not pool.flavors:
            return unflavored_room(has)
        cards = {name: has[name] for name in CARD_RESOURCES if name in has}
        room = {
            flavor: {name: amount for name, amount in amounts.items() if name not in cards}
            for flavor, amounts in pool.flavors.items()
        }
        quotas = {flavor: amounts.get(VGPUS, 0) for flavor, amounts in pool.flavors.items()}
        if not any(quotas.values()):
            quotas = {"": 1}
        for name, amount in cards.items():
            for flavor, part in _split_by_quota(amount, quotas).items():
                room.setdefault(flavor, {})[name] = part
        return room

    @staticmethod
    def flavors_of(job: JobState) -> dict[str, str]:
        """The flavor that a running job holds each resource of: a card's memory and cores are of the card's own."""
        flavor = job.flavors.get(VGPUS)
        return job.flavors if flavor is None else job.flavors | dict.fromkeys(CARD_RESOURCES, flavor)

    def demand_of(self, demand: dict[str, int], pods: int, shapes: Sequence[JobShape]) -> dict[str, int]:
        """The weight of a job: its demand, its cards as HAMi gives them. What HAMi does not take weighs what is stated.

        Args:
            demand: the demand of all pods together, as the job's frontend counts.
            shapes: the pods' asks one by one, where these say more than the sum.
        """
        pods = sum(shape.pods for shape in shapes) or pods
        asking = SnapshotRunning(
            id="",
            tenant="",
            pool="",
            job_class="",
            demand=demand,
            pods=pods,
            gang=stated_gang(shapes),
        )
        try:
            charge = self._charges.charge(asking)
        except FieldError:
            return demand
        return charged_demand(demand, charge) if charge else demand


def _split_by_quota(amount: int, quotas: Mapping[str, int]) -> dict[str, int]:
    """The amount, split in proportion to the quotas; rounded parts add up to it."""
    total, before, dealt = sum(quotas.values()), 0, dict[str, int]()
    for flavor, quota in sorted(quotas.items()):
        dealt[flavor] = amount * (before + quota) // total - amount * before // total
        before += quota
    return dealt


def same_cards(one: NodeState | None, other: NodeState | None) -> bool:
    """Whether two statements of a node say the same of its cards, use apart: that changes with every pod."""
    return _cards_without_use(one) == _cards_without_use(other)


def _cards_without_use(node: NodeState | None) -> object:
    if node is None or not node.ready:
        return None
    return list(map(_idle, node.cards)), _cards_of_other_drivers(node)


def _cards_of_other_drivers(node: NodeState) -> int:
    """Thousandths of cards that another driver serves: of a register that cannot be read HAMi gives nothing away."""
    return 0 if node.cards or node.cards_refused else node.allocatable.get(VGPUS, 0)


def _idle(card: CardState) -> CardState:
    return msgspec.structs.replace(
        card, index=0, numa=0, cordoned=False, used_count=0, used_memory=0, used_cores=0
    )


def stated_card(card: CardState) -> SnapshotCard:
    """The card as a snapshot has it."""
    fields = msgspec.structs.asdict(card)
    used = {name: fields.pop(f"used_{name}") for name in ("count", "memory", "cores")}
    return SnapshotCard(**fields, used=CardUse(**used))


def stated_gang(shapes: Sequence[JobShape]) -> SnapshotGang | None:
    """The gang as a job's stated pods make it; a gang of one kind has the same name for them everywhere.

    Of several kinds of pods those annotations are kept that all have which ask for cards.
    """
    if not shapes:
        return None
    name = ONLY_SHAPE if len(shapes) == 1 else None
    first, *others = [shape.card_annotations for shape in shapes if shape.card_asks] or [{}]
    return SnapshotGang(
        shapes=[
            SnapshotShape(
                name=name or shape.name,
                pods=shape.pods,
                demand=shape.demand,
                containers=_containers(shape),
                selector=shape.selector,
            )
            for shape in shapes
        ],
        annotations={
            name: word for name, word in first.items() if all(one.get(name) == word for one in others)
        },
    )


def _containers(shape: JobShape) -> list[dict[str, int]]:
    """The containers' asks for cards, where those are more than its demand says."""
    summed = {name: shape.demand[name] for name in CARD_RESOURCES if shape.demand.get(name)}
    return [] if shape.card_asks == [summed] else shape.card_asks
