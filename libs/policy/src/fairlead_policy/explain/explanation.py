"""A waiting job's explanation put together: the parts of its tag, its neighbours, what would move it, and the room."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from fairlead_contracts.base.instants import LAST_NAMED, MINUTE, Micros, to_datetime
from fairlead_contracts.messages.decisions import EffectiveJob, Position, UnboundedBy
from fairlead_contracts.messages.explanations import (
    ComparedTerm,
    Counterfactual,
    Neighbour,
    RoomForecast,
    ShareBreakdown,
    Surroundings,
    WhatIf,
)
from fairlead_policy.exact.ranking import nearest_float
from fairlead_policy.exact.terms import Terms, class_weighted_tag, counted_as, leading_of, tag_of, top_of
from fairlead_policy.explain.counterfactuals import (
    first_to_pass,
    passes_at,
    stands_alone,
    starts_to_fall_behind,
    weight_to_pass,
)
from fairlead_policy.explain.what_if import AmountsByResource, has_to_be_tried
from fairlead_policy.rules.pool_rules import NOTHING, PoolRules

NEIGHBOURS = 8
"""Number of jobs that are looked at on each side of a job."""
_SHOWN = 3
"""Number of neighbours that are told, and of instants."""


class ExplanationFacts(NamedTuple):
    """The orders and facts that one waiting job is explained from."""

    position: Position
    breakdown: ShareBreakdown | None
    around: Surroundings
    targets: Sequence[Position]
    """Jobs that it could pass; see `targets_of`."""
    ends: Sequence[AmountsByResource | None]
    """Amounts of its tenant's running jobs that have to end before the job passes each target."""
    ranks: Sequence[int | None]
    """Rank that the job would have after each of these ends, from 0; None where it need not be tried."""
    promotions: Sequence[tuple[str, int]]
    """Classes and the rank that the job would have in each, from 0."""


def targets_of(position: Position, around: Surroundings, rules: PoolRules, now: Micros) -> list[Position]:
    """Other tenants' jobs that the job could pass: the nearest, and the first of its class."""
    nearest = next((one for one in around.nearest if _passable(position, one, rules, now)), None)
    found = [one for one in (nearest, around.foremost) if one is not None]
    return list({one.uid: one for one in found}.values())


def _passable(position: Position, other: Position, rules: PoolRules, now: Micros) -> bool:
    same = leading_of(counted_as(position, rules, now), rules) == leading_of(
        counted_as(other, rules, now), rules
    )
    return same and top_of(position) != top_of(other)


def what_if_of(found: ExplanationFacts, rules: PoolRules, now: Micros) -> WhatIf:
    """The explanation that was found, in the form in which people and programs read it."""
    position, around = found.position, found.around
    others = [one for one in around.nearest if _passable(position, one, rules, now)]
    timed = _by_time(position, others, around, rules, now)
    return WhatIf(
        breakdown=found.breakdown,
        nearest=[neighbour_of(position, one, rules, now) for one in around.nearest[:_SHOWN]],
        counterfactuals=[
            *_by_ends(found),
            *_by_starts(position, others, rules, now),
            *timed,
            *_by_class(found),
            *_by_weight(position, around, rules, now),
        ],
        still=not timed
        and not around.fading
        and around.moves_at is None
        and (_tells_time(rules) or rules.cap is None),
        fading=around.fading,
        room=_room(position, around, rules),
    )


# Neighbours ------------------------------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One of two jobs where their ways up part: its tenant there, its terms, and why its share is infinite."""

    tenant: str
    terms: Terms
    unbounded_by: UnboundedBy | None


class _Leads(NamedTuple):
    """The lead of one key over another, term by term: together they are the difference of the keys."""

    share: Fraction = NOTHING
    job_class: Fraction = NOTHING
    waiting: Fraction = NOTHING


def neighbour_of(position: Position, other: Position, rules: PoolRules, now: Micros) -> Neighbour:
    """A job that stands before another, and the term by which it does.

    Args:
        position: the position of the job behind.
        other: the position of the one before it.
    """
    parent, own, bar = _sides_where_ways_part(position, other, rules, now)
    same = position.tenant == other.tenant
    leads = _Leads() if same else _leads(own, bar, rules, now)
    term = _within_tenant(position, other, rules) if same else _term(own, bar, leads, rules)
    return Neighbour(
        uid=other.uid,
        scope=other.scope,
        id=other.id,
        tenant=other.tenant,
        job_class=other.job_class,
        within=parent,
        side=_unless_same(bar.tenant, other.tenant),
        own_side=_unless_same(own.tenant, position.tenant),
        effective=_effective_name(bar.terms, other),
        own_effective=_effective_name(own.terms, position),
        term=term,
        share_lead=nearest_float(leads.share),
        class_lead=nearest_float(leads.job_class),
        waiting_lead=nearest_float(leads.waiting),
        unbounded_by=own.unbounded_by if term == "infinite" else None,
    )


