"""Positions of several shards put together. Each carries its exact terms, so whoever computed it does not matter."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain

import msgspec

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_policy.exact.ranking import Ranking, exactly_unaged, ratio
from fairlead_policy.exact.terms import (
    class_weighted_tag,
    compared_terms,
    counted_as,
    rows_of,
    tag_of,
    top_of,
)
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_policy.tenants.service_order import ServiceOrder

type SortKey = tuple[int, Fraction, Micros, str, int]
"""Key by which the order sorts a job: (class and infinite share, key, submitted, uid, own rank), all but the
own rank those of the job that it counts as."""


def sort_key(position: Position, rules: PoolRules, now: Micros) -> SortKey:
    """The exact key that the order sorts by. Positions of one basis compare, whoever computed them."""
    return *compared_terms(counted_as(position, rules, now), top_of(position), rules, now), position.own_rank


def sort_key_at(sequence: ServiceOrder, index: int, now: Micros) -> SortKey:
    """The exact key of a job of a top-level tenant's sequence: as `sort_key` of its position."""
    rows, rules, effective_row = sequence.own_rows, sequence.measure.rules, sequence.effective_row.item(index)
    submitted = rows.submitted.item(effective_row)
    unaged = exactly_unaged(rows, effective_row, sequence.measure.multipliers)
    return (
        rows.rank.item(effective_row),
        unaged + rules.aged(submitted, now) * rules.rate,
        submitted,
        sequence.uid_at(effective_row),
        0 if sequence.alone else index,
    )


def merge_positions(parts: Iterable[Sequence[Position]], rules: PoolRules, now: Micros) -> list[Position]:
    """The positions of several shards, in the order that one shard with all tenants would give at `now`.

    Args:
        parts: parts of one basis, in any order; each at its own instant, where no top-level tenant's own sequence moved since.
        now: the one instant that all are compared at; keys of positions beyond the cap are brought up to it.
    """
    positions = list(chain.from_iterable(parts))
    terms = [counted_as(position, rules, now) for position in positions]
    rows, multipliers = rows_of(
        [(one, top_of(position)) for one, position in zip(terms, positions, strict=True)], rules
    )
    ranking = Ranking(rows, rules, multipliers, now)
    order = ranking.order(lambda row: (terms[row].uid, positions[row].own_rank))
    return [_at(positions[row], rules, now) for row in order.tolist()]


def _at(position: Position, rules: PoolRules, now: Micros) -> Position:
    """The position with its key of that instant: only a cap makes a difference."""
    if rules.cap is None or position.unbounded:
        return position
    weighted = class_weighted_tag(tag_of(position, top_of(position), rules), position, rules)
    exact = weighted + rules.aged(position.submitted, now) * rules.rate
    key = ratio(exact.numerator, exact.denominator)
    return position if key == position.key else msgspec.structs.replace(position, key=key)
