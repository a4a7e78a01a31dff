"""The text on why a job waits, as a person reads it: what decides most comes first.

Whoever shows a few of these sentences shows the first: what keeps it from starting, what puts another before it, what
would move it. What its tenant has, what its waiting is worth, its class and all else follow.
"""

from collections.abc import Mapping, Sequence

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import Position
from fairlead_contracts.messages.questions import AheadOf, Explanation
from fairlead_policy.explain.forecast_text import (
    approve_command,
    breakdown_in_words,
    changes_in_words,
    limits_in_words,
    neighbours_in_words,
    room_in_words,
)
from fairlead_policy.explain.reasons import class_in_words, terms_in_words
from fairlead_policy.rules.pool_rules import PoolRules

_TENANTS_NAMED = 3
"""Number of tenants that a sentence names; the rest are summed up."""


def waiting_in_words(found: Explanation, rules: PoolRules, now: Micros) -> list[str]:
    """The whole text on a job that waits, with its position and what would move it, as far as that is known."""
    position, what_if = found.position, found.what_if
    if position is None:
        return ["Its position is not known now: the owner of its shard did not answer in time. Ask again."]
    terms = terms_in_words(position, found.standing, rules, now)
    refused = _refused(found, position, rules.classes)
    decides = [*terms, class_in_words(position.job_class, position.override, rules), _rank(found)]
    if what_if is None:
        return [*refused, *decides]
    # Nobody need ask for a class in which the job would not move.
    moves = [move for move in what_if.counterfactuals if move.cause != "class" or move.rank != found.rank]
    first, others = changes_in_words(moves, position, now)
    nearest = neighbours_in_words(what_if, position, rules)
    return [
        *room_in_words(what_if, position, rules),
        *refused,
        *nearest[:1],
        *first,
        *decides,
        *nearest[1:],
        *breakdown_in_words(what_if, position, rules),
        *others,
        *limits_in_words(what_if, position, rules, now),
    ]


def most_first(counts: Mapping[str, int]) -> list[AheadOf]:
    """The tenants that have jobs ahead, those with most first, then by name."""
    found = [AheadOf(tenant=tenant, jobs=jobs) for tenant, jobs in counts.items() if jobs]
    return sorted(found, key=lambda line: (-line.jobs, line.tenant))


def _refused(found: Explanation, position: Position, classes: Sequence[str]) -> list[str]:
    asked = found.refused_class
    if asked is None:
        return []
    if asked not in classes:
        return [
            f"It asked for class {asked}, which the policy does not have: its classes are {', '.join(classes)}."
        ]
    by = f"{approve_command(position, asked)}, or to the tenant in the policy"
    return [
        f"It asked for class {asked}, which is not granted to {found.tenant}. An operator grants it to this job by {by}."
    ]


def _rank(found: Explanation) -> str:
    if not found.rank:
        return f"It is the first of {found.waiting} that wait in pool {found.pool}."
    stands = "1 job stands" if found.rank == 1 else f"{found.rank} jobs stand"
    return (
        f"It is number {found.rank + 1} of {found.waiting} that wait in pool {found.pool}: "
        f"{stands} before it ({_names(found.ahead, found.tenant)})."
    )


def _names(ahead: Sequence[AheadOf], own: str | None) -> str:
    parts = [
        f"{line.jobs} of {'its own tenant' if line.tenant == own else line.tenant}"
        for line in ahead[:_TENANTS_NAMED]
    ]
    rest = sum(line.jobs for line in ahead[_TENANTS_NAMED:])
    return ", ".join([*parts, f"{rest} of others"] if rest else parts)
