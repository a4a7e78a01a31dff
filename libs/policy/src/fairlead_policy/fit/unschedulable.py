"""Reasons why a gang is unschedulable, as data: term, amounts in base units, who. `words` says it to people."""

import msgspec

from fairlead_contracts.base.errors import shown
from fairlead_policy.hami.requests import VgpuRequestError


class ShapeReason(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The base of all reasons that are of one shape."""

    shape: str
    """The name of the pods that it stands in the way of."""


class NoNodes(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """No nodes are there, or none with the label of the zone key."""

    zone_key: str | None = None


class NoMatch(ShapeReason, frozen=True, kw_only=True):
    """No node has the labels that the pods select."""

    labels: dict[str, str]
    """The pairs that no node has; where each is somewhere, all pairs: no node has them together."""
    affinity: bool = False
    """Whether nodes have the labels and none meets the required node affinity."""


class TaintsInTheWay(ShapeReason, frozen=True, kw_only=True):
    """Nodes that would match have taints that are not tolerated."""

    taints: tuple[str, ...]
    """Taints as kubectl writes them, `key=value:effect`."""
    nodes: int
    """Number of nodes that they keep the pods off."""
    all: bool
    """Whether that is every node that would match."""


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


class NoNodeHasAll(ShapeReason, frozen=True, kw_only=True):
    """Each resource has a node with enough of it free for one pod; no node has enough of all."""

    resources: tuple[str, ...]


class NoCards(ShapeReason, frozen=True, kw_only=True):
    """No node that the pods may use has registered a card."""


class TooFewCards(ShapeReason, frozen=True, kw_only=True):
    """A container wants more cards than the node with most of them can give it."""

    wanted: int
    most: int
    """Cards on one node that take a vGPU of this ask."""
    have: int
    """Cards on the node with most of them, whatever their state."""


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


class CardRefusals(ShapeReason, frozen=True, kw_only=True):
    """Cards that don't take a vGPU of this ask, counted by reason."""

    cards: int
    """Cards looked at."""
    refused: dict[str, int]
    """Cards by `Refusal`."""


class PodsShort(ShapeReason, frozen=True, kw_only=True):
    """Some of the pods fit, not all."""

    wanted: int
    fits: int
    """Number of pods that fit if no other shape of the gang takes anything."""


class TotalShort(ShapeReason, frozen=True, kw_only=True):
    """All nodes together have less free of a resource than the pods want together."""

    resource: str
    wanted: int
    free: int


class GangShort(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Each shape fits by itself; together they do not."""

    wanted: int
    fits: int
    """The most pods that were put on the nodes together; more may be possible."""


class NoZoneHoldsAll(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """No zone holds the gang."""

    zone_key: str
    zones: int
    """Number of zones."""
    across: tuple[str, ...] = ()
    """Zones over which it would fit; empty where it does not fit even so."""


class BeyondPool(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The job asks for more than the whole pool has."""

    pool: str
    resource: str
    wanted: int
    capacity: int


class PoolFull(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """No quota is left for the job, whatever the nodes have."""

    pool: str
    resource: str
    wanted: int
    left: int
    """Quota left after what runs and the jobs before it that are placed."""


class BehindHead(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The frontend stops at the first job of the pool that does not fit, and this one may not pass it."""

    pool: str
    head: str
    """The id of that job."""


class AskRefused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """HAMi does not take what the pods ask of cards."""

    resource: str
    wanted: str
    """The ask as it stands there."""
    reason: str


def ask_refused(error: VgpuRequestError) -> AskRefused:
    """The error as a reason; its field may be that of a snapshot's job."""
    resource = error.field.removeprefix("demand.")
    return AskRefused(resource=resource, wanted=shown(error.value), reason=error.reason)


class UseNotStated(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Jobs run, and nodes do not say what is used of them."""

    nodes: int


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
