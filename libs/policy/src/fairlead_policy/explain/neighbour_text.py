"""The cause that puts one job before another, in words: by which term, against which, and whose these are."""

from collections.abc import Mapping

from fairlead_contracts.base.figures import MANY, percent
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.explanations import ComparedTerm, Neighbour
from fairlead_policy.explain.position_causes_text import NOT_IN_POLICY, used_up_of
from fairlead_policy.rules.pool_rules import PoolRules

_NO_LEAD = 5e-5
"""The lead, in shares, below which a term is not worth a word beside others."""
_TOLD = 1e-4
"""The lead, in parts of the entitlement, below which a figure of waiting says nothing: it decides by itself then."""
CLOSE = 2e-3
"""The difference of shares that figures with one digit may hide."""
EQUAL_KEYS = "their keys are equal, and it was submitted first"
EQUAL_BUT_UID = "they are equal in everything, and its uid comes first"
OWN_ORDER = "their tenant serves it first"


def before_in_words(one: Neighbour, position: Position, rules: PoolRules) -> str:
    """One sentence on a job that stands before another.

    Args:
        one: the job that stands before.
        position: the position of the other.
        rules: the rules that both were ordered by.
    """
    who = f"{one.id} of {one.tenant}" if one.id else f"a job of {one.tenant}"
    below = f" (within {one.within})" if one.within and one.within != position.tenant else ""
    return f"Before it stands {who}{below}: {cause_in_words(one, position, rules)}."


def cause_in_words(one: Neighbour, position: Position, rules: PoolRules) -> str:
    """The cause that puts one job before another: `it` and `that one` are the one before, `this one` is the other."""
    return f"{_effective(one)}{_why(one, position, rules)}"


def _effective(one: Neighbour) -> str:
    """The job whose terms count, where a job stands right behind another that its tenants serve first."""
    own, its = one.own_effective, one.effective
    if own and its:
        return f"this one counts as {own}, and that one as {its}, which their tenants serve first; "
    if own:
        return f"this one counts as {own}, which {one.own_side or 'its tenant'} serves first; "
    return f"it counts as {its}, which {one.side or 'its tenant'} serves first; " if its else ""


def _why(one: Neighbour, position: Position, rules: PoolRules) -> str:
    if one.term in ("share", "waiting") or (one.term == "class" and not rules.strict):
        return _by_terms(one, position, rules)
    if one.term == "class":
        return f"class {one.job_class} goes before {position.job_class}"
    if one.term == "used-up":
        return f"this one asks for {used_up_of(position, rules)}, which is used up"
    if one.term == "infinite":
        return _infinite(one, position, rules)
    return _PLAIN[one.term]


_PLAIN: Mapping[ComparedTerm, str] = {
    "submitted": EQUAL_KEYS,
    "uid": EQUAL_BUT_UID,
    "own-order": OWN_ORDER,
}


def _infinite(one: Neighbour, position: Position, rules: PoolRules) -> str:
    """The cause where only the share of the job behind is infinite."""
    tenant = one.own_side or position.tenant
    whose = f"{tenant}, which this one counts for," if one.own_side else "this one's tenant"
    match one.unbounded_by:
        case "weight" if not one.within and tenant not in rules.weights:
            return f"{whose} {NOT_IN_POLICY}"
        case "weight":
            return f"{whose} has weight 0 {f'below {one.within}' if one.within else 'here'}"
        case "held":
            return f"{whose} holds{_of_lacking(one, position)} of which the pool has none"
        case "asked":
            return f"{whose} has jobs before this one that ask for{_of_lacking(one, position)} of which the pool has none"
        case "beyond":
            return f"{whose} comes to more than can be counted"
        case None:
            return f"the share of {tenant} is infinite"


def _of_lacking(one: Neighbour, position: Position) -> str:
    """The resource that the pool has none of. A position names it for the pool; below a tenant it may be another."""
    return " a resource" if one.within or not position.dominant else f" {position.dominant},"


# Terms of the key -----------------------------------------------------------------------------------------------------


def _by_terms(one: Neighbour, position: Position, rules: PoolRules) -> str:
    """The terms that speak for the one before, the largest first, and those against it."""
    leads: dict[ComparedTerm, float] = {
        "share": one.share_lead,
        "class": one.class_lead,
        "waiting": one.waiting_lead,
    }
    decides = leads.pop(one.term)
    told = [(term, lead) for term, lead in leads.items() if abs(lead) >= _NO_LEAD or lead < -decides / 2]
    more = [_FOR[term](one, position, rules, percent(lead)) for term, lead in told if lead > 0]
    less = [_AGAINST[term](one, position, rules, percent(-lead)) for term, lead in told if lead < 0]
    if one.term == "share" and decides >= CLOSE and all(term == "waiting" for term, _ in told):
        both = _both(one, position, rules, decides)
        if both:
            return "".join(
                [both, *(f", and {words}" for words in more), *(f": more than {words}" for words in less)]
            )
    words = ", and ".join([_FOR[one.term](one, position, rules, percent(decides)), *more])
    if not less:
        return words
    # Where the two sides read alike, what is left between them is told, too.
    left = decides + sum(leads.values())
    by = f" ({percent(left)} in all)" if 0 < left < CLOSE else ""
    return f"{words}, more than {' and '.join(less)}{by}"


