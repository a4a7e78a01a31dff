"""The bound in words: how long later jobs may pass a waiting one, by its tag and the rate of aging.

Of two jobs j, k of one strict class, k submitted later, k stands before j only if it was submitted less than
(tag of j - tag of k) / rate after j. No tag is below 0, so nobody who is submitted tag / rate after j passes it. In a
tree each level from the leaf up adds its own tag: the two ways may meet at any of them.
"""

from fractions import Fraction
from math import ceil

from fairlead_contracts.base.figures import duration
from fairlead_contracts.base.instants import DAY, FIRST_NAMED, LAST_NAMED, MINUTE, Micros, to_datetime
from fairlead_contracts.messages.decisions import Position
from fairlead_policy.exact.ranking import nearest_float
from fairlead_policy.exact.terms import tag_of, top_of
from fairlead_policy.rules.pool_rules import NOTHING, PoolRules

_TENTHS = 10


def bound_of(position: Position, rules: PoolRules) -> Micros | None:
    """The longest that a job may be submitted after this one and stand before it, in its class, with its tag as it is.

    Returns:
        Microseconds; None where there is no bound: waiting counts nothing, classes are not strict, its share is infinite, or
        H-DRF counts tags anew with each start.
    """
    infinite = position.unbounded or any(one.unbounded_by for one in position.within)
    if not rules.rate or not rules.strict or rules.rescaled or infinite:
        return None
    return ceil(parts_of(position, rules) / rules.rate)


def parts_of(position: Position, rules: PoolRules) -> Fraction:
    """The job's tags, from its own tenant's up to the top-level one's, in parts: 1 is all that a tenant is entitled to."""
    top = top_of(position)
    levels = ((one.tenant, one.dominant, one.use) for one in position.within)
    below = (
        use * rules.unit_share_by_name.get(dominant, NOTHING) / rules.entitlement_of(tenant)
        for tenant, dominant, use in levels
    )
    return tag_of(position, top, rules) + sum(below, NOTHING)


def bound_in_words(position: Position, rules: PoolRules) -> str | None:
    """The bound in words: in days, and by which day; None where there is no bound."""
    bound = bound_of(position, rules)
    if bound is None:
        return None
    if not bound:
        return f"No {position.job_class} job that is submitted later passes it: nothing of its tenant counts before it."
    total = parts_of(position, rules)
    parts = f"{nearest_float(total):.3g}"
    counted = "its tags, level by level, come to" if position.within else "its tag is"
    whole = "one whole part" if rules.relative else "the whole pool over a weight of 1"
    worth = f"{_days(ceil(1 / rules.rate))} of waiting make up for {whole}, and {counted} {parts}"
    if rules.cap is not None and bound > rules.cap:
        return (
            f"Later jobs may pass it for ever: {worth}. Waiting counts no further than the cap of "
            f"{duration(rules.cap / 1e6)}."
        )
    until = "" if rules.cap is None else f", and that is within the cap of {duration(rules.cap / 1e6)}"
    return (
        f"No {position.job_class} job that is submitted {_from_when(position.submitted, bound)} passes it, as long as its own tenant "
        f"gets nothing else before it. {worth}{until}."
    )


def _from_when(submitted: Micros, bound: Micros) -> str:
    """The day from which the bound holds, where a calendar has it: a small part beside a large job may take longer."""
    latest = -(-(submitted + bound) // MINUTE) * MINUTE
    if not FIRST_NAMED <= latest <= LAST_NAMED:
        return f"{_days(bound)} after it, or later,"
    return f"from {to_datetime(latest):%Y-%m-%d %H:%M} UTC on ({_days(bound)} after it)"


def _days(time: Micros) -> str:
    """A time in days, or in what is shorter, rounded up: a bound that is told holds."""
    if time < DAY:
        return duration(ceil(time / MINUTE) * 60)
    return f"{ceil(time * _TENTHS / DAY) / _TENTHS:g} days"
