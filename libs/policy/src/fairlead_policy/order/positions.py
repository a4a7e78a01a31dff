"""Places and standings as others see them, and places of several shards put together.

A place carries its exact terms. What is computed from them, here or by another process, is the same to the last bit,
whichever shard or grouping it came from.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Lift, Place, Within
from fairlead_policy.exact.ranking import Ranking, ratio
from fairlead_policy.exact.scoring import Scores, lacking_of, unbounded_by
from fairlead_policy.exact.terms import compared, counted_as, rows_of, tag_of, top_of, worth_of
from fairlead_policy.rules.pool_rules import LARGEST, NOTHING, PoolRules
from fairlead_policy.tenants.service_order import ServiceOrder
from fairlead_policy.tenants.tenant_queue import TenantQueue

type SortKey = tuple[int, Fraction, Micros, str, int]
"""(class and infinite share, key, submitted, uid, position): of the job that it counts as, but for the position."""


def place_of(tenant_queue: TenantQueue, row: int, now: Micros) -> Place:
    """The place of the row-th job of the own order of a tenant that stands alone, with strict classes."""
    rules, job = tenant_queue.rules, tenant_queue.job_at(row)
    scores = tenant_queue.scored(row + 1)
    use, submitted = scores.use.item(row), scores.rows.submitted.item(row)
    unbounded = bool(scores.rows.rank.item(row) & 1)
    dominant, tag, key = "", 0.0, 0.0
    if scores.lacking[row]:
        dominant, use = tenant_queue.lacking_at(row)
    elif use:
        dominant = rules.resources[scores.dominant.item(row)]
    if not unbounded:
        multiplier = tenant_queue.multiplier(scores.dominant.item(row)) if use else NOTHING
        tag, key = _rounded(use, multiplier, rules.aged(submitted, now), rules.rate)
    return Place(
        uid=job.uid,
        scope=job.scope,
        id=job.id,
        tenant=job.tenant,
        urgency=job.urgency,
        dominant=dominant,
        use=use,
        tag=tag,
        key=key,
        submitted=submitted,
        unbounded=unbounded,
        unbounded_by=unbounded_by(scores, row, rules.entitlement_of(tenant_queue.tenant))
        if unbounded
        else None,
        blocked=bool(scores.rows.rank.item(row) & 2),
        demand=job.demand,
    )


def _rounded(use: int, multiplier: Fraction, aged: Micros, rate: Fraction) -> tuple[float, float]:
    """Tag and key as people see them, the key counted from the Unix epoch: the floats nearest to the exact ones."""
    numerator, denominator = use * multiplier.numerator, multiplier.denominator
    waited = aged * rate.numerator * denominator
    key = ratio(numerator * rate.denominator + waited, denominator * rate.denominator)
    return ratio(numerator, denominator), key


def sort_key_at(tenant_queue: TenantQueue, row: int, now: Micros) -> SortKey:
    """What the order goes by, exact, of the row-th job of the own order of a tenant that stands alone."""
    rules, scores = tenant_queue.rules, tenant_queue.scored(row + 1)
    rank, submitted = scores.rows.rank.item(row), scores.rows.submitted.item(row)
    key = rules.aged(submitted, now) * rules.rate
    if not rank & 1 and (use := scores.use.item(row)):
        key += use * tenant_queue.multiplier(scores.dominant.item(row))
    return rank, key, submitted, tenant_queue.uid_at(row), 0


# Places in the sequence of a tree, or of classes that are not strict -------------------------------------------------


def place_in(sequence: ServiceOrder, position: int, now: Micros) -> Place:
    """The place of a job of a top-level tenant's sequence."""
    job, rules = sequence.job_at(position), sequence.measure.rules
    lifted, late = sequence.as_submitted.item(position), sequence.by_tag.item(position)
    own = lift_at(sequence, position)
    tag, key = _tag_and_key(own, sequence.top, rules, now)
    way = rules.way_up(job.tenant)
    return Place(
        uid=job.uid,
        scope=job.scope,
        id=job.id,
        tenant=job.tenant,
        urgency=job.urgency,
        override=job.override,
        dominant=own.dominant,
        use=own.use,
        share=own.share,
        tag=tag,
        key=key,
        submitted=own.submitted,
        unbounded=own.unbounded,
        unbounded_by=unbounded_by(sequence.stretch.scores, position, rules.entitlement_of(sequence.top)),
        blocked=own.blocked,
        demand=job.demand,
        top=sequence.top if sequence.top != job.tenant else "",
        position=position,
        lifted=None if lifted == position else lift_at(sequence, lifted),
        lifted_late=None if late == lifted else lift_at(sequence, late),
        within=[_within(sequence, tenant, position) for tenant in way[:-1]],
    )


def _tag_and_key(own: Lift, top: str, rules: PoolRules, now: Micros) -> tuple[float, float]:
    if own.unbounded:
        return 0.0, 0.0
    tag = tag_of(own, top, rules)
    key = worth_of(tag, own, rules) + rules.aged(own.submitted, now) * rules.rate
    return ratio(tag.numerator, tag.denominator), ratio(key.numerator, key.denominator)


