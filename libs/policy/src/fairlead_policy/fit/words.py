"""Unschedulable reasons in words: every number is one that the reason carries."""

from collections.abc import Iterable

from fairlead_contracts.base.quantities import format_quantity
from fairlead_policy.fit.unschedulable import (
    AskRefused,
    BehindHead,
    BeyondPool,
    CardRefusals,
    CardShort,
    GangShort,
    NoCards,
    NodeShort,
    NoMatch,
    NoNodeHasAll,
    NoNodes,
    NoZoneHoldsAll,
    PodsShort,
    PoolFull,
    ShapeReason,
    TaintsInTheWay,
    TooFewCards,
    TotalShort,
    UnschedulableReason,
    UseNotStated,
)
from fairlead_policy.hami.admission import Refusal

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


def in_words(reason: UnschedulableReason) -> str:  # noqa: C901, PLR0911, PLR0912 # one line a kind
    """One sentence of what stands in the way."""
    match reason:
        case NoNodes(zone_key=None):
            return "There are no nodes."
        case NoNodes(zone_key=key):
            return f"No node has the label {key}, by which the gang is to stay together."
        case NoMatch():
            return _no_match(reason)
        case TaintsInTheWay():
            return _taints(reason)
        case NodeShort():
            return _node_short(reason)
        case NoNodeHasAll(shape=shape, resources=names):
            return (
                f"{shape}: no node has enough {_listed(names)} free at once, though each is there by itself."
            )
        case NoCards(shape=shape):
            return f"{shape}: no node that they may use has registered a card."
        case TooFewCards():
            return _too_few_cards(reason)
        case CardShort():
            return _card_short(reason)
        case CardRefusals():
            return _refusals(reason)
        case PodsShort(shape=shape, wanted=wanted, fits=fits):
            return f"{shape}: {fits} of {wanted} pods {'fits' if fits == 1 else 'fit'}."
        case TotalShort():
            return f"{reason.shape} {_together(reason)}"
        case GangShort(wanted=wanted, fits=fits):
            return (
                f"Each kind of pod fits by itself, but not all {wanted} together: {fits} of them were placed."
            )
        case NoZoneHoldsAll():
            return _no_zone(reason)
        case BeyondPool() | PoolFull():
            return _quota(reason)
        case BehindHead(pool=pool, head=head):
            return f"It waits behind {head}, the first of pool {pool} that does not fit, and may not pass it."
        case AskRefused(resource=name, wanted=wanted, reason=why):
            return f"HAMi does not take {wanted} {name}: {why}."
        case UseNotStated(nodes=nodes):
            verb = "does" if nodes == 1 else "do"
            return f"Jobs run, and {nodes} {_plural('node', nodes)} {verb} not say what is used of them."


def all_in_words(reasons: Iterable[UnschedulableReason]) -> str:
    """The sentences of several reasons; pods that several in a row are of are named once."""
    told, before = list[str](), ""
    for reason in reasons:
        shape = reason.shape if isinstance(reason, ShapeReason) else ""
        told.append(_further(reason, shape) if shape and shape == before else in_words(reason))
        before = shape
    return " ".join(told)


def _further(reason: UnschedulableReason, shape: str) -> str:
    if isinstance(reason, TotalShort):
        return f"They {_together(reason)}"
    told = in_words(reason).removeprefix(f"{shape}: ")
    return told[:1].upper() + told[1:]


def _no_match(reason: NoMatch) -> str:
    if reason.affinity:
        return f"{reason.shape}: no node meets the required node affinity."
    pairs = _listed([f"{key}={value}" for key, value in reason.labels.items()])
    return f"{reason.shape}: no node has the {_plural('label', len(reason.labels))} {pairs}."


def _taints(reason: TaintsInTheWay) -> str:
    every = "every node that matches" if reason.all else f"{reason.nodes} {_plural('node', reason.nodes)}"
    verb = "is" if len(reason.taints) == 1 else "are"
    return (
        f"{reason.shape}: {_plural('taint', len(reason.taints))} {_listed(reason.taints)} {verb} not tolerated, "
        f"on {every}."
    )


def _node_short(reason: NodeShort) -> str:
    name = reason.resource
    wanted, largest, free, ever = (
        format_quantity(name, amount) for amount in (reason.wanted, reason.largest, reason.free, reason.ever)
    )
    if reason.wanted > reason.ever:
        return f"{reason.shape}: a pod asks for {wanted} {name}, more than any node has, even empty ({ever})."
    if reason.free >= reason.wanted:
        return f"{reason.shape}: {free} {name} free in all, but no node has {wanted}; the most on one is {largest}."
    return (
        f"{reason.shape}: a pod asks for {wanted} {name}; {free} free in all, {largest} at most on one node."
    )


def _too_few_cards(reason: TooFewCards) -> str:
    wanted, most, have = reason.wanted, reason.most, reason.have
    if wanted > have:
        return f"{reason.shape}: a container asks for {wanted} cards; no node has more than {have}."
    return (
        f"{reason.shape}: a container asks for {wanted} cards; no node has more than {most} that can take it."
    )


def _refusals(reason: CardRefusals) -> str:
    shape, cards, refused = reason.shape, reason.cards, reason.refused
    if len(refused) == 1 and cards in refused.values():
        [why] = refused
        those = "the only card is" if cards == 1 else f"all {cards} cards are"
        return f"{shape}: {those} {_REFUSED[Refusal(why)]}."
    counts = [
        f"{count} {'is' if count == 1 else 'are'} {_REFUSED[Refusal(why)]}" for why, count in refused.items()
    ]
    return f"{shape}: of {cards} {_plural('card', cards)}, {_listed(counts)}."


def _card_short(reason: CardShort) -> str:
    is_memory = reason.of == Refusal.MEMORY
    unit, name = ("MiB", "card memory") if is_memory else ("%", "card cores")
    wanted, free = f"{reason.wanted} {unit}", f"{reason.free} {unit}"
    if reason.wanted > reason.ever:
        return f"{reason.shape}: a vGPU asks for {wanted} of {name}, more than any card has ({reason.ever} {unit})."
    if reason.free >= reason.wanted:
        most = f"the most on one is {reason.largest} {unit}"
        return f"{reason.shape}: {free} of {name} free in all, but no card has {wanted}; {most}."
    left = f"{free} free in all" if reason.free else "none is free"
    return f"{reason.shape}: a vGPU asks for {wanted} of {name}; {left}."


def _together(reason: TotalShort) -> str:
    wanted, free = (format_quantity(reason.resource, amount) for amount in (reason.wanted, reason.free))
    return f"ask for {wanted} {reason.resource} together; {free} free in all."


def _quota(reason: BeyondPool | PoolFull) -> str:
    name = reason.resource
    wanted = f"{format_quantity(name, reason.wanted)} {name}"
    if isinstance(reason, BeyondPool):
        return f"It asks for {wanted}, more than pool {reason.pool} has ({format_quantity(name, reason.capacity)})."
    left = format_quantity(name, reason.left)
    return f"Pool {reason.pool} has too little quota left: the job asks for {wanted}, {left} are left."


def _no_zone(reason: NoZoneHoldsAll) -> str:
    if reason.across:
        zones = _listed(reason.across)
        return f"No {reason.zone_key} holds the whole gang: it fits only across {zones}."
    return f"No value of {reason.zone_key} ({reason.zones} in all) holds the whole gang, nor do all together."


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _listed(parts: list[str] | tuple[str, ...]) -> str:
    if len(parts) > _MOST_LISTED:
        parts = [*parts[:_MOST_LISTED], f"{len(parts) - _MOST_LISTED} more"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
