"""The exact terms that travel with a position, and what they come to. Terms of one basis compare, whoever computed them."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.decisions import EffectiveJob, Position
from fairlead_policy.exact.ranking import Multipliers, Rows, ratio
from fairlead_policy.rules.jobs import PositionedJob
from fairlead_policy.rules.pool_rules import NOTHING, PoolRules

type ComparedTerms = tuple[int, Fraction, Micros, str]
"""Terms that two jobs are compared by: (class and infinite share, key, submitted, uid)."""
type Terms = Position | EffectiveJob
"""The terms that a job is compared by: of a position, or of the job that it counts as."""
type Classed = Terms | PositionedJob
"""Whoever has a class, or a number that a grant gives it instead."""


def top_of(position: Position) -> str:
    """The top-level tenant of a position."""
    return position.top or position.tenant


def tag_of(terms: Terms, top: str, rules: PoolRules) -> Fraction:
    """The start tag; 0 where it is infinite."""
    entitled = rules.entitlement_of(top)
    if terms.unbounded or not entitled:
        return NOTHING
    if terms.share:
        return Fraction(terms.share)
    return terms.use * rules.unit_share_by_name.get(terms.dominant, NOTHING) / entitled


def class_weighted_tag(tag: Fraction, terms: Classed, rules: PoolRules) -> Fraction:
    """The key without waiting: the tag as the job's class changes it."""
    if rules.strict:
        return tag
    weight = rules.class_weight(terms.job_class, terms.override)
    return tag + weight if rules.class_mode == "additive" else tag / weight


def leading_of(terms: Terms, rules: PoolRules) -> int:
    """The terms that go before the key."""
    return rules.leading(terms.job_class, blocked=terms.blocked, unbounded=terms.unbounded)


def compared_terms(terms: Terms, top: str, rules: PoolRules, now: Micros) -> ComparedTerms:
    """The tuple by which the order sorts."""
    weighted = class_weighted_tag(tag_of(terms, top, rules), terms, rules)
    key = weighted + rules.aged(terms.submitted, now) * rules.rate
    return leading_of(terms, rules), key, terms.submitted, terms.uid


def effective_jobs_of(position: Position) -> Iterable[Terms]:
    """The jobs that a position may count as, now or later."""
    first = position if position.effective is None else position.effective
    return (first,) if position.effective_late is None else (first, position.effective_late)


def counted_as(position: Position, rules: PoolRules, now: Micros) -> Terms:
    """The terms that a position counts by at an instant: its own, or those of a job that holds it back."""
    first, late = position if position.effective is None else position.effective, position.effective_late
    if late is None or rules.cap is None:
        return first
    # Mostly both are on one side of the cap: the largest key as submitted counts then, or beyond it the largest tag.
    horizon = now - rules.cap
    if first.submitted >= horizon <= late.submitted:
        return first
    if first.submitted <= horizon >= late.submitted:
        return late
    top = top_of(position)
    return max(effective_jobs_of(position), key=lambda terms: compared_terms(terms, top, rules, now))


def rows_of(found: Sequence[tuple[Terms, str]], rules: PoolRules) -> tuple[Rows, Multipliers]:
    """Terms with their top-level tenants, as columns."""
    table = _Table(rules)
    numbers = np.array([table.number(terms, top) for terms, top in found], np.int64)
    amounts = [1 if terms.share else terms.use for terms, _ in found]
    use = np.where(numbers > 0, np.array(amounts, np.int64), 0)
    floats = np.array([ratio(f.numerator, f.denominator) for f in table.multipliers.exact])
    with np.errstate(over="ignore"):
        tag = use * floats[numbers]
    additive = rules.class_mode == "additive"
    rows = Rows(
        np.array([leading_of(terms, rules) for terms, _ in found], np.int64),
        use,
        numbers,
        tag,
        np.array([terms.submitted for terms, _ in found], np.int64),
        np.array([table.offset(terms) for terms, _ in found], np.int64) if additive else None,
    )
    return rows, table.multipliers


class _Table:
    """Numbers of multipliers and class weights, each worked out once."""

    def __init__(self, rules: PoolRules) -> None:
        self.multipliers = Multipliers()
        self._rules = rules
        self._known: dict[tuple[str, str, str, float | None], int] = {}

    def number(self, terms: Terms, top: str) -> int:
        rules = self._rules
        if terms.unbounded or not (terms.share or terms.use):
            return 0
        divided = rules.class_mode == "multiplicative"
        job_class, override = (terms.job_class, terms.override) if divided else ("", None)
        pair = (top, terms.share or terms.dominant, job_class, override)
        number = self._known.get(pair)
        if number is None:
            number = self._known[pair] = self.multipliers.number(
                self._multiplier(terms, top, divided=divided)
            )
        return number

    def _multiplier(self, terms: Terms, top: str, *, divided: bool) -> Fraction:
        rules = self._rules
        entitled = rules.entitlement_of(top)
        if not entitled:
            return NOTHING
        if terms.share:
            exact = Fraction(terms.share)
        else:
            exact = rules.unit_share_by_name.get(terms.dominant, NOTHING) / entitled
        return exact / rules.class_weight(terms.job_class, terms.override) if divided else exact

    def offset(self, terms: Terms) -> int:
        return self.multipliers.number(self._rules.class_weight(terms.job_class, terms.override))