def lift_at(sequence: ServiceOrder, position: int) -> Lift:
    """The terms of the job at a position."""
    scores, job = sequence.stretch.scores, sequence.job_at(position)
    dominant, use = _dominant(scores, position, sequence)
    rank = scores.rows.rank.item(position)
    return Lift(
        uid=job.uid,
        id=job.id,
        urgency=job.urgency,
        override=job.override,
        dominant=dominant,
        use=use,
        share=scores.share_at(position),
        submitted=scores.rows.submitted.item(position),
        unbounded=bool(rank & 1),
        blocked=bool(rank & 2),
    )


def _dominant(scores: Scores, position: int, sequence: ServiceOrder) -> tuple[str, int]:
    if scores.lacking[position]:
        return _lacking_at(sequence, position)
    use = scores.use.item(position)
    return (sequence.measure.rules.resources[scores.dominant.item(position)] if use else ""), use


def _lacking_at(sequence: ServiceOrder, position: int) -> tuple[str, int]:
    """The resource that makes the share infinite, and how much of it: the first cause along the sequence."""
    rules = sequence.measure.rules
    name = lacking_of(sequence.use, rules)
    if name is not None:
        return name, min(sequence.use[name], LARGEST)
    first = int((sequence.field.columns.lacking[sequence.stretch.at] > 0).argmax())
    demand = sequence.job_at(first).demand
    name = lacking_of(demand, rules) if first < position else None
    return ("", 0) if name is None else (name, min(demand[name], LARGEST))


def _within(sequence: ServiceOrder, tenant: str, position: int) -> Within:
    """What the job's tenant, or one above it, stands at among its siblings before the job."""
    rules = sequence.measure.rules
    at = sequence.position_in(tenant, position)
    own = lift_within(sequence, tenant, at)
    exact = tag_of(own, tenant, rules)
    lifter = sequence.lifter_in(tenant).item(at)
    return Within(
        tenant=tenant,
        dominant=own.dominant,
        use=own.use,
        tag=ratio(exact.numerator, exact.denominator),
        share=own.share,
        unbounded_by=unbounded_by(sequence.stretches[tenant].scores, at, rules.entitlement_of(tenant)),
        lifted=None if lifter == at else lift_within(sequence, tenant, lifter),
    )


def lift_within(sequence: ServiceOrder, tenant: str, at: int) -> Lift:
    """The terms of the job at a position of a tenant's sequence, as its siblings' are compared with them."""
    scores, job = sequence.stretches[tenant].scores, sequence.job_within(tenant, at)
    use = 0 if scores.lacking[at] else scores.use.item(at)
    rank = scores.rows.rank.item(at)
    return Lift(
        uid=job.uid,
        id=job.id,
        urgency=job.urgency,
        override=job.override,
        dominant=sequence.measure.rules.resources[scores.dominant.item(at)] if use else "",
        use=use,
        share=scores.share_at(at),
        submitted=scores.rows.submitted.item(at),
        unbounded=bool(rank & 1),
        blocked=bool(rank & 2),
    )


def sort_key_in(sequence: ServiceOrder, position: int, now: Micros) -> SortKey:
    """What the order goes by, exact, of a job of a top-level tenant's sequence."""
    terms = lift_at(sequence, sequence.lifter.item(position))
    return *compared(terms, sequence.top, sequence.measure.rules, now), position


def place_at(part: TenantQueue | ServiceOrder, at: int, now: Micros) -> Place:
    """The place of a job of a tenant that stands alone, or of a sequence."""
    return place_of(part, at, now) if isinstance(part, TenantQueue) else place_in(part, at, now)


def sort_key_of(part: TenantQueue | ServiceOrder, at: int, now: Micros) -> SortKey:
    """What the order goes by, exact, of the same."""
    return sort_key_at(part, at, now) if isinstance(part, TenantQueue) else sort_key_in(part, at, now)


# Places of any shard --------------------------------------------------------------------------------------------------


def sort_key(place: Place, rules: PoolRules, now: Micros) -> SortKey:
    """What the order goes by, exact. Places of one basis compare, whoever computed them."""
    return *compared(counted_as(place, rules, now), top_of(place), rules, now), place.position


def merge_places(parts: Iterable[Sequence[Place]], rules: PoolRules, now: Micros) -> list[Place]:
    """The places of several shards, in the order that one shard with all tenants would give at `now`.

    Args:
        parts: of one basis, in any order; each at its own instant, where no top-level tenant's own sequence moved since.
        rules: of that basis.
        now: the one instant that all are compared at; keys of places beyond the cap are brought up to it.
    """
    places = list(chain.from_iterable(parts))
    terms = [counted_as(place, rules, now) for place in places]
    rows, multipliers = rows_of(
        [(one, top_of(place)) for one, place in zip(terms, places, strict=True)], rules
    )
    ranking = Ranking(rows, rules, multipliers, now)
    order = ranking.order(lambda row: (terms[row].uid, places[row].position))
    return [_at(places[row], rules, now) for row in order.tolist()]


def _at(place: Place, rules: PoolRules, now: Micros) -> Place:
    """The place with its key of that instant: only a cap makes a difference."""
    if rules.cap is None or place.unbounded:
        return place
    worth = worth_of(tag_of(place, top_of(place), rules), place, rules)
    exact = worth + rules.aged(place.submitted, now) * rules.rate
    key = ratio(exact.numerator, exact.denominator)
    return place if key == place.key else msgspec.structs.replace(place, key=key)
