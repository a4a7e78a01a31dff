"""What-if in words: what a job's tag is made of, who stands right before it and why, what would move it.

Every number is one that was solved for; amounts that have to end, weights and times are rounded up to what people count
in, so that a sentence stays true.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from math import ceil

from fairlead_contracts.base.figures import duration, part_of, percent
from fairlead_contracts.base.instants import MINUTE, SECOND, Micros, from_datetime, to_datetime
from fairlead_contracts.base.quantities import base_units, format_quantity, short_resource
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.explanations import (
    Counterfactual,
    ShareBreakdown,
    TenantHolding,
    WhatIf,
)
from fairlead_contracts.snapshot.types import name_in_snapshot
from fairlead_policy.exact.terms import counted_as
from fairlead_policy.explain.bound_text import bound_in_words
from fairlead_policy.explain.neighbour_text import before_in_words
from fairlead_policy.explain.what_if import unit_of
from fairlead_policy.rules.pool_rules import PoolRules

_CAUSES_FIRST = 2
_MOST_RESOURCES = 3
_FEW_DIGITS = 10
_UPWARDS = Context(prec=4, rounding=ROUND_CEILING)


def neighbours_in_words(found: WhatIf, position: Position, rules: PoolRules) -> list[str]:
    """The jobs right before it and why they are there, the nearest first."""
    return [before_in_words(one, position, rules) for one in found.nearest]


def changes_in_words(
    moves: Sequence[Counterfactual], position: Position, now: Micros
) -> tuple[list[str], list[str]]:
    """The changes that would move it, a sentence each: the nearest by two causes, then all others."""
    by_cause: dict[str, Counterfactual] = {}
    for move in moves:
        by_cause.setdefault(move.cause, move)
    nearest = list(by_cause.values())[:_CAUSES_FIRST]
    others = [move for move in moves if not any(move is one for one in nearest)]
    first, rest = (
        [_change_in_words(move, position, now) for move in counterfactuals]
        for counterfactuals in (nearest, others)
    )
    return first, rest


def limits_in_words(found: WhatIf, position: Position, rules: PoolRules, now: Micros) -> list[str]:
    """The limits of waiting, and how far the others' numbers hold."""
    lines = []
    if found.still and found.nearest and rules.rate:
        lines.append(
            f"Waiting longer does not move it past its neighbours: {_because(position, rules, now)}."
        )
    bound = bound_in_words(position, rules)
    if bound is not None and not found.fading:
        lines.append(bound)
    if found.fading:
        lines.append("Past use counts here and fades: as it does, jobs move sooner or later than told here.")
    return lines


def _because(position: Position, rules: PoolRules, now: Micros) -> str:
    """The reason for which time changes nothing: beyond the cap younger jobs may pass, and none here does."""
    if rules.cap is None:
        return "all jobs age alike"
    if max(position.submitted, counted_as(position, rules, now).submitted) <= now - rules.cap:
        return "it has reached the cap of aging, and no younger job behind it can pass it by aging on"
    return "all jobs age alike up to the cap, and beyond it no younger job behind can pass an older one"


def breakdown_in_words(found: WhatIf, position: Position, rules: PoolRules) -> Iterator[str]:
    """The parts of its tag."""
    breakdown = found.breakdown
    if breakdown is None:
        return
    jobs = "1 job" if breakdown.jobs == 1 else f"{breakdown.jobs} jobs"
    whose = "" if breakdown.tenant == position.tenant else f"{breakdown.tenant}, "
    largest = sorted(breakdown.shares.items(), key=lambda part: (-part[1], part[0]))[:_MOST_RESOURCES]
    for resource, share in largest:
        parts = [
            f"{_amount(resource, amount)} {words}"
            for amount, words in (
                (breakdown.running.get(resource, 0), "running"),
                (breakdown.past.get(resource, 0), "of past use"),
                (breakdown.before.get(resource, 0), f"for {jobs} of its own before it"),
            )
            if amount
        ]
        counts = " This resource counts." if resource == position.dominant and len(largest) > 1 else ""
        yield (
            f"{whose}{short_resource(resource)}: {' and '.join(parts)} are {part_of(share * breakdown.entitled, 'the pool')}, "
            f"{_of_part(share, breakdown, rules)}.{counts}"
        )


def _of_part(share: float, breakdown: ShareBreakdown, rules: PoolRules) -> str:
    if not rules.relative:
        return f"{percent(share)} over its weight of {breakdown.weight:g}"
    return f"{part_of(share, 'its part')} (weight {breakdown.weight:g} entitles it to {percent(breakdown.entitled)})"


def _by_ends(move: Counterfactual, position: Position) -> str:
    parts = [
        f"{_rounded_up(name, amount, move.held.get(name, 0))} of its {_amount(name, move.held.get(name, 0))} {short_resource(name)}"
        for name, amount in move.amounts.items()
    ]
    # From an infinite share to a finite one: whoever stays before it, stays by more than its class.
    then = f"It becomes number {move.rank + 1}" if move.rank and position.unbounded else _then(move)
    owner = "its own tenant" if move.tenant == position.tenant else str(move.tenant)
    return f"{then} once {owner} gives back {' and '.join(parts)}."


