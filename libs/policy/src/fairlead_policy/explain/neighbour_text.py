"""The cause that puts one job before another, in words: by which term, against which, and whose these are."""

from collections.abc import Mapping
from typing import NamedTuple

from fairlead_contracts.base.figures import MANY, percent
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.explanations import ComparedTerm, Neighbour
from fairlead_policy.exact.ranking import FLOAT_DOUBT
from fairlead_policy.explain.position_causes_text import NOT_IN_POLICY, used_up_of
from fairlead_policy.order.position_columns import PositionColumns
from fairlead_policy.rules.pool_rules import PoolRules

_NO_LEAD = 5e-5
"""The lead, in shares, below which a term is not worth a word beside others."""
_TOLD = 1e-4
"""The lead, in parts of the entitlement, below which a figure of waiting says nothing: it decides by itself then."""
_CLOSE = 2e-3
"""The difference of shares that figures with one digit may hide."""
_EQUAL_KEYS = "their keys are equal, and it was submitted first"
_EQUAL_BUT_UID = "they are equal in everything, and its uid comes first"
_OWN_ORDER = "their tenant serves it first"
_WAITED_LONGER = "has waited longer"


def before_in_words(one: Neighbour, position: Position, rules: PoolRules) -> str:
    """One sentence on a job that stands before another.

    Args:
        one: the job that stands before.
        position: the position of the other.
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
        return _class_first(one.job_class, position.job_class)
    if one.term == "used-up":
        return f"this one asks for {used_up_of(position, rules)}, which is used up"
    if one.term == "infinite":
        return _infinite(one, position, rules)
    return _PLAIN[one.term]


_PLAIN: Mapping[ComparedTerm, str] = {
    "submitted": _EQUAL_KEYS,
    "uid": _EQUAL_BUT_UID,
    "own-order": _OWN_ORDER,
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
    more = [_for(term, one, position, rules, percent(lead)) for term, lead in told if lead > 0]
    less = [_against(term, one, position, rules, percent(-lead)) for term, lead in told if lead < 0]
    if one.term == "share" and decides >= _CLOSE and all(term == "waiting" for term, _ in told):
        both = _both(one, position, rules, decides)
        if both:
            return "".join(
                [both, *(f", and {words}" for words in more), *(f": more than {words}" for words in less)]
            )
    words = ", and ".join([_for(one.term, one, position, rules, percent(decides)), *more])
    if not less:
        return words
    # Where the two sides read alike, what is left between them is told, too.
    left = decides + sum(leads.values())
    by = f" ({percent(left)} in all)" if 0 < left < _CLOSE else ""
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
        return _both_in_words(tag - lead, tag, relative=rules.relative)
    return _both_in_words(tag - lead, tag, whose=(one.side or one.tenant, own), relative=rules.relative)


def _both_in_words(
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


def _compared(one: Neighbour, position: Position) -> tuple[str, str]:
    """The tenant that goes first, and the other one where both have to be named."""
    if not one.side and not one.own_side:
        return "its tenant", ""
    return one.side or one.tenant, f" than {one.own_side or position.tenant}"


def _has(one: Neighbour, rules: PoolRules) -> str:
    """The verb of a share: `has by H-DRF` for tenants with others below them, which H-DRF rescales."""
    return "has by H-DRF" if rules.rescaled and (one.side or one.own_side) else "has"


def _of_what(rules: PoolRules) -> str:
    """The thing that tags are shares of."""
    return "of its part" if rules.relative else "over its weight"


def _for(term: ComparedTerm, one: Neighbour, position: Position, rules: PoolRules, share: str) -> str:
    """A term of so much that speaks for the one before."""
    if term == "share":
        who, than = _compared(one, position)
        return f"{who} {_has(one, rules)} {share} less {_of_what(rules)}{than}"
    if term == "waiting":
        worth = f", worth {share}" if abs(one.waiting_lead) >= _TOLD else ""
        return f"{one.effective or 'it'} {_WAITED_LONGER}{worth}"
    if rules.class_mode == "multiplicative":
        return f"the class weights, which start tags are divided by, are worth {share} to it"
    if one.job_class == position.job_class or one.effective or one.own_effective:
        return f"its class weight is {share} lower"
    return f"class {one.job_class} is worth {share} more than {position.job_class}"


def _against(term: ComparedTerm, one: Neighbour, position: Position, rules: PoolRules, share: str) -> str:
    """A term of so much that speaks against it."""
    if term == "share":
        who, than = _compared(one, position)
        return f"the {share} that {who} {_has(one, rules)} more {_of_what(rules)}{than}"
    if term == "waiting":
        return f"the {share} that {one.own_effective or 'this one'}'s longer wait is worth"
    if rules.class_mode == "multiplicative":
        return f"the {share} that the class weights, which start tags are divided by, count against it"
    if one.job_class == position.job_class or one.effective or one.own_effective:
        return f"the {share} by which its class weight is higher"
    return f"the {share} that class {position.job_class} is worth more than {one.job_class}"


# Rows of a whole order ------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """The terms that a job is compared by."""

    rank: int
    """Position of its class."""
    job_class: str
    tenant: str
    tag: float
    counted: Micros
    """The submit time that counts."""
    submitted: Micros
    unbounded: bool


class RowCauses:
    """Says why each job of a whole order stands behind the one right before it, part by part: a million in seconds.

    Of tenants side by side with strict classes, by the terms of both keys. Where tenants stand in a tree, classes are terms
    or H-DRF scales shares, two rows of figures do not tell it: `explanation.neighbour_of` does, a job at a time.
    """

    def __init__(self, rules: PoolRules, now: Micros) -> None:
        self.tells = rules.strict and rules.relative and not rules.rescaled and not rules.parents
        """Whether figures tell the causes in this pool at all."""
        self._rules = rules
        self._rate = float(rules.rate)
        self._horizon = None if rules.cap is None or not rules.rate else now - rules.cap
        self._before: _Row | None = None

    def of(self, part: PositionColumns) -> list[str]:
        """The sentences on the jobs that come next, in a pool that it `tells` of; empty where the order is another."""
        ranks, horizon, before, found = self._rules.ranks, self._horizon, self._before, []
        columns = part.jobs, part.tag, part.submitted, part.unbounded_by
        for job, tag, submitted, because in zip(*columns, strict=True):
            counted = submitted if horizon is None or submitted > horizon else horizon
            unbounded = because is not None
            row = _Row(ranks[job.job_class], job.job_class, job.tenant, tag, counted, submitted, unbounded)
            found.append("first" if before is None else self._why(before, row))
            before = row
        self._before = before
        return found

    def _why(self, before: _Row, row: _Row) -> str:
        if before.rank != row.rank:
            return _class_first(before.job_class, row.job_class) if before.rank < row.rank else ""
        if before.tenant == row.tenant:
            return _OWN_ORDER if before.submitted <= row.submitted else ""
        if before.unbounded or row.unbounded:
            return ""
        return self._by_terms(before, row)

    def _by_terms(self, before: _Row, row: _Row) -> str:
        share, waiting = row.tag - before.tag, (row.counted - before.counted) * self._rate
        lead = share + waiting
        if lead < (FLOAT_DOUBT * (before.tag + row.tag + abs(waiting)) if share and waiting else 0):
            return ""  # reserve mode let it pass, or floats do not tell
        if not lead:
            return _EQUAL_KEYS if before.submitted < row.submitted else _EQUAL_BUT_UID
        if waiting > share:
            return f"it {_WAITED_LONGER}"
        if share < _CLOSE:
            return f"its tenant has {percent(share)} less {_of_what(self._rules)}"
        return _both_in_words(before.tag, row.tag)


def _class_first(job_class: str, other: str) -> str:
    return f"class {job_class} goes before {other}"
