"""Causes beside its tenant's share that hold a job back, in words: an infinite share, levels of a tree, what is used up."""

from collections.abc import Callable, Iterator, Sequence

from fairlead_contracts.base.figures import decimals, part_of, percent
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.base.quantities import format_quantity
from fairlead_contracts.messages.decisions import Position, SiblingStanding
from fairlead_policy.exact.terms import counted_as
from fairlead_policy.order.position_columns import OfTenants, PositionColumns
from fairlead_policy.rules.pool_rules import PoolRules

NOT_IN_POLICY = "is not in the policy"
"""Cause of weight 0 of a tenant that the policy neither names nor lets in."""


def infinite_in_words(position: Position, rules: PoolRules) -> str:
    """The cause of an infinite share, and its effect on the position."""
    others = "the jobs of its class" if rules.strict else "all jobs"
    free = " that ask for nothing that is used up" if rules.saturated and not position.blocked else ""
    return f"{_cause(position, rules)}: it goes last among {others}{free}."


def _cause(position: Position, rules: PoolRules) -> str:
    tenant, use = position.top or position.tenant, format_quantity(position.dominant, position.use)
    match position.unbounded_by:
        case "weight":
            return f"Its tenant {tenant} {'has weight 0 here' if tenant in rules.weights else NOT_IN_POLICY}"
        case "held":
            return f"Its tenant {tenant} holds {use} {position.dominant}, of which the pool has none"
        case "asked":
            return (
                f"A job of {tenant} before it asks for {use} {position.dominant}, of which the pool has none"
            )
        case "beyond":
            return f"Its tenant {tenant} comes to more {position.dominant} than can be counted"
        case None:
            return f"The share of its tenant {tenant} is infinite"


def rescaled_in_words(tenant: str, dominant: str, rules: PoolRules) -> Callable[[float], str]:
    """H-DRF's count of a tenant with others below it, whose holding says little of its tag; follows its name.

    Returns:
        The sentence, by the tag.
    """
    entitled = float(rules.entitlement_of(tenant))
    of_what = "of the pool over its weight"
    if rules.relative:
        of_what = f"times the {percent(entitled)} of the pool that it is entitled to"
    of = f" of {dominant}" if dominant else ""
    used_up = " and ".join(sorted(rules.saturated))
    left_out = f"; of the others it leaves out {used_up}, which is used up" if used_up else ""

    def told(tag: float) -> str:
        return (
            f"counts by H-DRF at {percent(tag * entitled)}{of} before this one. H-DRF brings the tenants below it that can "
            f"still get something to the lowest share among them{left_out}. That is {decimals(tag)} {of_what}; lower goes "
            "first."
        )

    return told


def causes_in_words(position: Position, rules: PoolRules, now: Micros) -> Iterator[str]:
    """Sentences on what moves a position: tenants below the top, a job whose terms count for it, and resources used up."""
    for one in reversed(position.within):
        yield _below(one, rules.parents.get(one.tenant, position.top), rules)
    effective = counted_as(position, rules, now)
    if effective.uid != position.uid:
        yield behind_in_words(position.top or position.tenant, effective.id or effective.uid or "another job")
    if position.blocked:
        others = "the jobs of its class" if rules.strict else "all jobs"
        yield (
            f"It asks for {used_up_of(position, rules)}, which is used up: it stands behind {others} that ask for nothing "
            "that is used up."
        )


def add_causes(
    told: Sequence[list[str]], positions: PositionColumns, rules: PoolRules, beginnings: OfTenants[str]
) -> None:
    """Adds to the reasons of each of many jobs what holds it back. What `beginning` says of nobody is empty."""
    for within in positions.within:
        begun = beginnings.of(within.tenants, within.tenant)
        columns = told, begun, within.rescaled, within.dominant, within.tag
        for reasons, begins, rescaled, dominant, tag in zip(*columns, strict=True):
            if begins:
                reasons.append(f"{begins} {_stands(dominant, tag, rules, rescaled=rescaled)}")
    for reasons, top, name in zip(told, positions.top, positions.behind, strict=True):
        if name:
            reasons.append(behind_in_words(positions.tenants[top], name))


def behind_in_words(top: str, name: str) -> str:
    """A sentence on a job that counts as another one."""
    return (
        f"{top} serves {name} first: this job counts as that one, and goes right behind it at the earliest."
    )


def beginning(tenant: str, parent: str) -> str:
    """The beginning of the sentence on a tenant's standing among its siblings."""
    return f"Below {parent}, {tenant}"


def _stands(dominant: str, tag: float, rules: PoolRules, *, rescaled: bool) -> str:
    return f"{'counts by H-DRF' if rescaled else 'stands'} at {_at(dominant, tag, rules)}."


def _at(dominant: str, tag: float, rules: PoolRules) -> str:
    if not dominant:
        return "nothing before it"
    if not rules.relative:
        return f"{percent(tag)} of {dominant} over its weight"
    return part_of(tag, f"its part of {dominant}")


def _below(one: SiblingStanding, parent: str, rules: PoolRules) -> str:
    """The standing of a tenant among its siblings, in words."""
    cause = _cause_within(one)
    if cause:
        others = "the jobs of the same class" if rules.strict else "all jobs"
        return f"Below {parent}, {one.tenant} {cause}: it goes last among {others} there."
    stands = _stands(one.dominant, one.tag, rules, rescaled=bool(one.share))
    return f"{beginning(one.tenant, parent)} {stands}"


def _cause_within(one: SiblingStanding) -> str:
    match one.unbounded_by:
        case "weight":
            return "has weight 0"
        case "held":
            return "holds a resource of which the pool has none"
        case "asked":
            return "has a job before this one that asks for a resource of which the pool has none"
        case "beyond":
            return "comes to more than can be counted"
        case None:
            return ""


def used_up_of(position: Position, rules: PoolRules) -> str:
    """The used-up resources that a job asks for (H-DRF)."""
    names = sorted(name for name, amount in position.demand.items() if amount > 0 and name in rules.saturated)
    return " and ".join(names) or "a resource"
