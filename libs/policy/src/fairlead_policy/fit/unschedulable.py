"""Reasons why a gang is unschedulable, as data: term, amounts in base units, who.

The text of one is a sentence for people: every number in it is one that the reason carries.
"""

from collections.abc import Iterable, Sequence

import msgspec

from fairlead_contracts.base.errors import shown
from fairlead_contracts.base.quantities import format_quantity
from fairlead_policy.hami.admission import Refusal
from fairlead_policy.hami.requests import VgpuRequestError

_MOST_LISTED = 20
"""Names that a sentence lists; more are counted."""
_REFUSED = {
    Refusal.UNHEALTHY: "not healthy",
    Refusal.CORDONED: "cordoned",
    Refusal.MODEL: "of another model or mode than the pod accepts",
    Refusal.UUID: "not among the cards that the pod names",
    Refusal.SLOTS: "shared by as many pods as HAMi puts on one",
    Refusal.IN_USE: "in use, and the pod wants a card for itself",
    Refusal.MEMORY: "short of memory",
    Refusal.CORES: "short of cores",
    Refusal.CORES_FULL: "without cores left",
    Refusal.MIG: "in MIG mode, which Fairlead does not count",
}


class ShapeReason(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The base of all reasons that are of one shape."""

    shape: str
    """The name of the pods that it stands in the way of."""


class NoNodes(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """No nodes are there, or none with the label of the zone key."""

    zone_key: str | None = None

    def __str__(self) -> str:
        if self.zone_key is None:
            return "There are no nodes."
        return f"No node has the label {self.zone_key}, by which the gang is to stay together."


class NoMatch(ShapeReason, frozen=True, kw_only=True):
    """No node has the labels that the pods select."""

    labels: dict[str, str]
    """The pairs that no node has; where each is somewhere, all pairs: no node has them together."""
    affinity: bool = False
    """Whether nodes have the labels and none meets the required node affinity."""

    def __str__(self) -> str:
        if self.affinity:
            return f"{self.shape}: no node meets the required node affinity."
        pairs = _listed([f"{key}={value}" for key, value in self.labels.items()])
        return f"{self.shape}: no node has the {_plural('label', len(self.labels))} {pairs}."


class TaintsInTheWay(ShapeReason, frozen=True, kw_only=True):
    """Nodes that would match have taints that are not tolerated."""

    taints: tuple[str, ...]
    """Taints as kubectl writes them, `key=value:effect`."""
    nodes: int
    """Number of nodes that they keep the pods off."""
    all: bool
    """Whether that is every node that would match."""

    def __str__(self) -> str:
        every = "every node that matches" if self.all else f"{self.nodes} {_plural('node', self.nodes)}"
        verb = "is" if len(self.taints) == 1 else "are"
        return (
            f"{self.shape}: {_plural('taint', len(self.taints))} {_listed(self.taints)} {verb} not tolerated, "
            f"on {every}."
        )


class NodeShort(ShapeReason, frozen=True, kw_only=True):
    """No node has enough free of a resource for one pod."""

    resource: str
    wanted: int
    largest: int
    """Amount free on the node that has most free."""
    free: int
    """Amount free on all nodes that the pods may use."""
    ever: int
    """Amount on the largest node when nothing runs: less than `wanted` means never."""

    def __str__(self) -> str:
        name = self.resource
        wanted, largest, free, ever = (
            format_quantity(name, amount) for amount in (self.wanted, self.largest, self.free, self.ever)
        )
        if self.wanted > self.ever:
            return (
                f"{self.shape}: a pod asks for {wanted} {name}, more than any node has, even empty ({ever})."
            )
        if self.free >= self.wanted:
            return f"{self.shape}: {free} {name} free in all, but no node has {wanted}; the most on one is {largest}."
        return f"{self.shape}: a pod asks for {wanted} {name}; {free} free in all, {largest} at most on one node."


class NoNodeHasAll(ShapeReason, frozen=True, kw_only=True):
    """Each resource has a node with enough of it free for one pod; no node has enough of all."""

    resources: tuple[str, ...]

    def __str__(self) -> str:
        names = _listed(self.resources)
        return f"{self.shape}: no node has enough {names} free at once, though each is there by itself."


class NoCards(ShapeReason, frozen=True, kw_only=True):
    """No node that the pods may use has registered a card."""

    def __str__(self) -> str:
        return f"{self.shape}: no node that they may use has registered a card."


class TooFewCards(ShapeReason, frozen=True, kw_only=True):
    """A container wants more cards than the node with most of them can give it."""

    wanted: int
    most: int
    """Cards on one node that take a vGPU of this ask."""
    have: int
    """Cards on the node with most of them, whatever their state."""

    def __str__(self) -> str:
        most = self.have if self.wanted > self.have else f"{self.most} that can take it"
        return f"{self.shape}: a container asks for {self.wanted} cards; no node has more than {most}."


class CardShort(ShapeReason, frozen=True, kw_only=True):
    """No card has enough of something free: MiB of memory, or percent of cores."""

    of: str
    """Name of what cards are short of: `memory` or `cores`."""
    wanted: int
    largest: int
    """Amount free on the card that comes closest."""
    free: int
    """Amount free on all cards that the pods may use."""
    ever: int
    """Amount on the largest card when nobody uses it."""

    def __str__(self) -> str:
        unit, name = ("MiB", "card memory") if self.of == Refusal.MEMORY else ("%", "card cores")
        wanted, free = f"{self.wanted} {unit}", f"{self.free} {unit}"
        if self.wanted > self.ever:
            return f"{self.shape}: a vGPU asks for {wanted} of {name}, more than any card has ({self.ever} {unit})."
        if self.free >= self.wanted:
            most = f"the most on one is {self.largest} {unit}"
            return f"{self.shape}: {free} of {name} free in all, but no card has {wanted}; {most}."
        left = f"{free} free in all" if self.free else "none is free"
        return f"{self.shape}: a vGPU asks for {wanted} of {name}; {left}."


class CardRefusals(ShapeReason, frozen=True, kw_only=True):
    """Cards that don't take a vGPU of this ask, counted by reason."""

    cards: int
    """Cards looked at."""
    refused: dict[str, int]
    """Cards by `Refusal`."""

    def __str__(self) -> str:
        shape, cards, refused = self.shape, self.cards, self.refused
        if len(refused) == 1 and cards in refused.values():
            [why] = refused
            those = "the only card is" if cards == 1 else f"all {cards} cards are"
            return f"{shape}: {those} {_REFUSED[Refusal(why)]}."
        counts = [
            f"{count} {'is' if count == 1 else 'are'} {_REFUSED[Refusal(why)]}"
            for why, count in refused.items()
        ]
        return f"{shape}: of {cards} {_plural('card', cards)}, {_listed(counts)}."


class PodsShort(ShapeReason, frozen=True, kw_only=True):
    """Some of the pods fit, not all."""

    wanted: int
    fits: int
    """Number of pods that fit if no other shape of the gang takes anything."""

    def __str__(self) -> str:
        return f"{self.shape}: {self.fits} of {self.wanted} pods {'fits' if self.fits == 1 else 'fit'}."


class TotalShort(ShapeReason, frozen=True, kw_only=True):
    """All nodes together have less free of a resource than the pods want together."""

    resource: str
    wanted: int
    free: int

    def __str__(self) -> str:
        return f"{self.shape} {self.together}"

    @property
    def together(self) -> str:
        """The sentence behind its subject."""
        wanted, free = (format_quantity(self.resource, amount) for amount in (self.wanted, self.free))
        return f"ask for {wanted} {self.resource} together; {free} free in all."


class GangShort(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Each shape fits by itself; together they do not."""

    wanted: int
    fits: int
    """The most pods that were put on the nodes together; more may be possible."""

    def __str__(self) -> str:
        return f"Each kind of pod fits by itself, but not all {self.wanted} together: {self.fits} of them were placed."


class NoZoneHoldsAll(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """No zone holds the gang."""

    zone_key: str
    zones: int
    """Number of zones."""
    across: tuple[str, ...] = ()
    """Zones over which it would fit; empty where it does not fit even so."""

    def __str__(self) -> str:
        if self.across:
            return f"No {self.zone_key} holds the whole gang: it fits only across {_listed(self.across)}."
        return f"No value of {self.zone_key} ({self.zones} in all) holds the whole gang, nor do all together."


class BeyondPool(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The job asks for more than the whole pool has."""

    pool: str
    resource: str
    wanted: int
    capacity: int

    def __str__(self) -> str:
        wanted, has = (format_quantity(self.resource, amount) for amount in (self.wanted, self.capacity))
        return f"It asks for {wanted} {self.resource}, more than pool {self.pool} has ({has})."


class PoolFull(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """No quota is left for the job, whatever the nodes have."""

    pool: str
    resource: str
    wanted: int
    left: int
    """Quota left after what runs and the jobs before it that are placed."""

    def __str__(self) -> str:
        wanted, left = (format_quantity(self.resource, amount) for amount in (self.wanted, self.left))
        return f"Pool {self.pool} has too little quota left: the job asks for {wanted} {self.resource}, {left} are left."


class BehindHead(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The frontend stops at the first job of the pool that does not fit, and this one may not pass it."""

    pool: str
    head: str
    """The id of that job."""

    def __str__(self) -> str:
        return f"It waits behind {self.head}, the first of pool {self.pool} that does not fit, and may not pass it."


class AskRefused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """HAMi does not take what the pods ask of cards."""

    resource: str
    wanted: str
    """The ask as it stands there."""
    reason: str

    def __str__(self) -> str:
        return f"HAMi does not take {self.wanted} {self.resource}: {self.reason}."


def ask_refused(error: VgpuRequestError) -> AskRefused:
    """The error as a reason; its field may be that of a snapshot's job."""
    resource = error.field.removeprefix("demand.")
    return AskRefused(resource=resource, wanted=shown(error.value), reason=error.reason)


class UseNotStated(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Jobs run, and nodes do not say what is used of them."""

    nodes: int

    def __str__(self) -> str:
        verb = "does" if self.nodes == 1 else "do"
        return (
            f"Jobs run, and {self.nodes} {_plural('node', self.nodes)} {verb} not say what is used of them."
        )


type UnschedulableReason = (
    NoNodes
    | BeyondPool
    | PoolFull
    | BehindHead
    | AskRefused
    | UseNotStated
    | NoMatch
    | TaintsInTheWay
    | NodeShort
    | NoNodeHasAll
    | NoCards
    | TooFewCards
    | CardShort
    | CardRefusals
    | PodsShort
    | TotalShort
    | GangShort
    | NoZoneHoldsAll
)


def all_in_words(reasons: Iterable[UnschedulableReason]) -> str:
    """The sentences of several reasons; pods that several in a row are of are named once."""
    told, before = list[str](), ""
    for reason in reasons:
        shape = reason.shape if isinstance(reason, ShapeReason) else ""
        told.append(_further(reason, shape) if shape and shape == before else str(reason))
        before = shape
    return " ".join(told)


def _further(reason: UnschedulableReason, shape: str) -> str:
    if isinstance(reason, TotalShort):
        return f"They {reason.together}"
    told = str(reason).removeprefix(f"{shape}: ")
    return told[:1].upper() + told[1:]


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _listed(parts: Sequence[str]) -> str:
    if len(parts) > _MOST_LISTED:
        parts = [*parts[:_MOST_LISTED], f"{len(parts) - _MOST_LISTED} more"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
