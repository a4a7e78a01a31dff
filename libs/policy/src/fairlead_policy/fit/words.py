"""Obstacles in words: every number is one that the obstacle carries."""

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
    TaintsInTheWay,
    TooFewCards,
    TotalShort,
    UnschedulableReason,
    UseNotStated,
)
from fairlead_policy.hami.admission import Refusal

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


def in_words(obstacle: UnschedulableReason) -> str:  # noqa: C901, PLR0911, PLR0912 # one line a kind
    """One sentence of what stands in the way."""
    match obstacle:
        case NoNodes(zone_key=None):
            return "There are no nodes."
        case NoNodes(zone_key=key):
            return f"No node has the label {key}, by which the gang is to stay together."
        case NoMatch():
            return _no_match(obstacle)
        case TaintsInTheWay():
            return _taints(obstacle)
        case NodeShort():
            return _node_short(obstacle)
        case NoNodeHasAll(shape=shape, resources=names):
            return (
                f"{shape}: no node has enough {_listed(names)} free at once, though each is there by itself."
            )
        case NoCards(shape=shape):
            return f"{shape}: no node that they may use has registered a card."
        case TooFewCards():
            return _too_few_cards(obstacle)
        case CardShort():
            return _card_short(obstacle)
        case CardRefusals():
            return _refusals(obstacle)
        case PodsShort(shape=shape, wanted=wanted, fits=fits):
            return f"{shape}: {fits} of {wanted} pods {'fits' if fits == 1 else 'fit'}."
        case TotalShort():
            return _total_short(obstacle)
        case GangShort(wanted=wanted, fits=fits):
            return (
                f"Each kind of pod fits by itself, but not all {wanted} together: {fits} of them were placed."
            )
        case NoZoneHoldsAll():
            return _no_zone(obstacle)
        case BeyondPool() | PoolFull():
            return _quota(obstacle)
        case BehindHead(pool=pool, head=head):
            return f"It waits behind {head}, the first of pool {pool} that does not fit, and may not pass it."
        case AskRefused(resource=name, wanted=wanted, reason=reason):
            return f"HAMi does not take {wanted} {name}: {reason}."
        case UseNotStated(nodes=nodes):
            verb = "does" if nodes == 1 else "do"
            return f"Jobs run, and {nodes} {_plural('node', nodes)} {verb} not say what is used of them."


def _no_match(obstacle: NoMatch) -> str:
    if obstacle.affinity:
        return f"{obstacle.shape}: no node meets the required node affinity."
    pairs = _listed([f"{key}={value}" for key, value in obstacle.labels.items()])
    return f"{obstacle.shape}: no node has the {_plural('label', len(obstacle.labels))} {pairs}."


def _taints(obstacle: TaintsInTheWay) -> str:
    every = (
        "every node that matches" if obstacle.all else f"{obstacle.nodes} {_plural('node', obstacle.nodes)}"
    )
    verb = "is" if len(obstacle.taints) == 1 else "are"
    return (
        f"{obstacle.shape}: {_plural('taint', len(obstacle.taints))} {_listed(obstacle.taints)} {verb} not tolerated, "
        f"on {every}."
    )


def _node_short(obstacle: NodeShort) -> str:
    name = obstacle.resource
    wanted, largest, free, ever = (
        format_quantity(name, amount)
        for amount in (obstacle.wanted, obstacle.largest, obstacle.free, obstacle.ever)
    )
    if obstacle.wanted > obstacle.ever:
        return (
            f"{obstacle.shape}: a pod asks for {wanted} {name}, more than any node has, even empty ({ever})."
        )
    if obstacle.free >= obstacle.wanted:
        return f"{obstacle.shape}: {free} {name} free in all, but no node has {wanted}; the most on one is {largest}."
    return f"{obstacle.shape}: a pod asks for {wanted} {name}; {free} free in all, {largest} at most on one node."


def _too_few_cards(obstacle: TooFewCards) -> str:
    wanted, most, have = obstacle.wanted, obstacle.most, obstacle.have
    if wanted > have:
        return f"{obstacle.shape}: a container asks for {wanted} cards; no node has more than {have}."
    return f"{obstacle.shape}: a container asks for {wanted} cards; no node has more than {most} that can take it."


def _refusals(obstacle: CardRefusals) -> str:
    shape, cards, refused = obstacle.shape, obstacle.cards, obstacle.refused
    if len(refused) == 1 and cards in refused.values():
        [why] = refused
        those = "the only card is" if cards == 1 else f"all {cards} cards are"
        return f"{shape}: {those} {_REFUSED[Refusal(why)]}."
    counts = [
        f"{count} {'is' if count == 1 else 'are'} {_REFUSED[Refusal(why)]}" for why, count in refused.items()
    ]
    return f"{shape}: of {cards} {_plural('card', cards)}, {_listed(counts)}."


def _card_short(obstacle: CardShort) -> str:
    is_memory = obstacle.of == Refusal.MEMORY
    unit, name = ("MiB", "card memory") if is_memory else ("%", "card cores")
    wanted, free = f"{obstacle.wanted} {unit}", f"{obstacle.free} {unit}"
    if obstacle.wanted > obstacle.ever:
        return f"{obstacle.shape}: a vGPU asks for {wanted} of {name}, more than any card has ({obstacle.ever} {unit})."
    if obstacle.free >= obstacle.wanted:
        most = f"the most on one is {obstacle.largest} {unit}"
        return f"{obstacle.shape}: {free} of {name} free in all, but no card has {wanted}; {most}."
    left = f"{free} free in all" if obstacle.free else "none is free"
    return f"{obstacle.shape}: a vGPU asks for {wanted} of {name}; {left}."


def _total_short(obstacle: TotalShort) -> str:
    wanted, free = (format_quantity(obstacle.resource, amount) for amount in (obstacle.wanted, obstacle.free))
    return f"{obstacle.shape} ask for {wanted} {obstacle.resource} together; {free} free in all."


def _quota(obstacle: BeyondPool | PoolFull) -> str:
    name = obstacle.resource
    wanted = f"{format_quantity(name, obstacle.wanted)} {name}"
    if isinstance(obstacle, BeyondPool):
        return f"It asks for {wanted}, more than pool {obstacle.pool} has ({format_quantity(name, obstacle.capacity)})."
    left = format_quantity(name, obstacle.left)
    return f"Pool {obstacle.pool} has too little quota left: the job asks for {wanted}, {left} are left."


def _no_zone(obstacle: NoZoneHoldsAll) -> str:
    if obstacle.across:
        zones = _listed(obstacle.across)
        return f"No {obstacle.zone_key} holds the whole gang: it fits only across {zones}."
    return f"No value of {obstacle.zone_key} ({obstacle.zones} in all) holds the whole gang, nor do all together."


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _listed(parts: list[str] | tuple[str, ...]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