def _both(one: Neighbour, position: Position, rules: PoolRules, lead: float) -> str:
    """The figures of both; nothing where the explained job's own is not at hand: by H-DRF, or by another job's terms."""
    if rules.rescaled or one.effective or one.own_effective or one.class_lead:
        return ""
    own = one.own_side or position.tenant
    tag = (
        next((level.tag for level in position.within if level.tenant == own), None)
        if one.within
        else position.tag
    )
    if tag is None:
        return ""
    if not one.side and not one.own_side and not one.within:
        return both_in_words(tag - lead, tag, relative=rules.relative)
    return both_in_words(tag - lead, tag, whose=(one.side or one.tenant, own), relative=rules.relative)


def both_in_words(
    its: float, this: float, *, whose: tuple[str, str] | None = None, relative: bool = True
) -> str:
    """The figures of two tenants: of two a person sees the difference, of "250 % less" not what it is of.

    Args:
        its: the figure of the tenant whose job goes first.
        this: the figure of the other.
        whose: the two by name, where they are not those of the two jobs.
        relative: whether the figures are of parts; else they are shares over weights.
    """
    many = max(its, this) >= MANY
    one, other = (f"{its:.1f}", f"{this:.1f} times") if many else (percent(its), percent(this))
    times = " times" if many else " of"
    if not relative:
        first, second = (f"{name}'s" for name in whose) if whose else ("its tenant's", "this one's")
        return f"{first} share over its weight comes to {percent(its)}, {second} to {percent(this)}"
    first, second = whose or ("its tenant", "this one's")
    return f"{first} comes to {one}{times} its part, {second} to {other}"


def _lower(one: Neighbour, position: Position, rules: PoolRules, share: str) -> str:
    if not one.side and not one.own_side:
        return f"its tenant {_has(one, rules)} {share} less {_of_what(rules)}"
    return (
        f"{one.side or one.tenant} {_has(one, rules)} {share} less {_of_what(rules)} than "
        f"{one.own_side or position.tenant}"
    )


def _higher(one: Neighbour, position: Position, rules: PoolRules, share: str) -> str:
    if not one.side and not one.own_side:
        return f"the {share} that its tenant {_has(one, rules)} more {_of_what(rules)}"
    return (
        f"the {share} that {one.side or one.tenant} {_has(one, rules)} more {_of_what(rules)} than "
        f"{one.own_side or position.tenant}"
    )


def _has(one: Neighbour, rules: PoolRules) -> str:
    """The verb of a share: `has by H-DRF` for tenants with others below them, which H-DRF rescales."""
    return "has by H-DRF" if rules.rescaled and (one.side or one.own_side) else "has"


def _of_what(rules: PoolRules) -> str:
    """The thing that tags are shares of."""
    return "of its part" if rules.relative else "over its weight"


def _class_for(one: Neighbour, position: Position, rules: PoolRules, share: str) -> str:
    if rules.class_mode == "multiplicative":
        return f"the class weights, which start tags are divided by, are worth {share} to it"
    if one.job_class == position.job_class or one.effective or one.own_effective:
        return f"its class weight is {share} lower"
    return f"class {one.job_class} is worth {share} more than {position.job_class}"


def _class_against(one: Neighbour, position: Position, rules: PoolRules, share: str) -> str:
    if rules.class_mode == "multiplicative":
        return f"the {share} that the class weights, which start tags are divided by, count against it"
    if one.job_class == position.job_class or one.effective or one.own_effective:
        return f"the {share} by which its class weight is higher"
    return f"the {share} that class {position.job_class} is worth more than {one.job_class}"


def _longer(one: Neighbour, position: Position, rules: PoolRules, share: str) -> str:
    del position, rules
    worth = f", worth {share}" if abs(one.waiting_lead) >= _TOLD else ""
    return f"{one.effective or 'it'} has waited longer{worth}"


def _shorter(one: Neighbour, position: Position, rules: PoolRules, share: str) -> str:
    del position, rules
    return f"the {share} that {one.own_effective or 'this one'}'s longer wait is worth"


_FOR = {"share": _lower, "class": _class_for, "waiting": _longer}
_AGAINST = {"share": _higher, "class": _class_against, "waiting": _shorter}