def _by_starts(move: Counterfactual) -> str:
    [(name, amount)] = move.amounts.items()
    # Whole cards and cores, whatever the other tenant holds: nobody can start a thousandth of one, and more is enough, too.
    more = _rounded_up(name, amount if base_units(name) == 1 else max(amount, unit_of(name)))
    return f"{_named(move)} falls behind it once {move.tenant} starts {more} {short_resource(name)} more before that one."


def _by_time(move: Counterfactual, now: Micros) -> str:
    at = ""
    if move.at is not None:
        # The next whole minute: what happens at the instant has happened then.
        minute = -(-from_datetime(move.at) // MINUTE) * MINUTE
        at = f"at {to_datetime(minute):%Y-%m-%d %H:%M} UTC (in {duration(max(0, minute - now) / SECOND)})"
    if move.ahead:
        return f"It overtakes {_named(move)} {at}: that job reaches the cap of aging by then, and this one ages on."
    return (
        f"{_named(move)} overtakes it {at}: this job reaches the cap of aging by then, and that one ages on."
    )


def approve_command(position: Position, job_class: str) -> str:
    """The command that grants a class to the job. It names the scope: several may have a job of that id."""
    name = name_in_snapshot(position.scope, position.id) if position.id else position.uid
    return f"`fairlead approve {name} --class {job_class}`"


def _by_class(move: Counterfactual, position: Position) -> str:
    return (
        f"As {move.job_class} it would be number {(move.rank or 0) + 1}: an operator can grant that with "
        f"{approve_command(position, move.job_class or '')}."
    )


def _by_weight(move: Counterfactual) -> str:
    least = float(_UPWARDS.create_decimal(repr(move.weight)))
    return f"{_then(move)} if operators give {move.tenant} a weight above {least:.4g}; a smaller one may be enough."


def _change_in_words(move: Counterfactual, position: Position, now: Micros) -> str:
    match move.cause:
        case "ends":
            return _by_ends(move, position)
        case "starts":
            return _by_starts(move)
        case "time":
            return _by_time(move, now)
        case "class":
            return _by_class(move, position)
        case "weight":
            return _by_weight(move)


def _then(move: Counterfactual) -> str:
    if move.rank is None:
        return f"It goes before {_named(move)}"
    if move.rank == 0:
        return "It becomes first"
    return f"It becomes number {move.rank + 1} (higher classes and its own tenant's jobs stay before it)"


def _named(move: Counterfactual) -> str:
    return f"{move.passed_id} of {move.passed_tenant}" if move.passed_id else f"a job of {move.passed_tenant}"


def room_in_words(found: WhatIf, position: Position, rules: PoolRules) -> Iterator[str]:
    """The ends that make room for it: to be first in line is not to start. Nothing where they are not known."""
    room = found.room
    if room is None:
        return
    if rules.beyond(position.demand):
        return  # said already: it can never start
    if any(room.free.get(name, 0) < 0 for name in room.missing):
        yield (
            f"It cannot start yet: more runs than its pool has, so {_amounts(room.missing)} have to be given back "
            f"first{_held_by(room.holders)}."
        )
    elif room.missing:
        yield f"It cannot start yet: it needs {_amounts(room.missing)} more than are free{_held_by(room.holders)}."
    else:
        beside = "" if room.in_turn else ", together with all jobs before it"
        yield f"It fits into what its pool has free{beside}."
    if room.in_turn and room.in_turn != room.missing:
        yield f"The jobs before it start first: after that, {_amounts(room.in_turn)} have to be given back before it can start."


def _held_by(holders: Sequence[TenantHolding]) -> str:
    if not holders:
        return ""
    parts = (
        f"{one.tenant} holds {_amount(one.resource, one.amount)} {short_resource(one.resource)}"
        for one in holders
    )
    return f" ({', '.join(parts)})"


def _amounts(amounts: Mapping[str, int]) -> str:
    return " and ".join(
        f"{_rounded_up(name, amount)} {short_resource(name)}" for name, amount in amounts.items()
    )


def _rounded_up(resource: str, amount: int, most: int | None = None) -> str:
    """The amount in whole cards, cores or GiB, at least; exactly where parts of them are what is held."""
    unit = unit_of(resource)
    if amount < unit and (most is None or most % unit):
        return _amount(resource, amount)
    whole = ceil(amount / unit) * unit
    return _amount(resource, whole if most is None else min(whole, most))


def _amount(resource: str, amount: int) -> str:
    """An amount in at most a few digits: bytes that are no whole number of anything are given in GiB."""
    exact = format_quantity(resource, amount)
    if len(exact) < _FEW_DIGITS or base_units(resource) > 1:
        return exact
    return f"{amount / unit_of(resource):.1f}Gi"
