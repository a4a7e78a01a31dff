"""A job's what-if in an order that holds the whole pool, and all that is said of it, wherever it stands."""

from itertools import chain

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.explanations import WhatIf
from fairlead_policy.explain.explanation import what_if_of
from fairlead_policy.explain.forecast_text import (
    breakdown_in_words,
    changes_in_words,
    limits_in_words,
    neighbours_in_words,
    room_in_words,
)
from fairlead_policy.explain.shard_explanation import findings_in
from fairlead_policy.order.order import Order
from fairlead_policy.rules.pool_rules import PoolRules


def what_if_in(order: Order, position: Position) -> WhatIf:
    """The what-if of the job at this position."""
    found = findings_in(order, position).found
    assert found is not None  # noqa: S101 # it has this position
    return what_if_of(found, order.rules, order.now)


def told_what_if(found: WhatIf, position: Position, rules: PoolRules, now: Micros) -> list[str]:
    """The job's neighbours, the parts of its tag, what would move it, its limits, and the room that it waits for."""
    return [
        *neighbours_in_words(found, position, rules),
        *breakdown_in_words(found, position, rules),
        *chain.from_iterable(changes_in_words(found.counterfactuals, position, now)),
        *limits_in_words(found, position, rules, now),
        *room_in_words(found, position, rules),
    ]
