"""Places and standings as others see them, and places of several shards put together.

A place carries its exact terms. What is computed from them, here or by another process, is the same to the last bit,
whichever shard or grouping it came from.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain

import msgspec
import numpy as np

from fairlead_contracts.decisions import Place, Standing
from fairlead_contracts.instants import Micros
from fairlead_policy.lane import Lane
from fairlead_policy.ranking import Multipliers, Ranking, Rows, ratio
from fairlead_policy.rules import LARGEST, NOTHING, PoolRules

type SortKey = tuple[int, bool, Fraction, Micros, str]
"""(class, infinite, key, submitted, uid)."""


def place_of(lane: Lane, row: int, now: Micros) -> Place:
    """The place of the row-th job of a tenant's own order."""
    rules, job = lane.rules, lane.job_at(row)
    scores = lane.scored(row + 1)
    use, submitted = scores.use.item(row), scores.rows.submitted.item(row)
    unbounded = bool(scores.rows.rank.item(row) & 1)
    dominant, tag, key = "", 0.0, 0.0
    if scores.lacking[row]:
        dominant, use = lane.lacking_at(row)
    elif use:
        dominant = rules.resources[scores.dominant.item(row)]
    if not unbounded:
        multiplier = lane.multiplier(scores.dominant.item(row)) if use else NOTHING
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
        demand=job.demand,
    )


def _rounded(use: int, multiplier: Fraction, aged: Micros, rate: Fraction) -> tuple[float, float]:
    """Tag and key as people see them, the key counted from the Unix epoch: the floats nearest to the exact ones."""
    numerator, denominator = use * multiplier.numerator, multiplier.denominator
    waited = aged * rate.numerator * denominator
    key = ratio(numerator * rate.denominator + waited, denominator * rate.denominator)
    return ratio(numerator, denominator), key


def sort_key_at(lane: Lane, row: int, now: Micros) -> SortKey:
    """What the order goes by, exact, of the row-th job of a tenant's own order."""
    rules, scores = lane.rules, lane.scored(row + 1)
    rank, infinite = divmod(scores.rows.rank.item(row), 2)
    submitted = scores.rows.submitted.item(row)
    key = rules.aged(submitted, now) * rules.rate
    if not infinite and (use := scores.use.item(row)):
        key += use * lane.multiplier(scores.dominant.item(row))
    return rank, bool(infinite), key, submitted, lane.uid_at(row)


def sort_key(place: Place, rules: PoolRules, now: Micros) -> SortKey:
    """What the order goes by, exact. Places of one basis compare, whoever computed them."""
    key = place.use * _multiplier(place, rules) + rules.aged(place.submitted, now) * rules.rate
    return rules.rank_of(place.urgency), place.unbounded, key, place.submitted, place.uid


def merge_places(parts: Iterable[Sequence[Place]], rules: PoolRules, now: Micros) -> list[Place]:
    """The places of several shards, in the order that one shard with all tenants would give at `now`.

    Args:
        parts: of one basis, in any order; each at its own instant.
        rules: of that basis.
        now: the one instant that all are compared at; keys of places beyond the cap are brought up to it.
    """
    places = list(chain.from_iterable(parts))
    rows, multipliers = rows_of(places, rules)
    order = Ranking(rows, rules, multipliers, now).order(lambda row: places[row].uid)
    return [_at(places[row], rules, now) for row in order.tolist()]


def rows_of(places: Sequence[Place], rules: PoolRules) -> tuple[Rows, Multipliers]:
    """The places' terms as columns."""
    multipliers = Multipliers()
    multipliers.number(NOTHING)
    floats = [0.0]
    known: dict[tuple[str, str], int] = {}
    numbers = []
    for place in places:
        pair = (place.tenant, "" if place.unbounded or not place.use else place.dominant)
        number = known.get(pair)
        if number is None:
            exact = _multiplier(place, rules)
            number = known[pair] = multipliers.number(exact)
            if number == len(floats):
                floats.append(ratio(exact.numerator, exact.denominator))
        numbers.append(number)
    number_column = np.array(numbers, np.int64)
    use = np.where(number_column > 0, np.array([place.use for place in places], np.int64), 0)
    with np.errstate(over="ignore"):
        tag = use * np.array(floats)[number_column]
    return Rows(
        np.array([rules.rank_of(place.urgency) * 2 + place.unbounded for place in places], np.int64),
        use,
        number_column,
        tag,
        np.array([place.submitted for place in places], np.int64),
    ), multipliers


def standing_of(tenant: str, lane: Lane | None, rules: PoolRules) -> Standing:
    """What the tenant may have and has."""
    use = {} if lane is None else {name: min(amount, LARGEST) for name, amount in sorted(lane.use.items())}
    share, dominant = NOTHING, ""
    for name, unit in zip(rules.resources, rules.unit_shares, strict=True):
        if use.get(name, 0) * unit > share:
            share, dominant = use[name] * unit, name
    weight = rules.weight_of(tenant)
    return Standing(
        tenant=tenant,
        weight=ratio(weight.numerator, weight.denominator),
        use=use,
        share=ratio(share.numerator, share.denominator),
        dominant=dominant,
        waiting=0 if lane is None else len(lane),
        running=0 if lane is None else lane.running,
    )


def _multiplier(place: Place, rules: PoolRules) -> Fraction:
    """`v_r / c_r / w_i` of the place's dominant resource; 0 where it counts for nothing."""
    weight = rules.weight_of(place.tenant)
    if place.unbounded or not place.use or not weight:
        return NOTHING
    unit = rules.unit_share_by_name.get(place.dominant, NOTHING)
    return unit / weight


def _at(place: Place, rules: PoolRules, now: Micros) -> Place:
    """The place with its key of that instant: only a cap makes a difference."""
    if rules.cap is None or place.unbounded:
        return place
    _, key = _rounded(place.use, _multiplier(place, rules), rules.aged(place.submitted, now), rules.rate)
    return place if key == place.key else msgspec.structs.replace(place, key=key)