def _unless_same(name: str, known: str) -> str:
    return "" if name == known else name


def _effective_name(terms: Terms, position: Position) -> str:
    """The name of the job whose terms count; empty where they are the position's own."""
    return "" if terms.uid == position.uid else terms.id or terms.uid


def _sides_where_ways_part(
    position: Position, other: Position, rules: PoolRules, now: Micros
) -> tuple[str, _Side, _Side]:
    """The lowest tenant above both jobs, empty for the pool itself, and the two sides below it."""
    if position.tenant == other.tenant:
        alone = [_Side(position.tenant, one, None) for one in (position, other)]
        return position.tenant, alone[0], alone[1]
    if top_of(position) != top_of(other):
        return "", _at_the_top(position, rules, now), _at_the_top(other, rules, now)
    ways = rules.way_up(position.tenant), rules.way_up(other.tenant)
    parent = next(one for one in ways[0] if one in ways[1])
    own, bar = (
        _below(way[way.index(parent) - 1], one) for way, one in zip(ways, (position, other), strict=True)
    )
    return parent, own, bar


def _at_the_top(position: Position, rules: PoolRules, now: Micros) -> _Side:
    return _Side(top_of(position), counted_as(position, rules, now), position.unbounded_by)


def _below(tenant: str, position: Position) -> _Side:
    """The terms that a job counts by as one of this tenant's, among the tenant's siblings."""
    level = next((one for one in position.within if one.tenant == tenant), None)
    if level is None:
        return _Side(tenant, position, None)
    own = EffectiveJob(
        uid=position.uid,
        id=position.id,
        job_class=position.job_class,
        override=position.override,
        dominant=level.dominant,
        use=level.use,
        share=level.share,
        submitted=position.submitted,
        unbounded=level.unbounded_by is not None,
        blocked=position.blocked,
    )
    return _Side(tenant, level.effective or own, level.unbounded_by)


def _leads(own: _Side, bar: _Side, rules: PoolRules, now: Micros) -> _Leads:
    """The difference of the keys, term by term; an infinite start tag is no term. Across strict classes keys say nothing."""
    if leading_of(own.terms, rules) != leading_of(bar.terms, rules):
        return _Leads()
    tags = [tag_of(one.terms, one.tenant, rules) for one in (own, bar)]
    weighted = [class_weighted_tag(tag, one.terms, rules) for tag, one in zip(tags, (own, bar), strict=True)]
    share = tags[0] - tags[1]
    aged = [rules.aged(one.terms.submitted, now) for one in (own, bar)]
    return _Leads(share, weighted[0] - weighted[1] - share, (aged[0] - aged[1]) * rules.rate)


def _within_tenant(position: Position, other: Position, rules: PoolRules) -> ComparedTerm:
    """The term that decides between two jobs of one tenant: its own order knows no shares."""
    if rules.strict and rules.rank_of(position.job_class) != rules.rank_of(other.job_class):
        return "class"
    return "used-up" if position.blocked != other.blocked else "own-order"


def _term(own: _Side, bar: _Side, leads: _Leads, rules: PoolRules) -> ComparedTerm:
    """The term that decides: among terms of the key the one with the largest lead."""
    ranked = _term_before_key(own.terms, bar.terms, rules)
    if ranked is not None:
        return ranked
    if sum(leads, NOTHING) > 0:
        by_lead: dict[ComparedTerm, Fraction] = {
            "share": leads.share,
            "waiting": leads.waiting,
            "class": leads.job_class,
        }
        return max(by_lead, key=by_lead.__getitem__)
    return "submitted" if own.terms.submitted != bar.terms.submitted else "uid"


def _term_before_key(own: Terms, bar: Terms, rules: PoolRules) -> ComparedTerm | None:
    if rules.strict and rules.rank_of(own.job_class) != rules.rank_of(bar.job_class):
        return "class"
    if own.blocked != bar.blocked:
        return "used-up"
    return "infinite" if own.unbounded != bar.unbounded else None


# Counterfactuals -------------------------------------------------------------------------------------------------------


def _by_ends(found: ExplanationFacts) -> list[Counterfactual]:
    position, breakdown, around = found.position, found.breakdown, found.around
    if breakdown is None:
        return []
    counterfactuals = []
    for target, ends, rank in zip(found.targets, found.ends, found.ranks, strict=True):
        if ends:
            first = around.foremost is not None and target.uid == around.foremost.uid and not position.top
            counterfactuals.append(
                Counterfactual(
                    cause="ends",
                    rank=None if not first else rank if has_to_be_tried(position) else around.fixed,
                    passed=target.uid,
                    passed_id=target.id,
                    passed_tenant=target.tenant,
                    tenant=position.tenant,
                    amounts=dict(ends),
                    held={name: breakdown.own_running.get(name, 0) for name in ends},
                )
            )
    return counterfactuals


def _by_starts(
    position: Position, others: Sequence[Position], rules: PoolRules, now: Micros
) -> list[Counterfactual]:
    if rules.rescaled:
        return []  # a start may use a resource up, and move whole classes
    for other in others:
        if stands_alone(other, rules):
            found = starts_to_fall_behind(position, other, rules, now)
            if found is None:
                return []
            return [
                Counterfactual(
                    cause="starts",
                    passed=other.uid,
                    passed_id=other.id,
                    passed_tenant=other.tenant,
                    tenant=other.tenant,
                    amounts={found[0]: found[1]},
                )
            ]
    return []


def _tells_time(rules: PoolRules) -> bool:
    """Whether instants are told: in a tree with classes that are terms, time moves the tenants' own sequences, too."""
    return rules.strict or not rules.parents


def _by_time(
    position: Position, others: Sequence[Position], around: Surroundings, rules: PoolRules, now: Micros
) -> list[Counterfactual]:
    if not _tells_time(rules):
        return []
    # Once a tree's own sequence moves, its jobs count by other terms. Words tell the next whole minute: that comes first.
    moves_at = around.moves_at
    last = LAST_NAMED if moves_at is None else min(LAST_NAMED, (moves_at - 1) // MINUTE * MINUTE)
    instants = ((passes_at(position, other, rules, now), other) for other in others)
    found = [(at, other) for at, other in instants if at is not None and at <= last]
    found.sort(key=lambda part: (part[0], part[1].uid))
    counterfactuals = [_passing(other, at, ahead=True) for at, other in found[:_SHOWN]]
    behind = [one for one in around.behind if _passable(position, one, rules, now)]
    passing = first_to_pass(position, behind, rules, now)
    if passing is None or passing[0] > last:
        return counterfactuals
    return [*counterfactuals, _passing(passing[1], passing[0], ahead=False)]


def _passing(other: Position, at: Micros, *, ahead: bool) -> Counterfactual:
    return Counterfactual(
        cause="time",
        ahead=ahead,
        passed=other.uid,
        passed_id=other.id,
        passed_tenant=other.tenant,
        at=to_datetime(at),
    )


def _by_class(found: ExplanationFacts) -> list[Counterfactual]:
    if not found.around.nearest:
        return []  # it is the first already
    return [
        Counterfactual(cause="class", rank=rank, job_class=job_class) for job_class, rank in found.promotions
    ]


def _by_weight(
    position: Position, around: Surroundings, rules: PoolRules, now: Micros
) -> list[Counterfactual]:
    if around.foremost is None or not stands_alone(position, rules):
        return []
    weight = weight_to_pass(position, around.foremost, rules, now)
    if weight is None:
        return []
    return [
        Counterfactual(
            cause="weight",
            rank=around.fixed,
            tenant=position.tenant,
            weight=nearest_float(weight),
        )
    ]


# Room ------------------------------------------------------------------------------------------------------------------


def _room(position: Position, around: Surroundings, rules: PoolRules) -> RoomForecast:
    demand = {name: amount for name, amount in sorted(position.demand.items()) if amount > 0}
    free = {name: rules.capacity.get(name, 0) - around.used.get(name, 0) for name in demand}
    missing = {name: amount - free[name] for name, amount in demand.items() if amount > free[name]}
    behind = {name: amount + around.asked.get(name, 0) for name, amount in demand.items()}
    return RoomForecast(
        free=free,
        missing=missing,
        in_turn={name: amount - free[name] for name, amount in behind.items() if amount > free[name]},
        holders=[one for one in around.holders if one.resource in missing],
    )
